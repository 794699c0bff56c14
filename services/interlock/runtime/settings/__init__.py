"""The settings model and its types, strict YAML, and files that are read again when they change.

Every service and command, and the rooms of the runtime above it, may import it.
"""

"""The rules of the specification, pure: no clock, no randomness, no I/O, nothing of ours imported.

Every other package may import it.
"""

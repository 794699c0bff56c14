"""Servers that a command runs on this machine: a Valkey and a tritonserver from wheels, tied to the process's life.

Commands import it; it imports none of them.
"""

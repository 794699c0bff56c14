"""The log's storage: the port in ``log``, its adapters for SQLite and PostgreSQL, encrypted contents, and the fence.

Imported by ``requests``, every room above it, ``wiring`` and the command line. It imports no other room.
"""

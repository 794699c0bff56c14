"""The port to the state of sessions, its twin in memory, and the adapter for Redis and Valkey, alone or many.

The lowest room of the service: it imports no other.
"""

"""Master keys by version: the file that holds them, and the keys that are derived from them.

Services and commands may import it; no other room of the runtime does.
"""

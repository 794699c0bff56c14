"""Personal data in an answer: patterns, checksums of national numbers, addresses and recognized entities.

`pipeline.py` runs it and `wiring.py` opens it; no other room imports it.
"""

"""What follows a settlement: effects on record, settlements made good after a crash, and lost trees rebuilt.

`admission` and every room above it may import it; `wiring.py` builds it.
"""

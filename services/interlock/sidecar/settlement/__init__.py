"""What follows a settlement: effects on record, settlements made good after a crash, and lost trees rebuilt.

`admission` and the fronts import it; `wiring.py` builds it.
"""

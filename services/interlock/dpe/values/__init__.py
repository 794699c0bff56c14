"""Values in a text: numbers, quantities with units, dates, periods, and what each of them belongs to.

`claims`, `comparison` and `grounding` import it; it needs `text` alone.
"""

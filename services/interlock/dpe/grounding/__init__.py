"""An answer against its facts: attribution, support, fabrication, distortion, omission, fidelity.

`quality`, `risk.py`, `summary.py` and the modules above import it.
"""

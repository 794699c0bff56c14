"""Two texts side by side: alignment, values that conflict, polarity, limits, hedges, contradiction.

`grounding`, `quality` and the modules above import it; it knows nothing of reports or risk.
"""

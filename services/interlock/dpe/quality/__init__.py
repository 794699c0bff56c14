"""The quality of an answer: coverage of the query, completeness, repetition, flow, and agreement between agents.

`intake.py`, `report` and `pipeline.py` import it.
"""

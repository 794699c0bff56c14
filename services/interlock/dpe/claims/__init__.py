"""Claims: clauses of the answer's sentences, who or what each is about, and how it is worded.

The rooms above compare and ground claims: `comparison`, `grounding`, `quality`, `summary.py`, `judging.py`.
"""

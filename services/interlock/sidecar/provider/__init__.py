"""The model provider: dispatch, strategies, prompts, and what a remedy asks for.

The guard, the rounds, `requests.py`, `context` and the fronts import it.
"""

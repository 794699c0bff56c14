"""Admitting a call: caller, agent type, grant or token, policy, and the window with its budget.

The guard, the rounds, `requests.py`, `context` and the fronts import it.
"""

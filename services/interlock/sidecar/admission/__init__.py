"""Admitting a call: caller, agent type, grant or token, policy, and the window with its budget.

`context` and every room above it may import it.
"""

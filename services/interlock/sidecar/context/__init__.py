"""What a window is made from: earlier answers, results of sub-agents, and the facts that fit the token budget.

The rounds, `requests.py` and the hierarchical front import it.
"""

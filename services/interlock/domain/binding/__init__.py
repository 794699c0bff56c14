"""Which session a call without a token belongs to: what speaks for one, what is kept of it, and the rule that decides (ATT-1).

The services' rooms import it; it knows ids alone.
"""

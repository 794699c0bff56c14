"""`interlock oversight`: the queue of held responses, reviewers, their keys and their signatures.

No other command imports it.
"""

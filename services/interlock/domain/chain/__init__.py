"""The audit chain: types of events, their HMACs, the check of a stored chain, and what a session's chain proves of it.

`domain.merkle` and `domain.session` build on it; outside the domain, every service may import it.
"""

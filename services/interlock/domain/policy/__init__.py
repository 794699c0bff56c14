"""The safety policy: its text, the order from loose to tight, layers that only tighten, the decision on a response.

`agents`, `session`, `quality` and `conformance` build on it; outside the domain, every service may import it.
"""

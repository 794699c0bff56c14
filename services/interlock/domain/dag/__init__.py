"""The graph of a session's windows: nodes, edges, limits, ancestors, and the sizes of what passes from one to the next.

`domain.session` and `domain.agents` build on it; outside the domain, every service may import it.
"""

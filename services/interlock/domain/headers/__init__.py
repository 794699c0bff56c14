"""The CRP headers: who may send which, the grammar of their values, and what crosses from one agent to another.

No other room of the domain imports it; the sidecar and the client do.
"""

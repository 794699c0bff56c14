"""The Merkle log over the events of all sessions: entries, tree, proofs, signed checkpoints, and their examination.

No other room of the domain imports it; the audit service, its settings and its commands do.
"""

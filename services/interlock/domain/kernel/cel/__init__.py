"""Invariants in the Common Expression Language: what they may speak of, and what they say of a state (docs/adr/0056)."""

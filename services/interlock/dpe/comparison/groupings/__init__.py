"""Groupings: things that a source keeps apart under labels, in sections or by *respectively* (SPEC-005 §5.3)."""

"""Bindings: which filler a text puts into which slot of a predicate, compared between a claim and its sources (SPEC-005 §5.3)."""

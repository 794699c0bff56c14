"""Stances: which side of a question a clause takes, in whatever words, compared between a claim and its sources (SPEC-005 §5.3)."""

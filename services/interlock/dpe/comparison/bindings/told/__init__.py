"""Told: what a sentence asserts and what it denies, in one form for every wording."""

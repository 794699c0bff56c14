"""Comparers of phrases that say the same with any verb: from one place to another, one alone or both, the excepted counted among the rest."""

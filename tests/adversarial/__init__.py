"""Attacks on the engine: what a model may write to be judged better than it is (reliability.md A-16, A-23 to A-25)."""

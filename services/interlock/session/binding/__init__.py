"""Binding calls without a token to their sessions: noting what may name one, and opening the window that it names (ATT-1)."""

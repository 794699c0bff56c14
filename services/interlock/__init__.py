"""Interlock: a safety interlock for chains of AI agents."""

"""Parses as plain objects, and what is read of each word once."""

"""The session service: tokens, windows, budgets, grants and trees, kept in Redis or Valkey.

No other service imports it: its callers use its stub.
"""

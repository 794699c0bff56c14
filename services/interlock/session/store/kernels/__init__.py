"""Kernels in the store: what a store of them does, in memory and in Redis or Valkey."""

"""Kernels: reading what is asked, deciding it in the store, telling the verdict (docs/kernel.md)."""

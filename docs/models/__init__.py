"""Models of our protocols, checked exhaustively by ``tests/property/test_kernel_model.py`` (ADR 43)."""

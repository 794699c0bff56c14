"""Unit tests of the decision engine."""

"""Figures that one more step than a plain operation leads to from what the sources say."""

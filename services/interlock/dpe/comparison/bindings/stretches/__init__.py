"""Stretches of a sentence that stand beside each other: pieces with a value of their own, parts with words of their own."""

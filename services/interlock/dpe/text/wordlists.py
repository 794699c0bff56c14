"""Word lists: short ones in the code, and larger ones as package data."""

from importlib.resources import files


def word_set(text: str) -> frozenset[str]:
    """Return the set of words in a white-space separated list."""
    return frozenset(text.split())


def lines(name: str) -> list[str]:
    """Return the lines of a data file, without comments and blank lines."""
    text = files("interlock.dpe").joinpath("data", name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]

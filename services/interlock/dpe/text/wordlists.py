"""Word lists: those in the code, and the larger ones that come as package data."""

from importlib.resources import files


def word_set(text: str) -> frozenset[str]:
    """Return the words of a list that is written as running text."""
    return frozenset(text.split())


def lines(name: str) -> list[str]:
    """Return the lines of a data file, without comments and blank ones."""
    text = files("interlock.dpe").joinpath("data", name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]

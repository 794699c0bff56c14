"""Measures: the figures that a source gives for each of several things, so that what a claim ranks can be reckoned (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import DATE, ORDINAL, Value

_BREAK = pattern(r",\s|;|\n|[.!?](?:\s|\z)|\s(?:and|but|while|whereas)\s")
_LONGEST, _LEAST, _MOST = 8000, 2, 40


@dataclass(frozen=True)
class Measured:
    """A thing by the words around its figure, and the figure."""

    words: frozenset[str]
    value: Value


@dataclass(frozen=True)
class Measures:
    """Things with figures of one unit, from one source."""

    things: tuple[Measured, ...]
    text: str
    fact_id: str = ""

    def own(self, thing: Measured) -> frozenset[str]:
        """Return the words by which a thing is told from the others."""
        return thing.words - frozenset(word for each in self.things if each is not thing for word in each.words)


def measures(text: str, fact_id: str) -> tuple[Measures, ...]:
    """Return the things of a text that have one figure each, by the unit of the figures."""
    if len(text) > _LONGEST:
        return ()
    by_unit: dict[str, list[Measured]] = {}
    for piece, values in _pieces(text):
        if (value := _figure(values)) is not None:
            words = words_of("x " + piece.replace(value.text, " ")) - {"x"}
            by_unit.setdefault(value.unit, []).append(Measured(words, value))
    return tuple(
        Measures(tuple(things), text, fact_id) for things in by_unit.values() if _LEAST <= len(things) <= _MOST
    )


def _pieces(text: str) -> Iterator[tuple[str, list[Value]]]:
    """Yield the pieces of a text between marks and *and*, each with its values; a row of a table is one piece."""
    values, start = read(text).values, 0
    ends = [(match.start(), match.end()) for match in _BREAK.finditer(text)]
    for first, last in (*ends, (len(text), len(text))):
        line = text[text.rfind("\n", 0, first) + 1 : first]
        if "|" in line and last < len(text) and "\n" not in text[first:last]:
            continue
        inside = [value for value in values if start <= value.start and value.end <= first]
        yield text[start:first], inside
        start = last


def _figure(values: list[Value]) -> Value | None:
    """Return the one figure of a piece: the one with a unit, or the only one."""
    plain = [
        v
        for v in values
        if v.amount is not None and not (v.vague or v.bound or v.label) and v.kind not in {DATE, ORDINAL}
    ]
    united = [value for value in plain if value.unit]
    if len(united) == 1:
        return united[0]
    return plain[0] if len(plain) == 1 else None

"""Measures: the figures that a source gives for each of several things, so that what a claim ranks can be reckoned (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import DATE, NUMBER, ORDINAL, Value

_BREAK = pattern(r",\s|;|\n|[.!?](?:\s|\z)|\s(?:and|but|while|whereas)\s")
_LABEL = pattern(r"^(?:[-*•]\s+)?([\p{L}\p{N}][^:|\n.!?;,]{0,40}):\s")
_SENTENCE_ENDS = pattern(r"[.!?]\s|\n")
_LONGEST, _LEAST, _MOST = 8000, 2, 40
_LETTERS = pattern(r"\p{L}")
_LONGEST_LABEL = 4


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
    before: Value | None = None
    for piece, label, values in _pieces(text):
        if (value := figure(values)) is not None:
            words = words_of(f"x {label} {piece.replace(value.text, ' ')}") - {"x"}
            value = _with_unit(value, before, piece, text)
            by_unit.setdefault(value.unit, []).append(Measured(words, value))
        before = value
    return tuple(
        Measures(tuple(things), text, fact_id) for things in by_unit.values() if _LEAST <= len(things) <= _MOST
    )


def _pieces(text: str) -> Iterator[tuple[str, str, list[Value]]]:
    """Yield the pieces of a text between marks and *and*, each with the label of its line and its values; a row of a table is one piece.

    A piece that holds the label itself, or another one, gets none: *Rent: 900, deposit: 1,800*.
    """
    values, start = read(text).values, 0
    ends = [(match.start(), match.end()) for match in _BREAK.finditer(text)]
    for first, last in (*ends, (len(text), len(text))):
        begins, piece = text.rfind("\n", 0, first) + 1, text[start:first]
        if "|" in text[begins:first] and last < len(text) and "\n" not in text[first:last]:
            continue
        label, opens = _label(text[begins:first]), start <= begins
        after = begins + len(label) if opens else start  # the year 2021 is no figure in *2021: 412 cases*
        inside = [value for value in values if after <= value.start and value.end <= first]
        yield piece, "" if opens or ":" in piece else label, inside
        start = last


def _label(line: str) -> str:
    """Return the label that opens a line, which all its pieces are about: *Kettle K10: 1.7 l, 34 euros*; empty where none does."""
    match = _LABEL.search(line)
    if match is None or len(match[1].split()) > _LONGEST_LABEL or _SENTENCE_ENDS.search(line[match.end() :]):
        return ""
    return str(match[1])


def _with_unit(value: Value, before: Value | None, piece: str, text: str) -> Value:
    """Return a bare figure at the end of its piece in the unit of the piece before, in one sentence: *tea is 3 euros, coffee 4*."""
    if before is None or value.unit or not before.unit or value.kind != NUMBER or not value.plain:
        return value
    own = piece.rstrip(" .").removesuffix(value.text)
    if own == piece.rstrip(" .") or not _LETTERS.search(own) or _SENTENCE_ENDS.search(text[before.end : value.start]):
        return value
    amount, step = (value.amount or 0.0) * before.factor, value.step * before.factor
    return replace(value, unit=before.unit, kind=before.kind, factor=before.factor, amount=amount, step=step)


def figure(values: list[Value]) -> Value | None:
    """Return the one figure of a piece: the one with a unit, or the only one. *One* mostly counts nothing: *a one-way ticket*."""
    plain = [
        v
        for v in values
        if v.amount is not None
        and not (v.vague or v.bound or v.label)
        and v.kind not in {DATE, ORDINAL}
        and v.text.lower() != "one"
    ]
    united = [value for value in plain if value.unit]
    if len(united) == 1:
        return united[0]
    return plain[0] if len(plain) == 1 else None

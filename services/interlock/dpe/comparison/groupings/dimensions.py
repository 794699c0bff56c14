"""Dimensions: which words name what a source's figures measure, so that *costs more* is held against prices only (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterable

from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.comparison.groupings.measured import Measures
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import MONEY, NUMBER
from interlock.dpe.values.units import PERCENT, TIME

_DIGIT = pattern(r"\d")


def _stems(words: str) -> frozenset[str]:
    return words_of("x " + words) - {"x"}


_MONEY = _stems(
    "cost costs price priced pay pays paid charge charged fee fees expensive costly cheap dear euros dollars pounds"
)
_OF = {
    MONEY: _MONEY,
    "mass": _stems("weigh weighs weight heavy light mass"),
    "length": _stems("length long height high width wide depth deep distance tall short measure measures"),
    TIME: _stems("last lasts lasted duration long age old"),
    "volume": _stems("volume capacity hold holds contain contains"),
    "area": _stems("area"),
    PERCENT: _stems("share proportion percentage popular common frequent widespread likely often"),
    "": _stems("number count popular common frequent widespread numerous often"),
}
_AMBIGUOUS = _stems("long old high light short hold holds contain contains measure last often")
"""Words that say of a clause of other things what is done, so that they do not alone tell which figures are meant."""


def named_measure(measures: Measures) -> frozenset[str]:
    """Return the words that say no more than what the figures measure: *costs* and *price* of money."""
    return frozenset(word for sort in _sorts(measures) for word in _OF.get(sort, ()))


def is_meant(said: Iterable[str], measures: Measures) -> bool:
    """Whether a clause may be about the figures: it names no other dimension than theirs."""
    told = frozenset(said) - _AMBIGUOUS
    sorts = _sorts(measures)
    named = {sort for sort, words in _OF.items() if sort and told & words}
    return not named or bool(named & sorts) or bool(told & named_measure(measures))


def title_words(measures: Measures) -> frozenset[str]:
    """Return the words of a first line without a figure, which all lines below it are about: *Survey of admins*."""
    return _title(measures.text)


@remembered(bytes_a_character=10, from_length=60)
def _title(text: str) -> frozenset[str]:
    first, line, _ = text.partition("\n")
    return _stems(first) if line and not _DIGIT.search(first) else frozenset()


@remembered(bytes_a_character=10, from_length=60)
def _is_priced(text: str) -> bool:
    """Whether a text speaks of prices, and writes none with its currency, so that its bare figures may be prices."""
    return bool(_MONEY & _stems(text)) and not any(each.kind == MONEY for each in read(text).values)


def _sorts(measures: Measures) -> frozenset[str]:
    """Return what figures may measure: bare ones money where their text speaks of it, and has no other prices."""
    value = measures.things[0].value
    if value.kind == MONEY:
        return frozenset({MONEY})
    priced = value.kind == NUMBER and not value.unit and _is_priced(measures.text)
    return frozenset({value.unit, *((MONEY,) if priced else ())})

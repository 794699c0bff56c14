"""Days of the week that a text states, by name or without: *Monday to Friday*, *Mon-Sat*, *at weekends*, *daily*.

*On Wednesday* follows from *Monday to Friday*, and *Saturdays and Sundays* from *at weekends*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import Lexeme, at, lex
from interlock.dpe.values.dates import WEEKDAYS

ALL, WORKDAYS, WEEKEND = frozenset(range(7)), frozenset(range(5)), frozenset({5, 6})
_GROUPS = {
    ("weekend",): WEEKEND, ("weekends",): WEEKEND, ("weekday",): WORKDAYS, ("weekdays",): WORKDAYS, ("workday",): WORKDAYS,
    ("workdays",): WORKDAYS, ("working", "day"): WORKDAYS, ("working", "days"): WORKDAYS, ("business", "day"): WORKDAYS,
    ("business", "days"): WORKDAYS, ("daily",): ALL, ("every", "day"): ALL, ("each", "day"): ALL, ("any", "day"): ALL,
    ("all", "days"): ALL, ("other", "days"): ALL, ("any", "other", "day"): ALL, ("seven", "days", "a", "week"): ALL, ("7", "days", "a", "week"): ALL,
}  # fmt: skip
_BY_FIRST = {
    first: [(words, days) for words, days in _GROUPS.items() if words[0] == first]
    for first in {each[0] for each in _GROUPS}
}
_TO = frozenset({"-", "to", "through", "thru", "until", "till"})
LONGEST_SHORT = 5
"""Letters of Thurs; the shortest name in full has six, and is a value of its own."""


@dataclass(frozen=True)
class Days:
    """Days of the week, and the words that name them: one, or two for a range; none for a group."""

    days: frozenset[int]
    words: tuple[str, ...] = ()


@lru_cache(maxsize=512)
def days_in(text: str) -> tuple[Days, ...]:
    """Return the ranges of days of a text, the days that are in none, and its groups."""
    tokens = lex(fold(text))
    return (*_named(tokens), *_groups(tokens))


def _named(tokens: Sequence[Lexeme]) -> Iterator[Days]:
    index = 0
    while index < len(tokens):
        first = _day(tokens[index])
        mark = index + 1 + (at(tokens, index + 1).text == ".")
        last = _day(at(tokens, mark + 1)) if first is not None and _joins(tokens, index, mark) else None
        if first is None:
            index += 1
        elif last is None:
            yield Days(frozenset({first}), (tokens[index].text,))
            index += 1
        else:
            yield Days(_between(first, last), (tokens[index].text, tokens[mark + 1].text))
            index = mark + 2


def _joins(tokens: Sequence[Lexeme], index: int, mark: int) -> bool:
    low = at(tokens, mark).low
    return low in _TO or (low == "and" and at(tokens, index - 1).low == "between")


def _day(token: Lexeme) -> int | None:
    """Return the day that a word names. Short forms are words, too: they begin with a capital."""
    return WEEKDAYS.get(token.low) if token.capital or len(token.text) > LONGEST_SHORT else None


def _between(first: int, last: int) -> frozenset[int]:
    return frozenset((first + step) % 7 for step in range((last - first) % 7 + 1))


def _groups(tokens: Sequence[Lexeme]) -> Iterator[Days]:
    for index, token in enumerate(tokens):
        for words, days in _BY_FIRST.get(token.low, ()):
            if all(at(tokens, index + step).low == word for step, word in enumerate(words)):
                yield Days(days)

"""Rated amounts: what a claim gives for so many of a thing, by a rate or a share of its sources (SPEC-005 §5.2).

*75 euros for three days*, at 25 euros a day; *no more than 4,000 of 10,000*, at 40 %. The claim brings the number of things itself, as an
example, so that neither it nor the result stands in a source. Both are borne out where the rate makes one of the other: the unit of the
rate is that of the count, and the amount is exact.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations

from interlock.dpe.text.lexing import WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.frames import STOP, stem
from interlock.dpe.values.quantities import MONEY, NUMBER, ORDINAL, PERCENT, Value, comparable
from interlock.dpe.values.reckoning.derived import DIFFERS, DOWN, UP, fits
from interlock.dpe.values.units import MEASURES

_PER = frozenset({"a", "an", "per", "each", "every", "/", "for"})
_EQUAL = frozenset({"=", "is", "equals", "costs", "buys"})
_OFF = DOWN | word_set("discount off rebate deducted minus deduct")
_ON = UP | word_set("surcharge plus vat tax fee interest premium markup dearer")
_MOST_TEXTS, _MOST_VALUES, _PAIR = 60, 24, 2
_BESIDE = 4
"""Words beside a percentage that say what it is of, and whether it is added or taken off."""


@dataclass(frozen=True)
class _Rate:
    """An amount for one of a thing: the noun of what is paid or made, and the unit or the noun of the thing."""

    amount: Value
    noun: str
    of: str
    of_value: Value | None = None


def rated(reading: ValuesRead, values: Sequence[Value], texts: Sequence[str]) -> set[int]:
    """Return which of the *values* of a claim are a count and its result by a rate or a share of *texts*."""
    numbered = [(n, value) for n, value in enumerate(values) if _is_amount(value)][:_MOST_VALUES]
    if len(numbered) < _PAIR:
        return set()
    readings = [read(text) for text in texts[:_MOST_TEXTS]]
    rates = [rate for each in readings for rate in _rates(each)]
    shares = [share for each in readings for share in _shares(each)]
    words = frozenset(token.low for token in reading.tokens)
    caps = [value for each in readings for value in each.values if value.bound == "<" and _is_amount(value)]
    if not (rates or shares):
        return set()
    found: set[int] = set()
    for (n, count), (m, result) in permutations(numbered, 2):
        made = any(_is_of(result, rate, reading) for rate in rates) and _made(count, result, rates, reading, words)
        if made or (not _is_capped(result, caps) and _is_share(count, result, shares)):
            found |= {n, m}
    return found


def _is_amount(value: Value) -> bool:
    plain = value.moment is None and not value.label and not value.vague and value.kind not in {ORDINAL, PERCENT}
    return plain and bool(value.amount) and not value.fraction


def _rates(reading: ValuesRead) -> Iterator[_Rate]:
    """Yield the rates of a text: *25 euros a day*, *15 shillings per minute*, *1 GBP = 1.71 CAD*."""
    tokens = reading.tokens
    for value in [each for each in reading.values if _is_amount(each)][:_MOST_VALUES]:
        place, noun = value.last, ""
        if not value.unit and at(tokens, place).kind == WORD and at(tokens, place).low not in STOP | _PER:
            noun, place = stem(at(tokens, place).low), place + 1
        while at(tokens, place).low in _PER:
            place += 1
        if at(tokens, place - 1).low in _PER and at(tokens, place).kind == WORD and place > value.last:
            yield _Rate(value, noun, at(tokens, place).low)
    for one, other in zip(reading.values, reading.values[1:], strict=False):
        between = [token.low for token in tokens[one.last : other.first]]
        if len(between) == 1 and between[0] in _EQUAL and _is_one(one) and _is_amount(other):
            yield _Rate(other, "", "", one)


def _is_one(value: Value) -> bool:
    return _is_amount(value) and value.amount == value.factor and bool(value.unit)


def _made(count: Value, result: Value, rates: Sequence[_Rate], reading: ValuesRead, words: frozenset[str]) -> bool:
    """Whether a rate makes a result of a count, or the difference of two rates of the same thing does."""
    known = [(rate, many) for rate in rates if (many := _count(count, rate, reading)) and _is_of(result, rate, reading)]
    if any(fits(result, (rate.amount.amount or 0.0) * many) for rate, many in known):
        return True
    gaps = (
        abs((one.amount.amount or 0.0) - (other.amount.amount or 0.0)) * many
        for (one, many), (other, _) in combinations(known, 2)
    )
    return bool(words & DIFFERS) and any(fits(result, gap) for gap in gaps)


def _count(count: Value, rate: _Rate, reading: ValuesRead) -> float:
    """Return how many of the thing of a rate a count is, or 0 where it counts another one."""
    if rate.of_value is not None:
        return (count.amount or 0.0) if comparable(count, rate.of_value) else 0.0
    unit = MEASURES.get(rate.of)
    if count.unit:
        return (count.amount or 0.0) / unit.factor if unit is not None and unit.measure == count.unit else 0.0
    return (count.amount or 0.0) if _noun(reading.tokens, count) == stem(rate.of) else 0.0


def _is_of(result: Value, rate: _Rate, reading: ValuesRead) -> bool:
    """Whether a result is of what a rate pays or makes; an amount of money may leave its currency out."""
    if rate.noun:
        return not result.unit and _noun(reading.tokens, result) == rate.noun
    bare = result.kind == NUMBER and rate.amount.kind == MONEY and not _noun(reading.tokens, result)
    return bare or (comparable(result, rate.amount) and bool(result.unit))


def _noun(tokens: Sequence[Lexeme], value: Value) -> str:
    """Return the stem of the word that a bare figure counts."""
    token = at(tokens, value.last)
    return stem(token.low) if token.kind == WORD and token.low not in STOP else ""


def _shares(reading: ValuesRead) -> Iterator[tuple[float, frozenset[str]]]:
    """Yield the percentages of a text as shares, with the words beside them."""
    for value in reading.values:
        share = abs(value.amount or 0.0) / 100 if value.kind == PERCENT else 0.0
        if 0 < share < 1:
            beside = reading.tokens[max(0, value.first - _BESIDE) : value.last + _BESIDE]
            yield share, frozenset(token.low for token in beside)


def _is_share(count: Value, result: Value, shares: Sequence[tuple[float, frozenset[str]]]) -> bool:
    """Whether a result is the share of a count that a source states, or the count with it or without it."""
    if count.unit != result.unit or count.amount == result.amount:
        return False
    whole = abs(count.amount or 0.0)
    return any(
        ("of" in beside and fits(result, whole * share))
        or (beside & _OFF and fits(result, whole * (1 - share)))
        or (beside & _ON and fits(result, whole * (1 + share)))
        for share, beside in shares
    )


def _is_capped(result: Value, caps: Sequence[Value]) -> bool:
    """Whether a source sets a limit below a result: a share of 40 %, of 8,000 at most."""
    return any(cap.unit == result.unit and (cap.amount or 0.0) < (result.amount or 0.0) for cap in caps)

"""Chains: figures that up to two operations on stated ones make, where that is no coincidence (SPEC-005 §5.2).

People reckon in steps and tell only the end: the sum of a table and its share of a salary, twelve months less a deposit. Two free
operations over a dozen figures reach nearly every small number, so a hit counts only where few results are as near to the target
by chance: how many hits one expects is what all results within a factor of two of it, spread evenly, would give. Exact figures
may follow from many, round ones from few. Pure functions of their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from interlock.dpe.values.quantities import ORDINAL, Value
from interlock.dpe.values.units import PERCENT, POINTS, TEMPERATURE, TIMES

BY_CHANCE = 0.1
"""Expected chance hits above which a hit shows nothing."""

LEAST_DIGITS = 3
"""Significant digits of a figure that free operations may show. Nearly any round one is a step or two away from some others."""

MOST_IN_ONE_STEP = 24
MOST_IN_TWO_STEPS = 7
_SIZES = (3, 5, MOST_IN_TWO_STEPS, 12, MOST_IN_ONE_STEP)
_MOST_SURE = 4
"""Sums and means of the nearest groups, the column of a cell or the list that a claim announces, of which each may be meant."""

_MOST_GROUPS = 12
_FEW = 5
_LEAST_BARE = 100  # ages, counts and numbers below it stand beside each other, and make each other by chance
_REMEMBERED = 2048
_BARE = frozenset({"", TIMES})
_AREA, _LENGTH = "area", "length"


@dataclass(frozen=True, slots=True)
class _Term:
    """An amount in base units. ``factor`` is how many of them one stated unit has."""

    amount: float
    unit: str
    factor: float = 1.0
    used: int = 0
    """The operands that it was made of, a bit for each: none is used twice."""

    @property
    def stated(self) -> float:
        """The amount in the unit as it is written."""
        return self.amount / self.factor


def follows_in_steps(target: Value, operands: Iterable[Value], groups: Iterable[Sequence[Value]] = ()) -> bool:
    """Whether *target* follows from *operands*, the nearest first, or from the sum or the mean of a group of them."""
    if not target.amount or target.moment is not None or target.label or target.kind == ORDINAL or target.vague:
        return False
    if target.unit == TEMPERATURE:
        return False
    usable = dict.fromkeys(_term(value) for value in operands if _is_usable(value))
    whole = [found for group in list(groups)[:_MOST_GROUPS] for found in _of_group(group)]
    exact = len(target.digits.strip("0")) >= LEAST_DIGITS
    slack = min(target.step / 2 * (2.0 if target.approximate else 1.0), 0.02 * abs(target.amount)) * (1 + 1e-9) + 1e-9
    return _follows(
        _Goal(_term(target), slack), tuple(usable)[:MOST_IN_ONE_STEP] if exact else (), tuple(dict.fromkeys(whole))
    ) or _is_plain_step(target, [term for term in usable if term.unit == target.unit][:_FEW])


def _is_plain_step(target: Value, alike: Sequence[_Term]) -> bool:
    """Whether a figure of two digits is exactly the sum or the difference of two of the few values that the sources state in its unit.

    Round figures make round ones: what else those values make counts by the place of the last digit that is no zero.
    """
    digits, wanted = target.digits.strip("0"), abs(target.amount or 0.0)
    if len(digits) != LEAST_DIGITS - 1 or not digits.isdigit() or (not target.unit and wanted < _LEAST_BARE):
        return False
    pairs = list(combinations([abs(term.amount) for term in alike], 2))
    made = {float(f"{each:.9g}") for a, b in pairs for each in (a + b, abs(a - b))}
    around = [each for each in made if wanted / 2 <= each <= wanted * 2]
    hits = [each for each in around if abs(each - wanted) <= 1e-9 * wanted]
    return bool(hits) and (len(around) - len(hits)) / (1.5 * int(digits)) <= BY_CHANCE


def _is_usable(value: Value) -> bool:
    plain = value.moment is None and not value.label and not value.vague and value.kind != ORDINAL
    return plain and bool(value.amount) and value.unit != TEMPERATURE


def _term(value: Value) -> _Term:
    return _Term(value.amount or 0.0, "" if value.unit in _BARE else value.unit, value.factor)


def _of_group(group: Sequence[Value]) -> Iterator[_Term]:
    """Yield the sum and the mean of the values of each unit of a group."""
    for unit in dict.fromkeys(value.unit for value in group if _is_usable(value)):
        terms = [_term(value) for value in group if value.unit == unit and _is_usable(value)]
        if len(terms) > 1:
            total = sum(term.amount for term in terms)
            yield from (_Term(total, terms[0].unit, terms[0].factor), _Term(total / len(terms), *_kind(terms[0])))


def _kind(term: _Term) -> tuple[str, float]:
    return term.unit, term.factor


@lru_cache(maxsize=_REMEMBERED)
def _follows(goal: _Goal, operands: tuple[_Term, ...], whole: tuple[_Term, ...]) -> bool:
    if any(goal.is_hit(term) for term in whole[:_MOST_SURE]) or goal.is_met_by(whole):
        return True
    for size in (size for size in _SIZES if size == _SIZES[0] or size < len(operands) + 2):
        chosen = tuple(replace(operand, used=1 << place) for place, operand in enumerate(operands[:size]))
        first = [*whole, *_pairs(chosen, chosen)]
        if goal.is_met_by(first):
            return True
        if size <= MOST_IN_TWO_STEPS and goal.is_met_by([*first, *_pairs(first, chosen)]):
            return True
    return False


@dataclass(frozen=True, slots=True)
class _Goal:
    """A target, and how far a result may be off."""

    target: _Term
    slack: float

    def fits(self, term: _Term) -> float | None:
        """Return a result as the target counts it, or ``None`` where it is of another kind."""
        if term.unit == self.target.unit:
            return abs(term.amount)
        if self.target.unit in {PERCENT, POINTS}:
            return abs(term.amount) * 100 if not term.unit else None
        if not term.unit:
            return abs(term.amount) * self.target.factor
        return abs(term.stated) if not self.target.unit else None

    def is_hit(self, term: _Term) -> bool:
        """Whether a result is the target."""
        found = self.fits(term)
        return found is not None and abs(found - abs(self.target.amount)) <= self.slack

    def is_met_by(self, terms: Iterable[_Term]) -> bool:
        """Whether one of *terms* is the target, and that is no coincidence."""
        wanted = abs(self.target.amount)
        found = {float(f"{made:.9g}") for term in terms if (made := self.fits(term)) is not None}
        around = [made for made in found if wanted / 2 <= made <= wanted * 2]
        hits = [made for made in around if abs(made - wanted) <= self.slack]
        return bool(hits) and (len(around) - len(hits)) * 2 * self.slack / (1.5 * wanted) <= BY_CHANCE


def _pairs(ones: Sequence[_Term], others: Sequence[_Term]) -> Iterator[_Term]:
    for one in ones:
        for other in others:
            if not one.used & other.used:
                yield from (replace(term, used=one.used | other.used) for term in _made(one, other))


def _made(one: _Term, other: _Term) -> Iterator[_Term]:
    """Yield what one operation makes of two terms."""
    if one.unit == other.unit and one.unit != PERCENT:
        yield from (_Term(one.amount + other.amount, *_kind(one)), _Term(one.amount - other.amount, *_kind(one)))
        yield _Term(one.amount / other.amount if other.amount else 0.0, "")
        if one.unit == _LENGTH:
            yield _Term(one.amount * other.amount, _AREA)
        elif not one.unit:
            yield _Term(one.amount * other.amount, "")
    elif other.unit == PERCENT:
        share = other.amount / 100
        yield from (_Term(one.amount * part, *_kind(one)) for part in (share, 1 + share, 1 - share))
    elif one.unit != PERCENT and other.amount:
        yield from _scaled(one, other)


def _scaled(one: _Term, other: _Term) -> Iterator[_Term]:
    """Yield a term times and by another of another kind: five at £3, 210 miles at 45 an hour, 0.2 mg for each of 15 kg."""
    yield from (_Term(one.amount * other.stated, *_kind(one)), _Term(one.amount / other.stated, *_kind(one)))
    if other.unit and one.unit:
        yield _Term(one.stated / other.stated, "")

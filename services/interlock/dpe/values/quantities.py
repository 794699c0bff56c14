"""Values and their equality (SPEC-005 §5.2, §5.3).

Equality is as exact as the coarser value is stated: 1.2 million equals 1,234,567, and 15 % does not equal 50 %. Words
such as about and over widen it. A year never equals a count.
"""

from dataclasses import dataclass

from interlock.dpe.values import moments, units
from interlock.dpe.values.moments import Moment

NUMBER, PERCENT, MONEY, DATE, QUANTITY, ORDINAL = "NUMBER", "PERCENT", "MONEY", "DATE", "QUANTITY", "ORDINAL"

# Maximum error of rounding, as a share of the larger value: 4 million is no rounding of 4.8 million.
ROUNDING = 0.10
ABOUT = 0.15
BOTH_ABOUT = 0.03
CONVERSION = 0.06
TRUNCATION = 0.02
# How far an exact value may exceed a bound that refers to it: over a million, 1.23 million.
BEYOND_BOUND = 1.5
_DOLLARS = frozenset({"USD", "AUD", "CAD", "NZD", "HKD", "SGD"})
_EXACT = 1e-12
_NO_REMAINDER = 1e-6


@dataclass(frozen=True, slots=True)
class Value:
    """A value with its span in the text, in code points.

    ``amount`` and ``step`` are in base units of ``unit``. ``step`` is the place value of the last stated digit.
    """

    kind: str  # NUMBER, PERCENT, MONEY, DATE, QUANTITY or ORDINAL
    text: str
    start: int
    end: int
    amount: float | None = None  # None for a date or a label
    step: float = 1.0
    unit: str = ""
    moment: Moment | None = None
    label: str = ""  # the number of Article 22 or version 3.1, compared as written
    approximate: bool = False
    bound: str = ""  # ">" for more than, "<" for less than
    digits: str = ""  # significant digits as written
    scale: float = 1.0  # 1e6 in 4.2 million
    factor: float = 1.0  # base units in one stated unit
    plain: bool = False  # digits only
    words: bool = False
    fraction: bool = False
    vague: bool = False  # thousands of, months: a size without a figure
    first: int = 0  # first token, and the one after the last
    last: int = 0


def same(first: Value, second: Value) -> bool:
    """Whether two values are equal as far as stated. Symmetric, not transitive (1.2, 1.25, 1.3)."""
    if first.vague or second.vague:
        return _same_vague(first, second)
    if first.moment is not None and second.moment is not None:
        return moments.comparable(first.moment, second.moment) and moments.agree(first.moment, second.moment)
    if first.moment is not None or second.moment is not None:
        return _same_year_and_number(first, second)
    if first.label or second.label:
        return _same_label(first, second)
    return comparable(first, second) and _same_amount(first, second)


def comparable(first: Value, second: Value) -> bool:
    """Whether two values measure the same quantity, so that they can differ."""
    if first.moment is not None and second.moment is not None:
        return moments.comparable(first.moment, second.moment)
    if first.moment is not None or second.moment is not None:
        return False
    if (first.kind == ORDINAL) != (second.kind == ORDINAL):
        return False
    return _same_unit(first, second) or _is_share(first, second) or _is_share(second, first)


def _same_unit(first: Value, second: Value) -> bool:
    if first.unit == second.unit:
        return True
    pair = {first.unit, second.unit}
    if pair <= _DOLLARS:
        return "USD" in pair  # a bare dollar sign may be any dollar
    return units.POUND in pair and bool(pair & {"GBP", "mass"})


def _is_share(first: Value, second: Value) -> bool:
    """Whether one is a fraction and the other a percentage: half and 50 %."""
    return first.fraction and not first.unit and second.unit == units.PERCENT


def _amounts(first: Value, second: Value) -> tuple[float, float, float, float]:
    """Return both amounts and steps in one unit."""
    one, other = first.amount or 0.0, second.amount or 0.0
    one_step, other_step = first.step, second.step
    if _is_share(first, second):
        one, one_step = one * 100, one_step * 100
    elif _is_share(second, first):
        other, other_step = other * 100, other_step * 100
    if {first.unit, second.unit} == {units.POUND, "mass"}:
        pound = units.MEASURES["lb"].factor
        one, one_step = (one * pound, one_step * pound) if first.unit == units.POUND else (one, one_step)
        other, other_step = (other * pound, other_step * pound) if second.unit == units.POUND else (other, other_step)
    return one, other, one_step, other_step


def _same_amount(first: Value, second: Value) -> bool:
    one, other, one_step, other_step = _amounts(first, second)
    if one * other < 0 and first.unit != units.TEMPERATURE:
        one, other = abs(one), abs(other)  # a fall of 5 % and -5 %: a word may carry the sign
    difference, size = abs(one - other), max(abs(one), abs(other))
    if difference <= _EXACT * size:
        return True
    if first.kind == ORDINAL:
        return False
    coarse, fine = max(one_step, other_step), min(one_step, other_step)
    rounded = difference <= coarse / 2 * (1 + _EXACT) and difference <= ROUNDING * size
    if first.factor != second.factor and first.unit != "":
        carried = max(_round_step(one, one_step), _round_step(other, other_step)) / 2
        return difference <= min(carried, CONVERSION * size)
    truncated = fine < coarse and difference < coarse and difference <= TRUNCATION * size
    return (
        (fine < coarse and rounded)
        or truncated
        or _about(first, second, one, other)
        or _within_bound(first, second, one, other)
    )


def _about(first: Value, second: Value, one: float, other: float) -> bool:
    """Whether an approximate value may stand for the other one: about 20 for 21, not for 25."""
    difference, size = abs(one - other), max(abs(one), abs(other))
    if first.approximate and second.approximate:
        return difference <= BOTH_ABOUT * size
    for value, amount in ((first, one), (second, other)):
        if value.approximate or value.bound:
            tolerance = max(_round_step(amount, value.step) / 2, 0.05 * abs(amount))
            if difference <= min(tolerance, ABOUT * size) and not value.bound:
                return True
    return False


def _round_step(amount: float, step: float) -> float:
    """Return the place value of the last digit that is not a trailing zero: 10 for 20, 1000 for 15,000."""
    while step and abs(amount) >= step * 10 and abs(amount / (step * 10) - round(amount / (step * 10))) < _NO_REMAINDER:
        step *= 10
    return step


def _within_bound(first: Value, second: Value, one: float, other: float) -> bool:
    """Whether exactly one value is a bound that the other keeps and is near: more than 5,000 and 5,200."""
    if bool(first.bound) == bool(second.bound):
        return False
    bound, limit, exact = (first.bound, one, other) if first.bound else (second.bound, other, one)
    low, high = (limit, limit * BEYOND_BOUND) if bound == ">" else (limit / BEYOND_BOUND, limit)
    return low * (1 - _EXACT) <= exact <= high * (1 + _EXACT)


def _same_vague(first: Value, second: Value) -> bool:
    """Whether a size without a figure fits: thousands and 4,500, months and five months."""
    if first.unit != second.unit or first.moment or second.moment or first.label or second.label:
        return False
    if first.vague and second.vague:
        return first.amount == second.amount
    vague, exact = (first, second) if first.vague else (second, first)
    size, amount = vague.amount or 0.0, exact.amount or 0.0
    return exact.factor == vague.factor if vague.unit else size <= amount < size * 1000


def _same_year_and_number(first: Value, second: Value) -> bool:
    """Whether a year and a count are the same four bare digits, which may be either."""
    year, number = (first, second) if first.moment else (second, first)
    if not (year.plain and number.plain and number.kind == NUMBER) or year.moment is None or year.moment.years is None:
        return False
    return year.moment.years == (number.amount, number.amount)


def _same_label(first: Value, second: Value) -> bool:
    """Whether one label states the other: Article 22 is stated by Article 22(1)."""
    if first.unit != second.unit:
        return bool(first.label and second.plain and first.label == second.text) or bool(
            second.label and first.plain and second.label == first.text
        )
    shorter, longer = sorted((first.label, second.label), key=len)
    return longer == shorter or (
        longer.startswith(shorter) and not longer[len(shorter)].isdigit() and first.unit != "label:version"
    )

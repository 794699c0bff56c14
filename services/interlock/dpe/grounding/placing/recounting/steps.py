"""Steps: what one operation, or a product of three, makes of the figures of a row (SPEC-005 §5.2).

A row of ten figures makes some hundred results, and nearly every small number is among them. A hit shows something only where few
results lie around the figure: how many hits one expects by chance is held against a bound, as for the chains of prose.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from interlock.dpe.grounding.placing.recounting.grid import KELVIN, Figure
from interlock.dpe.values.reckoning.chains import BY_CHANCE
from interlock.dpe.values.units import PERCENT, TEMPERATURE, TIMES

MOST_OPERANDS = 12
_EXACT_DIGITS = 3
_MOST_FOR_THREE = 8
_ABSOLUTE = 273.15
_NUMBER = re.compile(r"\d+(?:[.,]\d+)?")


def digits_of(figure: Figure) -> int:
    """Return how many digits a figure has without the zeros around them."""
    written = f"{abs(figure.stated):.10f}".rstrip("0").replace(".", "").strip("0")
    return len(written)


def counted_as(figure: Figure, target: Figure) -> float:
    """Return a figure as the target counts it: 15 minutes are 900 of seconds."""
    if figure.unit and figure.unit == target.unit:
        return abs(figure.base) / target.factor
    return abs(figure.stated)


def is_made(target: Figure, results: Iterable[float]) -> bool:
    """Whether one of *results* is the target, to the last digit that it states, and that is no coincidence."""
    wanted, slack = abs(target.stated), target.step / 2 * (1 + 1e-9) + 1e-9
    found = {float(f"{abs(each):.9g}") for each in results}
    if not wanted:
        return False
    around = [each for each in found if wanted / 2 <= each <= wanted * 2]
    hits = [each for each in around if abs(each - wanted) <= slack]
    return bool(hits) and (len(around) - len(hits)) * 2 * slack / (1.5 * wanted) <= BY_CHANCE


def is_one_of(target: Figure, results: Iterable[float]) -> bool:
    """Whether one of *results* is the target, where few of them can be meant."""
    return any(abs(abs(each) - abs(target.stated)) <= target.step / 2 * (1 + 1e-9) + 1e-9 for each in results)


def of_row(target: Figure, operands: Sequence[Figure], rules: Sequence[Figure]) -> list[float]:
    """Return what the figures of a row make: sums, differences and products of two, products of three, and shares by a rule."""
    own = _distinct(operands)[:MOST_OPERANDS]
    amounts = [counted_as(each, target) for each in own]
    factors = [factor for rule in [*rules, *own] for factor in _factors(rule)]
    products = [a * b for a, b in combinations(amounts, 2)]
    made = [*_of_two(own, target), *products, *(a * factor for a in amounts for factor in factors)]
    if digits_of(target) >= _EXACT_DIGITS:
        made += [a / b for a in amounts for b in amounts if a is not b and b]
        made += [product * factor for product in products for factor in factors]
        made += [a * b * c for a, b, c in combinations(amounts[:_MOST_FOR_THREE], 3)]
    return made


def _of_two(own: Sequence[Figure], target: Figure) -> Iterator[float]:
    for one, other in combinations(own, 2):
        if one.unit == other.unit or not (one.unit and other.unit):
            a, b = counted_as(one, target), counted_as(other, target)
            yield from (a + b, a - b)


def _factors(rule: Figure) -> Iterator[float]:
    """Yield by what a rate, a share or a multiple scales."""
    if rule.unit == PERCENT:
        yield from (rule.stated / 100, 1 + rule.stated / 100, 1 - rule.stated / 100)
    elif rule.unit in {"", TIMES} and rule.stated not in {0.0, 1.0}:
        yield rule.stated


def _distinct(figures: Iterable[Figure]) -> list[Figure]:
    return list({(each.stated, each.unit, each.factor): each for each in figures if each.stated}.values())


def _is_compound(figure: Figure) -> bool:
    """Whether a figure is written in two units: 6m20s."""
    return len(_NUMBER.findall(figure.text)) > 1


def is_converted(target: Figure, others: Iterable[Figure]) -> bool:
    """Whether a figure is another one in a unit of the same measure, exactly: 15 m/s for 54 km/h, 233.15 K for -40 °C."""
    return any(_is_same(target, other) for other in others)


def _is_same(target: Figure, other: Figure) -> bool:
    if target.unit == KELVIN and other.unit == TEMPERATURE:
        return abs(other.stated + _ABSOLUTE - target.stated) <= target.step / 2 + 1e-9
    if not (target.unit and target.unit == other.unit and other.base):
        return False
    restated = target.factor != other.factor or _is_compound(other)
    return restated and abs(other.base - target.base) <= (target.step / 2 + 1e-9) * target.factor

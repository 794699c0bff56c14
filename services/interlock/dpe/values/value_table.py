"""A table of values with lookup of equal values in less than linear time (SPEC-005 §5.2)."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from interlock.dpe.values.quantities import ABOUT, BEYOND_BOUND, Value, same

_SLACK = 1.01


@dataclass(frozen=True)
class _Row:
    """Values of one unit and precision, by size. If any equals a value, the nearest one does."""

    sizes: tuple[float, ...]
    values: tuple[Value, ...]

    def nearest(self, size: float) -> Iterator[Value]:
        place = bisect_left(self.sizes, size)
        yield from self.values[max(0, place - 1) : place + 1]

    def around(self, size: float, reach: float) -> Iterator[Value]:
        first, last = bisect_left(self.sizes, size / reach), bisect_right(self.sizes, size * reach)
        yield from self.values[first:last]


class ValueTable:
    """The values of one or more texts, indexed for lookup of equal values."""

    def __init__(self, values: Iterable[Value]) -> None:
        """Index values by what they measure. Dates, labels and sizes without figures are indexed by their content."""
        rows: dict[tuple[object, ...], dict[float, Value]] = defaultdict(dict)
        wide: dict[tuple[object, ...], dict[float, Value]] = defaultdict(dict)
        others: dict[tuple[object, ...], Value] = {}
        for value in values:
            if value.amount is None or value.vague:
                others.setdefault((value.moment, value.unit, value.label, value.amount, value.plain), value)
                continue
            key = (value.kind == "ORDINAL", value.unit, value.step, value.factor, value.fraction, value.plain)
            target = wide if value.approximate or value.bound else rows
            target[(*key, value.bound, value.approximate)].setdefault(abs(value.amount), value)
        self._rows = [_row(row) for row in rows.values()]
        self._wide = [_row(row) for row in wide.values()]
        self._others = tuple(others.values())

    def equals(self, value: Value) -> Iterator[Value]:
        """Yield values that equal a value, at least one if there is any."""
        if value.amount is None or value.vague:
            yield from (other for row in self._rows + self._wide for other in row.values if same(value, other))
        else:
            yield from self._near(value)
        yield from (other for other in self._others if same(value, other))

    def _near(self, value: Value) -> Iterator[Value]:
        size = abs(value.amount or 0.0)
        reach = (BEYOND_BOUND if value.bound else 1 + ABOUT * 1.5) * _SLACK
        for row in self._rows:
            for scale in (1.0, 100.0, 0.01):  # a fraction and a percentage
                yield from (other for other in row.nearest(size * scale) if same(value, other))
            if value.bound or value.approximate:
                yield from (other for other in row.around(size, reach) if same(value, other))
        for row in self._wide:
            for scale in (1.0, 100.0, 0.01):
                yield from (other for other in row.around(size * scale, BEYOND_BOUND * _SLACK) if same(value, other))


def _row(values: dict[float, Value]) -> _Row:
    sizes = tuple(sorted(values))
    return _Row(sizes, tuple(values[size] for size in sizes))

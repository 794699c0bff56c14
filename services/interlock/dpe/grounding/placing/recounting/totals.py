"""Totals: sums of columns, of a part of the rows that the words name, and of the fields beside a figure (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import combinations

from interlock.dpe.grounding.placing.recounting.grid import Figure, SheetCell, SheetRow, words_of
from interlock.dpe.grounding.placing.recounting.sheet import Table
from interlock.dpe.grounding.placing.recounting.steps import counted_as
from interlock.dpe.values.units import PERCENT

TOTALS = words_of(
    "total totals sum subtotal all overall altogether together gross net grand goods both combined amount balance due number count"
)
_MOST_COLUMNS = 8
Known = Callable[[Figure], bool]


def is_total(row: SheetRow) -> bool:
    """Whether a row of a table is the one of its totals."""
    return bool(words_of(row.cells[0].text) & TOTALS) if row.cells else False


def beside(target: Figure, cell: SheetCell, row: SheetRow, known: Known) -> Iterator[float]:
    """Yield the sum of the other fields of an object, with and without those that are totals themselves."""
    others = [each for each in row.cells if each is not cell and len(each.figures) == 1]
    for group in (others, [each for each in others if not each.key & TOTALS]):
        figures = [each.figures[0] for each in group]
        if len(figures) > 1 and all(map(known, figures)) and len({each.unit for each in figures}) == 1:
            yield sum(counted_as(each, target) for each in figures)
    listed = [figure for each in row.cells for figure in each.figures if each is not cell and len(each.figures) > 1]
    if len(listed) > 1 and all(map(known, listed)):
        yield sum(counted_as(each, target) for each in listed)


def of_column(
    target: Figure, cell: SheetCell, rows: Sequence[SheetRow], words: frozenset[str], known: Known
) -> Iterator[float]:
    """Yield the sums of the cells above a total, all of them, or those of the rows that its label names."""
    table = Table.of([row for row in rows if not is_total(row)])
    for part in table.named(words - cell.key) or [list(table.rows)]:
        cells = [each for row in part for each in row.cells if each.key == cell.key and each.figures]
        figures = [each.figures[0] for each in cells]
        if figures and len(part) > 1 and all(map(known, figures)):
            yield sum(_signed(each, target, found.text) for each, found in zip(figures, cells, strict=True))


def of_rows(target: Figure, table: Table, words: frozenset[str], known: Known) -> Iterator[float]:
    """Yield what the columns of a table make, or of those rows of it that *words* name: sums, sums of products, their differences."""
    nearest = table.nearest(words)
    parts = table.named(words) or ([list(table.rows)] if not table.is_prose else [])
    for part in [*parts, *([nearest] if len(nearest) > 1 else [])]:
        yield from _of_part(target, part, known)


def _of_part(target: Figure, part: Sequence[SheetRow], known: Known) -> Iterator[float]:
    columns = _columns(target, part, known)
    sums = [sum(column) for _, column in columns if len(column) > 1]
    yield from sums
    full = [(unit, column) for unit, column in columns if len(column) == len(part)]
    for (unit, one), (other_unit, other) in combinations(full, 2):
        scale = 0.01 if PERCENT in {unit, other_unit} else 1.0
        yield sum(a * b for a, b in zip(one, other, strict=True)) * scale
    for (_, one), (_, other), (_, share) in _with_share(full):
        made = [a * b * c / 100 for a, b, c in zip(one, other, share, strict=True)]
        yield from (sum(made), sum(made) + sum(a * b for a, b in zip(one, other, strict=True)))
    yield from (abs(a - b) for a, b in combinations(sums, 2))


def _with_share(full: Sequence[tuple[str, list[float]]]) -> Iterator[tuple[tuple[str, list[float]], ...]]:
    shares = [each for each in full if each[0] == PERCENT]
    plain = [each for each in full if each[0] != PERCENT]
    for share in shares:
        yield from ((one, other, share) for one, other in combinations(plain, 2))


def _columns(target: Figure, part: Sequence[SheetRow], known: Known) -> list[tuple[str, list[float]]]:
    """Return the columns of figures, by key; of lines without keys, by unit."""
    found: dict[tuple[frozenset[str], str], list[float]] = {}
    broken = set()
    for row in part:
        for cell in row.cells:
            figures = cell.figures[:1] if cell.key else [each for each in cell.figures if each.unit]
            for figure in figures:
                name = (cell.key, figure.unit)
                if not known(figure):
                    broken.add(name)
                found.setdefault(name, []).append(counted_as(figure, target))
    return [(name[1], column) for name, column in found.items() if name not in broken][:_MOST_COLUMNS]


def _signed(figure: Figure, target: Figure, written: str) -> float:
    return counted_as(figure, target) * (-1 if figure.stated < 0 or written.lstrip().startswith(("-", "−")) else 1)

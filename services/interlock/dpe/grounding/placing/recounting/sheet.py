"""Sheets: which rows a figure of an answer is about, and which rules of the sources hold for them (SPEC-005 §5.2)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from interlock.dpe.grounding.placing.recounting.grid import (
    Figure,
    SheetCell,
    SheetRow,
    figures_of,
    grid_of,
    words_of,
)
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.units import PERCENT

MOST_ALIKE = 8
_MOST_CATEGORIES = 4
_MOST_RULES = 8
_CLAUSE = pattern(r"[,;:.!?]\s+|\s+(?:while|whereas|but)\s+")
_ENDS = (".", "!", "?", ";")
_ABOUT = 0.01
_NO = word_set("not no without disabled off excluding except")
_NO_WORDS = _NO | words_of("disabled excluding without")
_YES_TEXT, _NO_TEXT = frozenset({"yes", "true", "on"}), frozenset({"no", "false", "off"})
_TRUE = word_set("true yes")


@dataclass(frozen=True)
class Rule:
    """The figures of a clause of the sources, and its words: *to a medium one four hours after*."""

    words: frozenset[str]
    figures: tuple[Figure, ...]


@dataclass(frozen=True)
class Table:
    """The rows of one table, log or list, and how many of them have each word."""

    rows: tuple[SheetRow, ...]
    counts: Counter[str] = field(default_factory=Counter)

    @staticmethod
    def of(rows: Sequence[SheetRow]) -> Table:
        """Count the words of *rows*."""
        return Table(tuple(rows), Counter(word for row in rows for word in row.words))

    @property
    def is_prose(self) -> bool:
        """Whether its rows are lines or sentences, without keys."""
        return all(not cell.key for row in self.rows for cell in row.cells)

    @property
    def is_told(self) -> bool:
        """Whether its rows are sentences."""
        return any(row.text.rstrip().endswith(_ENDS) for row in self.rows)

    def _with(self, word: str) -> list[SheetRow]:
        return [row for row in self.rows if word in row.words]

    def nearest(self, words: frozenset[str], about: frozenset[str] = frozenset()) -> list[SheetRow]:
        """Return the rows that share the rarest words with *words*. A word of every row tells none from another.

        *about* are the words of the objects around, which count where the others leave several.
        """
        every = words | about
        if len(self.rows) == 1:
            return [self.rows[0]] if self.rows[0].words & every else []
        telling = {
            word: (1.0 if word in words else _ABOUT) / self.counts[word]
            for word in every
            if 0 < self.counts[word] < len(self.rows)
        }
        scored = [(sum(telling.get(word, 0.0) for word in row.words & every), row) for row in self.rows]
        best = max((score for score, _ in scored), default=0.0)
        found = [row for score, row in scored if score > best - 1e-9] if best else []
        return found if len(found) <= MOST_ALIKE else []

    def named(self, words: frozenset[str]) -> list[list[SheetRow]]:
        """Return the parts of the table that *words* name by a value of a column: all rows of a queue, all that are enabled."""
        parts: dict[tuple[frozenset[str], frozenset[str]], list[SheetRow]] = {}
        for row in self.rows:
            for cell in row.cells:
                sort = _sort_of(cell, words)
                if sort is not None:
                    parts.setdefault(sort, []).append(row)
        if self.is_prose and not self.is_told:
            shared = sorted((self.counts[word], word) for word in words if 1 < self.counts[word] < len(self.rows))
            parts = {(frozenset(), frozenset({word})): self._with(word) for _, word in shared[:_MOST_CATEGORIES]}
        kept = [part for part in parts.values() if len(part) < len(self.rows)][:_MOST_CATEGORIES]
        both = ([row for row in one if row in other] for one, other in combinations(kept, 2))
        return [*kept, *(part for part in both if part)]


def _sort_of(cell: SheetCell, words: frozenset[str]) -> tuple[frozenset[str], frozenset[str]] | None:
    """Return what names the rows of a cell's kind, or ``None`` where *words* name none."""
    low = cell.text.strip().casefold()
    if low in _YES_TEXT | _NO_TEXT and cell.key:
        wanted = _NO_TEXT if words & _NO_WORDS else _YES_TEXT
        return (cell.key, frozenset({"yes"})) if cell.key <= words and low in wanted else None
    if cell.figures or cell.instants or not cell.key or not cell.words:
        return None
    return (cell.key, cell.words) if cell.words <= words else None


@dataclass(frozen=True)
class Sheet:
    """The tables of the sources and of an answer, and the clauses of the sources that have figures."""

    answer: tuple[SheetRow, ...]
    tables: tuple[Table, ...]
    rules: tuple[Rule, ...]
    stated: frozenset[float]
    """Every figure of the sources, as it is written."""
    text: str

    @staticmethod
    def of(answers: Iterable[str], sources: Sequence[str]) -> Sheet:
        """Read an answer and its sources."""
        rows = [row for text in answers for row in grid_of(text)]
        groups: dict[str, list[SheetRow]] = {}
        for place, text in enumerate(sources):
            for row in grid_of(text):
                groups.setdefault(f"{place} {row.table}" if row.cells[0].key or "\n" in text else "prose", []).append(
                    row
                )
        tables = [Table.of(group) for group in groups.values()]
        figures = (figure for table in tables for row in table.rows for cell in row.cells for figure in cell.figures)
        return Sheet(
            tuple(rows),
            tuple(tables),
            tuple(_rules(tables)),
            frozenset(round(abs(figure.stated), 6) for figure in figures),
            "\n".join(sources),
        )

    @property
    def rates(self) -> list[Figure]:
        """The percentages of the clauses of the sources."""
        return [each for rule in self.rules for each in rule.figures if each.unit == PERCENT][:_MOST_RULES]

    def nearest(self, words: frozenset[str], about: frozenset[str] = frozenset()) -> list[list[SheetRow]]:
        """Return of each table of the sources the rows that *words* name."""
        return [found for table in self.tables if (found := table.nearest(words, about))]

    def rules_for(self, rows: Sequence[SheetRow], words: frozenset[str]) -> list[Figure]:
        """Return the figures of the clauses that may hold for a row: none that names what another row has instead."""
        own = words.union(*(row.words for row in rows))
        others = self._others(rows)
        named = [rule for rule in self.rules if rule.words & own & others.keys_of(own)]
        chosen = [rule for rule in (named or self.rules) if not rule.words & others.values]
        ranked = sorted(chosen, key=lambda rule: -len(rule.words & own))
        return [figure for rule in ranked for figure in rule.figures][:_MOST_RULES]

    def _others(self, rows: Sequence[SheetRow]) -> _Others:
        """Return the words of the cells that other rows have in the columns of a row, and this one has not."""
        values: set[str] = set()
        own = frozenset[str]().union(*(row.words for row in rows))
        columns: set[str] = set()
        for table in self.tables:
            if not any(row in rows for row in table.rows) or table.is_prose:
                continue
            cells = [cell for row in table.rows for cell in row.cells if not (cell.figures or cell.instants)]
            for cell in cells:
                values |= cell.words
                columns |= cell.words
        return _Others(frozenset(values - own), frozenset(columns))


@dataclass(frozen=True)
class _Others:
    """What tells rows apart: the words that other rows have, and all such words."""

    values: frozenset[str]
    columns: frozenset[str]

    def keys_of(self, own: frozenset[str]) -> frozenset[str]:
        """Return the words by which a rule can name a row: those of a cell of it."""
        return self.columns & own


def _rules(tables: Sequence[Table]) -> Iterator[Rule]:
    for table in tables:
        for row in table.rows:
            if any(cell.key for cell in row.cells) or not row.text.rstrip().endswith(_ENDS):
                continue
            for clause in _CLAUSE.split(row.text):
                if found := figures_of(clause):
                    yield Rule(words_of(clause), found)

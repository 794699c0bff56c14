"""Grids: the records of the sources as rows and columns, each cell known by the name of its row and the words of its key (SPEC-005 §5.3).

A list of objects and a table are grids as they stand. A table may also be asked by its columns, *on the Basic plan*, and an object
whose fields are all of one sort by its keys, *for N2 and N5*: both stand a second time with rows and columns exchanged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.placing.records.conditions import Side, denials, sides
from interlock.dpe.grounding.placing.records.words import content, tokens
from interlock.dpe.grounding.tables.record import Field, Record
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values import states
from interlock.dpe.values.extraction import read
from interlock.dpe.values.keys import Key
from interlock.dpe.values.quantities import Value

MOST_CELLS, MOST_GRIDS = 600, 40
"""Of more cells or grids nothing is held against each sentence: the time that it takes grows with both."""
_BRACKETS = pattern(r"\s*\([^()]{0,60}\)")
_EMPTY = frozenset({"none", "n/a", "-", "–", "—", "null", "nil"})
_NAMING = frozenset(
    [
        "id",
        "name",
        "title",
        "code",
        "no",
        "number",
        "ref",
        "reference",
        "model",
        "sku",
        "city",
        "country",
        "route",
        "task",
        "item",
        "service",
        "plan",
    ]
)
_LONGEST_NAME, _MOST_OF_ITEM = 8, 4
_LISTING = pattern(r",\s+and\s+|,\s+|\s+and\s+")
_LEAST_ALIKE, _MOST_FEATURES = 2, 60
_STATEFUL = frozenset(
    ["status", "state", "flag", "is", "has", "have", "with", "needed", "allowed", "possible", "option"]
)


@dataclass(frozen=True)
class GridCell:
    """What a record has under a key. ``absent``: the key has no value. ``positive``: of a field with two sides, which it has, and
    ``condition`` which sides these are where its words say so: *rejected*.
    """

    written: str
    absent: bool = False
    positive: bool | None = None
    condition: int | None = None
    items: tuple[str, ...] = ()
    values: tuple[Value, ...] = ()
    stems: frozenset[str] = frozenset()


@dataclass(frozen=True)
class GridColumn:
    """A key: its noun as written, the stems of its words that name no condition, and the condition that the others name."""

    noun: str
    stems: frozenset[str]
    side: Side | None = None


@dataclass(frozen=True)
class GridLabel:
    """A name of a row: its stems in order, and those that no other row's name has."""

    written: str
    stems: tuple[str, ...]
    own: frozenset[str]


@dataclass(frozen=True)
class GridRow:
    """A row with its names, and its cells by column."""

    labels: tuple[GridLabel, ...]
    cells: tuple[GridCell | None, ...]
    name: str


@dataclass(frozen=True)
class Grid:
    """Rows of one kind under the same keys. ``kinds`` are the stems of the words for a row, ``heads`` those of what names it."""

    fact_id: str
    columns: tuple[GridColumn, ...]
    rows: tuple[GridRow, ...]
    kinds: frozenset[str] = frozenset()
    turned: bool = False
    """Whether its rows are the columns of a table or the keys of an object."""
    section: frozenset[str] = field(default=frozenset())
    texts: tuple[str, ...] = ()


def grids(envelope: Envelope) -> tuple[Grid, ...]:
    """Return the grids of the records of an envelope."""
    facts = [text for fact in envelope.facts for text in (fact.id, fact.content)]
    return STORE.of("grids", facts, lambda: _grids(envelope), bytes_a_character=200)


def _grids(envelope: Envelope) -> tuple[Grid, ...]:
    return of_records([(envelope.facts[fact].id, record) for fact, record in envelope.cut.records])


def of_records(records: Sequence[tuple[str, Record]]) -> tuple[Grid, ...]:
    """Return the grids of records, each given with the id of its fact."""
    groups: dict[tuple[str, str, str, str], list[Record]] = defaultdict(list)
    for fact_id, record in records:
        first = "" if record.kind or record.subject or not record.fields else record.fields[0].key.noun
        around = " ".join(each.stated for each in record.subject)
        groups[fact_id, record.kind, around, first].append(record)
    cells = sum(len(record.fields) + len(record.absent) for _, record in records)
    if cells > MOST_CELLS or len(groups) > MOST_GRIDS:
        return ()
    found: list[Grid] = []
    called = _called(records)
    for (fact_id, kind, _, _), members in groups.items():
        grid = _grid(fact_id, kind, members)
        found.append(grid)
        found += [_with_names(each, called) for each in _turned(grid, members)]
    return tuple(found)


def _called(records: Sequence[tuple[str, Record]]) -> dict[tuple[str, str], str]:
    """Return the name of each object that stands under a key of its own: *claimant: {name: Ada Vane}*."""
    found: dict[tuple[str, str], str] = {}
    for fact_id, record in records:
        section = [each.value for each in record.subject if not each.key.noun]
        name = next((each.value for each in record.fields if each.key.noun == "name"), "")
        if section and name and not record.kind:
            found[fact_id, section[-1].lower()] = name
    return found


def _with_names(grid: Grid, called: Mapping[tuple[str, str], str]) -> Grid:
    """Return a grid whose rows are keys with the names of what they stand for: the costs of the *claimant* are those of Ada Vane."""
    names = [called.get((grid.fact_id, row.name.lower()), "") for row in grid.rows]
    added = _own_labels([[each] for each in names])
    rows = tuple(replace(row, labels=(*row.labels, *own)) for row, own in zip(grid.rows, added, strict=True))
    return replace(grid, rows=rows)


def _grid(fact_id: str, kind: str, members: Sequence[Record]) -> Grid:
    keys = list(dict.fromkeys(key for each in members for key in _keys(each)))
    labels = _labels(members)
    rows = tuple(
        GridRow(labels[n], tuple(_cell(key, each) for key in keys), _name(each)) for n, each in enumerate(members)
    )
    heads = members[0].fields[0].key.noun if len(members) > 1 and not kind and members[0].fields else ""
    section = " ".join(each.value for each in members[0].subject if not each.key.noun)
    own = frozenset(content(section)) if section else frozenset()
    return Grid(
        fact_id, tuple(map(_column, keys)), rows, frozenset(content(f"{kind} {heads}")) if kind or heads else own, section=own,
        texts=tuple(each.sentence for each in members),
    )  # fmt: skip


def _turned(grid: Grid, members: Sequence[Record]) -> list[Grid]:
    """Return a grid once more with its columns as rows, where these are things of one sort."""
    if len(members) == 1:
        sort = {_sort(cell) for cell in grid.rows[0].cells if cell is not None and not cell.absent}
        if not grid.section or len(grid.columns) < _LEAST_ALIKE or len(sort) != 1 or "" in sort:
            return []
        section = " ".join(each.value for each in members[0].subject if not each.key.noun)
        rows = tuple(
            GridRow(_own_labels([[key.noun] for key in grid.columns])[n], (cell,), key.noun)
            for n, (key, cell) in enumerate(zip(grid.columns, grid.rows[0].cells, strict=True))
        )
        return [Grid(grid.fact_id, (_of_words(section),), rows, grid.section, turned=True, section=grid.section,
                     texts=grid.texts)]  # fmt: skip
    named = members[0].fields[0].key.noun if members[0].fields else ""
    heads = [n for n, key in enumerate(grid.columns) if key.noun != named]
    if members[0].kind or len(members) > _MOST_FEATURES or len(heads) < _LEAST_ALIKE or not _are_alike(grid, heads):
        return []
    names = _own_labels([[_BRACKETS.sub("", grid.columns[n].noun)] for n in heads])
    rows = tuple(
        GridRow(label, tuple(row.cells[n] for row in grid.rows), grid.columns[n].noun)
        for label, n in zip(names, heads, strict=True)
    )
    return [Grid(grid.fact_id, tuple(_of_words(row.name) for row in grid.rows), rows, turned=True, texts=grid.texts)]


def _are_alike(grid: Grid, heads: Sequence[int]) -> bool:
    """Whether each row has cells of one sort under all of these columns: *no, yes, yes* of three plans."""
    sorts = [{_sort(row.cells[n]) for n in heads if row.cells[n] is not None} for row in grid.rows]
    return sum(len(each) == 1 and "" not in each for each in sorts) > len(sorts) / 2


def _sort(cell: GridCell | None) -> str:
    if cell is None or cell.absent:
        return ""
    if cell.positive is not None:
        return "side"
    return "value" if cell.values else "words"


def _keys(record: Record) -> list[Key]:
    return [*(each.key for each in record.fields), *record.absent]


def _cell(key: Key, record: Record) -> GridCell | None:
    if key in record.absent:
        return GridCell("none", absent=True)
    found = next((each for each in record.fields if each.key == key), None)
    return cell_of(found) if found is not None else None


def cell_of(stated: Field) -> GridCell:
    """Return a field as a cell."""
    if stated.value.casefold() in _EMPTY:
        return GridCell(stated.value, absent=True)
    positive, condition = _side_of(stated.value)
    noun = stated.key.noun
    values = tuple(v for v in read(stated.stated).values if v.start >= len(noun)) if noun else read(stated.value).values
    return GridCell(
        stated.value, positive=positive, condition=condition, items=stated.items or _items(stated.value), values=tuple(values),
        stems=frozenset(content(stated.value)),
    )  # fmt: skip


def _items(written: str) -> tuple[str, ...]:
    """Return the members of a list that is written as one value: *Visitor Centre, Lodge*."""
    parts = tuple(part.strip() for part in _LISTING.split(written) if part.strip())
    short = all(len(part.split()) <= _MOST_OF_ITEM and part[:1].isalpha() for part in parts)
    return parts if "," in written and len(parts) > 1 and short else ()


def _side_of(written: str) -> tuple[bool | None, int | None]:
    """Return which of two sides a value is, and of which condition: *yes*, *not possible*, *turned down*."""
    words = [token for token in tokens(written) if token.is_word]
    named = sides([token.low for token in words])
    rest = [t for n, t in enumerate(words) if t.counts and not any(n in each.places for each in named)]
    if len(named) == 1 and not rest:
        return named[0].positive != bool(denials(words) % 2), named[0].condition
    state = states.of_value(written)
    return (state.positive if state else None), None


def _column(key: Key) -> GridColumn:
    return _of_words(_BRACKETS.sub("", key.noun))


def _of_words(noun: str) -> GridColumn:
    words = [token for token in tokens(noun) if token.is_word]
    own = sides([token.low for token in words])[-1:]
    inside = {n for each in own for n in each.places}
    rest = [token for n, token in enumerate(words) if n not in inside and token.low not in _STATEFUL]
    stems = frozenset(token.stem for token in rest if token.counts)
    return GridColumn(noun, stems, own[0] if own else None)


def _labels(members: Sequence[Record]) -> list[tuple[GridLabel, ...]]:
    """Return the names of each row: its values that are words and that no other row has under that key."""
    found: list[tuple[GridLabel, ...]] = [() for _ in members]
    for place, key in enumerate(dict.fromkeys(each.key for member in members for each in member.fields)):
        held = [next((each for each in member.fields if each.key == key), None) for member in members]
        written = [each.value if each is not None else "" for each in held]
        if any(each is not None and each.items for each in held) or not _may_name(key, place, written):
            continue
        found = [(*before, *own) for before, own in zip(found, _own_labels([[each] for each in written]), strict=True)]
    return found


def _may_name(key: Key, place: int, written: Sequence[str]) -> bool:
    folded = [each.casefold() for each in written if each]
    if key.before or key.after or len(set(folded)) < len(folded) or all(states.of_value(each) for each in folded):
        return False
    naming = bool(_NAMING.intersection(key.noun.lower().split()[-1:]))
    lettered = all(any(map(str.isalpha, each)) for each in folded)
    short = all(len(each.split()) <= _LONGEST_NAME for each in folded)
    timed = any(value.moment is not None for each in folded for value in read(each).values)
    return short and not timed and (naming or (lettered and (place == 0 or all(w[:1].isupper() for w in written if w))))


def _own_labels(names: Sequence[Sequence[str]]) -> list[tuple[GridLabel, ...]]:
    """Return the labels of rows, each with the stems that the names of no other row have."""
    stems = [[content(_BRACKETS.sub("", each)) for each in row] for row in names]
    rows = Counter(stem for each in stems for stem in {stem for one in each for stem in one})
    return [
        tuple(
            GridLabel(written, own, frozenset(stem for stem in own if rows[stem] == 1))
            for written, own in zip(row, stems[number], strict=True)
            if own
        )
        for number, row in enumerate(names)
    ]


def _name(record: Record) -> str:
    return record.fields[0].value if record.fields else ""

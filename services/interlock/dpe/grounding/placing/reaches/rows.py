"""How many rows a table of the sources has, or members a list of objects: *Six cases were opened* (SPEC-005 §5.2)."""

from __future__ import annotations

from collections import Counter

from interlock.dpe.grounding.placing.near import Near
from interlock.dpe.grounding.tables import records
from interlock.dpe.text.lexing import WORD, at
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.values.dates import WEEKDAYS
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import STOP, stem
from interlock.dpe.values.quantities import NUMBER, Value
from interlock.dpe.values.units import TIME

_NEAR = 3
"""Words behind a number among which its noun stands."""
_LEAST_ROWS, _LEAST_DAYS = 2, 3
_DAY = 86_400.0
_WEEKDAYS = frozenset(WEEKDAYS)
_OFF = ("off", "-", "–", "—", "", "none", "free", "rest", "closed")


def counts_rows(value: Value, near: Near) -> bool:
    """Whether a number counts all rows of a table by what each is: by the head of its first column or the name of its list."""
    if value.kind != NUMBER or value.unit or not value.amount or near.told is None:
        return False
    nouns = _nouns(value, near.claim)
    return any(
        count == value.amount and bool(nouns & kinds)
        for content in near.told.contents
        for count, kinds in _tables(content)
    )


def counts_cells(value: Value, near: Near) -> bool:
    """Whether a number of days counts the days of a row that the claim names: *works five days*, in a rota with two days off."""
    if not value.amount or value.unit not in {"", TIME} or (value.unit and value.factor != _DAY) or near.told is None:
        return False
    count, text = value.amount / value.factor, near.text.casefold()
    return any(
        count in counts and name in text for content in near.told.contents for name, counts in _rotas(content) if name
    )


@remembered(bytes_a_character=20, from_length=LONG)
def _rotas(content: str) -> tuple[tuple[str, frozenset[int]], ...]:
    """Return the name of each row that has columns of days, with how many days it has of each kind, and how many are not off."""
    found = []
    for record in records.read(content).records:
        cells = [field.value.casefold() for field in record.fields if _WEEKDAYS & set(field.key.noun.lower().split())]
        kinds = Counter(cells)
        if len(cells) >= _LEAST_DAYS:
            on = len(cells) - sum(kinds[each] for each in _OFF)
            found.append((record.fields[0].value.casefold(), frozenset({*kinds.values(), on})))
    return tuple(found)


def _nouns(value: Value, text: str) -> frozenset[str]:
    tokens = read(text).tokens
    found: set[str] = set()
    for one in (each for each in read(text).values if each.text == value.text):
        for place in range(one.last, one.last + _NEAR):
            token = at(tokens, place)
            if token.kind != WORD or token.low in STOP:
                break
            found.add(stem(token.low))
    return frozenset(found)


@remembered(bytes_a_character=10, from_length=LONG)
def _tables(content: str) -> tuple[tuple[int, frozenset[str]], ...]:
    """Return the number of rows of each table of a text, with the stems of what its rows are."""
    kinds: Counter[tuple[str, ...]] = Counter()
    for record in records.read(content).records:
        kinds[_kinds(record)] += 1
    return tuple((count, frozenset(each)) for each, count in kinds.items() if count >= _LEAST_ROWS)


def _kinds(record: records.Record) -> tuple[str, ...]:
    head = record.fields[0].key.noun if record.fields else ""
    return tuple(dict.fromkeys(stem(word) for word in f"{head} {record.kind}".lower().replace("_", " ").split()))

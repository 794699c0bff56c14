"""Copied rows: a row of an answer's table held against the record that it is about, column by column (SPEC-005 §5.3).

The record is the one whose name stands in a cell of the row. A column is compared with the field of the same words; what it says otherwise
is a finding only where another record of the group says it, or where one side has a value and the other says that there is none.
A row all of whose columns say what the record says is supported, whatever the model hears.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, Slot, plain, stems_of
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values import states
from interlock.dpe.values.cells import cells_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.keys import read_key
from interlock.dpe.values.quantities import Value, comparable, same
from interlock.dpe.values.states import State, is_negation, words_in

_NOTHING = word_set("none nothing - – — n/a na nil null")
_SHORTEST = 3


@dataclass(frozen=True)
class RowVerdict:
    """What a record says of a row: its findings, the texts of the cells that agree, and whether all of them do."""

    moved: tuple[Distortion, ...] = ()
    agreeing: tuple[str, ...] = ()
    whole: bool = False
    premise: str = ""


_NO_VERDICT = RowVerdict()


def row_verdict(claim: Claim, known: Scopes) -> RowVerdict:
    """Return what the one record that a row names says of its columns."""
    row = cells_of(claim.text)
    if row is None:
        return _NO_VERDICT
    label, cells = row
    records = [scope for group in _groups(known) if (scope := identified([label, *(c for _, c in cells)], group))]
    if len(records) != 1:
        return _NO_VERDICT
    record, siblings = records[0], _siblings(records[0], known)
    moved: list[Distortion] = []
    agreeing: list[str] = []
    for head, cell in cells:
        kind, own = _compared(head, cell, record, siblings)
        if kind == _SAME:
            agreeing.append(cell)
        elif kind:
            moved.append(Distortion(kind, own, cell, record.fact_id, slot=read_key(head).noun))
    whole = not moved and len(agreeing) == len(cells)
    return RowVerdict(tuple(moved), tuple(agreeing), whole, record.text)


def identified(values: Sequence[str], group: Sequence[Scope]) -> Scope | None:
    """Return the one record of a group that cells name by its mark, or by words that only its mark has: *beef* of *beef, medium*."""
    written = [plain(value) for value in values]
    exact = [scope for scope in group if any(mark in written for mark in scope.marks)]
    if exact:
        return exact[0] if len(exact) == 1 else None
    words = [set(each.split()) for each in written if len(each) >= _SHORTEST and not each[:1].isdigit()]
    near = [scope for scope in group if any(each <= set(mark.split()) for mark in scope.marks for each in words)]
    return near[0] if len(near) == 1 else None


_SAME = "same"


def _compared(head: str, cell: str, record: Scope, siblings: Sequence[Scope]) -> tuple[str, str]:
    """Return ``same``, the type of a difference that is surely one with the record's own value, or two empty strings."""
    key = read_key(head)
    noun = stems_of(key.noun)
    slot = _slot(key.noun, noun, record)
    if slot is None:
        return _of_absent(noun, cell, record)
    if plain(cell) in {*record.marks} - {slot.written} and slot.written in record.marks:
        return "", ""
    stated, own = _state(cell), _state(slot.field.value)
    if stated is not None and own is not None:
        return (_SAME if stated.positive == own.positive else NEGATION_FLIP), slot.field.value
    if _is_nothing(cell) and slot.values and any(_lacks(noun, each) for each in siblings):
        return NEGATION_FLIP, slot.field.value
    others = [other for each in siblings if (other := _slot(key.noun, noun, each)) is not None]
    return _of_cells([*read(f"{key.noun} {key.written(cell)}").values, *read(cell).values], cell, slot, others)


def _of_cells(mine: Sequence[Value], cell: str, slot: Slot, others: Sequence[Slot]) -> tuple[str, str]:
    if mine and slot.values:
        return _of_values(mine, slot, others)
    return _of_words(cell, slot, others) if bool(mine) == bool(slot.values) else ("", "")


def _of_values(mine: Sequence[Value], slot: Slot, others: Sequence[Slot]) -> tuple[str, str]:
    if any(_equal(one, other) for one in mine for other in slot.values):
        return _SAME, slot.field.value
    alike = any(comparable(one, other) or one.unit == other.unit for one in mine for other in slot.values)
    elsewhere = any(_equal(one, value) for each in others for value in each.values for one in mine)
    return (NUMBER_CHANGED if alike and elsewhere else ""), slot.field.value


def _of_words(cell: str, slot: Slot, others: Sequence[Slot]) -> tuple[str, str]:
    mine, own = set(plain(cell).split()), set(slot.written.split())
    if not mine or not own:
        return "", ""
    if mine <= own or own <= mine:
        # Onshore wind is not offshore wind, but wind is both
        better = any(mine == set(each.written.split()) for each in others) and mine != own
        return (ENTITY_SUBSTITUTED if better else _SAME), slot.field.value
    elsewhere = any(plain(cell) == each.written for each in others)
    return (ENTITY_SUBSTITUTED if elsewhere else ""), slot.field.value


def _of_absent(noun: frozenset[str], cell: str, record: Scope) -> tuple[str, str]:
    if not noun or noun not in map(stems_of, record.absent):
        return "", ""
    if _is_nothing(cell):
        return _SAME, "none"
    return (NEGATION_FLIP if read(cell).values else ""), "none"


def _lacks(noun: frozenset[str], scope: Scope) -> bool:
    return noun in map(stems_of, scope.absent)


def _equal(one: Value, other: Value) -> bool:
    return same(one, other) or bool(one.digits and one.digits == other.digits and not (one.unit and other.unit))


def _state(written: str) -> State | None:
    if plain(written) in _NOTHING or written.strip() in _NOTHING:
        return State(states.PRESENCE, positive=False)
    return states.of_value(written)


def _is_nothing(cell: str) -> bool:
    """Whether a cell says that there is no value: *none*, *–*, *not graded yet*."""
    words = words_in(cell)
    return cell.strip().casefold() in _NOTHING or bool(words and is_negation(words[0]))


def _slot(head: str, noun: frozenset[str], scope: Scope) -> Slot | None:
    """Return the field with the words of a header, or the only one that shares them all."""
    if not noun:
        return _worded(head, scope)
    exact = [slot for slot in scope.slots if slot.noun == noun]
    near = exact or [slot for slot in scope.slots if slot.noun and (slot.noun <= noun or noun <= slot.noun)]
    return near[0] if len(near) == 1 else None


def _worded(head: str, scope: Scope) -> Slot | None:
    """Return the only field whose key has the words of a header without content: *since*."""
    words = set(plain(head).split())
    near = [slot for slot in scope.slots if words and words <= set(plain(slot.field.key.noun).split())]
    return near[0] if len(near) == 1 else None


def _groups(known: Scopes) -> Iterator[list[Scope]]:
    found: dict[tuple[str, frozenset[str]], list[Scope]] = defaultdict(list)
    for scope in known.all:
        if scope.slots:
            found[scope.fact_id, scope.keys].append(scope)
    return (group for group in found.values() if len(group) > 1)


def _siblings(record: Scope, known: Scopes) -> list[Scope]:
    return [
        scope
        for scope in known.all
        if scope.slots and scope is not record and scope.fact_id == record.fact_id and scope.keys == record.keys
    ]

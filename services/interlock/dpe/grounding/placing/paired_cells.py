"""Paired cells: an answer's table, objects or list that gives one row what the prose of the sources gives to another (SPEC-005 §5.3).

*The pottery course is Nadia's and the weaving course Felix's*, told as a table with the two names exchanged. Every cell stands in the
sources, and the model hears the words of a row near each other. Which value a sentence gives to which name is read from the order in
which both occur, with the words of all rows as marks; a sentence in which that is not clear pairs everything with everything.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby, product

from interlock.dpe.comparison.cues import DATE_SHIFTED, ENTITY_SUBSTITUTED, NUMBER_CHANGED
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.rows_told import Column
from interlock.dpe.grounding.placing.scopes import Scope, Scopes
from interlock.dpe.grounding.placing.words_found import Needle, needle, places, words
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read

_TURNING = word_set("unlike instead rather than formerly previously replaced swapped exchanged respectively")
_INSIDE_A_PAIR = 2
_MONTHS = word_set("january february march april may june july august september october november december")


@dataclass
class _Pairs:
    """Which name a source gives which value: surely, and possibly. The fact of the last sure one is kept."""

    sure: dict[tuple[int, int], str] = field(default_factory=dict)
    may: set[tuple[int, int]] = field(default_factory=set)


def exchanged_cells(told: Sequence[Column], known: Scopes) -> dict[str, tuple[Distortion, ...]]:
    """Return the cells of an answer's rows whose value the sources surely give to another row, and another value to theirs."""
    found: dict[str, list[Distortion]] = {}
    for column in told:
        if _is_of_a_route(column, told):
            continue
        for claim_id, distortion in _of_column(column, known):
            found.setdefault(claim_id, []).append(distortion)
    return {name: tuple(each) for name, each in found.items()}


def _is_of_a_route(column: Column, told: Sequence[Column]) -> bool:
    """Whether another column gives the same names values of this one too: *from* and *to*, which an order of words does not tell apart."""
    names = {cell.name for cell in column.cells}
    values = {cell.value.casefold() for cell in column.cells if any(map(str.isalpha, cell.value))}
    return any(
        other is not column
        and names == {cell.name for cell in other.cells}
        and values & {cell.value.casefold() for cell in other.cells} - _names_of(column)
        for other in told
    )


def _names_of(column: Column) -> set[str]:
    """Return the names of the rows of a column, which a column of names repeats."""
    return {cell.name.casefold() for cell in column.cells}


def _of_column(column: Column, known: Scopes) -> Iterator[tuple[str, Distortion]]:
    cells = [cell for cell in column.cells if needle(cell.name) and needle(cell.value)]
    names = [needle(cell.name) for cell in cells]
    values = [needle(cell.value) for cell in cells]
    distinct = list(dict.fromkeys(values))
    if len(distinct) < _INSIDE_A_PAIR or not _are_apart([*names, *distinct]):
        return
    pairs = _pairs(names, distinct, known)
    for number, cell in enumerate(cells):
        own = distinct.index(values[number])
        if (number, own) in pairs.sure or (number, own) in pairs.may:
            continue
        right = next((v for n, v in pairs.sure if n == number and v != own), None)
        holder = next((n for n, v in pairs.sure if v == own and n != number), None)
        if right is not None and holder is not None:
            stated = cells[values.index(distinct[right])].value
            yield (
                cell.claim_id,
                Distortion(_kind(cell.value), stated, cell.value, pairs.sure[number, right], slot=column.head),
            )


def _kind(value: str) -> str:
    found = read(value).values
    if any(each.moment is not None for each in found) or _is_month(value):
        return DATE_SHIFTED
    return NUMBER_CHANGED if found else ENTITY_SUBSTITUTED


def _is_month(value: str) -> bool:
    return value.casefold() in _MONTHS


def _are_apart(needles: Sequence[Needle]) -> bool:
    """Whether no needle is empty or a part of another, so that each place in a text is of one."""
    return all(needles) and not any(
        n != m and set(one) <= set(other) for n, one in enumerate(needles) for m, other in enumerate(needles)
    )


def _pairs(names: Sequence[Needle], values: Sequence[Needle], known: Scopes) -> _Pairs:
    found = _Pairs()
    for scope in known.all:
        _read(names, values, scope, found)
    return found


def _read(names: Sequence[Needle], values: Sequence[Needle], scope: Scope, found: _Pairs) -> None:
    text = words(scope.text)
    named = [(place, True, n) for n, each in enumerate(names) for place in places(each, text)]
    valued = [(place, False, n) for n, each in enumerate(values) for place in places(each, text)]
    if not named or not valued:
        loose = [n for n, each in enumerate(values) if each[-1] in text] if named else []
        found.may.update(product({n for _, _, n in named}, loose))
        return
    told = None if scope.slots or _is_turned(scope.text) else _in_turn(sorted([*named, *valued]))
    if told is None:
        found.may.update(product({n for _, _, n in named}, {n for _, _, n in valued}))
        return
    found.sure.update(dict.fromkeys(told, scope.fact_id))


def _is_turned(sentence: str) -> bool:
    """Whether a sentence denies or compares, so that what stands together in it need not belong together."""
    return any(word.strip(".,;:!?") in _TURNING or is_negator(word) for word in sentence.casefold().split())


def _in_turn(marks: Sequence[tuple[int, bool, int]]) -> list[tuple[int, int]] | None:
    """Return the pairs of a sentence in which names and values take turns: *A and B have x, C has y*; ``None`` where they do not."""
    runs = [(is_name, [n for _, _, n in run]) for is_name, run in groupby(marks, key=lambda mark: mark[1])]
    if len(runs) % 2:
        return None
    told: list[tuple[int, int]] = []
    for one, other in zip(runs[::2], runs[1::2], strict=True):
        named, valued = (one[1], other[1]) if one[0] else (other[1], one[1])
        if len(set(named)) > 1 and len(set(valued)) > 1:
            return None
        told += product(named, valued)
    return told

"""Keyed amounts: what a claim says of a key that one record alone has, or counts of the thing that a row is about (SPEC-005 §5.3).

``replicas: 3`` told as *five replicas*, ``max_attachment_mb: 25`` as *25 GB*, a row of two kettles as *one kettle*. A record with siblings
is compared in ``misplaced``. A figure that follows by calculation, that another text states of the key, or that a claim only
compares or supposes, is left alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.document import Distortion
from interlock.dpe.grounding.placing.misplaced import holds
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, Slot
from interlock.dpe.grounding.placing.words import among, names_all, stem_of
from interlock.dpe.text.lexing import WORD
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import ValuesRead
from interlock.dpe.values.frames import STOP
from interlock.dpe.values.quantities import NUMBER, ORDINAL, Value, comparable, same

_LOOSE = word_set(
    "from than compared versus vs against before previous previously after unlike instead both total altogether more less fewer extra "
    "additional another other others further if unless could would should might each per every least about almost nearly over under "
    "between recommended usually up all makes make including included inclusive plus excluding without short spare"
)
_MADE = word_set(
    "double doubled doubles twice half halved triple tripled times sum sums combined together overall yearly annual annually weekly monthly daily difference share ratio average mean rest left remaining"
)
_LIMITS = frozenset(map(stem_of, word_set("max maximum min minimum limit most total number count size")))
_COUNTS = word_set("quantity count stock units pieces items copies qty number")
_LEAST_COUNT = 2
_EXACT = 1e-6


def other_amounts(
    reading: ValuesRead, values: Sequence[Value], made: Sequence[Value], untold: Sequence[Value], known: Scopes
) -> Iterator[Distortion]:
    """Yield each figure of a claim that is another one than the only record with its key states. *made* follow by calculation."""
    words = {token.low for token in reading.tokens}
    if any(is_negator(word) for word in words) or ":" in reading.text or words & _MADE:
        return
    taken = {n for value in values for n in range(value.first, value.last)}
    stems = frozenset(
        stem_of(token.low)
        for n, token in enumerate(reading.tokens)
        if token.kind == WORD and token.low not in STOP and n not in taken
    )
    for value in values:
        if value in made or value.kind == ORDINAL or value.vague or value.label or value.moment is not None:
            continue
        if value.unit and value in untold:
            found = _of_unit(value, values, stems, words, known)
        elif not value.unit and not words & _LOOSE:
            found = _before_key(reading, value, known) or _of_row(reading, value, known)
        else:
            continue
        if found is not None:
            scope, slot = found
            yield Distortion(NUMBER_CHANGED, slot.field.value, value.text, scope.fact_id, slot.field.key.noun)


def _of_unit(
    value: Value, values: Sequence[Value], stems: frozenset[str], words: set[str], known: Scopes
) -> tuple[Scope, Slot] | None:
    """Return the only field that a claim names all words of and whose amount is of a value's kind."""
    if words & (_LOOSE - {"up", "after"}):
        return None
    fitting = [
        (scope, slot)
        for scope, slot in _alone(known)
        if _key(slot) and names_all(stems, _key(slot)) and len(slot.values) == 1 and comparable(value, slot.values[0])
    ]
    if len({slot.field.value for _, slot in fitting}) != 1 or not fitting[0][1].values[0].unit:
        return None
    scope, slot = fitting[0]
    own = slot.values[0]
    several = any(_is_times(value, own, each) for each in values if each is not value)
    return None if same(value, own) or several or _is_told(value, slot, scope, known) else fitting[0]


def _is_times(value: Value, own: Value, count: Value) -> bool:
    """Whether an amount is a field's as many times as a claim says: two months' rent."""
    if not (value.amount and own.amount and count.amount):
        return False
    return abs(value.amount / own.amount - count.amount / count.factor) < _EXACT


def _before_key(reading: ValuesRead, value: Value, known: Scopes) -> tuple[Scope, Slot] | None:
    """Return the only field whose key follows a count at once, *five replicas*, and that has another count."""
    if value.kind != NUMBER or (value.amount or 0) < _LEAST_COUNT:
        return None
    following = [stem_of(token.low) for token in reading.tokens[value.last : value.last + 2]]
    fitting = [
        (scope, slot)
        for scope, slot in _alone(known)
        if len(slot.values) == 1 and not slot.values[0].unit and slot.values[0].amount is not None
        and slot.values[0].kind == NUMBER and (key := _key(slot)) and all(among(key, w) for w in following[: len(key)])
        and len(following) >= len(key) and (_is_plural(reading, value, len(key)) or _is_beside(value, slot, scope))
    ]  # fmt: skip
    if len({slot.field.value for _, slot in fitting}) != 1:
        return None
    scope, slot = fitting[0]
    return None if same(value, slot.values[0]) or _is_told(value, slot, scope, known) else fitting[0]


def _is_beside(value: Value, slot: Slot, scope: Scope) -> bool:
    """Whether another field of the record has a value: *prepaid* has what a claim gives to *postpaid*."""
    return any(same(value, each) for other in scope.slots if other is not slot for each in other.values)


def _is_plural(reading: ValuesRead, value: Value, size: int) -> bool:
    """Whether what follows a count is counted: *five replicas*, not the *16* of *postgres 16 database*."""
    last = reading.tokens[value.last + size - 1].low
    return last.endswith("s")


def _of_row(reading: ValuesRead, value: Value, known: Scopes) -> tuple[Scope, Slot] | None:
    """Return the count of the row whose name follows a count at once, *two kettles*, where a sibling has that count."""
    following = " ".join(token.low for token in reading.tokens[value.last : value.last + 1])
    named = [
        scope
        for scope in known.all
        if scope.slots and following and any(following in {mark, f"{mark}s", f"{mark}es"} for mark in scope.marks)
    ]
    if len(named) != 1:
        return None
    counts = [
        n
        for n, slot in enumerate(named[0].slots)
        if slot.field.key.noun.lower().split()[-1:]
        and slot.field.key.noun.lower().split()[-1] in _COUNTS
        and slot.values
    ]
    if len(counts) != 1 or any(same(value, each) for each in named[0].slots[counts[0]].values):
        return None
    others = [each.slots[counts[0]] for each in known.siblings(named[0]) if counts[0] < len(each.slots)]
    taken = any(same(value, each) for slot in others for each in slot.values)
    return (named[0], named[0].slots[counts[0]]) if taken else None


def _alone(known: Scopes) -> Iterator[tuple[Scope, Slot]]:
    """Yield the fields of the records that no other record is a sibling of."""
    sizes = Counter((scope.fact_id, scope.keys) for scope in known.all)
    alone = [scope for scope in known.all if scope.slots and sizes[scope.fact_id, scope.keys] == 1]
    return ((scope, slot) for scope in alone if not known.siblings(scope) for slot in scope.slots)


def _key(slot: Slot) -> frozenset[str]:
    """Return the stems of a key without the words of a limit."""
    return frozenset(each.removeprefix("±") for each in slot.noun) - _LIMITS


def _is_told(value: Value, slot: Slot, scope: Scope, known: Scopes) -> bool:
    """Whether another record or a text states a value beside the key, or at all in that unit."""
    return any(
        each is not scope and holds(value, each) and (bool(value.unit) or names_all(each.stems, _key(slot)))
        for each in known.all
    )

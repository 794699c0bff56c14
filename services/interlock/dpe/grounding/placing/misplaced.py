"""Misplaced values: what a claim about one record takes from another (SPEC-005 §5.3).

A claim that has the mark of one record, such as the number of a train, states that record's values. The value of a sibling in
its place is a distortion, as is an extreme that is none (*the cheapest*) and a field that the record answers with *no*.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.cues import DATE_SHIFTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, Slot, stems_of
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import cells_of
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.frames import frame, stem
from interlock.dpe.values.keys import read_key
from interlock.dpe.values.moments import covers
from interlock.dpe.values.quantities import MONEY, ORDINAL, Value, comparable, same

LEAST = word_set("cheapest lowest smallest least shortest earliest fewest youngest lightest slowest minimum")
MOST = word_set("highest largest biggest most longest latest dearest greatest oldest heaviest fastest maximum priciest")
_OF_MONEY = word_set("cheapest dearest priciest expensive")
_CLOSES_KIND = word_set("is was are were at costs overall here")
"""Words after the noun of an extreme that narrow no kind: *the cheapest article at*, not *the cheapest article with*."""
_AFTER_EXTREME = word_set("is was are were one option choice at of would")
_JOINING, _JOINED = frozenset({"or", "and", "nor"}), 4
_APART = word_set("short spare fewer extra additional another")
"""Words that make a number before the noun of a field a difference: *falls two seats short*."""
_NEAR = 3
_DENYING = word_set("no false none except excepting excluding apart bar")
_ALL = word_set("all every each everything everyone everybody any")
EXACT = 1e-6
_COMPARES = word_set("from than compared versus vs against before previous previously after unlike instead both")


def row_findings(claim: Claim, known: Scopes) -> Iterator[Distortion]:
    """Yield the cells of a row that state the value of another column's record: ``Revenue; 2023: 480; 2024: 412``."""
    row = cells_of(claim.text)
    if row is None:
        return
    label, cells = row
    noun = stems_of(read_key(label).noun)
    for head, cell in cells:
        named = [group[0] for group in known.named(head).values() if len(group) == 1]
        if len(named) != 1:
            continue
        place = next((n for n, slot in enumerate(named[0].slots) if slot.noun and slot.noun == noun), None)
        if place is None:
            continue
        own = named[0].slots[place].values[:1]
        others = [each for s in known.siblings(named[0]) if place < len(s.slots) for each in s.slots[place].values[:1]]
        for value in read(f"{label} {read_key(label).written(cell)}").values[-1:]:
            if own and not _alike(value, own[0]) and any(_alike(value, each) for each in others):
                yield Distortion(NUMBER_CHANGED, own[0].text, cell, named[0].fact_id)


def _alike(value: Value, other: Value) -> bool:
    return same(value, other) or _bare(value, other)


def findings(
    reading: ValuesRead, values: Sequence[Value], untold: Sequence[Value], named: Sequence[Scope], known: Scopes
) -> Iterator[Distortion]:
    """Yield each value that a claim on one record takes from another, and each that is not the extreme it is said to be.

    *untold* are the values that nothing states and that follow from nothing.
    """
    if {token.low for token in reading.tokens} & _COMPARES:
        return
    if len(named) != 1:
        yield from paired(reading, values, named, known)
        return
    yield from _of_another(reading, values, untold, named[0], known)
    yield from _of_another_field(reading, values, named[0], known)
    yield from _denied_field(reading, named[0])
    yield from _not_extreme(reading, named[0], known)


def _of_another(
    reading: ValuesRead, values: Sequence[Value], untold: Sequence[Value], record: Scope, known: Scopes
) -> Iterator[Distortion]:
    siblings = known.siblings(record)
    for value in values:
        if _states(value, record) or value.kind == ORDINAL or (value.words and not value.unit):
            continue
        for place, slot in enumerate(record.slots):
            if slot.written in record.marks or _is_beside_mark(reading, value, record):
                continue
            own = next((each for each in slot.values if comparable(value, each)), None)
            others = [each for s in siblings if place < len(s.slots) for each in s.slots[place].values]
            if own is None or any(same(own, each) for each in values) or _is_multiple(value, own, values, record):
                continue  # a claim that states the record's own value compares it
            taken = any(same(value, each) for each in others) or (value in untold and own.unit and not value.vague)
            if taken and (_about(reading, value, slot, record) or _is_only_there(value, place, siblings, known)):
                kind = DATE_SHIFTED if value.moment is not None else NUMBER_CHANGED
                yield Distortion(kind, own.text, value.text, record.fact_id)
                break


def _is_beside_mark(reading: ValuesRead, value: Value, record: Scope) -> bool:
    """Whether a value is joined to the name of a record, so that it names another one: *20 mg or the placebo*."""
    after = [token.low for token in reading.tokens[value.last : value.last + _JOINED]]
    before = [token.low for token in reading.tokens[max(0, value.first - _JOINED) : value.first]]
    marks = {mark.split()[0] for mark in record.marks if mark}, {mark.split()[-1] for mark in record.marks if mark}
    return (after[:1] and after[0] in _JOINING and bool(marks[0] & set(after))) or (
        before[-1:] != [] and before[-1] in _JOINING and bool(marks[1] & set(before))
    )


def _is_multiple(value: Value, own: Value, values: Sequence[Value], record: Scope) -> bool:
    """Whether a sum of money is a field's times a count of the record or of the claim: two kettles, at so much each."""
    if value.kind != MONEY:
        return False
    counts = [each for each in (*values, *(operand.value for operand in record.operands)) if not each.unit]
    return any(
        value.amount and own.amount and each.amount and abs(value.amount - own.amount * each.amount) < EXACT
        for each in counts
    )


def _is_only_there(value: Value, place: int, siblings: Sequence[Scope], known: Scopes) -> bool:
    """Whether a measured value stands in one field of the siblings alone, and in no sentence: no other could be meant."""
    places = {n for each in siblings for n, slot in enumerate(each.slots) if any(same(value, v) for v in slot.values)}
    return (
        bool(value.unit) and places == {place} and not any(holds(value, each) for each in known.all if not each.slots)
    )


def _of_another_field(
    reading: ValuesRead, values: Sequence[Value], record: Scope, known: Scopes
) -> Iterator[Distortion]:
    """Yield each bare number that stands before the noun of one field and that another field of the record, or a sibling, has."""
    for value in values:
        number = _field_after(reading, value, record)
        if number is None or value.unit or value.moment is not None or value.kind == ORDINAL or value.vague:
            continue
        if _APART & {token.low for token in reading.tokens[max(0, value.first - 1) : value.last + _JOINED]}:
            continue
        own = record.slots[number].values[0]
        slots = [*record.slots, *(each.slots[number] for each in known.siblings(record) if number < len(each.slots))]
        others = [slot for slot in slots if slot is not record.slots[number] and slot.written not in record.marks]
        elsewhere = any(_alike(value, v) for slot in others for v in slot.values)
        if elsewhere and not _alike(value, own) and not any(_alike(each, own) for each in values):
            yield Distortion(NUMBER_CHANGED, own.text, value.text, record.fact_id)


def _field_after(reading: ValuesRead, value: Value, record: Scope) -> int | None:
    """Return the number of the one field whose noun follows a value at once: *68 points*."""
    following = [token.low for token in reading.tokens[value.last : value.last + 1]]
    noun = frozenset(map(stem, following))
    found = [n for n, slot in enumerate(record.slots) if noun and slot.noun == noun and len(slot.values) == 1]
    return found[0] if len(found) == 1 else None


def paired(reading: ValuesRead, values: Sequence[Value], named: Sequence[Scope], known: Scopes) -> Iterator[Distortion]:
    """Yield the value that a claim on several records gives to one and that a sibling has: *Elm with 4 and Ash with 6*.

    Only where names and values take turns, so that it is clear which belongs to which.
    """
    measured = [value for value in values if value.amount is not None and not value.vague and value.kind != ORDINAL]
    if len({scope.group for scope in named}) != 1 or len(measured) != len(named):
        return
    placed = sorted((place, scope.number) for scope in named if (place := _named_at(reading.text, scope)) is not None)
    if len(placed) != len(named) or not all(
        first[0] < value.start and (after is None or value.start < after[0])
        for first, value, after in zip(placed, measured, [*placed[1:], None], strict=True)
    ):
        return
    records = {scope.number: scope for scope in named}
    for (_, number), value in zip(placed, measured, strict=True):
        yield from _of_another(reading, [value], (), records[number], known)


def _named_at(text: str, scope: Scope) -> int | None:
    """Return where a text has the mark of a record first, or ``None``."""
    low = text.casefold()
    found = [place for mark in scope.marks if (place := low.find(mark)) >= 0]
    return min(found, default=None)


def _states(value: Value, record: Scope) -> bool:
    """Whether a record states a value as the value of a field that could be meant: $10 is no field of 10 seats and $25."""
    if value.moment is not None and any(value.text == operand.value.text for operand in record.operands):
        return True  # since 2021, beside the output of 2024
    measured = any(slot.values and comparable(value, slot.values[0]) for slot in record.slots)
    if value.unit and measured:
        return any(_equal(value, operand.value) for operand in record.operands)
    return holds(value, record)


def _denied_field(reading: ValuesRead, record: Scope) -> Iterator[Distortion]:
    """Yield the fields that a record answers with *no* and a claim without any negation or exception states: *all but room 4*."""
    bag = frame(reading.text).bag
    words = [token.low for token in reading.tokens]
    if any(is_negator(word) or word in _DENYING for word in words) or any(
        word == "but" and _ALL & set(words[max(0, n - _NEAR) : n]) for n, word in enumerate(words)
    ):
        return
    for slot in record.slots:
        if slot.field.value == "no" and slot.noun and slot.noun <= bag:
            yield Distortion(NEGATION_FLIP, "no", slot.field.key.noun, record.fact_id)


def _about(reading: ValuesRead, value: Value, slot: Slot, record: Scope) -> bool:
    """Whether a claim's value is of a field: the claim has its noun, or no other field of the record could be meant."""
    bag = frame(reading.text).bag
    alike = [s for s in record.slots if any(comparable(value, each) for each in s.values)]
    measured = any(value.factor == each.factor for s in alike for each in s.values)  # five days are no bent 53 hours
    return (len(alike) == 1 and measured) or bool(
        slot.noun & bag and not any(s is not slot and s.noun >= slot.noun and s.noun <= bag for s in alike)
    )


def _not_extreme(reading: ValuesRead, record: Scope, known: Scopes) -> Iterator[Distortion]:
    """Yield the value of a record that a claim calls the least or the most of its kind, and that is not.

    Only where nothing narrows the kind: *the cheapest is*, not *the cheapest with a cabin is*.
    """
    words = [token.low for token in reading.tokens]
    place = next((n for n, word in enumerate(words) if word in LEAST | MOST), None)
    if place is None or words[max(0, place - 1)] in {"second", "third", "next"} or "one" in words[:place]:
        return
    priced = place + 1 < len(words) and words[place] in {"most", "least"} and words[place + 1] == "expensive"
    following, beyond = (words[place + priced + n] if place + priced + n < len(words) else "" for n in (1, 2))
    least, bag = words[place] in LEAST, frame(reading.text).bag
    for number, slot in enumerate(record.slots):
        own = slot.values[0] if len(slot.values) == 1 else None
        if own is None or own.amount is None or slot.written in record.marks:
            continue
        of_money = priced or words[place] in _OF_MONEY
        meant = own.kind == MONEY if of_money else bool(slot.noun) and slot.noun <= bag
        plain = following in _AFTER_EXTREME or not following.isalpha() or stem(following) in slot.noun
        plain = plain or (of_money and (beyond in _CLOSES_KIND or not beyond.isalpha()))
        others = [
            s.slots[number].values[0]
            for s in known.siblings(record)
            if number < len(s.slots) and s.slots[number].values
        ]
        better = [
            each
            for each in others
            if each.amount is not None and (each.amount < own.amount if least else each.amount > own.amount)
        ]
        if meant and plain and better and all(comparable(own, each) for each in others):
            extreme = (min if least else max)(better, key=lambda each: each.amount or 0.0)
            yield Distortion(NUMBER_CHANGED, extreme.text, own.text, record.fact_id)


def holds(value: Value, scope: Scope) -> bool:
    """Whether a scope states a value, with or without its unit."""
    exact = [
        operand.value for operand in scope.operands if not operand.value.vague
    ]  # how many days states no number of days
    return any(_equal(value, each) or _bare(value, each) for each in exact)


def _equal(value: Value, other: Value) -> bool:
    """Whether a value is stated by another: of a date, every part of it."""
    if value.moment is not None and other.moment is not None:
        return covers(other.moment, value.moment)
    return same(value, other)


def _bare(value: Value, other: Value) -> bool:
    """Whether a field states a claim's figure without its unit, or the claim leaves out the field's."""
    if (
        value.amount is None
        or other.amount is None
        or value.label
        or other.label
        or bool(value.unit) == bool(other.unit)
    ):
        return False
    return abs(value.amount / value.factor / value.scale - other.amount / other.factor / other.scale) < 1e-9


def in_place(reading: ValuesRead, values: Sequence[Value], records: Sequence[Scope]) -> bool:
    """Whether the values of a claim stand with the nouns of the fields that state them.

    A value beside the noun of another field may be that field's. Of several nouns and values the order must be the same.
    """
    stems = [stem(token.low) for token in reading.tokens]
    placed: list[int] = []
    for value in values:
        alike = [
            slot for scope in records for slot in scope.slots if any(comparable(value, each) for each in slot.values)
        ]
        named = [(place, slot) for slot in alike if (place := _place(slot, stems)) is not None]
        if not named:
            continue
        own = [place for place, slot in named if any(same(value, each) for each in slot.values)]
        if not own and any(same(value, each) for slot in alike for each in slot.values):
            return False
        placed += own[:1]
    first = list(dict.fromkeys(placed))  # the second pair of a comparison begins anew
    return first == sorted(first)


def _place(slot: Slot, stems: Sequence[str]) -> int | None:
    """Return where a claim has the noun of a slot, its words close together, or ``None``."""
    width = len(slot.noun) + 1
    for first, word in enumerate(stems):
        if word in slot.noun and slot.noun <= set(stems[first : first + width]):
            return first
    return None

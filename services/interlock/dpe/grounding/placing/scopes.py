"""Scopes: what each record or sentence of the sources states about which subject, as values with their words (SPEC-005 §5.2).

A record (an object, a row) belongs to the group of records with the same fields. What tells it from its siblings, such as the
number of a train or a year, is its mark. A claim that has the mark of one record is about that record alone.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.tables.record import Field, Record
from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import WORD, Lexeme, at, lex
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import STOP, frame, stem
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.reckoning.derived import Operand

MOST_SCOPES = 400
_SHORTEST_PLURAL = 3
_MOST_OF_LABEL = 4
_JOINS = frozenset({",", ";", ":", "and", "but", "(", ")", "–", "—"})
_MARKING = word_set(
    "id name number title code year quarter month date day ref reference key label plan model sku city country"
)


@dataclass(frozen=True)
class Slot:
    """A field of a record with its values and the stems of its key."""

    field: Field
    noun: frozenset[str]
    values: tuple[Value, ...]

    @property
    def written(self) -> str:
        """The value as marks are compared."""
        return plain(self.field.value)


@dataclass(frozen=True)
class Scope:
    """A record or a sentence of a source. ``slots`` and ``marks`` are those of a record."""

    number: int
    fact_id: str
    text: str
    stems: frozenset[str]
    operands: tuple[Operand, ...]
    slots: tuple[Slot, ...] = ()
    group: frozenset[str] = frozenset()
    marks: tuple[str, ...] = ()
    when: int | None = None
    absent: tuple[str, ...] = ()
    """The keys of a record that have no value."""

    @property
    def keys(self) -> frozenset[str]:
        """The keys of a record, those without a value among them."""
        return self.group | {noun.lower() for noun in self.absent}


@dataclass(frozen=True)
class Scopes:
    """The scopes of an envelope."""

    all: tuple[Scope, ...]

    def named(self, text: str) -> dict[frozenset[str], list[Scope]]:
        """Return the records whose marks a text has, by group. Of a group without a mark in the text there is none."""
        folded = f" {plain(text)} "
        found: dict[frozenset[str], list[Scope]] = defaultdict(list)
        for scope in self.all:
            if scope.marks and any(_has(folded, mark) for mark in scope.marks):
                found[scope.group].append(scope)
        return dict(found)

    def siblings(self, scope: Scope) -> list[Scope]:
        """Return the other records of the group of a record."""
        return [each for each in self.all if each.group == scope.group and each.number != scope.number and each.slots]


def _has(folded: str, mark: str) -> bool:
    """Whether a text has a mark as a whole, or several of what it names: *kettles* for *kettle*."""
    return f" {mark} " in folded or (mark[-1:].isalpha() and len(mark) > _SHORTEST_PLURAL and f" {mark}s " in folded)


def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words of a text that are no function words."""
    return frozenset(stem(t.low) for t in lex(fold(text)) if t.kind == WORD and t.low not in STOP)


def scopes(envelope: Envelope) -> Scopes:
    """Return the scopes of an envelope: each of its records, and each unit of the text around them."""
    facts = [text for fact in envelope.facts for text in (fact.id, fact.content)]
    units = [text for unit in envelope.cut.units[:MOST_SCOPES] for text in (str(unit.fact), unit.text)]
    return STORE.of("scopes", (*facts, *units), lambda: _scopes(envelope), bytes_a_character=100)


def _scopes(envelope: Envelope) -> Scopes:
    found: list[Scope] = []
    stated = {record.sentence for _, record in envelope.cut.records}
    for fact, record in envelope.cut.records[:MOST_SCOPES]:
        found.append(_of_record(record, envelope.facts[fact].id, len(found)))
    for unit in envelope.cut.units[:MOST_SCOPES]:
        if unit.text not in stated:
            found.append(_of_text(unit.text, envelope.facts[unit.fact].id, len(found)))
    return Scopes(tuple(_marked(found)))


def of_texts(texts: Sequence[str], first: int) -> list[Scope]:
    """Return a scope for each text, numbered from *first*: what the user said."""
    return [_of_text(text, "", first + number) for number, text in enumerate(texts)]


def _of_text(text: str, fact_id: str, number: int) -> Scope:
    framed = _framed(text)
    operands = tuple(Operand(value, noun, number, near=near, follows=after) for value, noun, near, after in framed)
    return Scope(number, fact_id, text, frame(text).bag, operands)


@lru_cache(maxsize=512)
def _framed(text: str) -> tuple[tuple[Value, frozenset[str], frozenset[str], str], ...]:
    framed = frame(text)
    return tuple(
        (
            value,
            sentence.bag,
            _clause(framed.tokens, value, sentence.first, sentence.last),
            at(framed.tokens, value.last).low,
        )
        for sentence in framed.sentences
        for value in sentence.values
    )


def _clause(tokens: Sequence[Lexeme], value: Value, first: int, last: int) -> frozenset[str]:
    """Return the words of the clause around a value: up to the next comma, semicolon or conjunction on both sides.

    The label of a line, *Taken: 19*, belongs to what stands behind it.
    """
    start, end = value.first, value.last
    while start > first and tokens[start - 1].low not in _JOINS:
        start -= 1
    if start > first and tokens[start - 1].text == ":" and start - 1 - first <= _MOST_OF_LABEL:
        start = first
    while end < last and tokens[end].low not in _JOINS:
        end += 1
    return frozenset(token.low for token in tokens[start:end] if token.kind == WORD)


def _of_record(record: Record, fact_id: str, number: int) -> Scope:
    slots = tuple(_slot(field) for field in (*record.subject, *record.fields))
    years = [v.moment.years[0] for slot in slots for v in slot.values if v.moment and v.moment.years]
    when = years[0] if len(years) == 1 else None
    operands = tuple(
        Operand(value, slot.noun, number, when, frozenset(slot.field.key.noun.lower().split()))
        for slot in slots
        for value in slot.values
    )
    group = frozenset(slot.field.key.noun.lower() for slot in slots)
    absent = tuple(key.noun for key in record.absent)
    return Scope(
        number, fact_id, record.sentence, stems_of(record.sentence), operands, slots, group, when=when, absent=absent
    )


def _slot(field: Field) -> Slot:
    """Return a field with the values that its sentence states. A year is read with its noun: ``year 2023``."""
    noun = stems_of(field.key.noun)
    values = read(field.stated).values
    own = tuple(v for v in values if v.start >= len(field.key.noun)) if field.key.noun else values
    return Slot(field, noun, own)


def _marked(found: Sequence[Scope]) -> list[Scope]:
    """Give each record its marks: the fields that name things and that not all records of its group share."""
    groups: dict[frozenset[str], list[Scope]] = defaultdict(list)
    for scope in found:
        if scope.slots:
            groups[scope.keys].append(scope)
    return [replace(scope, marks=_marks(scope, groups[scope.keys])) if scope.slots else scope for scope in found]


def _marks(scope: Scope, group: Sequence[Scope]) -> tuple[str, ...]:
    marks = []
    for place, slot in enumerate(scope.slots):
        written = plain(slot.field.value)
        if not written or not _may_mark(slot, place):
            continue
        same = [each for each in group if _states(each, place, slot, written)]
        if len(same) < len(group) and len(same) == 1:
            marks.append(written)
    return tuple(marks)


def _states(scope: Scope, place: int, slot: Slot, written: str) -> bool:
    """Whether a record has a value in a field: at its place, or under its key where a key before it has no value."""
    at = scope.slots[place : place + 1]
    own = at if not scope.absent else [each for each in scope.slots if each.field.key == slot.field.key]
    return any(each.written == written for each in own)


def _may_mark(slot: Slot, place: int) -> bool:
    key, value = slot.field.key, slot.field.value
    if key.before or key.after or value in {"yes", "no"}:
        return False
    if any(v.moment is not None and v.moment.minute is not None for v in slot.values):
        return False
    last = key.noun.lower().split()[-1:] or [""]
    return last[0] in _MARKING or (any(map(str.isalpha, value)) and (place == 0 or value[:1].isupper()))


def plain(text: str) -> str:
    """Return a text as marks are compared: its letters and digits, folded."""
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())

"""Fields: an answer's object compared with the record that it copies, key by key (SPEC-005 §5.3).

Each value of an object may stand in the source and yet under another key: ``contracted: 92, measured: 250`` for the reverse. The record
is the one that states most of the object's values. A field is compared where the words of the keys are the same, and a difference is
a finding only where the value is known from elsewhere in the sources, so that what is computed or reworded is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.placing.copied_rows import RowVerdict, identified
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, Slot, stems_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values import states
from interlock.dpe.values.cells import cells_of, label_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.keys import read_key
from interlock.dpe.values.quantities import same
from interlock.dpe.values.states import words_in

_QUOTED = pattern(r'"([\p{L}_][\p{L}\d_ .-]{0,40})"\s*:\s*(?:"([^"]{1,120})"|(-?\d[\d.,]{0,20}\d|\d|true|false))')
_KEY = pattern(r"([\p{L}_][\p{L}\d_-]{1,40}):\s")
_LONGEST = 80
_LEAST_ALIKE = 2
_LEAST_FIELDS = 2
_LONGEST_END = 3
_LEAST_WORDS = 2
_BOOLEANS = frozenset({"yes", "no"})


@dataclass(frozen=True)
class _Stated:
    """A field of an answer: the stems of its key, its value as text would state it, and the claim that it stands in."""

    stems: frozenset[str]
    value: str
    claim_id: str
    text: str = ""


@dataclass(frozen=True)
class _Told:
    """An object of an answer: its fields, and the name that its keys begin with."""

    fields: Sequence[_Stated]
    name: str = ""

    @property
    def values(self) -> list[str]:
        """What may name the record that the object copies."""
        return [*([self.name] if self.name else []), *(field.value for field in self.fields)]


def moved_fields(claims: Sequence[Claim], known: Scopes) -> dict[str, tuple[Distortion, ...]]:
    """Return the fields of the answer's objects that have another value than the record that the object copies."""
    found: dict[str, list[Distortion]] = {}
    for told in _objects(claims):
        for field, scope, slot, slots in _paired(told, known):
            kind = "" if _same(field.value, slot) else _kind(field, (scope, slot), slots, known)
            if kind:
                moved = Distortion(kind, slot.field.value, field.value, scope.fact_id, slot=slot.field.key.noun)
                found.setdefault(field.claim_id, []).append(moved)
    return {name: tuple(dict.fromkeys(each)) for name, each in found.items()}


def agreeing_fields(claims: Sequence[Claim], known: Scopes) -> dict[str, RowVerdict]:
    """Return what bears out the claims that are one field of an object, and that the record which the object copies states too."""
    found: dict[str, RowVerdict] = {}
    for told in _objects(claims):
        for field, scope, slot, _ in _paired(told, known):
            if field.text and _is_stated_by(field, slot):
                found[field.claim_id] = RowVerdict((), (field.value, field.text), whole=True, premise=scope.text)
    return found


def _is_stated_by(field: _Stated, slot: Slot) -> bool:
    """Whether a record states a field of an answer itself, under its own key, and no more than a part of a longer text."""
    if not slot.noun <= field.stems or not _same(field.value, slot):
        return False
    exact = _plain(field.value) in {_plain(slot.field.value), *map(_plain, slot.field.items)}
    return exact or bool(read(field.value).values)


def _objects(claims: Sequence[Claim]) -> Iterator[_Told]:
    """Yield each object: the fields of one claim with many, or those of a run of claims with one each, by the name before their keys."""
    run: list[tuple[str, Claim]] = []
    for claim in claims:
        label = label_of(claim.text) if cells_of(claim.text) is None else None
        if label is not None:
            run.append((label, claim))
            continue
        yield from _by_name(run)
        run = []
        for part in claim.text.split("}"):
            yield _Told([_stated(key, value, claim.claim_id) for key, value in _pairs(part)])
    yield from _by_name(run)


def _by_name(run: Sequence[tuple[str, Claim]]) -> Iterator[_Told]:
    """Yield the objects of a run of fields. Fields whose keys end alike, *spring revenue* and *autumn revenue*, are those of two objects."""
    ends = _ends_of([label for label, _ in run])
    names = list(
        dict.fromkeys(label.removesuffix(end).strip() for (label, _), end in zip(run, ends, strict=True) if end)
    )
    objects: dict[str, list[_Stated]] = {}
    for (label, claim), end in zip(run, ends, strict=True):
        name = label.removesuffix(end).strip() if end else _owner(label, names)
        key = label[len(name) :].strip() or label
        value = claim.text.partition(":")[2].strip()
        objects.setdefault(name, []).append(_stated(key, value, claim.claim_id, claim.text))
    single = [name for name, fields in objects.items() if name and len(fields) < _LEAST_FIELDS]
    if len(single) * 2 > len(objects):  # *contracted mbps* and *measured mbps* are two fields of one object
        yield _Told(
            [_stated(label, claim.text.partition(":")[2].strip(), claim.claim_id, claim.text) for label, claim in run]
        )
        return
    yield from (_Told(fields, name) for name, fields in objects.items())


def _ends_of(labels: Sequence[str]) -> list[str]:
    """Return of each label the longest end that another one has, with a name left before it in both, or an empty text."""
    holders: dict[str, set[str]] = {}
    ends = [
        [" ".join(words[-n:]) for n in range(min(_LONGEST_END, len(words) - 1), 0, -1)]
        for words in map(str.split, labels)
    ]
    for label, each in zip(labels, ends, strict=True):
        for end in each:
            holders.setdefault(end, set()).add(label)
    return [next((end for end in each if len(holders[end]) > 1), "") for each in ends]


def _owner(label: str, names: Sequence[str]) -> str:
    """Return the name of an object that a label begins with, or an empty text."""
    return max((name for name in names if name and label.startswith(f"{name} ")), key=len, default="")


def _pairs(text: str) -> Iterator[tuple[str, str]]:
    quoted = [(match[1], match[2] or match[3]) for match in _QUOTED.finditer(text)]
    if quoted:
        yield from quoted
        return
    keys = list(_KEY.finditer(text))
    for n, match in enumerate(keys):
        value = text[match.end() : keys[n + 1].start() if n + 1 < len(keys) else len(text)].strip()
        if 0 < len(value) <= _LONGEST:
            yield match[1], value


def _stated(key: str, value: str, claim_id: str, text: str = "") -> _Stated:
    named = read_key(key)
    stems = stems_of(named.noun)
    worded = frozenset(each for each in stems if len(each) > 1)  # the letter of a unit: oven_c
    return _Stated(worded or stems, named.written(value), claim_id, text)


def _paired(told: _Told, known: Scopes) -> Iterator[tuple[_Stated, Scope, Slot, Sequence[tuple[Scope, Slot]]]]:
    """Yield the fields of an object that the record which it copies has too, with that record, its field, and all of its fields."""
    if len(told.fields) < _LEAST_FIELDS:
        return
    pools: dict[str, list[Scope]] = {}
    for scope in known.all:
        siblings = _siblings(scope, known) if scope.slots else []
        if scope.slots and (not siblings or _copied(told, [scope, *siblings]) is scope):
            pools.setdefault(scope.fact_id, []).append(scope)
    for pool in pools.values():
        slots = [(scope, slot) for scope in pool for slot in scope.slots if slot.noun and slot.field.value]
        own = [(field, _slot(field, slots)) for field in told.fields]
        alike = sum(each is not None and _same(field.value, each[1]) for field, each in own)
        if alike < _LEAST_ALIKE or any(len(_marked(pool, scope)) > 1 for scope in pool):
            continue
        for field, each in own:
            if each is not None:
                yield field, *each, slots


def _copied(told: _Told, group: Sequence[Scope]) -> Scope | None:
    """Return the record of a group that has most of an object's marks: one of them may be a neighbour's."""
    written = {_plain(value) for value in told.values}
    shared = sorted(((len(written & set(scope.marks)), n) for n, scope in enumerate(group)), reverse=True)
    if shared[0][0] and shared[0][0] > shared[1][0]:
        return group[shared[0][1]]
    return identified(told.values, group)


def _siblings(scope: Scope, known: Scopes) -> list[Scope]:
    """Return the other records with the keys of a record, those without a value among them."""
    return [
        each
        for each in known.all
        if each.slots and each is not scope and each.fact_id == scope.fact_id and each.keys == scope.keys
    ]


def _marked(pool: Sequence[Scope], scope: Scope) -> list[Scope]:
    """Return the records of one group that an object names: of two it is not clear which it copies."""
    return [each for each in pool if each.group == scope.group]


def _slot(field: _Stated, slots: Sequence[tuple[Scope, Slot]]) -> tuple[Scope, Slot] | None:
    """Return the field of the record with the same key, as far as both are worded, or ``None``."""
    exact = [each for each in slots if each[1].noun == field.stems]
    within = [each for each in slots if each[1].noun <= field.stems]
    longest = max((len(slot.noun) for _, slot in within), default=0)
    near = exact or [each for each in within if len(each[1].noun) == longest]
    near = near or [each for each in slots if field.stems and field.stems <= each[1].noun]
    return (
        near[0] if len({_plain(slot.field.value) for _, slot in near}) == 1 else None
    )  # a nested record repeats its subject


def _kind(field: _Stated, own: tuple[Scope, Slot], slots: Sequence[tuple[Scope, Slot]], known: Scopes) -> str:
    """Return the type of a difference that is surely one: a denied field, or a value that the sources have in another place."""
    scope, slot = own
    if _is_another_figure(field, slot, known):
        return NUMBER_CHANGED
    if _is_told_otherwise(field, scope, slot, known):
        return ""
    if {field.value, slot.field.value} == _BOOLEANS:
        return NEGATION_FLIP
    if bool(read(field.value).values) != bool(read(slot.field.value).values):
        return ""
    siblings = [each for s in _siblings(scope, known) for each in s.slots if each.noun == slot.noun]
    others = [each for _, each in slots if each is not slot] + siblings
    if any(_same(field.value, each) for each in others):
        return NUMBER_CHANGED if read(field.value).values else ENTITY_SUBSTITUTED
    named = field.value[:1].isupper() and slot.field.value[:1].isupper() and slot.noun == field.stems
    elsewhere = any(f" {_plain(field.value)} " in f" {_plain(each.text)} " for each in known.all)
    return ENTITY_SUBSTITUTED if named and elsewhere and not _words(field.value) & _words(slot.field.value) else ""


def _is_another_figure(field: _Stated, slot: Slot, known: Scopes) -> bool:
    """Whether a field with the very key of a record has one figure, and the record one other of its unit, of which no text speaks.

    *With replicas at 1 in the tests* gives a copy of the settings a figure of its own; who asked for another one is not known here.
    """
    mine, its = read(field.value).values, slot.values
    if len(slot.noun) < _LEAST_WORDS or slot.noun != field.stems or len(mine) != 1 or len(its) != 1:
        return False
    one, other = mine[0], its[0]
    if (
        one.moment
        or other.moment
        or one.unit != other.unit
        or not (one.amount and other.amount)
        or _same(field.value, slot)
    ):
        return False
    stated = any(same(one, each.value) for scope in known.all for each in scope.operands)
    return stated and not any(len(slot.noun & each.stems) * 2 >= len(slot.noun) for each in _prose(known))


def _is_told_otherwise(field: _Stated, scope: Scope, slot: Slot, known: Scopes) -> bool:
    """Whether a text of the sources may change a field: it names the record and has the value, *Sven takes his seat in the panel*, or
    it says that what the field is about is in some state: *refunds are switched on in the tests*.
    """
    value = f" {_plain(field.value)} "
    told = _prose(known)
    for fact_id in {each.fact_id for each in told}:
        text = f" {_plain(' '.join(each.text for each in told if each.fact_id == fact_id))} "
        if field.value not in _BOOLEANS and value in text and any(f" {mark} " in text for mark in scope.marks):
            return True
    if field.value not in _BOOLEANS or len(slot.noun) < _LEAST_WORDS:
        return False
    return any(slot.noun & each.stems and states.of_words(words_in(each.text)) for each in _prose(known))


def _prose(known: Scopes) -> list[Scope]:
    """Return what the sources say beside their records. The lines of settings, which are their records too, are left out."""
    recorded = {each.fact_id for each in known.all if each.slots}
    return [
        each
        for each in known.all
        if not each.slots and not (each.fact_id in recorded and (":" in each.text or "=" in each.text))
    ]


def _same(value: str, slot: Slot) -> bool:
    mine, its = read(value).values, read(slot.field.value).values
    if mine and its:
        return any(
            same(one, other) or (one.digits and one.digits == other.digits and not (one.unit and other.unit))
            for one in mine
            for other in its
        )
    return _plain(value) == _plain(slot.field.value) or _words(value) <= _words(slot.field.value)


def _words(text: str) -> frozenset[str]:
    return frozenset(_plain(text).split())


def _plain(text: str) -> str:
    return " ".join("".join(c if c.isalnum() else " " for c in text.casefold()).split())

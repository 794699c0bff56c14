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
from interlock.dpe.grounding.placing.copied_rows import identified
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, Slot, stems_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.cells import cells_of, label_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.keys import read_key
from interlock.dpe.values.quantities import same

_QUOTED = pattern(r'"([\p{L}_][\p{L}\d_ .-]{0,40})"\s*:\s*(?:"([^"]{1,120})"|(-?\d[\d.,]{0,20}\d|\d|true|false))')
_KEY = pattern(r"([\p{L}_][\p{L}\d_-]{1,40}):\s")
_LONGEST = 80
_LEAST_ALIKE = 2
_LEAST_FIELDS = 2
_BOOLEANS = frozenset({"yes", "no"})


@dataclass(frozen=True)
class _Stated:
    """A field of an answer: the stems of its key, its value as text would state it, and the claim that it stands in."""

    stems: frozenset[str]
    value: str
    claim_id: str


def moved_fields(claims: Sequence[Claim], known: Scopes) -> dict[str, tuple[Distortion, ...]]:
    """Return the fields of the answer's objects that have another value than the record that the object copies."""
    found: dict[str, list[Distortion]] = {}
    for stated in _objects(claims):
        for field, distortion in _compared(stated, known):
            found.setdefault(field.claim_id, []).append(distortion)
    return {name: tuple(each) for name, each in found.items()}


def _objects(claims: Sequence[Claim]) -> Iterator[list[_Stated]]:
    """Yield the fields of each object: of one claim with many, or of a run of claims with one each."""
    run: list[_Stated] = []
    for claim in claims:
        label = label_of(claim.text) if cells_of(claim.text) is None else None
        if label is not None:
            run.append(_stated(label, claim.text.partition(":")[2].strip(), claim.claim_id))
            continue
        yield run
        run = []
        for part in claim.text.split("}"):
            yield [_stated(key, value, claim.claim_id) for key, value in _pairs(part)]
    yield run


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


def _stated(key: str, value: str, claim_id: str) -> _Stated:
    named = read_key(key)
    stems = stems_of(named.noun)
    worded = frozenset(each for each in stems if len(each) > 1)  # the letter of a unit: oven_c
    return _Stated(worded or stems, named.written(value), claim_id)


def _compared(stated: Sequence[_Stated], known: Scopes) -> Iterator[tuple[_Stated, Distortion]]:
    if len(stated) < _LEAST_FIELDS:
        return
    values = [field.value for field in stated]
    pools: dict[str, list[Scope]] = {}
    for scope in known.all:
        siblings = known.siblings(scope)
        alone = scope.slots and (not siblings or identified(values, [scope, *siblings]) is scope)
        if alone:
            pools.setdefault(scope.fact_id, []).append(scope)
    for pool in pools.values():
        slots = [(scope, slot) for scope in pool for slot in scope.slots if slot.noun and slot.field.value]
        own = [(field, _slot(field, slots)) for field in stated]
        alike = sum(each is not None and _same(field.value, each[1]) for field, each in own)
        if alike < _LEAST_ALIKE or any(len(_marked(pool, scope)) > 1 for scope in pool):
            continue
        for field, each in own:
            if each is not None and not _same(field.value, each[1]):
                kind = _kind(field, each, slots, known)
                if kind:
                    scope, slot = each
                    yield (
                        field,
                        Distortion(kind, slot.field.value, field.value, scope.fact_id, slot=slot.field.key.noun),
                    )


def _marked(pool: Sequence[Scope], scope: Scope) -> list[Scope]:
    """Return the records of one group that an object names: of two it is not clear which it copies."""
    return [each for each in pool if each.group == scope.group]


def _slot(field: _Stated, slots: Sequence[tuple[Scope, Slot]]) -> tuple[Scope, Slot] | None:
    """Return the field of the record with the same key, as far as both are worded, or ``None``."""
    exact = [each for each in slots if each[1].noun == field.stems]
    near = exact or [
        each for each in slots if field.stems and (each[1].noun <= field.stems or field.stems <= each[1].noun)
    ]
    return (
        near[0] if len({_plain(slot.field.value) for _, slot in near}) == 1 else None
    )  # a nested record repeats its subject


def _kind(field: _Stated, own: tuple[Scope, Slot], slots: Sequence[tuple[Scope, Slot]], known: Scopes) -> str:
    """Return the type of a difference that is surely one: a denied field, or a value that the sources have in another place."""
    scope, slot = own
    if {field.value, slot.field.value} == _BOOLEANS:
        return NEGATION_FLIP
    if bool(read(field.value).values) != bool(read(slot.field.value).values):
        return ""
    place = scope.slots.index(slot)
    siblings = [s.slots[place] for s in known.siblings(scope) if place < len(s.slots)]
    others = [each for _, each in slots if each is not slot] + siblings
    if any(_same(field.value, each) for each in others):
        return NUMBER_CHANGED if read(field.value).values else ENTITY_SUBSTITUTED
    named = field.value[:1].isupper() and slot.field.value[:1].isupper() and slot.noun == field.stems
    elsewhere = any(f" {_plain(field.value)} " in f" {_plain(each.text)} " for each in known.all)
    return ENTITY_SUBSTITUTED if named and elsewhere and not _words(field.value) & _words(slot.field.value) else ""


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

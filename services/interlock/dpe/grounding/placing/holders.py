"""Holders: who a record says did something or is something, and a claim that names another one of the record (SPEC-005 §5.3).

``{"approved_by": "Mona Iqbal", "inspected_by": "Tom Reyes"}`` says who approved and who inspected. The model that reads the record
sees both names beside both verbs, and entails either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, Slot
from interlock.dpe.text.wordlists import word_set

_LINKS = word_set("by to")
_ROLE_LINK = r"(?: is| was| are| were| as)?(?: the)?"
_HELPED = r"(?: has| had| have| also| who)?"
_SHORTEST = 3
_COMPARING = word_set("than unlike instead whereas except not rather if unless")


def exchanged_holders(claim: Claim, known: Scopes) -> Iterator[Distortion]:
    """Yield each holder of a field of a record that *claim* gives to another name of the same record."""
    words = _plain(claim.text.replace(",", " , "), kept=",").split()
    if any(word in _COMPARING or is_negator(word) for word in words):
        return
    text = f" {' '.join(words)} "
    for scope in known.all:
        names = [slot for slot in scope.slots if _is_name(slot)]
        if len(names) < 2 or known.siblings(scope):
            continue
        for slot in names:
            for other in names:
                if _plain(other.field.value) == _plain(slot.field.value) or not _gives(text, slot, other):
                    continue
                if not _is_told(slot, other, scope, known):
                    yield Distortion(
                        ENTITY_SUBSTITUTED, slot.field.value, other.field.value, scope.fact_id, slot.field.key.noun
                    )


def _gives(text: str, slot: Slot, other: Slot) -> bool:
    """Whether a text says of another name what a field says of its own."""
    key, name, own = _plain(slot.field.key.noun), re.escape(_plain(other.field.value)), _plain(slot.field.value)
    if f" {key} {own} " in text:
        return False
    *verb, link = key.split() or [""]
    if verb and link in _LINKS:
        passive = rf" {re.escape(key)} {name} "
        active = rf" {name}{_HELPED} {re.escape(' '.join(verb))} (?!by |to )" if link == "by" else "(?!)"
        return bool(re.search(f"{passive}|{active}", text))
    return bool(re.search(rf" {name}{_ROLE_LINK} {re.escape(key)} | {re.escape(key)}(?: is| was)? {name} ", text))


def _is_told(slot: Slot, other: Slot, scope: Scope, known: Scopes) -> bool:
    """Whether another field or text has the name beside the words of the field."""
    name, words = _plain(other.field.value), slot.noun
    own = any(each is not other and each.noun & words and _plain(each.field.value) == name for each in scope.slots)
    return own or any(
        each is not scope and f" {name} " in f" {_plain(each.text)} " and bool(words & each.stems) for each in known.all
    )


def _is_name(slot: Slot) -> bool:
    value = slot.field.value
    return (
        not slot.values and len(value) >= _SHORTEST and value[:1].isupper() and bool(slot.noun) and value.count(" ") < 5
    )


def _plain(text: str, kept: str = "") -> str:
    return " ".join("".join(c if c.isalnum() or c in kept else " " for c in text.casefold()).split())

"""Successions: who takes whose place, in whichever of the many ways it is told: *replaced*, *took over from*, *passed to*, *stood in for*."""

from __future__ import annotations

from typing import Any

from interlock.dpe.comparison.bindings.fillers import Filler, key, named
from interlock.dpe.comparison.bindings.relations.pronouns import PERSONAL, antecedent
from interlock.dpe.comparison.bindings.slots import Slots
from interlock.dpe.text.wordlists import word_set

SUCCEED = "take the place of"
_REPLACING = word_set("replace succeed supersede")
_HANDING = word_set("hand pass")
_STANDING = word_set("step stand come fill deputise deputize substitute")
_PLACES = frozenset(
    map(key, word_set("charge command control lead role place job office post position duty class reins"))
)
_AFTER = word_set("successor replacement")
_BEFORE = word_set("predecessor")


def succession(verb: Any, slots: Slots) -> dict[str, tuple[Filler, ...]]:
    """Return who comes, as the agent, and who goes, as the object, of a verb with *slots*; nothing where it tells of no such thing."""
    lemma = verb.lemma_.lower()
    particles = {c.lower_ for c in verb.children if c.dep_ in {"prt", "advmod", "prep"}}
    agent, thing = slots.get("agent", ()), slots.get("object", ())
    come: tuple[Filler, ...] = ()
    gone: tuple[Filler, ...] = ()
    if lemma in _REPLACING:
        come, gone = slots.get("with") or agent, thing
    elif lemma == "take" and ("over" in particles or any(f.head in _PLACES for f in thing)):
        come, gone = agent, slots.get("from") or _behind(verb, "from")
    elif lemma in _HANDING:
        come, gone = slots.get("to") or _behind(verb, "to"), slots.get("from") or agent
    elif (
        lemma in _STANDING
        and "for" in slots
        and (particles & {"in", "on"} or lemma not in word_set("step stand come fill"))
    ):
        come, gone = agent, slots["for"]
    elif lemma == "be":
        come, gone = _named_so(verb)
    come, gone = _who(come, verb), _who(gone, verb)
    return {"agent": come, "object": gone} if come and gone else {}


def _who(filled: tuple[Filler, ...], verb: Any) -> tuple[Filler, ...]:
    """Return whom a pronoun stands for, where only one can be meant: *Ann led the unit until May; then Bo took over from her*."""
    pronoun = next((t for t in verb.subtree if t.lower_ in PERSONAL and [f.text for f in filled] == [t.text]), None)
    noun = antecedent(pronoun, verb) if pronoun is not None else None
    return named(noun)[:1] if noun is not None else filled


def _behind(verb: Any, preposition: str) -> tuple[Filler, ...]:
    """Return what the last phrase of a verb's objects has behind a preposition: *charge of the ship from Siri Lunde*."""
    found = [
        n for t in verb.subtree if t.i > verb.i and t.lower_ == preposition for n in t.children if n.dep_ == "pobj"
    ]
    return named(found[-1]) if found else ()


def _named_so(verb: Any) -> tuple[tuple[Filler, ...], tuple[Filler, ...]]:
    """Return who comes and who goes where somebody is called another's successor: *Colin Webb's successor was Nadia Fofana*."""
    ends = [c for c in verb.children if c.dep_ in {"nsubj", "attr"}]
    if len(ends) != 2:
        return (), ()
    for noun, other in (ends, ends[::-1]):
        if noun.lemma_.lower() in _AFTER | _BEFORE:
            of = [c for c in noun.children if c.dep_ == "poss" and c.pos_ != "PRON"]
            of += [n for c in noun.children if c.lower_ == "of" for n in c.children if n.dep_ == "pobj"]
            if of:
                pair = named(other), named(of[0])
                return pair if noun.lemma_.lower() in _AFTER else (pair[1], pair[0])
    return (), ()

"""States: words for one of two conditions, *enabled* and *off*, *required* and *optional*, each with what it is a condition of.

A source states ``tls: true`` or ``phones: forbidden``, and an answer says *TLS is disabled* or *phones may be used*. Pure functions of words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import WORD, lex
from interlock.dpe.text.wordlists import word_set

PLAIN, SWITCH, PERMISSION, DUTY, ACCESS, INCLUSION, PRESENCE, PUBLICITY, COST = (
    "plain", "switch", "permission", "duty", "access", "inclusion", "presence", "publicity", "cost",
)  # fmt: skip
_FAMILIES = {
    PLAIN: ("yes true y", "no false n"),
    SWITCH: ("on enabled active activated", "off disabled inactive deactivated"),
    PERMISSION: (
        "allowed permitted authorised authorized granted possible permissible",
        "denied forbidden prohibited banned disallowed impossible",
    ),
    DUTY: ("required mandatory compulsory obligatory", "optional voluntary"),
    ACCESS: ("open opened", "closed shut"),
    INCLUSION: ("included", "excluded"),
    PRESENCE: ("available present", "unavailable absent missing"),
    PUBLICITY: ("public", "private"),
    COST: ("free gratis", ""),
}
_STATES = {
    word: (family, not side)
    for family, sides in _FAMILIES.items()
    for side, words in enumerate(sides)
    for word in words.split()
}
_OF_KEYS = {
    "allow": (PERMISSION, True), "allows": (PERMISSION, True), "permit": (PERMISSION, True), "deny": (PERMISSION, False),
    "forbid": (PERMISSION, False), "enable": (SWITCH, True), "disable": (SWITCH, False), "require": (DUTY, True),
    "requires": (DUTY, True), "include": (INCLUSION, True), "includes": (INCLUSION, True), "exclude": (INCLUSION, False),
}  # fmt: skip
_MODALS = {"may": PERMISSION, "can": PERMISSION, "must": DUTY}
_COSTING = word_set("cost costs pay pays paying charged")
_NOT_OF_COST = word_set("from to time until for up hours")
"""Words after *free* that make it no price: *free from*, *free time*."""
_DUTIES = word_set("has have had need needs needed")
_SWITCHING = word_set("is are was were be been turned switched set stays stay remains remain kept to left")
_LIGHT_VALUES = word_set("not is are be currently switched turned always")
_NEGATIONS = word_set("not no never none nobody cannot without nor neither nothing")
_HIDDEN = ("un", "non", "dis")


@dataclass(frozen=True)
class State:
    """A condition: its family, and which of both sides. ``words`` are the places of what said so."""

    family: str
    positive: bool
    words: frozenset[int] = frozenset()

    def turned(self) -> State:
        """Return the other side."""
        return State(self.family, not self.positive, self.words)


def words_in(text: str) -> list[str]:
    """Return the words of a text, folded."""
    return [token.low for token in lex(fold(text)) if token.kind == WORD]


def is_negation(word: str) -> bool:
    """Whether a word denies."""
    return word in _NEGATIONS or word.endswith("n't")


def of_value(written: str) -> State | None:
    """Return the state that a field's value is, or ``None`` for another value: *yes*, *disabled*, *not possible*."""
    words = words_in(written)
    found = [_STATES[word] for word in words if word in _STATES and not (word == "no" and len(words) > 1)]
    if len(found) != 1 or any(word not in _STATES and word not in _LIGHT_VALUES for word in words):
        return None
    family, positive = found[0]
    return State(family, positive != bool(sum(map(is_negation, words)) % 2) if len(words) > 1 else positive)


_MEANWHILE = word_set("still now currently already also again always presently")


def awaits(words: Sequence[str]) -> bool:
    """Whether words deny by waiting: *have yet to come in*, *are yet to be signed*."""
    return any(one == "yet" and other == "to" for one, other in pairwise(words))


def of_key(words: Sequence[str]) -> tuple[State | None, tuple[str, ...]]:
    """Return the state that a key's words name, if any, and its other words: *uniform required*, *allow carry over*."""
    named = [n for n, word in enumerate(words) if word in _STATES or word in _OF_KEYS]
    if len(named) != 1:
        return None, tuple(words)
    family, positive = _STATES.get(words[named[0]]) or _OF_KEYS[words[named[0]]]
    return State(family, positive), tuple(word for n, word in enumerate(words) if n != named[0])


def of_words(words: Sequence[str]) -> list[State]:
    """Return the states that a clause names, in order, before its negations: *is switched off*, *may*, *have to*."""
    found: list[State] = []
    for n, word in enumerate(words):
        earlier = [each for each in words[:n] if each not in _MEANWHILE]
        before, after = earlier[-1] if earlier else "", words[n + 1] if n + 1 < len(words) else ""
        if word in {"on", "off"}:
            if before in _SWITCHING and after not in {"the", "a", "an"}:
                found.append(State(SWITCH, word == "on", frozenset({n})))
        elif word in _COSTING:
            found.append(State(COST, positive=False, words=frozenset({n})))
        elif word == "free" and after in _NOT_OF_COST:
            continue
        elif word in _STATES and _STATES[word][0] != PLAIN:
            found.append(State(*_STATES[word], frozenset({n})))
        elif word in _MODALS:
            found.append(State(_MODALS[word], positive=True, words=frozenset({n})))
        elif word in _DUTIES and after == "to":
            found.append(State(DUTY, positive=True, words=frozenset({n, n + 1})))
    modal = [each for each in found if words[min(each.words)] in _MODALS]
    firm = [each for each in found if each not in modal]
    return firm or modal


def denied_form(word: str) -> str:
    """Return what a word denies by its prefix, *paid* for *unpaid*, or an empty string."""
    return next(
        (word.removeprefix(p).lstrip("-") for p in _HIDDEN if word.startswith(p) and len(word) > len(p) + 2), ""
    )

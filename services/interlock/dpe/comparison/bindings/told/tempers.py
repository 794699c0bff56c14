"""Tempers of a clause: how it is denied, whether it may, must or does hold, when, and in which case only (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from interlock.dpe.comparison.bindings.moods import prefers
from interlock.dpe.comparison.bindings.told import denying
from interlock.dpe.comparison.bindings.told.clauses import is_head
from interlock.dpe.text.wordlists import word_set

_CASES = word_set("if when whenever once where unless until before after provided providing")
_THINGS = frozenset({"nsubj", "nsubjpass", "dobj"})
_SPANS = word_set("since until till")
_LIMITS = word_set("only unless until before")
_TIMES = word_set("after before outside beyond over under above below between than against")


def mood(chain: list[Any], base: str | None) -> tuple[str, int]:
    """Return what the verbs of a clause make of its event, and how often those that only say so deny it."""
    modality = next((m for each in chain for m in denying.modals(each)), "")
    denied = 0
    for each in chain:
        lemma = each.lemma_.lower()
        norm = denying.norm_of(each)
        if each is chain[-1]:
            if norm is not None and lemma not in {"have", "need", "be"}:
                modality, denied = modality or norm[0], denied + (norm[1] and base is None)
            break
        if lemma == "have" and any(c.lower_ == "yet" for c in each.children):
            denied += 1  # has yet to begin
        elif norm is not None and (lemma not in {"have", "need"} or _governs_to(each)):
            modality, denied = modality or norm[0], denied + norm[1]
        elif lemma in denying.UNDOING:
            denied += 1
    return modality, denied


def _governs_to(verb: Any) -> bool:
    return any(c.dep_ in {"xcomp", "ccomp"} and any(g.lower_ == "to" for g in c.children) for c in verb.children)


def must_not(chain: list[Any]) -> bool:
    return any(c.dep_ == "aux" and c.lower_ in {"must", "should", "shall"} for each in chain for c in each.children)


def denied_before(verb: Any, *, shares: bool) -> int:
    """Return whether a coordinated verb is denied by the one before it: *is not sold or lent*, *neither sold nor lent*."""
    joins = {c.lower_ for c in verb.head.children if c.dep_ in {"cc", "preconj"} and c.i < verb.i}
    if "than" in joins and any(
        c.lower_ == "than" and c.i and c.nbor(-1).lower_ == "rather" for c in verb.head.children
    ):
        return 1  # cancelled rather than postponed
    if "nor" in joins:
        return int(not denying.denials_of(verb))
    return int("or" in joins and shares and not is_helped(verb) and denying.denials_of(verb.head) % 2)


def is_helped(verb: Any) -> bool:
    return any(c.dep_ in {"aux", "auxpass"} and c.lower_ != "to" for c in verb.children)


def past(chain: list[Any]) -> bool | None:
    """Whether a clause tells of the past; ``None`` where it may reach into the present, or into what was then to come."""
    helped = {c.lower_ for each in chain for c in each.children if c.dep_ in {"aux", "auxpass"}}
    if helped & {"has", "have", "'ve", "would", "could", "might", "should"}:
        return None
    if any(each.lemma_ in {"stop", "cease", "quit", "keep", "remain"} for each in chain[:-1]):
        return None  # what has stopped is not done now
    if helped & {"did", "was", "were", "had"}:
        return True
    return not helped - {"to", "be", "been", "being"} and chain[0].tag_ == "VBD"


def times(chain: list[Any], walked: list[tuple[Any, bool]]) -> Iterator[str]:
    """Yield the words by which a clause is of a time or a place before, after or beyond another, or compares."""
    yield from (
        c.lower_ for each in chain for c in each.children if c.lower_ in _TIMES and c.dep_ in {"prep", "mark", "conj"}
    )
    yield from ("than" for t, _ in walked if t.lower_ == "than" and _before(t).lower_ != "rather")


def cases(chain: list[Any]) -> list[Any]:
    """Return the clauses that say in which case a clause holds: *if it rains*, *as long as it rains*, and *lorries that carry oil*."""
    around = [c for each in chain for c in each.children]
    things = (g for c in around if c.dep_ in _THINGS for g in c.children)
    return [c for c in (*around, *(g for c in around if c.dep_ == "advmod" for g in c.children), *things) if is_case(c)]


def is_case(clause: Any) -> bool:
    """Whether a clause only says in which case another holds, or of which of many."""
    if clause.dep_ == "advcl":
        return any(map(_opens_case, clause.children))
    return bool(clause.dep_ == "relcl" and clause.head.dep_ in _THINGS and _before(clause.left_edge).text != ",")


def _before(token: Any) -> Any:
    return token.nbor(-1) if token.i else token


def _opens_case(word: Any) -> bool:
    if word.dep_ not in {"mark", "advmod"}:
        return False
    return bool(word.lower_ in _CASES or (word.lower_ == "as" and _before(word).lower_ == "long"))


def is_denied_case(clauses: list[Any]) -> bool:
    """Whether a case is denied: *unless it is broken*, *if it is not broken*."""
    unless = sum(c.lower_ in {"unless", "without"} and c.dep_ == "mark" for each in clauses for c in each.children)
    return bool((unless + sum(map(denying.denials_of, clauses))) % 2)


def spans(chain: list[Any]) -> Iterator[str]:
    """Yield the words by which a clause says from when or until when it holds."""
    yield from (c.lower_ for each in chain for c in each.children if c.lower_ in _SPANS and c.dep_ in {"prep", "mark"})


def is_limited(chain: list[Any], norms: int) -> bool:
    """Whether a clause holds in one case only, or not before one: *only at night*, *not until it is paid*."""
    near = [
        g for each in chain for c in each.children if not (is_head(c) and c.dep_ != "advcl") for g in (c, *c.children)
    ]
    limits = _LIMITS if norms or any(map(denying.denials_of, chain)) else _LIMITS - {"until"}
    if any(map(denying.denials_of, chain)) and any(map(prefers, chain)):
        return True  # not in May but in June
    below = [t for each in chain for t in each.subtree]
    if any(t.lower_ == "too" and t.i < t.head.i and any(c.lower_ == "to" and c.i > t.i for c in below) for t in below):
        return True  # too few to open it
    lone = [t for t in below if t.lower_ == "without" and not any(c.dep_ in {"pobj", "pcomp"} for c in t.children)]
    if lone and any(t.lower_ == "with" for t in below):
        return True  # faster with music than without: of what, stands elsewhere
    lost = (t for each in chain for c in each.children if c.dep_ == "prep" for t in c.children)
    return any(t.lower_ in limits for t in near) or any(t.lower_ in {"nothing", "nobody", "none"} for t in lost)

"""Recaused: a claim with another cause than its source, or with cause and effect in each other's place (SPEC-005 §5.3).

*The tram was late because a tree had fallen. The bus was late because its driver was ill* gives the tram no ill driver. A cause in other
words may be the same cause, so that it must be told elsewhere in the sources, of something else, and nowhere beside its effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.order import Order
from interlock.dpe.comparison.pairings.reordered import agrees, is_turned, share
from interlock.dpe.text.wordlists import word_set

_MOSTLY = 0.6
_HALF = 0.5
_LITTLE = 0.35
_LEAST = 2
_SLOTS = frozenset({"cause", "partner"})
_AFTER = word_set("after following once")


def recaused(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the cause that *claim* puts in the place of another, or the effect that it makes the cause of its cause, or ``None``."""
    told = _told(evidence)
    for own in claim.causes:
        if not (own.first and own.second) or _is_told(own, told):
            continue
        for each, source in told:
            if is_turned(own, each):
                return Misbinding(NEGATION_FLIP, "cause", each.word, own.word, source.text, source.fact_id)
        found = _replaced(own, told, evidence)
        if found is not None:
            return found
    return None


def without_told_causes(found: list[Misbinding], claim: ReadSentence, evidence: Evidence) -> list[Misbinding]:
    """Return findings without causes that a source tells in a sentence whose frame is read otherwise: *…, which led to a loss*."""
    if not any(each.slot in _SLOTS for each in found):
        return found
    told = _told(evidence)
    known = [own.told.casefold() for own in claim.causes if own.first and own.second and _is_told(own, told)]
    return [
        each
        for each in found
        if each.slot not in _SLOTS or not any(each.claim_value.casefold() in cause for cause in known)
    ]


_Causes = list[tuple[Order, ReadSentence]]


def _told(evidence: Evidence) -> _Causes:
    """Return each cause with its effect, and the sentence that tells it."""
    return [(each, source) for source in evidence.passages for each in source.causes if each.first and each.second]


def _is_told(own: Order, told: _Causes) -> bool:
    """Whether a cause and its effect are told, or the cause of that cause."""
    if any(agrees(own, each) for each, _ in told):
        return True
    effects = [each for each, _ in told if _is_of(own.second, each.second)]
    return any(share(own.first, behind) >= _HALF for each in effects if (behind := _behind(each, told)))


def _replaced(own: Order, told: _Causes, evidence: Evidence) -> Misbinding | None:
    """Return the cause of another effect that a claim gives to one whose own cause is told, or ``None``."""
    fitting = [(each, source) for each, source in told if _is_of(own.second, each.second)]
    borrowed = _is_told_of_another(own, told)
    if borrowed and not fitting:
        fitting = [(each, source) for each, source in _followed(evidence) if _is_of(own.second, each.second)]
    if not fitting:
        return None
    each, source = max(fitting, key=lambda pair: len(pair[0].second & own.second))
    known = frozenset().union(*(one.first for one, _ in fitting)) | _behind(each, told)
    alone = own.first - known
    alone = rest if len(rest := alone - own.second) >= _LEAST else alone
    if len(own.first & known) > _LITTLE * len(own.first) or len(alone) < (1 if borrowed else _LEAST):
        return None
    if len(each.first - own.first) < 1 or not _is_elsewhere(own, alone, source, each, evidence):
        return None
    return Misbinding(
        ENTITY_SUBSTITUTED, "cause", each.told or each.word, own.told or own.word, source.text, source.fact_id
    )


def _is_told_of_another(own: Order, told: _Causes) -> bool:
    """Whether a claim's cause is told as that of another effect."""
    return any(
        not _is_of(own.second, each.second) and not own.second & each.second
        and len(own.first & each.first) >= _MOSTLY * len(own.first)
        for each, _ in told
    )  # fmt: skip


def _followed(evidence: Evidence) -> Iterator[tuple[Order, ReadSentence]]:
    """Yield what is told to come after something, which may tell its cause: *sales fell after a rival had opened*."""
    for source in evidence.passages:
        yield from (
            (each, source) for each in source.orders if each.word.lower() in _AFTER and each.first and each.second
        )


def _is_of(claimed: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether two bags tell one effect."""
    shared = claimed & stated
    return len(shared) >= _LEAST and len(shared) >= _HALF * min(len(claimed), len(stated))


def _behind(stated: Order, told: _Causes) -> frozenset[str]:
    """Return what brought a cause about in its turn, which is a cause of its effect too."""
    return frozenset().union(*(each.first for each, _ in told if _is_of(stated.first, each.second)))


def _is_elsewhere(own: Order, alone: frozenset[str], source: ReadSentence, each: Order, evidence: Evidence) -> bool:
    """Whether what is the claim's alone is told in another part of the sources, and nowhere beside the effect."""
    found = False
    for other, part in _parts(evidence):
        if other is source and (part & each.first == each.first or part & each.second == each.second):
            continue
        if len(alone & part) < _MOSTLY * len(alone):
            continue
        beside = part & own.second - own.first
        near = part & each.first - own.first - own.second
        if (len(beside) >= _LEAST and len(beside) > _HALF * len(own.second)) or len(near) >= _LEAST:
            return False
        found = True
    return found


def _parts(evidence: Evidence) -> Iterator[tuple[ReadSentence, frozenset[str]]]:
    """Yield the parts of the sentences of prose."""
    for source in evidence.passages:
        if "|" not in source.text and "{" not in source.text:
            yield from ((source, part) for part in source.told.parts)

"""Recaused: a claim with another cause than its source, or with cause and effect in each other's place (SPEC-005 §5.3).

*The tram was late because a tree had fallen. The bus was late because its driver was ill* gives the tram no ill driver. A cause in other
words may be the same cause, so that it must be told elsewhere in the sources, of something else, and nowhere beside its effect.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.agreement import agrees, is_turned, share
from interlock.dpe.comparison.bindings.relations.order import Order
from interlock.dpe.text.wordlists import word_set

_MOSTLY = 0.6
_HALF = 0.5
_LITTLE = 0.35
_LEAST = 2
_SLOTS = frozenset({"cause", "partner"})
_COMING = word_set("come comes came coming")
_AFTER = word_set("after following once")
_FOLLOWED = word_set("followed follows")


def recaused(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the cause or purpose that *claim* puts in another's place, or the effect that it makes the cause of its cause, or ``None``."""
    told = _told(evidence)
    aims = [(each, source) for source in evidence.passages for each in source.told.purposes]
    for own in claim.causes:
        if not (own.first and own.second) or _is_told(own, told):
            continue
        for each, source in told:
            if is_turned(own, each) and not _is_origin(own):
                return Misbinding(NEGATION_FLIP, "cause", each.word, own.word, source.text, source.fact_id)
        found = None if _is_told(own, aims) else _replaced(own, told, evidence)
        if found is not None:
            return found
    for own in claim.told.purposes:
        if not _is_told(own, [*aims, *told]) and (found := _replaced(own, aims, evidence)) is not None:
            return replace(found, slot="purpose")
    return None


def _is_origin(own: Order) -> bool:
    """Whether *come from* tells from where somebody comes: *the spare crew came from Leith to help* is no effect of Leith."""
    return own.word.lower() in _COMING and own.told.removeprefix("from ")[:1].isupper()


def without_told_causes(found: list[Misbinding], claim: ReadSentence, evidence: Evidence) -> list[Misbinding]:
    """Return findings without causes that a source tells in a sentence whose frame is read otherwise: *…, which led to a loss*."""
    if not any(each.slot in _SLOTS for each in found):
        return found
    told = _told(evidence)
    owns = [own for own in claim.causes if own.first and own.second]
    known = [own.told.casefold() for own in owns if _is_told(own, told)]
    whole = {source.text: source.told.whole for source in evidence.passages}
    return [
        each
        for each in found
        if each.slot not in _SLOTS
        or not (
            any(each.claim_value.casefold() in cause for cause in known)
            or any(_is_another_number(own.second, whole.get(each.evidence, frozenset())) for own in owns)
        )
    ]


def _is_another_number(claimed: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether two sentences are of two things of one series: *ward 2* and *ward 1*."""
    numbered = {word for word in claimed if "#" in word}
    series = {word.partition("#")[0] for word in stated if "#" in word}
    return any(word.partition("#")[0] in series and word not in stated for word in numbered)


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
    if not fitting:
        words = _AFTER | _FOLLOWED if borrowed else _FOLLOWED
        fitting = [(each, source) for each, source in _after(words, evidence) if _is_of(own.second, each.second)]
    if not fitting:
        return None
    each, source = max(fitting, key=lambda pair: len(pair[0].second & own.second))
    if _is_of_another_event(own.second, each.second, source, evidence):
        return None
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


def _after(words: frozenset[str], evidence: Evidence) -> Iterator[tuple[Order, ReadSentence]]:
    """Yield what is told to come after something, which may tell its cause: *sales fell after a rival had opened*."""
    for source in evidence.passages:
        yield from (
            (each, source) for each in source.orders if each.word.lower() in words and each.first and each.second
        )


def _is_of(claimed: frozenset[str], stated: frozenset[str]) -> bool:
    """Whether two bags tell one effect."""
    shared = claimed & stated
    return len(shared) >= _LEAST and len(shared) >= _HALF * min(len(claimed), len(stated))


def _is_of_another_event(
    claimed: frozenset[str], stated: frozenset[str], source: ReadSentence, evidence: Evidence
) -> bool:
    """Whether another sentence tells as much of a claim's effect, and what the source of the cause does not: *ward 2*, not *ward 1*."""
    shared = claimed & stated
    others = (claimed & each.told.whole for each in evidence.passages if each is not source)
    return any(len(each) >= len(shared) and not each <= stated for each in others)


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

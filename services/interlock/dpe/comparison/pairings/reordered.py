"""Reordered: a claim that turns round what its source says comes before what, or of what (SPEC-005 §5.3)."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.relations.order import Order

_MOSTLY = 0.5


def reordered(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the order or the cause that *claim* turns round, or ``None``."""
    for own in claim.orders:
        told = [(each, source) for source in evidence.passages for each in source.orders]
        if any(_agrees(own, each) for each, _ in told):
            continue
        for each, source in told:
            if _turned(own, each):
                return Misbinding(NEGATION_FLIP, "order", each.word, own.word, source.text, source.fact_id)
        for listed in evidence.steps:
            first, second = (_step(bag, listed) for bag in (own.first, own.second))
            if first is not None and second is not None and first > second:
                step = listed[second]
                return Misbinding(
                    NEGATION_FLIP, "order", f"step {second + 1}: {step.text}", own.word, step.text, step.fact_id
                )
    return _recaused(claim, evidence)


def _recaused(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the effect that *claim* makes the cause of its cause, or ``None``."""
    told = [(each, source) for source in evidence.passages for each in source.causes]
    for own in claim.causes:
        if any(_agrees(own, each) for each, _ in told):
            continue
        for each, source in told:
            if _turned(own, each):
                return Misbinding(NEGATION_FLIP, "cause", each.word, own.word, source.text, source.fact_id)
    return None


def _share(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / min(len(one), len(other))


def _agrees(own: Order, stated: Order) -> bool:
    return _share(own.first, stated.first) >= _MOSTLY and _share(own.second, stated.second) >= _MOSTLY


def _turned(own: Order, stated: Order) -> bool:
    crossed = _share(own.first, stated.second) >= _MOSTLY and _share(own.second, stated.first) >= _MOSTLY
    straight = len(own.first & stated.first) + len(own.second & stated.second)
    return crossed and straight < (len(own.first & stated.second) + len(own.second & stated.first)) / 2


def _step(bag: frozenset[str], listed: tuple[ReadSentence, ...]) -> int | None:
    """Return the number of the step that a half of a claim is about, from 0, or ``None`` where that is not clear."""
    ranked = sorted(((len(bag & step.bag), -n) for n, step in enumerate(listed)), reverse=True)
    best, place = ranked[0]
    if not best or best < _MOSTLY * len(bag) or ranked[1][0] == best:
        return None
    return -place

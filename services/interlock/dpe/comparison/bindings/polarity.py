"""Polarity of predicates: a claim that says the opposite of the same things, by a negation or by an opposite word."""

from __future__ import annotations

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.evidence import BoundFrame, Evidence
from interlock.dpe.comparison.bindings.fillers import FillerKind, Likeness, same
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.comparison.bindings.limits import quantity
from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.comparison.denied_values import denies_another_value
from interlock.dpe.comparison.order import told_from_the_other_end
from interlock.dpe.text.patterns import pattern

_AGAINST = {
    "before": "after", "after": "before", "above": "below", "below": "above", "inside": "outside", "outside": "inside",
    "with": "without", "without": "with", "under": "over", "over": "under", "until": "from", "within": "outside",
}  # fmt: skip
_HAVING = pattern(r"\b(with|without)\s+(?:an?\s+|the\s+|any\s+)?(\p{L}+)", ignore_case=True)
_CORE = frozenset({"agent", "object", "role", "to", "from"})
_MOST = 3
_ORDERED = frozenset({"before", "after"})
_PHASES = frozenset({"begin", "end"})
"""What everything does that lasts. A thing that ends does not deny that it begins, unless both are of one time."""
_AROUND = frozenset({"after", "before", "until", "outside", "without", "beyond"})
_SETTINGS = frozenset({"when", "in", "at", "during", "on", "under", "for", "with", "without"})


def reversed_predicate(claim: PredicateFrame, evidence: Evidence) -> Misbinding | None:
    """Return the predicate that *claim* reverses and that no source states as the claim does, or ``None``."""
    if claim.hypothetical or claim.noun or not claim.finite or claim.predicate == predicates.SAY:
        return None
    against = [each for each in evidence.alike(claim) if each.frame.negated != claim.negated]
    against += [
        e for e in evidence.opposite(claim) if e.frame.negated == claim.negated and not _is_undone(claim, e.frame)
    ]
    same_way = [each.frame for each in evidence.alike(claim) if each.frame.negated == claim.negated]
    same_way += [each.frame for each in evidence.opposite(claim) if each.frame.negated != claim.negated]
    if not against or any(_may_mean(claim, each, evidence) for each in same_way):
        return None
    alike = (
        each for each in against if _is_of_the_same(claim, each.frame, evidence) and not _comes_then(claim, each.frame)
    )
    sure = (
        each
        for each in alike
        if not (claim.negated and denies_another_value(claim.text, each.frame.text))
        and not told_from_the_other_end(claim.text, each.frame.text)
        and not is_of_the_rest(claim.text, each.frame.text)
    )
    return next((_finding(claim, each) for each in sure), None)


def is_of_the_rest(one: str, other: str) -> bool:
    """Whether one text tells of some, and the other of the rest: *with a number, without one*, *only if it is paid, not if it is not*."""
    for text, beside in ((one, other), (other, one)):
        denied = sum(map(is_negator, text.lower().split()))
        if denied > 1 and denied % 2 == 0 and "only" in beside.lower().split():
            return True
    mine, its = ({match[2].lower(): match[1].lower() for match in _HAVING.finditer(text)} for text in (one, other))
    return any(mine[thing] != its[thing] for thing in mine.keys() & its.keys())


def _is_undone(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether one frame says what is done against what the other says: *it must be opened again* of a valve that is shut."""
    return ("again" in source.text.lower().split()) is not ("again" in claim.text.lower().split())


def turned_setting(claim: PredicateFrame, evidence: Evidence) -> Misbinding | None:
    """Return the preposition that *claim* turns into its opposite, *after meals* for *before meals*, or ``None``."""
    if claim.hypothetical:
        return None
    alike = [each for each in evidence.alike(claim) if each.frame.negated == claim.negated]
    for slot, filled in claim.slots.items():
        if slot not in _AGAINST or any(slot in each.frame.slots for each in alike):
            continue
        for each in alike:
            stated = each.frame.slots.get(_AGAINST[slot])
            rest = [
                evidence.likeness(claim.slots[s], each.frame.slots[s]) for s in claim.slots.keys() & each.frame.slots
            ]
            if stated and rest and set(rest) == {Likeness.SAME} and evidence.likeness(filled, stated) is Likeness.SAME:
                name = "order" if slot in _ORDERED else "condition"
                text = f"{_AGAINST[slot]} {stated[0].text}"
                return Misbinding(NEGATION_FLIP, name, text, f"{slot} {filled[0].text}", each.frame.text, each.fact_id)
    return None


def _may_mean(claim: PredicateFrame, source: PredicateFrame, evidence: Evidence) -> bool:
    """Whether a source that speaks the same way may be about the claim's things."""
    slots = [slot for slot in claim.slots if slot in source.slots and slot in _CORE]
    if not slots:
        return True
    found = [evidence.likeness(claim.slots[slot], source.slots[slot]) for slot in slots]
    if Likeness.APART in found or _is_of_another(claim, source):
        return False
    return Likeness.SAME in found or any(f.kind is FillerKind.UNKNOWN for slot in slots for f in source.slots[slot])


def _is_of_another(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether a frame is of another object, told beside the claim's own: *it covers accidents but excludes dental care*."""
    mine, its = claim.slots.get("object", ()), source.slots.get("object", ())
    plain = all(f.kind in {FillerKind.NOUN, FillerKind.NAME} and f.words for f in (*mine, *its))
    return bool(mine and its) and plain and not any(f.all & g.all or f.deep & g.all for f in mine for g in its)


def _is_of_the_same(claim: PredicateFrame, source: PredicateFrame, evidence: Evidence) -> bool:
    """Whether both frames surely are of the same things: every slot that one has and that matters."""
    otherwise = source.conditional and (not claim.conditional or _excepts(claim) is not _excepts(source))
    if otherwise or is_around(claim, source):
        return False
    if source.hypothetical or source.noun or not source.finite or {claim.modality, source.modality} == {"may", ""}:
        return False
    mine, its = set(claim.slots), set(source.slots)
    if (mine ^ its) & {"object", "role", "to", "than"} or (mine - its) & _SETTINGS:
        return False
    shared = mine & its
    if claim.predicate in predicates.LIGHT and len(shared) < 2:
        return False
    if {claim.predicate, source.predicate} == _PHASES and not (_timed(claim, source) or len(shared & _CORE) > 1):
        return False
    found = [evidence.likeness(claim.slots[slot], source.slots[slot]) for slot in shared]
    return bool(shared & _CORE) and all(each is Likeness.SAME for each in found) and _are_whole(claim, source)


def is_around(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether a claim is of one case and its source of the time around it: *due if you cancel during the trial*, *none is due after it*."""
    return claim.conditional and bool((source.slots.keys() - claim.slots.keys()) & _AROUND)


def _comes_then(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether one frame says that something is not so before a time or an event, and the other that it then is."""
    denying, saying = (claim, source) if claim.negated else (source, claim)
    if saying.negated or not denying.negated:
        return False
    awaited = (*denying.slots.get("before", ()), *denying.slots.get("until", ()))
    then = (*saying.slots.get("when", ()), *saying.slots.get("after", ()), *saying.slots.get("from", ()))
    if awaited:
        return any(same(one, other) for one in awaited for other in then)
    waits, told = (set(each.text.lower().split()) for each in (denying, saying))
    if not waits & {"before", "until"} or told & {"before", "until"}:
        return False
    return bool(told & {"after", "once", "when"}) or _timed(claim, source)  # not open until ten: opens at ten


def _excepts(frame: PredicateFrame) -> bool:
    """Whether a sentence states its condition as an exception: *not unless it is dry* allows what *only if it is dry* does."""
    return "unless" in frame.text.lower().split()


def _timed(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether two frames tell one time."""
    times = [{f.text.lower() for _, f in each.all() if f.kind is FillerKind.TIME} for each in (claim, source)]
    return bool(times[0] & times[1])


def _are_whole(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether the fillers are as narrow on both sides: *some costs* may rise while *costs*, or other *some costs*, fall."""
    for slot in claim.slots.keys() & source.slots.keys() & _CORE:
        for mine, its in zip(claim.slots[slot], source.slots[slot], strict=False):
            if mine.quantifier != its.quantifier or mine.words != its.words or 0 < quantity(mine.quantifier) < _MOST:
                return False
    return True


def _finding(claim: PredicateFrame, source: BoundFrame) -> Misbinding:
    stated, said = source.frame.written or source.frame.predicate, claim.written or claim.predicate
    return Misbinding(NEGATION_FLIP, "predicate", stated, said, source.frame.text, source.fact_id)

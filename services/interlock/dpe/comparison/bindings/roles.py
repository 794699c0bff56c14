"""Roles: fillers that a claim puts into another slot, or takes from another frame of the source (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.evidence import BoundFrame, Evidence, agree, near
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, Likeness
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.text.patterns import pattern

_NAMES = {
    "to": "recipient", "for": "beneficiary", "from": "source", "in": "place", "at": "place", "by": "agent",
    "in favour of": "beneficiary", "in favor of": "beneficiary", "on behalf of": "beneficiary",
}  # fmt: skip
_CAUSES = frozenset({predicates.CAUSE})
_FREE = frozenset({"said-by"})
_TOWARDS = frozenset({"object", "to", "from"})
_BRACKETED = pattern(r"\((?:this )?(?:caus\w+|because|due to|leads? to)\b", ignore_case=True)


def named(slot: str, frame: PredicateFrame) -> str:
    """Return the name of a slot in a report: said-by for the subject of a verb that reports a clause."""
    reports = any(filler.kind is FillerKind.CLAUSE for filler in frame.slots.get("object", ()))
    if slot == "agent" and reports and frame.predicate in {predicates.SAY, *predicates.REPORTING}:
        return "said-by"
    if slot == "agent" and frame.predicate in _CAUSES:
        return "cause"
    return _NAMES.get(slot, slot)


def moved(claim: PredicateFrame, evidence: Evidence) -> Misbinding | None:
    """Return the slot that *claim* fills otherwise than every source of the same predicate, or ``None``."""
    if claim.hypothetical:
        return None
    rivals = [each for each in evidence.alike(claim) if each.frame.negated == claim.negated]
    supports = [each for each in rivals if _may_support(claim, each.frame, evidence)]
    if any(_is_as_narrow(claim, each.frame) for each in supports):
        return None
    if supports:  # one that says only who acts yields to one that says to what
        rivals = [each for each in rivals if _is_as_narrow(claim, each.frame)]
    found = next((f for each in rivals for f in (*_swapped(claim, each), *_exchanged(claim, each, rivals))), None)
    return found or next((f for each in rivals for f in _replaced(claim, each, evidence)), None)


def _shared(claim: PredicateFrame, source: PredicateFrame) -> list[str]:
    return [slot for slot in claim.slots if slot in source.slots and slot not in _FREE]


def _may_support(claim: PredicateFrame, source: PredicateFrame, evidence: Evidence) -> bool:
    """Whether a source may say what a claim says: nothing in it speaks against that, and something for it."""
    shared = _shared(claim, source)
    if not evidence.slots_alike(claim, source, shared):
        return False
    found = [evidence.likeness(claim.slots[slot], source.slots[slot]) for slot in shared]
    unknown = any(f.kind is FillerKind.UNKNOWN for _, f in source.all())
    if Likeness.APART in found or not found:
        return False
    if _crosses(claim, source):
        return False
    return Likeness.SAME in found and (Likeness.UNSURE not in found or unknown)


def _is_as_narrow(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether a source tells what a claim's event is done to, where the claim does."""
    return "object" not in claim.slots or "agent" not in claim.slots or "object" in source.slots


def _crosses(claim: PredicateFrame, source: PredicateFrame) -> bool:
    return any(True for _ in _crossings(claim, source))


def _crossings(claim: PredicateFrame, source: PredicateFrame) -> Iterator[tuple[str, Filler, Filler]]:
    """Yield each slot of a claim whose filler stands in another slot of the source, and that one's in its place."""
    if claim.predicate in predicates.SYMMETRIC:
        return
    if claim.predicate == predicates.BE:
        yield from _crossed_roles(claim, source)
        return
    slots = [slot for slot in claim.slots if slot not in _FREE]
    apart = _are_of_two_things(claim, source)
    for one in slots:
        for other in slots:
            if one >= other or one not in source.slots or other not in source.slots:
                continue
            if apart and "object" not in {one, other}:
                continue
            for mine in claim.slots[one]:
                for its in claim.slots[other]:
                    if _trade_places(mine, its, source, one, other):
                        yield one, source.slots[one][0], mine


def _are_of_two_things(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether an event is done to another thing: one sells another pears, who sells him bees."""
    mine, its = claim.slots.get("object", ()), source.slots.get("object", ())
    if not mine or not its or not all(f.kind in {FillerKind.NAME, FillerKind.NOUN} for f in (*mine, *its)):
        return False
    return not any(f.all & g.all for f in mine for g in its)


def _crossed_roles(claim: PredicateFrame, source: PredicateFrame) -> Iterator[tuple[str, Filler, Filler]]:
    """Yield who trades places with the one that his role is towards: *A is a subsidiary of B* for its reverse."""
    for mine in claim.slots.get("agent", ()):
        for its in source.slots.get("agent", ()):
            for held in claim.slots.get("role", ()):
                for role in source.slots.get("role", ()):
                    crossed = (
                        bool(mine.words) and mine.words <= role.inner and bool(its.words) and its.words <= held.inner
                    )
                    apart = not mine.words & its.words and held.head == role.head
                    if crossed and apart and held.head not in predicates.SAME_BOTH_WAYS:
                        yield "agent", its, mine


def _trade_places(mine: Filler, its: Filler, source: PredicateFrame, one: str, other: str) -> bool:
    if agree(mine, its) or FillerKind.UNKNOWN in {mine.kind, its.kind}:
        return False
    crossed = any(agree(mine, f) for f in source.slots[other]) and any(agree(its, f) for f in source.slots[one])
    if _cross_inside(mine, its, source, one, other):
        return not any(_shares_name(mine, f) for f in source.slots[one])
    if _cross_inside(its, mine, source, other, one):
        return not any(_shares_name(its, f) for f in source.slots[other])
    straight = any(_shares_name(mine, f) for f in source.slots[one])
    straight = straight or any(_shares_name(its, f) for f in source.slots[other])
    return crossed and not straight


def _shares_name(one: Filler, other: Filler) -> bool:
    """Whether two fillers may be one, whatever phrases they govern."""
    return agree(one, other) or (bool(one.words) and (one.words <= other.words or other.words <= one.words))


def _cross_inside(mine: Filler, its: Filler, source: PredicateFrame, one: str, other: str) -> bool:
    """Whether a filler trades places with one inside another: *warfarin lowers the level of aspirin* for its reverse."""
    return bool(mine.words) and any(
        whole.words == its.words and mine.words <= whole.inner and part.words and part.words <= its.inner
        for whole in source.slots[other]
        for part in source.slots[one]
    )


def _swapped(claim: PredicateFrame, source: BoundFrame) -> Iterator[Misbinding]:
    if _is_noted(claim, source):
        return
    for slot, stated, mine in _crossings(claim, source.frame):
        yield _finding(slot, stated, mine, claim, source)


def _replaced(claim: PredicateFrame, source: BoundFrame, evidence: Evidence) -> Iterator[Misbinding]:
    """Yield the one slot that a claim fills with what the sources bind elsewhere, where all others are the same."""
    shared = _shared(claim, source.frame)
    if claim.predicate != predicates.CAUSE and evidence.slots_alike(claim, source.frame, shared) != len(shared) - 1:
        return
    found = {slot: evidence.likeness(claim.slots[slot], source.frame.slots[slot]) for slot in shared}
    if claim.predicate == predicates.CAUSE and found.get("object") is Likeness.SAME and "agent" in found:
        found["agent"] = Likeness.APART if _another_cause(claim, source.frame, evidence) else found["agent"]
    apart = [slot for slot in shared if found[slot] is Likeness.APART]
    anchors = [slot for slot in shared if found[slot] is Likeness.SAME]
    if len(apart) != 1 or len(apart) + len(anchors) != len(shared):
        return
    slot = apart[0]
    if not _anchored(claim, source.frame, anchors) and not _has_own(claim, slot, anchors, evidence):
        return
    if named(slot, claim) == "said-by" and not _are_persons(claim, source.frame, evidence):
        return
    if claim.predicate == predicates.BE and slot != "agent" and "role" in claim.slots:
        return
    mine, stated = claim.slots[slot][0], source.frame.slots[slot][0]
    held = [claim.slots[each][0] for each in anchors]
    recipient = slot == "object" and any(
        agree(mine, f) for f in source.frame.slots.get("to", ())
    )  # *lends Ann the van*
    if recipient or _is_noted(claim, source) or any(evidence.together(mine, each, source) for each in held):
        return
    yield _finding(slot, stated, mine, claim, source)


def _exchanged(claim: PredicateFrame, source: BoundFrame, rivals: list[BoundFrame]) -> Iterator[Misbinding]:
    """Yield who acts in a claim towards the one who acts in its source: *the school gave the bank 40 desks*, where the bank gave them.

    The source need not say to whom, if both tell what it was, and no frame has the claim's own one act.
    """
    acting = [f for each in rivals for f in each.frame.slots.get("agent", ())]
    mine = claim.slots.get("agent", ())
    if claim.predicate in predicates.SYMMETRIC | {predicates.BE, predicates.CAUSE, predicates.SAY} or len(mine) != 1:
        return
    if "object" not in source.frame.slots:
        return  # a branch that closed was shut by somebody
    if not all(map(_is_party, (*mine, *acting))) or any(near(mine[0], f) or near(f, mine[0]) for f in acting):
        return
    for slot in _TOWARDS & claim.slots.keys():
        for other in claim.slots[slot]:
            for its in source.frame.slots.get("agent", ()):
                if (
                    _is_party(other)
                    and near(other, its)
                    and not near(mine[0], other)
                    and _tells_the_same(claim, source.frame, slot)
                ):
                    yield _finding("agent", its, mine[0], claim, source)


def _is_party(filler: Filler) -> bool:
    return filler.kind in {FillerKind.NAME, FillerKind.NOUN} and bool(filler.words) and not filler.borrowed


def _tells_the_same(claim: PredicateFrame, source: PredicateFrame, without: str) -> bool:
    """Whether a claim and its source have a slot with the same words, besides who acts towards whom."""
    shared = claim.slots.keys() & source.slots.keys() - {"agent", without}
    return any(f.words & g.words for slot in shared for f in claim.slots[slot] for g in source.slots[slot])


def _is_noted(claim: PredicateFrame, source: BoundFrame) -> bool:
    """Whether a source tells a cause in brackets, which belong to what stands before them: *Revert "Cache" (causes stale prices)*."""
    return claim.predicate == predicates.CAUSE and _BRACKETED.search(source.frame.text) is not None


def _are_persons(claim: PredicateFrame, source: PredicateFrame, evidence: Evidence) -> bool:
    """Whether two speakers are full names, or each is known for what it says itself: Russia and the Kremlin say the same."""
    mine, its = claim.slots["agent"][0], source.slots["agent"][0]
    if min(len(mine.words), len(its.words)) > 1:
        return True
    own = [e.frame.slots for e in evidence.alike(claim) if any(agree(mine, f) for f in e.frame.slots.get("agent", ()))]
    return any(not any(agree(c, f) for c in claim.slots["object"] for f in each.get("object", ())) for each in own)


def _has_own(claim: PredicateFrame, slot: str, anchors: list[str], evidence: Evidence) -> bool:
    """Whether a source binds a claim's filler to another partner by the same predicate: the soup contains celery."""
    if claim.predicate == predicates.BE and "role" in claim.slots:
        return False
    return any(
        evidence.likeness(claim.slots[slot], each.frame.slots[slot]) is Likeness.SAME
        for each in evidence.alike(claim)
        if slot in each.frame.slots and anchors and all(anchor in each.frame.slots for anchor in anchors)
    )


def _another_cause(claim: PredicateFrame, source: PredicateFrame, evidence: Evidence) -> bool:
    """Whether a claim's cause shares no word with the source's, and the sources know its words."""
    mine = frozenset(word for f in claim.slots["agent"] for word in f.all)
    its = frozenset(word for f in source.slots["agent"] for word in f.all)
    known = {word for word in mine if word in evidence.words or predicates.verb_of(word) in evidence.words}
    return bool(mine and its) and not mine & its and 2 * len(known) > len(mine)


def _anchored(claim: PredicateFrame, source: PredicateFrame, anchors: list[str]) -> bool:
    """Whether the slots that agree tell which event is meant."""
    held = [f for slot in anchors for f in claim.slots[slot]]
    if not held:
        return False
    if claim.predicate == predicates.BE and "role" in claim.slots:
        return "role" in anchors and not any(f.indefinite for f in (*claim.slots["role"], *source.slots["role"]))
    if claim.predicate in predicates.LIGHT:
        return len(anchors) > 1 or any(
            f.amount or f.kind in {FillerKind.NAME, FillerKind.VALUE, FillerKind.CLAUSE} or len(f.all) > 1 for f in held
        )
    return any(f.kind is not FillerKind.TIME for f in held)


def _finding(slot: str, stated: Filler, mine: Filler, claim: PredicateFrame, source: BoundFrame) -> Misbinding:
    name = named(slot, claim)
    return Misbinding(ENTITY_SUBSTITUTED, name, stated.text, mine.text, source.frame.text, source.fact_id)

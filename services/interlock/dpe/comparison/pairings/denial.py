"""Denials: a claim that says what its source denies, or denies what it says, in other words (SPEC-005 §5.3).

The predicates must be of one sense and the sentences of the same things; which slot each of them stands in is not asked, so that
*the fee is not refunded* and *your €75 is refunded* are told apart.
"""

from __future__ import annotations

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense_of
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.polarity import is_around, is_of_the_rest
from interlock.dpe.comparison.denied_values import denies_another_value
from interlock.dpe.text.wordlists import word_set

_LEAST = 2
_MOSTLY = 0.5
_LIMITING = word_set("only unless except until but than yet still before")
_UNMET = word_set("before until unless")


def denied(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the event that *claim* states and its source denies, or the other way round, or ``None``."""
    if "|" in claim.text or claim.text.rstrip().endswith("?") or _UNMET & set(claim.text.lower().split()):
        return None  # what is to be done before something has not happened
    for frame in claim.frames:
        if not _tells(frame):
            continue
        for source in evidence.passages:
            for stated in source.frames if _is_of_the_same(claim, source) else ():
                another = (frame.negated and denies_another_value(claim.text, source.text)) or is_of_the_rest(
                    claim.text, source.text
                )
                if not another and _is_denied(frame, stated) and not _is_told(frame, claim, evidence):
                    return Misbinding(
                        NEGATION_FLIP, "predicate", _written(stated), _written(frame), source.text, source.fact_id,
                        about=frame.words,
                    )  # fmt: skip
    return None


def _tells(frame: PredicateFrame) -> bool:
    plain = frame.predicate not in predicates.LIGHT and frame.predicate not in {
        predicates.SAY,
        predicates.CAUSE,
        "precede",
    }
    acting = any(
        f.kind is FillerKind.CLAUSE for f in frame.slots.get("agent", ())
    )  # a parse that took an object for a verb
    return plain and frame.finite and not (frame.hypothetical or frame.noun or acting)


def _written(frame: PredicateFrame) -> str:
    written = frame.written or frame.predicate
    return (
        f"not {written}" if frame.negated and "n" not in written.split() and "not" not in written.split() else written
    )


def _is_of_the_same(claim: ReadSentence, source: ReadSentence) -> bool:
    if "|" in source.text or _LIMITING & set(source.text.lower().replace(",", " ").split()):
        return False
    shared = claim.bag & source.bag
    return len(shared) > _LEAST and len(shared) >= _MOSTLY * min(len(claim.bag), len(source.bag))


def _is_denied(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether two frames are of one event and about the same, and one of them denies it."""
    if sense_of(claim.predicate) != sense_of(source.predicate) or claim.negated is source.negated or not _tells(source):
        return False
    if (source.conditional and not claim.conditional) or is_around(claim, source):
        return False
    denying, saying = (claim, source) if claim.negated else (source, claim)
    if saying.modality != denying.modality and not (saying.modality == "may" and denying.modality == "must"):
        return False
    mine, its = _sorts(claim), _sorts(source)
    return bool(mine & its) and not _of_another(claim, source)


def _of_another(claim: PredicateFrame, source: PredicateFrame) -> bool:
    """Whether some slot that both fill has two fillers that are told apart, pronouns aside: *the black model*, *the white model*."""
    for slot in claim.slots.keys() & source.slots.keys():
        mine, its = claim.slots[slot], source.slots[slot]
        if any(f.kind is FillerKind.UNKNOWN for f in (*mine, *its)):
            continue
        named = all(f.kind in {FillerKind.NAME, FillerKind.NOUN} for f in (*mine, *its))
        one, other = _words(mine), _words(its)
        if not one & other or (named and one - other and other - one):
            return True
    return False


def _words(filled: tuple[Filler, ...]) -> frozenset[str]:
    return frozenset(sense_of(word) for f in filled for word in f.all | f.deep)


def _sorts(frame: PredicateFrame) -> frozenset[str]:
    return frozenset(word for filled in frame.slots.values() for word in _words(filled))


def _is_told(frame: PredicateFrame, claim: ReadSentence, evidence: Evidence) -> bool:
    """Whether a source tells the event with the claim's own polarity, of anything that the claim speaks of."""
    event = sense_of(frame.predicate)
    return any(
        sense_of(its.predicate) == event
        and its.negated is frame.negated
        and bool((_sorts(its) | each.bag) & claim.bag - {event})
        for each in evidence.passages
        for its in each.frames
        if not its.hypothetical
    )

"""Crossed actors: two events of a source's sentence, each with somebody who acts, and a claim that exchanges them (SPEC-005 §5.3).

*The board interviews candidates; the dean signs the offers* tells who does which. A claim that has the dean interview is found
without any slot besides: the object may be a pronoun, or be worded in another way.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import sense_of
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.frames import PredicateFrame
from interlock.dpe.comparison.bindings.general import GENERAL
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_OPEN = ("the rest", "the others", "others", "the remaining", "the remainder")
_PARTIES = frozenset({FillerKind.NAME, FillerKind.NOUN})
_CONVERSE = word_set("teach learn lease rent hire buy sell lend borrow give receive win lose import export")
_GENERAL_EVENTS = word_set("work run go start stop help happen occur stay remain appear exist live stand lie")
"""What anything may do: that the reset works says nothing of whether the lamp does."""
_INFINITIVE = pattern(r"\s+(?:not\s+)?to\s+(?:be\s+)?([\p{L}-]+)", ignore_case=True)
_TOO_GENERAL = predicates.LIGHT | _GENERAL_EVENTS | {predicates.SAY, predicates.CAUSE} | _CONVERSE


def crossed_actors(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return who acts in *claim* in the place of another of the same sentence of a source, or ``None``."""
    for frame in claim.frames if "|" not in claim.text else ():
        for mine in _actors(frame):
            for source in evidence.passages:
                found = _exchanged(frame, mine, source, claim) if "|" not in source.text else None
                if found is not None and not _is_told(frame, mine, evidence):
                    return Misbinding(
                        ENTITY_SUBSTITUTED, "agent", found.text, mine.text, source.text, source.fact_id,
                        about=frame.words,
                    )  # fmt: skip
    return None


def _actors(frame: PredicateFrame) -> tuple[Filler, ...]:
    """Return who acts in a frame of an event; nobody where that is not sure."""
    acting = frame.slots.get("agent", ())
    sure = not frame.hypothetical and frame.predicate not in _TOO_GENERAL
    return acting if sure and all(f.kind in _PARTIES and f.words and not f.borrowed for f in acting) else ()


def _exchanged(frame: PredicateFrame, mine: Filler, source: ReadSentence, claim: ReadSentence) -> Filler | None:
    """Return who the source says acts in the claim's event, where the claim's actor acts in another of its events."""
    event = sense_of(frame.predicate)
    own = [each for each in source.frames if sense_of(each.predicate) == event and each.negated == frame.negated]
    if not own or any(not _actors(each) for each in own):
        return None
    to_do = _to_do(frame, claim)
    if any(_to_do(each, source) != to_do for each in own):
        return None  # the insurers refused to cover it, and the museum refused the request
    its = [f for each in own for f in _actors(each)]
    if any(f.text.casefold().startswith(_OPEN) for f in its):
        return None  # the rest of the guests are guests too
    if any(_may_be(mine, f) for f in its):
        return None
    for other, acting in _others(source, event):
        traded = _trades(claim, other, its)
        if _may_be(mine, acting) and mine.head == acting.head and all(_are_two(acting, f, traded=traded) for f in its):
            return its[0] if other.clause or own[0].clause else None
    return None


def _to_do(frame: PredicateFrame, sentence: ReadSentence) -> str:
    """Return the sense of what an event is the beginning, the refusal or the plan of, empty where it stands for itself: *refuse to pay*."""
    _, found, behind = sentence.text.partition(frame.written) if frame.written else ("", "", "")
    infinitive = _INFINITIVE.match(behind) if found else None
    return sense_of(infinitive.group(1).lower()) if infinitive else ""


def _trades(claim: ReadSentence, other: PredicateFrame, its: list[Filler]) -> bool:
    """Whether a claim also has the source's actor do what the other one does."""
    event = sense_of(other.predicate)
    acting = [f for each in claim.frames if sense_of(each.predicate) == event for f in _actors(each)]
    return any(_may_be(mine, f) for mine in acting for f in its)


def _others(source: ReadSentence, event: str) -> Iterator[tuple[PredicateFrame, Filler]]:
    for each in source.frames:
        if sense_of(each.predicate) != event:
            for acting in _actors(each):
                yield each, acting


def _may_be(one: Filler, other: Filler) -> bool:
    return bool(one.words & other.words)


def _are_two(one: Filler, other: Filler, *, traded: bool) -> bool:
    """Whether two actors are surely two. A name and a noun may be one, unless the claim exchanges them."""
    if one.words & other.all or other.words & one.all:
        return False
    return traded or (one.kind is other.kind and not {one.head, other.head} & GENERAL)


def _is_told(frame: PredicateFrame, mine: Filler, evidence: Evidence) -> bool:
    """Whether a sentence of the sources may tell the same event of the one that the claim names."""
    event = sense_of(frame.predicate)
    said = f" {mine.text} {frame.written}".casefold()
    if frame.written and any(said in f" {each.text}".casefold() for each in evidence.passages):
        return True
    return any(
        sense_of(each.frame.predicate) == event and any(_may_be(mine, f) for f in each.frame.slots.get("agent", ()))
        for each in evidence.bound
    )

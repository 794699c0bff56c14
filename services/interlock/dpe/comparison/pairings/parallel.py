"""Parallel pieces crossed: a claim that gives to one what its source says of another in the same breath (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.stretches.pieces import Piece
from interlock.dpe.comparison.bindings.turned import are_opposite
from interlock.dpe.comparison.cues import DATE_SHIFTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.quantities import Value, comparable, same

_COUNTING = word_set("first second third another one ones other last next")
_COMPARING = word_set("than unlike compared versus instead rather whereas while both not never from")
_COVERED = 0.3


def crossed_values(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the value that *claim* gives to the wrong one of two that a source's sentence tells apart, or ``None``."""
    told = [piece for each in claim.pieces for piece in each] or ([claim.whole] if claim.whole is not None else [])
    for mine in told:
        if not mine.values or _compares(mine):
            continue
        for source in evidence.passages:
            if len(mine.words & source.senses) < _COVERED * len(mine.words):
                continue
            for parts in source.pieces:
                if any(_COUNTING & set(part.text.casefold().split()) for part in parts):
                    continue  # the first star in 2019 and the second in 2023 are two stars since 2023
                found = _crossed(mine, parts, source, evidence) or _turned(mine, parts, source)
                if found is not None:
                    return found
    return None


def _turned(mine: Piece, parts: Sequence[Piece], source: ReadSentence) -> Misbinding | None:
    """Return the direction that a claim gives to a value, where its piece has the opposite and another piece has the claim's."""
    for named in parts:
        for other in parts:
            taken = mine.events & other.events - named.events
            against = [(t, n) for t in taken for n in named.events - mine.events if are_opposite(t, n)]
            if named is other or not against or not _states_only(mine, named, other):
                continue
            for its, others in _anchors(named, other):
                if mine.words & its and not mine.words & (others - named.words - other.events):
                    return Misbinding(
                        NEGATION_FLIP, "predicate", against[0][1], against[0][0], source.text, source.fact_id
                    )
    return None


def _states_only(mine: Piece, named: Piece, other: Piece) -> bool:
    held = [v for v in mine.values if v.unit and any(same(v, each) for each in named.values)]
    return bool(held) and not any(same(v, each) for v in held for each in other.values)


def _compares(piece: Piece) -> bool:
    return bool(_COMPARING & set(piece.text.casefold().split()))


def _crossed(mine: Piece, parts: Sequence[Piece], source: ReadSentence, evidence: Evidence) -> Misbinding | None:
    for named in parts:
        for other in parts:
            if named is other:
                continue
            gapped = named.gapped or other.gapped
            beside = other.lead | other.after if gapped else other.words - other.events
            told_apart = beside - named.words
            for taken, own in _taken(mine, named, other):
                for its, others in _anchors(named, other):
                    held = mine.words & its
                    least = len(its) if not taken.unit and taken.moment is None else len(its) / 2
                    if not held or mine.words & (others | told_apart) or len(held) < least:
                        continue
                    if not _is_told(held, taken, named, parts, source=source, evidence=evidence):
                        kind = DATE_SHIFTED if taken.moment is not None else NUMBER_CHANGED
                        return Misbinding(kind, "value", own.text, taken.text, source.text, source.fact_id)
    return None


def _taken(mine: Piece, named: Piece, other: Piece) -> Iterator[tuple[Value, Value]]:
    """Yield each value of a claim that is the other piece's, with that of the piece that the claim names."""
    for value in mine.values:
        if not any(same(value, each) for each in other.values) or any(same(value, each) for each in named.values):
            continue
        own = [each for each in named.values if comparable(value, each)]
        if own and not any(same(each, v) for each in own for v in mine.values):
            yield value, own[0]


def _anchors(named: Piece, other: Piece) -> Iterator[tuple[frozenset[str], frozenset[str]]]:
    """Yield the words by which two pieces are told apart, each side by itself: what stands in the same place in both."""
    pairs = [(named.after, other.after)]
    if named.gapped and other.gapped:
        pairs.append((named.lead, other.lead))
    elif other.gapped or named.gapped:
        gapped, full = (other, named) if other.gapped else (named, other)
        place = full.lead if gapped.preposed else full.subject
        pairs.append((place, gapped.lead) if full is named else (gapped.lead, place))
    else:
        pairs.append((named.subject, other.subject))
    for one, two in pairs:
        if one - two and two - one:
            yield one - two, two - one


def _is_told(
    held: frozenset[str],
    taken: Value,
    named: Piece,
    parts: Sequence[Piece],
    *,
    source: ReadSentence,
    evidence: Evidence,
) -> bool:
    """Whether another sentence or piece of the sources states the value beside the same words."""
    for each in evidence.passages:
        if (
            each is not source
            and each.whole is not None
            and held <= each.senses
            and any(same(taken, v) for v in each.whole.values)
        ):
            return True
    return any(
        held <= piece.words and any(same(taken, v) for v in piece.values) for piece in parts if piece is not named
    )

"""Partners: what a source says of one, and a claim of another whom the sources know for something else (SPEC-005 §5.3).

Clauses are compared as bags of senses, so that the finding does not depend on the claim's choice of predicate: the source's clause
that a claim's follows most closely names somebody else, and all that is said of the claim's one shares less with the claim.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.bindings import predicates
from interlock.dpe.comparison.bindings.clauses import SenseBag, sense_of
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, key, same
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.general import GENERAL
from interlock.dpe.comparison.bindings.lying_in import lies_in
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_LEAST = 2
_LEAST_OF_OTHERS = 3  # of a name that does not act
_MOST_PLACES = 6  # who is in so many clauses may be in any
_SAYING = frozenset(map(sense_of, predicates.REPORTING))
_REPLACING = pattern(
    r"\b(?:tak(?:es?|ing|en)|took|fill(?:s|ed|ing)?) (?:[\p{L}'’]+ ){1,3}(?:place|role|post|shoes)\b|\b(?:take|takes|taking|taken|took) over\b"
    r"|\bin (?:[\p{L}'’]+ ){1,2}(?:place|stead)\b|\b(?:replac|succeed|deputi[sz])\p{L}*|\b(?:stand|stood|step|fill)\p{L}* in\b"
    r"|\bcover(?:s|ed|ing)? for\b|\binstead\b|\bsubstitut\p{L}*",
    ignore_case=True,
)
_LONGEST = 7
_WHERE, _WITH = word_set("at in on near outside inside"), word_set("with against by than")
_ARTICLES = word_set("the a an")
_MONEY = frozenset(map(key, word_set("euro dollar pound yen franc rupee krona peso percent cent")))
_SPEAKING = frozenset({"i", "we"})
_MONTHS = frozenset(
    map(key, word_set("january february march april may june july august september october november december"))
)


@dataclass(frozen=True)
class _Told:
    """A clause of a source, its number and its sentence."""

    clause: SenseBag
    number: int
    sentence: ReadSentence

    def leaves_open_who(self, event: str) -> bool:
        """Whether the sentence tells an event without who did it: *the fee, introduced in May*."""
        told = [each.slots for each in self.sentence.frames if sense_of(each.predicate) == event]
        return bool(told) and not any("agent" in slots for slots in told)


def partnered(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return whom a clause of *claim* puts in the place of another, or ``None``. A row of a table is no clause."""
    told = [
        _Told(clause, n, each)
        for n, each in enumerate(evidence.passages)
        for clause in each.clauses
        if not _is_record(each)
    ]
    for clause in () if _is_record(claim) else claim.clauses:
        if clause.hypothetical or len(clause.senses) < _LEAST or clause.marks & _SPEAKING:
            continue
        for mine in _parties(clause):
            found = _other(mine, clause, claim, told)
            if found is not None:
                return found
    return None


def _parties(clause: SenseBag) -> Iterator[Filler]:
    """Yield the names in a clause, then who acts in it."""
    yield from dict.fromkeys(f for f in clause.names if not f.amount and not f.words & _MONEY)
    yield from (
        f for f in clause.actors if f.kind is FillerKind.NOUN and not f.quantifier and not f.amount and _is_phrase(f)
    )


def _is_phrase(filler: Filler) -> bool:
    """Whether a noun phrase is short enough to be read rightly: a longer one often holds a verb that was taken for a noun."""
    return len(filler.text.split()) <= _LONGEST


def _other(mine: Filler, clause: SenseBag, claim: ReadSentence, told: list[_Told]) -> Misbinding | None:
    own = [each for each in told if _has(each.clause, mine)]
    if not own or len(own) > _MOST_PLACES:
        return None
    said = clause.senses - mine.all - mine.deep
    best = max(told, key=lambda each: len(said & each.clause.senses))
    shared = said & best.clause.senses
    known = {sense for each in own for sense in _said_of(each.clause)}
    exclusive = shared - known
    if exclusive <= {word for word, whole in clause.attached if whole in known & shared}:
        return None  # which fee he means, of which he says something else
    if not _tells(mine, clause, own, exclusive) or _has(best.clause, mine) or 2 * len(shared) < len(said):
        return None
    if (clause.event == best.clause.event and clause.negated != best.clause.negated) or _may_be_told(
        mine, clause, own, best
    ):
        return None
    said_by = _Told(clause, 0, claim)
    for its in _rivals(mine, clause, best.clause):
        if (
            not _are_two(mine, its)
            or _names(claim, clause, mine, its)
            or any(_stand_apart(its, mine, said_by, best, own))
        ):
            continue
        if not _acts_otherwise(its, mine, said_by, best, own):
            return Misbinding(
                ENTITY_SUBSTITUTED, "partner", its.text, mine.text, best.sentence.text, best.sentence.fact_id,
                about=clause.words,
            )  # fmt: skip
    return None


def _acts_otherwise(its: Filler, mine: Filler, said: _Told, best: _Told, own: list[_Told]) -> bool:
    """Whether the rival does something else than the claim's event, or does it to one of whom the same sentence says more.

    *Hale said that the fee, introduced in May, was low* does not say that Hale introduced it.
    """
    if not _acts_in(best.clause, its):
        return False
    acting = (f for each in said.sentence.frames for f in each.slots.get("agent", ()))
    if _acts_in(said.clause, mine) or any(mine.words <= f.all for f in acting):
        return best.leaves_open_who(said.clause.event)
    return any(each.number == best.number for each in own)


def _is_record(sentence: ReadSentence) -> bool:
    """Whether a text is a row of a table or of fields, which are no clauses."""
    return sentence.record or "|" in sentence.text or '":' in sentence.text


def _said_of(clause: SenseBag) -> frozenset[str]:
    """Return what a clause says, with whom it says it of: a relative clause does not repeat what stands before it."""
    return clause.senses | {sense_of(word) for f in clause.actors for word in f.all}


def _may_be_told(mine: Filler, clause: SenseBag, own: list[_Told], best: _Told) -> bool:
    """Whether a source may say of a party itself what a claim says of it, in words that stand for others."""
    if any(_tells_of_a_successor(each, best) for each in own):
        return True  # who takes another's place does what that one was to do
    if best.clause.pronoun and {each.number for each in own} & {best.number, best.number - 1}:
        return True  # it may be about one who stands in its sentence or just before
    beside = [each for each in own if abs(each.number - best.number) <= 1]
    if not _acts_in(clause, mine) and best.clause.refers and beside:
        return True  # *tracks lie south of it*, of a hill that the sentence before names
    if any(each.clause.refers and not each.clause.names for each in beside if _acts_in(each.clause, mine)):
        return True  # *customers can keep them*
    noted = [
        best.sentence.text.rpartition(":")[0],
        *(e.sentence.text[:-1] for e in beside if e.sentence.text[-1:] == ":"),
    ]
    return clause.event in _SAYING and any(mine.words <= frozenset(map(key, lead.split())) for lead in noted)


def _tells_of_a_successor(own: _Told, best: _Told) -> bool:
    """Whether a sentence says that one takes the place of who acts in another clause."""
    named = any(f.words & own.sentence.content for f in best.clause.actors)
    return named and abs(own.number - best.number) <= 1 and _REPLACING.search(own.sentence.text) is not None


def _acts_in(clause: SenseBag, mine: Filler) -> bool:
    return any(same(mine, f) for f in clause.actors)


def _rivals(mine: Filler, clause: SenseBag, source: SenseBag) -> Iterator[Filler]:
    """Yield who may stand in the place of a party: who acts, for one who acts or for a name where no other name acts."""
    acting = _acts_in(clause, mine)
    if acting:
        yield from source.actors
    elif any(map(_is_name, clause.actors)):
        yield from (f for f in source.names if f not in source.actors)
    else:
        yield from source.names


def _has(clause: SenseBag, mine: Filler) -> bool:
    if mine.kind is FillerKind.NAME:
        return bool(mine.words & clause.words)
    return mine.words <= clause.words or any(same(mine, f) for f in clause.actors)


def _tells(mine: Filler, clause: SenseBag, own: list[_Told], exclusive: frozenset[str]) -> bool:
    """Whether a claim says enough that no source says of its party: of a noun more than a number or a date."""
    named = frozenset(word for name in clause.names for word in name.all)
    acting = _acts_in(clause, mine)
    if len(exclusive) < _LEAST or len(exclusive - named) < (1 if acting else _LEAST_OF_OTHERS):
        return False
    if _is_name(mine):
        return True
    parts = {word for word, whole in clause.attached if whole in exclusive}  # *the shorter course* is one thing
    told = [s for s in exclusive - parts if not any(c.isdigit() for c in s) and s not in _MONTHS and s[-1] not in "+-"]
    return len(told) >= _LEAST and any(same(mine, f) for each in own for f in each.clause.actors)


def _are_two(mine: Filler, its: Filler) -> bool:
    if (
        _is_name(mine) is not _is_name(its)
        or {mine.head, its.head} & GENERAL
        or (its.indefinite and not mine.indefinite)
    ):
        return False
    if mine.kind is FillerKind.NOUN and mine.head == its.head:
        return bool(mine.words - its.words) and bool(its.words - mine.words)
    return not mine.words & its.words


def _stand_apart(its: Filler, mine: Filler, said: _Told, best: _Told, own: list[_Told]) -> Iterator[bool]:
    """Yield why a rival may not be in the place of a party, one reason after the other."""
    acting = _acts_in(said.clause, mine)
    # One of them does what is done to the other: *the jury found him guilty*, *the remains were found*.
    undergoing = [any(same(f, g) for g in each.clause.undergoing) for f, each in ((mine, said), (its, best))]
    yield acting and said.clause.event == best.clause.event and undergoing[0] != undergoing[1]
    # One place lies in the other, so that what happened there happened in both: *Peru's port of Callao*.
    yield not acting and any(lies_in(each.sentence.text, mine.text, its.text) for each in own)
    # One is where it happened, and the other tells it or does it.
    yield not acting and _preposition(mine, said.sentence.text) in _WHERE and _acts_in(best.clause, its)
    # One is where it happened, and the other with whom: *drew with Lazio*, *a draw at San Siro*.
    behind = [_preposition(f, each.sentence.text) for f, each in ((mine, said), (its, best))]
    yield not acting and any(one in _WHERE and other in _WITH for one, other in (behind, behind[::-1]))


def _preposition(filler: Filler, text: str) -> str:
    """Return the word that stands before a phrase."""
    before, found, _ = text.partition(filler.text)
    words = [word for word in before.lower().split() if word not in _ARTICLES]
    return words[-1] if found and words else ""


def _is_name(filler: Filler) -> bool:
    """Whether a filler names somebody, and is no defined term: *the Landlord*."""
    proper = bool(filler.words and filler.words <= filler.proper) and not filler.text.lower().startswith("the ")
    return filler.kind is FillerKind.NAME or proper


def _names(claim: ReadSentence, clause: SenseBag, mine: Filler, its: Filler) -> bool:
    """Whether a claim names the other one itself: in its clause, or, for one who does not act, in its sentence."""
    acting = _acts_in(clause, mine)
    own = its.words - mine.words
    if its.kind is FillerKind.NAME and its.head in own & clause.words:
        return True  # by the last of its names
    return 2 * len(own & clause.words) > len(own) or (not acting and any(own & each.words for each in claim.clauses))

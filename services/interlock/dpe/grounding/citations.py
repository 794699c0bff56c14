"""Where citation marks point: a mark whose source does not hold the sentence, or that points to none (ATT-7).

A mark vouches for the words before it. It is checked like a claim, against the source that it names alone: the parts of
that source nearest to the claim must entail it, and the claim's figures must stand in them when they stand anywhere.
Where a number has no known meaning, no mark is accused of pointing to the wrong source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from interlock.domain.risk.grounding import Basis
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.document import Claim, NliScores
from interlock.dpe.grounding.attribution import (
    DENIED_ABOVE,
    GROUNDED_ENTAILMENT,
    MIXED_ENTAILMENT,
    ClaimEvidence,
    limits,
    score_pairs,
)
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.fabrication import EnvelopeIndex, is_reference
from interlock.dpe.grounding.numbering import Known, Numbering, Passage
from interlock.dpe.grounding.parts import NumberedParts
from interlock.dpe.grounding.passages import shared, stands_in, values_elsewhere
from interlock.dpe.grounding.support import Vocabulary, calibrated
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.marks import CitationMark, is_article_code

WRONG_SOURCE, NO_SOURCE = "WRONG_SOURCE", "NO_SOURCE"
_NEAREST = 3
_MORE_SHARED = 0.5  # of a claim's words: the model also finds a wrong passage likely, where a copy stands elsewhere
_SURE = 0.50  # P(entailment), as the model gives it, of a claim that another source surely holds


@dataclass(frozen=True)
class Misattribution:
    """A mark that points to the wrong source or to none, and the claim that it stands at."""

    mark: CitationMark
    kind: str
    claim_id: str = ""
    cited: tuple[str, ...] = ()
    held_by: str = ""


@dataclass(frozen=True)
class Cited:
    """A claim with the marks that vouch for it and the passages that they point to."""

    claim: Claim
    marks: tuple[CitationMark, ...]
    passages: tuple[Passage, ...]
    alone: bool
    """Whether the marks vouch for this claim only, and not for other claims of its sentence too."""


@dataclass(frozen=True)
class Sources:
    """What marks may point to: the facts with their numbering, and every text that the caller gave."""

    envelope: Envelope
    numbering: Numbering
    basis: Basis
    index: EnvelopeIndex
    parts: NumberedParts = field(default_factory=NumberedParts)

    @staticmethod
    def of(envelope: Envelope, basis: Basis, texts: Sequence[str]) -> Sources:
        """Return the sources of a call; *texts* are its words besides the facts."""
        facts = envelope.facts if basis is Basis.SOURCES else ()
        given = [*(fact.content for fact in facts), *texts]
        return Sources(envelope, Numbering.of(facts), basis, EnvelopeIndex.of(given, ""), NumberedParts.of(facts))

    def missing(self, mark: CitationMark, defined: frozenset[str]) -> bool:
        """Whether a mark points to nothing that there is; *defined* are the labels of the answer's own notes."""
        if mark.url:
            known = self.basis is Basis.NO_SOURCES and not is_reference(mark.url)
            return not known and not self.index.cites(mark.url)
        if mark.parts:
            return self._lacks_part(mark) and not self.index.cites(mark.written)
        if not mark.sure or not mark.labels or self.index.cites(mark.written):
            return False
        if self.basis is Basis.NO_SOURCES and all(map(is_article_code, mark.labels)):
            return False
        return all(self._lacks(label) for label in mark.labels if label.casefold() not in defined) and not all(
            label.casefold() in defined for label in mark.labels
        )

    def _lacks_part(self, mark: CitationMark) -> bool:
        """Whether a numbering is known that lacks a part which a mark names. A part within a part (§ 3 Abs. 2) is not looked for."""
        whole = [number for kind, number in mark.parts if kind == mark.parts[0][0]]
        return any(self.parts.passages(mark.parts[0][0], number) is None for number in whole)

    def _lacks(self, label: str) -> bool:
        if is_article_code(label):
            return not self.index.cites(label)
        if not label.isdigit():
            words = content_words(label)
            return self.numbering.named(label) is None and not all(word in self.index.text for word in words)
        if self.numbering.known in {Known.TEXT, Known.IDS}:
            return label not in self.numbering.passages
        return int(label) > len(self.numbering.passages or self.envelope.facts if self.basis is Basis.SOURCES else ())

    def pointed_to(self, mark: CitationMark) -> tuple[Passage, ...]:
        """Return the passages that a mark points to; none where that is not known."""
        if mark.parts:
            kind = mark.parts[0][0]
            held = [self.parts.passages(kind, number) for each, number in mark.parts if each == kind]
            return tuple(dict.fromkeys(p for each in held for p in each or ())) if all(held) else ()
        found: list[Passage] = []
        for label in mark.labels:
            if label in self.numbering.passages:
                found += self.numbering.passages[label]
            elif (fact := self.numbering.named(label)) is not None:
                found.append(Passage(fact, 0, len(self.envelope.facts[fact].content)))
            else:
                return ()
        return tuple(dict.fromkeys(found))


async def check(
    readings: Sequence[ChoiceReading],
    envelope: Envelope,
    evidence: Mapping[str, ClaimEvidence],
    inference: Inference,
    language: Language,
    *,
    basis: Basis,
    query: str,
    prompt: str,
    held: bool,
) -> list[list[Misattribution]]:
    """Return the marks of each choice that point to the wrong source, or to none.

    Where they point is checked always; whether that holds the sentence, when *held* asks for it. *query* and *prompt* are the
    caller's own words: a page or a source that they name is not invented.
    """
    if not any(reading.marks for reading in readings):
        return [[] for _ in readings]

    def read_marks(_: Cancelled) -> tuple[Sources, list[list[Misattribution]], list[list[Cited]]]:
        sources = Sources.of(envelope, basis, [query, prompt])
        missing = [nowhere(reading, sources) for reading in readings]
        return sources, missing, [vouched(reading, sources) for reading in readings]

    sources, found, cited = await language.run(read_marks, stage="3a")
    if held and basis is Basis.SOURCES:
        for missing, each in zip(found, cited, strict=True):
            missing.extend(await misplaced(each, sources, evidence, inference, query))
    return found


def nowhere(reading: ChoiceReading, sources: Sources) -> list[Misattribution]:
    """Return the marks of a choice that point to no source."""
    defined = frozenset(reading.defined)
    missing = [mark for mark in reading.marks if sources.missing(mark, defined)]
    return [Misattribution(mark, NO_SOURCE, _claim_at(reading, mark)) for mark in missing]


def with_missing(
    fabricated: Mapping[str, tuple[str, ...]], found: Sequence[Sequence[Misattribution]]
) -> dict[str, tuple[str, ...]]:
    """Return fabrications by claim with the marks that point nowhere, for a reference without a source is invented."""
    both = dict(fabricated)
    for each in (one for choice in found for one in choice if one.kind == NO_SOURCE and one.claim_id):
        written = each.mark.url or each.mark.written
        both[each.claim_id] = tuple(dict.fromkeys([*both.get(each.claim_id, ()), written]))
    return both


def vouched(reading: ChoiceReading, sources: Sources) -> list[Cited]:
    """Return the checked claims that marks with known sources stand behind."""
    found: list[Cited] = []
    groups: dict[int, list[list[CitationMark]]] = {}
    for mark in reading.marks:
        if (sentence := _sentence_of(reading, mark)) is None or not sources.pointed_to(mark):
            continue
        in_sentence = groups.setdefault(sentence, [])
        if mark.leads and in_sentence:
            continue  # which words of the sentence each of its marks vouches for is not known
        if (
            in_sentence and not in_sentence[-1][-1].leads and mark.start - in_sentence[-1][-1].end <= 2
        ):  # [1][2]; [1], [2]
            in_sentence[-1].append(mark)
        else:
            in_sentence.append([mark])
    for sentence, together in groups.items():
        claims = [c for c in reading.checked if c.sentence_index == sentence and c.claim_id not in reading.titles]
        for claim in claims:
            chosen = together[0] if len(together) == 1 else _nearest_group(claim, together, reading)
            if chosen:
                passages = tuple(dict.fromkeys(p for mark in chosen for p in sources.pointed_to(mark)))
                found.append(Cited(claim, tuple(chosen), passages, alone=len(claims) == 1 or len(together) > 1))
    return found


async def misplaced(
    cited: Sequence[Cited], sources: Sources, evidence: Mapping[str, ClaimEvidence], inference: Inference, query: str
) -> list[Misattribution]:
    """Return the marks of *cited* whose sources do not hold their claim."""
    if not cited:
        return []
    vectors = await inference.embed([each.claim.text for each in cited])
    _, room = limits(inference)
    pairs: list[tuple[str, str]] = []
    owners: list[int] = []
    for number, (each, vector) in enumerate(zip(cited, vectors, strict=True)):
        for premise in _premises(each, vector, sources.envelope, room):
            pairs.append((premise, hypothesis(each.claim.text)))
            owners.append(number)
    scores: list[list[NliScores]] = [[] for _ in cited]
    for owner, score in zip(owners, await score_pairs(pairs, inference), strict=True):
        scores[owner].append(score)
    found = [
        _judged(each, answers, sources, evidence[each.claim.claim_id], query)
        for each, answers in zip(cited, scores, strict=True)
    ]
    return [each for number, each in enumerate(found) if each is not None and _counts(number, cited, found)]


def _counts(number: int, cited: Sequence[Cited], found: Sequence[Misattribution | None]) -> bool:
    """Whether a finding counts: a mark that holds one claim of its sentence is wrong only for one that another holds."""
    each, one = cited[number], found[number]
    if each.alone or (one is not None and one.held_by):
        return True
    return all(
        other is not None
        for other, beside in zip(found, cited, strict=True)
        if beside.claim.sentence_index == each.claim.sentence_index and beside.marks == each.marks
    )


def _judged(
    each: Cited, scores: Sequence[NliScores], sources: Sources, evidence: ClaimEvidence, query: str
) -> Misattribution | None:
    facts, envelope = {passage.fact for passage in each.passages}, sources.envelope
    ids = tuple(dict.fromkeys(envelope.facts[passage.fact].id for passage in each.passages))
    text = "\n".join(envelope.facts[p.fact].content[p.start : p.end] for p in each.passages)
    strange = Vocabulary.of([text, query]).strange(each.claim.text)
    best = max(scores, key=lambda score: score.entailment, default=None)
    support = calibrated(best, strange).entailment if best else 0.0
    if each.marks[0].parts:
        return _in_another_part(each, support, text, sources, evidence)
    denied = best is not None and best.contradiction > DENIED_ABOVE
    moved = values_elsewhere(each.claim, text, envelope)
    if support >= GROUNDED_ENTAILMENT and not denied and not moved:
        return None
    elsewhere = evidence.plain_scores.entailment >= _SURE and (
        moved or evidence.fact_id not in {envelope.facts[fact].id for fact in facts}
    )
    held_by = evidence.fact_id if elsewhere and evidence.fact_id not in ids else ""
    if sources.numbering.known is Known.ORDER and not held_by:
        return None  # the order is a guess: only a source that surely holds the claim shows that it is right
    if not elsewhere and not moved and support >= MIXED_ENTAILMENT:
        return None  # doubtful everywhere: its attribution says so already
    return Misattribution(each.marks[0], WRONG_SOURCE, each.claim.claim_id, ids, held_by)


def _in_another_part(
    each: Cited, support: float, cited: str, sources: Sources, evidence: ClaimEvidence
) -> Misattribution | None:
    """Return what a reference to a part gets wrong: another part surely holds its claim, and the part that it names does not."""
    envelope = sources.envelope
    within = {envelope.facts[p.fact].id: envelope.facts[p.fact].content for p in each.passages}
    texts = [envelope.facts[p.fact].content[p.start : p.end] for p in each.passages]
    if not evidence.source:
        return None
    content = within.get(evidence.fact_id)
    named = content is not None and stands_in(evidence.source, texts, content)
    sure = evidence.plain_scores.entailment >= _SURE and not named
    if sure and shared(each.claim.text, evidence.source) > shared(each.claim.text, cited) + _MORE_SHARED:
        return Misattribution(
            each.marks[0], WRONG_SOURCE, each.claim.claim_id, tuple(dict.fromkeys(within)), evidence.fact_id
        )
    if support >= GROUNDED_ENTAILMENT:
        return None
    if not sure and not (values_elsewhere(each.claim, cited, envelope) and support < MIXED_ENTAILMENT):
        return None
    ids = tuple(dict.fromkeys(within))
    return Misattribution(each.marks[0], WRONG_SOURCE, each.claim.claim_id, ids, evidence.fact_id if sure else "")


def _premises(each: Cited, vector: Floats, envelope: Envelope, room: int) -> list[str]:
    """Return the parts of the cited passages to score a claim against: its nearest unit, and the nearest together."""
    whole = {passage.fact for passage in each.passages}
    texts = {
        fact: [envelope.facts[fact].content[p.start : p.end] for p in each.passages if p.fact == fact] for fact in whole
    }
    units = [
        number
        for number, unit in enumerate(envelope.cut.units)
        if unit.fact in whole and stands_in(unit.text, texts[unit.fact], envelope.facts[unit.fact].content)
    ]
    if not units:
        return []
    near = sorted(units, key=lambda number: -float(np.dot(envelope.vectors[number], vector)))[:_NEAREST]
    return list(dict.fromkeys([envelope.cut.units[near[0]].text, envelope.collected(near, room)]))


def _sentence_of(reading: ChoiceReading, mark: CitationMark) -> int | None:
    """Return the sentence that a mark stands in or behind; ``None`` for one that opens a line or the output."""
    if mark.opens:
        return None
    if mark.leads:
        ahead = [c for c in reading.claims if c.output_index == mark.output_index and c.end > mark.start]
        return min(ahead, key=lambda claim: claim.start).sentence_index if ahead else None
    places = {c.sentence_index: c for c in reading.claims if c.output_index == mark.output_index}
    before = [index for index, claim in places.items() if claim.start < mark.start]
    return max(before, key=lambda index: places[index].start, default=None)


def _claim_at(reading: ChoiceReading, mark: CitationMark) -> str:
    sentence = _sentence_of(reading, mark)
    checked = [claim for claim in reading.checked if claim.sentence_index == sentence]
    return checked[-1].claim_id if checked else ""


def _nearest_group(claim: Claim, groups: Sequence[list[CitationMark]], reading: ChoiceReading) -> list[CitationMark]:
    """Return the marks that stand behind the part of the sentence that a claim shares most words with."""
    sentence = reading.sentences[claim.sentence_index]
    words = content_words(claim.text)
    best: list[CitationMark] = []
    most = 0
    at = 0
    for group in [*groups, []]:
        end = group[0].start - sentence.start if group else len(sentence.text)
        shared = len(words & content_words(sentence.text[max(0, at) : max(0, end)]))
        if shared > most:
            best, most = list(group), shared
        at = end
    return best

"""Names told of another: a claim is weighed against its twin, in which the name of a near source stands for its own (SPEC-005 §5.3).

A claim in other words than its source has a low P(entailment), whether its name is the right one or not: alone the figure tells nothing.
Beside its twin it does. Where *customs in Amsterdam took it aside for a check*, *delayed by a customs check in Gdansk* follows less surely than
the same with Amsterdam in it. Each is weighed against single sentences: a premise of several holds the wrong name as well as the right one.
Only names that the sources have elsewhere are weighed: one that they have nowhere is a fabrication.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import nlargest

from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.comparison.bindings.lying_in import lies_in
from interlock.dpe.comparison.cues import ENTITY_SUBSTITUTED
from interlock.dpe.document import Claim, Distortion, Entity, NliScores
from interlock.dpe.grounding.attribution import ClaimEvidence, score_pairs
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.inference.fairness import paced
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Inference
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import is_of_structure

SLOT = "name"
WEIGHED = frozenset({"PERSON", "ORG", "LOC"})
"""What is named; a product or a work is told by its kind as well, and kinds are compared elsewhere."""

DOUBTED = 0.60
"""P(entailment) of a claim from which its name is taken as it is."""

SURE = 0.50
"""P(entailment) that the twin has at least."""

SURE_OF_A_PLACE = 0.72
"""The same of a place or a body, which may lie in another, hold it or be called by it, as no person may."""

RISE = 0.30
"""By how much the twin follows more surely than the claim."""

RISE_WHERE_NEAR = 0.40
"""The same where what the sources say of the claim's own name shares as many words with it."""

_MOST_TWINS = 6
_OWN_UNITS = 2
_SHORTEST = 3  # letters of a word that tells one name from another
_STANDS_FOR = pattern(r"\b(?:he|she|they)\b", ignore_case=True)
_STANDS_FOR_GOVERNED = pattern(r"\b(?:he|she|they|him|her|them)\b", ignore_case=True)
_STANDS_FOR_OWNER = pattern(r"\b(?:his|her|their)\b", ignore_case=True)
_GOVERNING = pattern(r"\b(?:for|with|to|of|from|about|by|at|against|on|behind|without)\s\z", ignore_case=True)
_THE = pattern(r"\bthe\s+(\p{L}+)", ignore_case=True)
_EXAMPLE = pattern(
    r"(?:\blike|\bsuch as|\bincluding|\bfor example,?|\be\.g\.,?) (?:(?:\p{L}+,? ){0,3}(?:and|or) )?(?:the |a )?\z",
    ignore_case=True,
)
_BODIES = word_set(
    """
    agency airline association authority bank board brewery broker buyer carrier chain charity choir clinic club college commission committee
    company contractor cooperative council court customer department developer distributor employer factory farm federation firm foundation
    fund garage group hospital hotel institute insurer investor laboratory landlord lender library maker manufacturer mill ministry museum
    office operator orchestra owner park partner pharmacy plant police practice producer provider publisher railway regulator restaurant
    retailer school seller shop society start-up startup store studio subsidiary supplier surgery team tenant theatre trust union university
    utility vendor
    """
)
"""What a source calls a body that it has named before."""


@dataclass(frozen=True)
class _Unit:
    """A sentence of the sources with the words that tell names apart."""

    fact_id: str
    text: str
    words: frozenset[str]
    is_record: bool = False

    def shared(self, claim: frozenset[str], name: frozenset[str]) -> int:
        """Return how many telling words it shares with a claim beside its name."""
        return len((claim - name) & self.words)


@dataclass(frozen=True)
class _Named:
    """A name of a claim, and the units that say most of what the claim says of it."""

    text: str
    words: frozenset[str]
    label: str
    is_owner: bool
    is_governed: bool
    in_a_row: bool
    having: tuple[_Unit, ...]

    def may_be_meant(self, unit: _Unit) -> bool:
        """Whether another word of a unit may stand for it: *her blood pressure* for *Mrs Garrow's*, *the airline* for *Harbour Airways*."""
        if self.label == "PERSON":
            standing = _STANDS_FOR_OWNER if self.is_owner else _STANDS_FOR_GOVERNED if self.is_governed else _STANDS_FOR
            return bool(standing.search(unit.text))
        return self.label == "ORG" and any(word.lower() in _BODIES for word in _THE.findall(unit.text))


@dataclass(frozen=True)
class _Asked:
    """A claim with names that its near units do not all have."""

    claim: Claim
    words: frozenset[str]
    near: tuple[_Unit, ...]
    names: tuple[_Named, ...]

    @property
    def told(self) -> list[tuple[str, str]]:
        """The claim as it is, with each unit that it is weighed against."""
        units = [*self.near, *(unit for name in self.names for unit in name.having)]
        return [(unit.text, hypothesis(self.claim.text)) for unit in units]


@dataclass(frozen=True)
class _Twin:
    asked: _Asked
    unit: _Unit
    own: str
    other: str
    rise: float
    least: float

    @property
    def pair(self) -> tuple[str, str]:
        """The unit, and the claim with the other name."""
        return self.unit.text, hypothesis(self.asked.claim.text.replace(self.own, self.other))

    @property
    def finding(self) -> Distortion:
        return Distortion(ENTITY_SUBSTITUTED, self.other, self.own, self.unit.fact_id, SLOT)


class _Sources:
    """The units of the sources by their words."""

    def __init__(self, envelope: Envelope) -> None:
        records = "\n".join(record.sentence for _, record in envelope.cut.records)
        self._units: list[_Unit] = []
        self._having: dict[str, set[int]] = {}
        for number, unit in enumerate(envelope.cut.units):
            words = _telling(unit.text)
            is_record = unit.text.rstrip(".") in records
            self._units.append(_Unit(envelope.facts[unit.fact].id, unit.text, words, is_record))
            for word in words:
                self._having.setdefault(word, set()).add(number)
        self._by_text = {unit.text: unit for unit in self._units}

    def near(self, shown: ClaimEvidence) -> tuple[_Unit, ...]:
        """Return the units of prose nearest to a claim."""
        texts = dict.fromkeys([shown.source, *(text for _, text in shown.others)])
        units = [self._by_text[text] for text in texts if text in self._by_text]
        return tuple(unit for unit in units if not unit.is_record)

    def having(self, words: frozenset[str]) -> list[_Unit]:
        """Return the units with all of some words."""
        numbers = set.intersection(*(self._having.get(word, set()) for word in words))
        return [self._units[number] for number in sorted(numbers)]


async def names_of_others(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    envelope: Envelope,
    inference: Inference,
    language: Language,
) -> dict[str, tuple[Distortion, ...]]:
    """Return the names that claims have in the place of another, by claim id, with the name that their source has there."""
    named = [claim for claim in claims if _is_weighed(claim, evidence[claim.claim_id])]
    if not named:
        return {}

    def read(cancelled: Cancelled) -> list[_Asked]:
        sources = _Sources(envelope)
        found = (_asked(claim, evidence[claim.claim_id], sources) for claim in named if not cancelled())
        return [each for each in found if each.names]

    units = [(each, unit) for each in await language.run(read, stage="3b") for unit in each.near]
    names = await inference.names([unit.text for _, unit in units])
    twins = await paced(_twins(units, names))
    told = [pair for each in {id(twin.asked): twin.asked for twin in twins}.values() for pair in each.told]
    pairs = list(dict.fromkeys([*told, *(twin.pair for twin in twins)]))
    return _findings(twins, dict(zip(pairs, await score_pairs(pairs, inference), strict=True)))


def _is_weighed(claim: Claim, shown: ClaimEvidence) -> bool:
    """Whether a claim names somebody or a place, in words of its own. Fields and rows are compared by key and cell."""
    named = any(each.label in WEIGHED for each in claim.entities)
    return named and not shown.copied and not shown.calculated and not is_of_structure(claim.text)


def _asked(claim: Claim, shown: ClaimEvidence, sources: _Sources) -> _Asked:
    """Return what is to be weighed of a claim."""
    near, words, names = sources.near(shown), _telling(claim.text), []
    for name in claim.entities:
        own = _telling(name.text)
        if not (own and near and name.label in WEIGHED and name.text in claim.text):
            continue
        having = sources.having(own)
        if having and not all(own & unit.words for unit in near):
            best = nlargest(_OWN_UNITS, having, key=lambda unit, own=own: unit.shared(words, own))  # type: ignore[misc]
            is_owner = bool(re.search(re.escape(name.text) + r"['’]", claim.text))
            is_governed = _is_governed(name.text, claim.text)
            in_a_row = any(u.is_record for u in having)
            names.append(_Named(name.text, own, name.label, is_owner, is_governed, in_a_row, tuple(best)))
    return _Asked(claim, words, near, tuple(names))


def _is_governed(name: str, text: str) -> bool:
    """Whether a name stands behind a preposition, so that *him* may stand for it."""
    return _GOVERNING.search(text.partition(name)[0]) is not None


def _twins(units: Sequence[tuple[_Asked, _Unit]], names: Sequence[Sequence[Entity]]) -> Iterator[_Twin]:
    made: dict[str, int] = {}
    for (asked, unit), there in zip(units, names, strict=True):
        for own in asked.names:
            if own.words & unit.words or own.may_be_meant(unit):
                continue  # the unit is about the one that the claim names
            nearer = unit.shared(asked.words, own.words) - max(e.shared(asked.words, own.words) for e in own.having)
            if nearer < 0 or (own.in_a_row and any(_telling(each.text) <= asked.words for each in there)):
                continue  # what the sources say of it is nearer to the claim, or a row has it and the unit its rest
            rise = RISE if nearer else RISE_WHERE_NEAR
            others = dict.fromkeys(each.text for each in there if each.label == own.label)
            for other in others:
                if _is_example(other, unit.text) or any(lies_in(u.text, own.text, other) for u in own.having):
                    continue
                words, known = _telling(other), made.get(asked.claim.claim_id, 0)
                if words and not words & asked.words and known < _MOST_TWINS:
                    made[asked.claim.claim_id] = known + 1
                    yield _Twin(asked, unit, own.text, other, rise, SURE if own.label == "PERSON" else SURE_OF_A_PLACE)


def _is_example(name: str, text: str) -> bool:
    """Whether a unit has a name only as an example of something: *with tools like Slack*. An example takes nobody's place."""
    return _EXAMPLE.search(text.partition(name)[0]) is not None


def _findings(twins: Sequence[_Twin], scores: Mapping[tuple[str, str], NliScores]) -> dict[str, tuple[Distortion, ...]]:
    best: dict[str, tuple[float, Distortion]] = {}
    for twin in twins:
        claim_id = twin.asked.claim.claim_id
        own = max(scores[pair].entailment for pair in twin.asked.told)
        exchanged = scores[twin.pair].entailment
        known = best[claim_id][0] if claim_id in best else 0.0
        if own < DOUBTED and exchanged >= max(twin.least, own + twin.rise) and exchanged > known:
            best[claim_id] = (exchanged, twin.finding)
    return {claim_id: (finding,) for claim_id, (_, finding) in best.items()}


def _telling(text: str) -> frozenset[str]:
    """Return the words that tell one name from another, without what marks an owner."""
    words = (word.removesuffix("'s").removesuffix("’s") for word in content_words(text))
    return frozenset(word for word in words if len(word) >= _SHORTEST)

"""Stage 3b, fidelity: which claims distort their source, and which fabrications of 3a that explains (SPEC-005 §5.3).

A claim is compared with its nearest unit. If that shows a distortion, the next nearest units get a second look. One of
them clears the claim if it entails the claim, more surely than the nearest unit contradicts it, shares as many words
and shows no distortion: then the claim is about that unit. Last year's figure is no distortion of this year's.

A changed value of the source is a distortion; it is not counted as a fabrication as well.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from interlock.dpe.claims.wording import hypothesis, unanswered
from interlock.dpe.document import Claim, Distortion, Fact, NliScores
from interlock.dpe.grounding import distortion
from interlock.dpe.grounding.attribution import GROUNDED_ENTAILMENT, ClaimEvidence, score_pairs
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Inference
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.cells import cells_of, is_of_structure
from interlock.dpe.values.frames import frame
from interlock.dpe.values.quantities import same

_SENSE_TYPES = frozenset({"NEGATION_FLIP", "CONTEXT_STRIPPED"})
_YEAR = re.compile(r"\b(?:19|20)\d\d\Z")
_NO_DOUBT = NliScores(1.0, 0.0, 0.0)
_SENTENCE = pattern(r"[.!?]\s+|\n")
_ARTICLES = frozenset({"a", "an", "the"})
_VALUE_TYPES = frozenset({"NUMBER_CHANGED", "MAGNITUDE_ALTERED", "DATE_SHIFTED"})


@dataclass(frozen=True)
class Flaws:
    """Fabrications and distortions by claim id. A claim without flaws is in neither."""

    fabrications: Mapping[str, tuple[str, ...]]
    distortions: Mapping[str, tuple[Distortion, ...]]


async def distortions(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    inference: Inference,
    language: Language,
    *,
    sentences: Mapping[str, str] | None = None,
) -> dict[str, tuple[Distortion, ...]]:
    """Return the distortions of each claim that has any and that no other unit clears.

    *sentences* has the sentence that each claim was cut from. A dropped limit is visible where the rest is copied, and
    a rephrased claim is no copy. A distortion that only the sentence shows counts once for all of its claims.
    """
    whole = sentences or {}

    def first_look(cancelled: Cancelled) -> dict[str, tuple[Distortion, ...]]:
        looked = {c.claim_id: _source_distortions(c, evidence[c.claim_id]) for c in claims if not cancelled()}
        distorted = {name: found for name, found in looked.items() if found}
        seen = {(c.output_index, c.sentence_index) for c in claims if c.claim_id in distorted}
        for claim in claims:
            place = (claim.output_index, claim.sentence_index)
            text = whole.get(claim.claim_id, claim.text)
            if place in seen or text == claim.text or cancelled():
                continue
            seen.add(place)
            source = evidence[claim.claim_id].source
            if found := _sense_flips(replace(claim, text=text), evidence[claim.claim_id]):
                parts = [c for c in claims if (c.output_index, c.sentence_index) == place]
                distorted[_affected_claim(parts, source, found[0]).claim_id] = found
        return distorted

    distorted = await language.run(first_look, stage="3b")
    doubtful = [
        (claim, other) for claim in claims if claim.claim_id in distorted for other in evidence[claim.claim_id].others
    ]
    scores = await score_pairs([(text, hypothesis(claim.text)) for claim, (_, text) in doubtful], inference)

    def second_look(cancelled: Cancelled) -> set[str]:
        looked = zip(doubtful, scores, strict=True)
        return {
            claim.claim_id
            for (claim, other), one in looked
            if not cancelled() and _clears(claim, other, one, evidence[claim.claim_id])
        } | {
            claim.claim_id
            for claim in claims
            if claim.claim_id in distorted and not cancelled() and _is_of_its_premise(claim, evidence[claim.claim_id])
        }

    cleared = await language.run(second_look, stage="3b") if distorted else set()
    kept = {name: found for name, found in distorted.items() if name not in cleared}
    return _by_calculation(claims, kept, evidence)


def _by_calculation(
    claims: Sequence[Claim], distorted: Mapping[str, tuple[Distortion, ...]], evidence: Mapping[str, ClaimEvidence]
) -> dict[str, tuple[Distortion, ...]]:
    """Return the distortions without those of values that calculation accounts for, with those that it finds.

    The *no* of a record's field is no negation of a sentence: calculation reads it.
    """
    found: dict[str, tuple[Distortion, ...]] = {}
    for claim in claims:
        shown = evidence[claim.claim_id]
        left = tuple(
            each
            for each in distorted.get(claim.claim_id, ())
            if not (each.type in _VALUE_TYPES and (each.claim_value in shown.settled or _is_of_key(each, claim.text)))
            and not (each.type in _SENSE_TYPES and shown.tabular)
        )
        if both := tuple(dict.fromkeys([*left, *shown.moved])):
            found[claim.claim_id] = both
    return found


def _is_of_key(found: Distortion, text: str) -> bool:
    """Whether a changed value stands in the key of a field alone, *moisture 40cm: 27%*, which names the field and states nothing."""
    if found.slot or not is_of_structure(text) or cells_of(text) is not None:
        return False
    key, _, value = text.partition(": ")
    if found.type == "DATE_SHIFTED" and value.strip().isdigit() and _YEAR.search(key):
        return True  # what a year counts is no year: *students 2023: 1860*
    return found.claim_value in key and found.claim_value not in value


def flaws(
    fabricated: Mapping[str, tuple[str, ...]],
    distorted: Mapping[str, tuple[Distortion, ...]],
    texts: Sequence[str],
    shown: Mapping[str, ClaimEvidence] = MappingProxyType({}),
) -> Flaws:
    """Return both kinds of flaws. A changed value counts once, and text that a fact contains verbatim has a basis.

    So has a value that follows from the sources by calculation, as *shown* says.
    """
    evidence = _plain("\n".join(texts))
    remaining = {
        name: tuple(
            text
            for text in _unexplained(found, distorted.get(name, ()))
            if not _stands_in(evidence, text) and not (name in shown and text in shown[name].settled)
        )
        for name, found in fabricated.items()
    }
    return Flaws({name: found for name, found in remaining.items() if found}, dict(distorted))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _stands_in(evidence: str, text: str) -> bool:
    """Whether the facts contain a name as a whole. Figures do not count: 15 is not in 15.5."""
    return any(c.isalpha() for c in text) and bool(re.search(rf"(?<!\w){re.escape(_plain(text))}(?!\w)", evidence))


def _source_distortions(claim: Claim, evidence: ClaimEvidence) -> tuple[Distortion, ...]:
    if not evidence.source:
        return ()
    plain = replace(claim, text=unanswered(claim.text))
    fact = Fact(evidence.fact_id, evidence.source, 0.0)
    around = evidence.plain_scores if evidence.source.strip() in evidence.premise else None
    return distortion.find(plain, fact, evidence.source_scores, around)


def _sense_flips(sentence: Claim, evidence: ClaimEvidence) -> tuple[Distortion, ...]:
    """Return the flips and dropped limits of a copied sentence. Those that need the model are left to the claims."""
    if not evidence.source:
        return ()
    sentence = replace(sentence, text=unanswered(sentence.text))
    found = distortion.find(sentence, Fact(evidence.fact_id, evidence.source, 0.0), _NO_DOUBT)
    return tuple(each for each in found if each.type in _SENSE_TYPES)


def _affected_claim(parts: Sequence[Claim], source: str, flip: Distortion) -> Claim:
    """Return the claim that a flip or a dropped limit is about: it shares most words with the text after the limit."""
    limit = flip.source_value
    about = _plain(source.partition(limit)[2]).split()[:4] if limit else _plain(flip.claim_value).split()
    return max(parts, key=lambda claim: len(set(about) & set(_plain(claim.text).split())))


def _clears(claim: Claim, other: tuple[str, str], scores: NliScores, nearest: ClaimEvidence) -> bool:
    fact_id, text = other
    if _is_said_there(claim, text, nearest) and not distortion.find(claim, Fact(fact_id, text, 0.0), scores):
        return True
    if scores.entailment < max(GROUNDED_ENTAILMENT, nearest.source_scores.contradiction):
        return False
    words = frame(claim.text).bag
    if len(words & frame(text).bag) < len(words & frame(nearest.source).bag):
        return False
    return not distortion.find(claim, Fact(fact_id, text, 0.0), scores)


def _is_of_its_premise(claim: Claim, nearest: ClaimEvidence) -> bool:
    """Whether the premise that entails a claim is other text than its nearest unit, or has more, and that bears the claim out."""
    source = nearest.source.strip()
    if source not in nearest.premise:
        return _clears(claim, (nearest.fact_id, nearest.premise), nearest.plain_scores, nearest)
    rest = _SENTENCE.split(nearest.premise.replace(source, "\n", 1))
    return any(
        _is_said_there(claim, each, nearest)
        and _has_names(claim, each)
        and not distortion.find(claim, Fact(nearest.fact_id, each, 0.0), nearest.plain_scores)
        for each in rest
        if each.strip()
    )


def _has_names(claim: Claim, text: str) -> bool:
    """Whether a text has every name of a claim: what it says of the Steady tariff bears out nothing of the Flex tariff."""
    known = frame(text).evidence
    return all(known.knows(name.words) for name in frame(claim.text).names)


def _is_said_there(claim: Claim, text: str, nearest: ClaimEvidence) -> bool:
    """Whether another unit has a claim's own figures and more of its words than the nearest one, and the sources entail the claim.

    *Once the lag is below 500* is no bent *lag above 5,000* where another sentence says *again once lag is below 500*.
    """
    scores = nearest.plain_scores
    if scores.entailment < GROUNDED_ENTAILMENT or scores.entailment <= scores.contradiction:
        return False
    claimed, other = frame(claim.text), frame(text)
    stated = [value for value in claimed.values if not value.vague]
    if not stated or not all(any(same(value, each) for each in other.values) for value in stated):
        return False
    own, there, near = _tokens(claim.text), _tokens(text), _tokens(nearest.source)
    return bool(claimed.bag & other.bag) and len(own & there) > len(own & near)


def _tokens(text: str) -> frozenset[str]:
    """Return the words and figures of a text but its articles: *once*, *below* and *not* tell two sentences apart, too."""
    return frozenset(word.low for word in frame(text).tokens if word.text[:1].isalnum() and word.low not in _ARTICLES)


def _unexplained(fabricated: Sequence[str], distorted: Sequence[Distortion]) -> tuple[str, ...]:
    changed = [found.claim_value for found in distorted if found.type in _VALUE_TYPES]
    return tuple(text for text in fabricated if not any(text in value or value in text for value in changed))

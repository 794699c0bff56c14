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

from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.document import Claim, Distortion, Fact, NliScores
from interlock.dpe.grounding import distortion
from interlock.dpe.grounding.attribution import GROUNDED_ENTAILMENT, ClaimEvidence, judged
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Inference
from interlock.dpe.values.frames import frame

_SENSE_TYPES = frozenset({"NEGATION_FLIP", "CONTEXT_STRIPPED"})
_NO_DOUBT = NliScores(1.0, 0.0, 0.0)
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

    def first_look(left: Cancelled) -> dict[str, tuple[Distortion, ...]]:
        looked = {c.claim_id: _against(c, evidence[c.claim_id]) for c in claims if not left()}
        bent = {name: found for name, found in looked.items() if found}
        seen = {(c.output_index, c.sentence_index) for c in claims if c.claim_id in bent}
        for claim in claims:
            place = (claim.output_index, claim.sentence_index)
            text = whole.get(claim.claim_id, claim.text)
            if place in seen or text == claim.text or left():
                continue
            seen.add(place)
            source = evidence[claim.claim_id].source
            if found := _turned(replace(claim, text=text), evidence[claim.claim_id]):
                parts = [c for c in claims if (c.output_index, c.sentence_index) == place]
                bent[_told_by(parts, source, found[0]).claim_id] = found
        return bent

    bent = await language.run(first_look, stage="3b")
    doubtful = [
        (claim, other) for claim in claims if claim.claim_id in bent for other in evidence[claim.claim_id].others
    ]
    scores = await judged([(text, hypothesis(claim.text)) for claim, (_, text) in doubtful], inference)

    def second_look(left: Cancelled) -> set[str]:
        looked = zip(doubtful, scores, strict=True)
        return {
            claim.claim_id
            for (claim, other), one in looked
            if not left() and _clears(claim, other, one, evidence[claim.claim_id])
        }

    cleared = await language.run(second_look, stage="3b")
    return {name: found for name, found in bent.items() if name not in cleared}


def flaws(
    made_up: Mapping[str, tuple[str, ...]], bent: Mapping[str, tuple[Distortion, ...]], texts: Sequence[str]
) -> Flaws:
    """Return both kinds of flaws. A changed value counts once, and text that a fact contains verbatim has a basis."""
    evidence = _plain("\n".join(texts))
    remaining = {
        name: tuple(text for text in _unexplained(found, bent.get(name, ())) if not _stands_in(evidence, text))
        for name, found in made_up.items()
    }
    return Flaws({name: found for name, found in remaining.items() if found}, dict(bent))


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


def _stands_in(evidence: str, text: str) -> bool:
    """Whether the facts contain a name as a whole. Figures do not count: 15 is not in 15.5."""
    return any(c.isalpha() for c in text) and bool(re.search(rf"(?<!\w){re.escape(_plain(text))}(?!\w)", evidence))


def _against(claim: Claim, found: ClaimEvidence) -> tuple[Distortion, ...]:
    if not found.source:
        return ()
    return distortion.find(claim, Fact(found.fact_id, found.source, 0.0), found.source_scores)


def _turned(sentence: Claim, found: ClaimEvidence) -> tuple[Distortion, ...]:
    """Return the flips and dropped limits of a copied sentence. Those that need the model are left to the claims."""
    if not found.source:
        return ()
    bent = distortion.find(sentence, Fact(found.fact_id, found.source, 0.0), _NO_DOUBT)
    return tuple(each for each in bent if each.type in _SENSE_TYPES)


def _told_by(parts: Sequence[Claim], source: str, found: Distortion) -> Claim:
    """Return the claim that a flip or a dropped limit is about: it shares most words with the text after the limit."""
    limit = found.source_value
    about = _plain(source.partition(limit)[2]).split()[:4] if limit else _plain(found.claim_value).split()
    return max(parts, key=lambda claim: len(set(about) & set(_plain(claim.text).split())))


def _clears(claim: Claim, other: tuple[str, str], scores: NliScores, nearest: ClaimEvidence) -> bool:
    fact_id, text = other
    if scores.entailment < max(GROUNDED_ENTAILMENT, nearest.source_scores.contradiction):
        return False
    mine = frame(claim.text).bag
    if len(mine & frame(text).bag) < len(mine & frame(nearest.source).bag):
        return False
    return not distortion.find(claim, Fact(fact_id, text, 0.0), scores)


def _unexplained(made_up: Sequence[str], bent: Sequence[Distortion]) -> tuple[str, ...]:
    changed = [found.claim_value for found in bent if found.type in _VALUE_TYPES]
    return tuple(text for text in made_up if not any(text in value or value in text for value in changed))

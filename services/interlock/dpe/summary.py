"""Fidelity of a summary to the text that it summarises (SPEC-004 §12.3, DAG-7).

The summary is treated as an answer and its source as the only fact, so the stages of an analysis judge it. Every
checked claim counts: 1.0 if the source entails it, 0.25 if the source supports it in part, 0 otherwise. A flaw is a
distortion, a fabrication, or a contradiction with the source or within the summary. A summary with a flaw is not used,
however much of it is right, because a mean over twenty claims hides one changed figure. A summary without checkable
claims, with hidden characters, or with text that addresses the judge scores 0.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from interlock.domain.errors import invalid
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison import limits
from interlock.dpe.comparison.contradiction import Contradiction, counted
from interlock.dpe.document import Fact
from interlock.dpe.grounding.attribution import DENIED_ABOVE, Attribution, ClaimEvidence, Method, attribute
from interlock.dpe.grounding.envelope import MAX_FACT_CHARS
from interlock.dpe.grounding.fidelity import Flaws

USED_FROM = 0.80
"""A summary with a lower score is not used (SPEC-004 §12.3)."""

FLAWED_AT_MOST = 0.75
_CREDIT = {Attribution.CONTEXT_GROUNDED: 1.0, Attribution.MIXED: 0.25}


@dataclass(frozen=True)
class Checked:
    """Fidelity score of a summary, its number of claims, and the text of its flawed claims."""

    score: float
    claims: int
    flawed: tuple[str, ...]


def source_facts(source: str) -> tuple[Fact, ...]:
    """Return a source as facts. A source longer than one fact is cut at line ends or spaces.

    Refused with SUMMARY_SOURCE_EMPTY when the source has no text.
    """
    parts, rest = [], source.strip()
    while len(rest) > MAX_FACT_CHARS:
        cut = max(rest.rfind(mark, MAX_FACT_CHARS // 2, MAX_FACT_CHARS) for mark in ("\n", " "))
        end = cut if cut > 0 else MAX_FACT_CHARS
        parts.append(rest[:end].strip())
        rest = rest[end:].strip()
    parts.append(rest)
    if not rest:
        raise invalid("SUMMARY_SOURCE_EMPTY", "the source of the summary is empty")
    return tuple(Fact(f"s{number}", part, 0.5) for number, part in enumerate(parts, 1) if part)


def check(
    readings: Sequence[ChoiceReading],
    evidence: Mapping[str, ClaimEvidence],
    flaws: Flaws,
    contradictions: Sequence[Sequence[Contradiction]],
    *,
    method: Method,
) -> Checked:
    """Return the fidelity of a summary. A masked summary has the fidelity of its worst reading."""
    found = [
        _read(reading, evidence, flaws, inside, method)
        for reading, inside in zip(readings, contradictions, strict=True)
    ]
    return Checked(
        min(one.score for one in found),
        max(one.claims for one in found),
        tuple(dict.fromkeys(text for one in found for text in one.flawed)),
    )


def _read(
    reading: ChoiceReading,
    evidence: Mapping[str, ClaimEvidence],
    flaws: Flaws,
    inside: Sequence[Contradiction],
    method: Method,
) -> Checked:
    names = {claim.claim_id for claim in reading.checked}
    flawed = {name for name in names if flaws.fabrications.get(name) or flaws.distortions.get(name)}
    flawed |= {name for name in names if evidence[name].plain_scores.contradiction > DENIED_ABOVE}
    flawed |= _unlimited(reading, evidence)
    flawed |= {name for each in counted(inside) for name in (each.claim_id, each.other_claim_id)}
    kinds = [
        attribute(
            claim,
            evidence[claim.claim_id] if method == "nli" else evidence[claim.claim_id].plain(),
            flawed=claim.claim_id in flawed,
            method=method,
        )
        for claim in reading.checked
    ]
    texts = tuple(claim.text for claim in reading.checked if claim.claim_id in flawed)
    return Checked(_score(reading, kinds, flawed=bool(flawed)), len(reading.claims), texts)


def _unlimited(reading: ChoiceReading, evidence: Mapping[str, ClaimEvidence]) -> set[str]:
    """Return the claims that drop a limit of their source when no sentence resting on the same source keeps one."""
    sentences = {claim.claim_id: reading.sentences[claim.sentence_index].text for claim in reading.checked}
    kept = {evidence[name].source for name, sentence in sentences.items() if limits.keeps(sentence)}
    return {
        claim.claim_id
        for claim in reading.checked
        if (source := evidence[claim.claim_id].source) not in kept and limits.lost(sentences[claim.claim_id], source)
    }


def _score(reading: ChoiceReading, kinds: Iterable[Attribution], *, flawed: bool) -> float:
    earned = [_CREDIT.get(kind, 0.0) for kind in kinds]
    if not earned or reading.addressed or reading.hidden:
        return 0.0
    mean = sum(earned) / len(earned)
    return min(mean, FLAWED_AT_MOST) if flawed else mean

"""Claims that a source and the words of the request hold together: neither alone says all of it (ATT-5, SPEC-005 §4.3).

A confirmation is made of what a tool returned, of what the user asked for, and of what the tool is for: *The technical team will
answer you at dana@example.com within 24 hours* has its hours from the result, its address from the user and its team from the
declaration. One premise more is scored for each claim that nothing else supports. The model itself must be sure of it, and every
figure of the claim must stand there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from interlock.dpe.claims.wording import hypothesis
from interlock.dpe.document import Claim
from interlock.dpe.grounding import said as words
from interlock.dpe.grounding.attribution import ClaimEvidence, Method, limits, score_pairs, supported
from interlock.dpe.grounding.envelope import Cut
from interlock.dpe.grounding.said import SaidEvidence
from interlock.dpe.grounding.support import Vocabulary, calibrated, content_stems
from interlock.dpe.inference.port import Inference
from interlock.dpe.request import Request
from interlock.dpe.text.patterns import pattern

SURE = 0.50
"""Least P(entailment), as the model gives it, of a claim that several texts hold together."""
_FIGURE = pattern(r"[\w@.,:/-]*\d[\w@.,:/-]*\w|\d")


async def said(
    claims: Sequence[Claim],
    sources: Mapping[str, ClaimEvidence],
    asserted: Cut,
    request: Request,
    inference: Inference,
    *,
    method: Method,
    titles: Collection[str],
    sentences: Mapping[str, str],
) -> SaidEvidence:
    """Return what *claims*, which no source alone supports, rest on: the words of the request, or those and a source together."""
    found = await words.evidence(claims, asserted, request.said, inference, titles=titles, sentences=sentences)
    if method != "nli":
        return found
    by_words = {name for name, each in found.by_claim.items() if supported(each, method)}
    left = [claim for claim in claims if claim.claim_id not in by_words and claim.claim_id not in titles]
    declared = [one.description for one in request.tools if one.description]
    return found.with_sources(await evidence(left, sources, found.by_claim, declared, inference))


async def evidence(
    claims: Sequence[Claim],
    sources: Mapping[str, ClaimEvidence],
    said: Mapping[str, ClaimEvidence],
    declared: Sequence[str],
    inference: Inference,
) -> dict[str, ClaimEvidence]:
    """Return the evidence on those of *claims* that a source holds together with *said* words and *declared* purposes.

    *sources* and *said* have the evidence on each claim alone, *declared* are the descriptions of the functions.
    """
    limit, room = limits(inference)
    pairs = [
        (claim, premise)
        for claim in claims
        if (found := sources.get(claim.claim_id)) is not None
        and found.fact_id
        and (premise := joint(claim.text, found, said.get(claim.claim_id), declared))
    ]
    sizes = inference.tokens([text for claim, premise in pairs for text in (premise, claim.text)]) if pairs else []
    fitting = [
        pair
        for pair, premise, own in zip(pairs, sizes[::2], sizes[1::2], strict=True)
        if premise <= room and own <= limit
    ]
    scores = (
        await score_pairs([(premise, hypothesis(claim.text)) for claim, premise in fitting], inference)
        if fitting
        else []
    )
    return {
        claim.claim_id: replace(
            sources[claim.claim_id],
            premise=premise,
            scores=calibrated(one, Vocabulary.of([premise]).strange(claim.text)),
            plain_scores=one,
        )
        for (claim, premise), one in zip(fitting, scores, strict=True)
        if one.entailment >= SURE
    }


def joint(text: str, source: ClaimEvidence, said: ClaimEvidence | None, declared: Sequence[str]) -> str:
    """Return what a source, the user and a declaration say about a claim as one premise; empty where they cannot hold it.

    What a function is for says nothing about what was done, so that it counts only where a source has a figure of the claim.
    """
    figures = frozenset(_FIGURE.findall(text))
    given = source.premise or source.source
    for _, unit in source.others:
        if unit not in given and any(each in unit and each not in given for each in figures):
            given = f"{given} {unit}"
    own = (
        " ".join(dict.fromkeys([said.source, *(unit for _, unit in said.others[:1])])) if said and said.fact_id else ""
    )
    returned = {each for each in figures if each in given}
    purpose = _purpose(text, declared) if returned else ""
    if not own and not purpose:
        return ""
    if any(each not in given and each not in own for each in figures):
        return ""
    return " ".join(filter(None, (_sentence(purpose), _sentence(own), given)))


def _purpose(text: str, declared: Sequence[str]) -> str:
    """Return the description that shares most words with a claim; empty where none shares any."""
    wanted = content_stems(text)
    best = max(declared, key=lambda each: len(wanted & content_stems(each)), default="")
    return best if wanted & content_stems(best) else ""


def _sentence(text: str) -> str:
    return text if not text or text.endswith((".", "!", "?")) else f"{text}."

"""Stage 6, cross-window coherence: claims of an answer that contradict an earlier answer of the session (SPEC-005 §8).

Each checked claim is compared with its five nearest claims of the same subject in all earlier windows, by NLI and the
value rules, as within one answer (§5.4). Pairs beyond those five are compared by the rules alone, which need no model,
so a claim that many windows repeat cannot crowd out the one that is contradicted. Claims with the same wording do not
contradict each other and are not compared.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from interlock.dpe.comparison import contradiction
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.quality.profile import EmbeddedProfile

RULED_NEIGHBOURS = 20
_WORST_FIRST = {"CRITICAL": 0, "HIGH": 1, "MEDIUM": 2, "LOW": 3}


@dataclass(frozen=True)
class EarlierWindow:
    """An earlier window with the profile of its answer."""

    window_id: str
    profile: EmbeddedProfile


@dataclass(frozen=True)
class CrossWindow(Contradiction):
    """A claim of this answer against one of an earlier window.

    ``other_claim_id`` is empty; ``window_id`` names the window.
    """

    window_id: str = ""


@dataclass(frozen=True)
class EarlierClaims:
    """All claims of the earlier windows, oldest window first, each wording once."""

    claims: tuple[Claim, ...]
    vectors: Floats
    windows: tuple[str, ...]


def earlier(windows: Sequence[EarlierWindow], width: int) -> EarlierClaims:
    """Return the claims of the earlier windows, with ids that carry the window."""
    rows: dict[str, tuple[Claim, Floats, str]] = {}
    for window in windows:
        for claim, vector in window_claims(window.window_id, window.profile):
            rows.setdefault(wording(claim.text), (claim, vector, window.window_id))
    return stack_claims(rows.values(), width)


def window_claims(window_id: str, profile: EmbeddedProfile) -> Iterator[tuple[Claim, Floats]]:
    """Yield the claims of a window, with ids that carry the window, and their vectors."""
    for claim, vector in zip(profile.text.claims, profile.claims, strict=True):
        yield replace(claim, claim_id=f"{window_id}:{claim.claim_id}"), vector


def stack_claims(rows: Collection[tuple[Claim, Floats, str]], width: int) -> EarlierClaims:
    """Return (claim, vector, window) rows as one table; *width* is the width of a vector."""
    vectors = np.stack([row[1] for row in rows]) if rows else np.zeros((0, width), dtype=np.float32)
    return EarlierClaims(tuple(row[0] for row in rows), vectors, tuple(row[2] for row in rows))


async def contradictions(
    claims: Sequence[Claim], vectors: Floats, prior: EarlierClaims, *, inference: Inference, language: Language
) -> list[CrossWindow]:
    """Return the contradictions of an answer with earlier windows, by falling severity."""
    if not claims or not prior.claims:
        return []
    all_claims = [*prior.claims, *claims]
    pairs = [
        (a, b)
        for a, b in contradiction.across(prior.claims, prior.vectors, claims, vectors)
        if wording(all_claims[a].text) != wording(all_claims[b].text)
    ]
    likely = await contradiction.probabilities(all_claims, pairs, inference)

    def decide(_: Cancelled) -> list[Contradiction]:
        farther = _farther(prior.vectors, vectors, set(pairs))
        return contradiction.contradictions(all_claims, [*pairs, *farther], [*likely, *([0.0] * len(farther))])

    found = await language.run(decide, stage="6")
    windows = {claim.claim_id: window for claim, window in zip(prior.claims, prior.windows, strict=True)}
    texts = {claim.claim_id: claim.text for claim in prior.claims}
    return _ordered(found, windows, texts)


def _farther(prior: Floats, vectors: Floats, scored: set[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the pairs that are similar enough but not among the nearest, for the rules alone."""
    similar = vectors @ prior.T
    return [
        (int(column), len(prior) + row)
        for row, values in enumerate(similar)
        for column in np.argsort(-values, kind="stable")[:RULED_NEIGHBOURS]
        if values[column] >= contradiction.NEAR_FROM and (int(column), len(prior) + row) not in scored
    ]


def _ordered(found: Sequence[Contradiction], windows: dict[str, str], texts: dict[str, str]) -> list[CrossWindow]:
    turned = [
        CrossWindow(
            claim_id=each.other_claim_id,
            other_claim_id="",
            other_text=texts[each.claim_id],
            probability=each.probability,
            severity=each.severity,
            method=each.method,
            kind=each.kind,
            window_id=windows[each.claim_id],
        )
        for each in found
    ]
    return sorted(turned, key=lambda each: _WORST_FIRST[each.severity])


def wording(text: str) -> str:
    """Return the words of a claim, case and white space normalised."""
    return " ".join(text.casefold().split())

"""What a user asserts, as evidence of a second rank: a claim that no source supports or denies may rest on it (ATT-5).

A source wins over the user: what one contradicts does not rest on the user's words. A question asserts nothing: *Is Sydney the
capital?* supports no answer. Orders of a system message count in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.document import Claim, Fact
from interlock.dpe.grounding import attribution, envelope
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Cut, Envelope, EvidenceUnit
from interlock.dpe.inference.port import Inference
from interlock.dpe.request import OWN_KINDS, SaidText
from interlock.dpe.text.wordlists import word_set

_ASKS = word_set(
    "who whom whose what when where which why how is are was were do does did can could would will should shall has have had may"
    " wer wen wem was wann wo warum wie ist sind hat kann qui que quoi quand où pourquoi comment est quién qué cuándo dónde cómo es"
)


@dataclass(frozen=True)
class SaidEvidence:
    """What claims rest on in the words of the user and of the system, by claim id, and the kind of each text by its id."""

    by_claim: Mapping[str, ClaimEvidence]
    kinds: Mapping[str, str]


NOTHING_SAID = SaidEvidence({}, {})


def cut(
    said: Sequence[SaidText],
    *,
    limit: int,
    count: Callable[[Sequence[str]], list[int]],
    split: Callable[[str], Iterator[tuple[int, int]]],
) -> Cut:
    """Return what the user and the system assert, in units of at most *limit* tokens."""
    own = [Fact(one.id, one.text, 0.0) for one in said if one.kind in OWN_KINDS]
    whole = envelope.cut(own, limit=limit, count=count, split=split)
    return replace(whole, units=tuple(unit for unit in whole.units if _asserts(unit)))


def _asserts(unit: EvidenceUnit) -> bool:
    text = unit.text.strip()
    first = text.split(maxsplit=1)[0].lower().strip("\"'¿(") if text else ""
    return bool(text) and not text.endswith(("?", "？")) and first not in _ASKS


async def evidence(
    claims: Sequence[Claim],
    asserted: Cut,
    said: Sequence[SaidText],
    inference: Inference,
    *,
    titles: Collection[str],
    sentences: Mapping[str, str],
) -> SaidEvidence:
    """Return what each of *claims* rests on in the asserted units."""
    if not claims or not asserted.units:
        return NOTHING_SAID
    vectors = await inference.embed([*(unit.text for unit in asserted.units), *asserted.texts])
    base = Envelope(asserted, vectors[: len(asserted.units)], vectors[len(asserted.units) :])
    of_claims = await inference.embed([claim.text for claim in claims])
    found = await attribution.evidence(claims, of_claims, base, inference, titles=titles, query="", sentences=sentences)
    return SaidEvidence(found, {one.id: one.kind for one in said})

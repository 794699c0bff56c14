"""Stage 3c: the contradictions within one answer (SPEC-005 §5.4), without asking the model about what one source says itself.

Two sentences that an answer copies from one source stand there side by side already. Rules still compare their figures, dates and
opposite words. The model, which pairs of claims ask about as often as all evidence on them, would only be asked to doubt the source.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.comparison.contradiction import Contradiction, Pair, contradictions, neighbours, probabilities
from interlock.dpe.document import Claim
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.verbatim import Copies
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Inference


async def contradicted_inside(
    claims: Sequence[Claim], envelope: Envelope, inference: Inference, language: Language
) -> list[Contradiction]:
    """Return the contradictions among the claims of one answer."""
    vectors = await inference.embed([claim.text for claim in claims])

    def find(cancelled: Cancelled) -> tuple[list[Pair], list[Pair]]:
        pairs = neighbours(claims, vectors, cancelled)
        return pairs, [] if cancelled() else doubtful(claims, pairs, envelope)

    pairs, asked = await language.run(find, stage="3c")
    likely = dict(zip(asked, await probabilities(claims, asked, inference), strict=True))
    return await language.run(
        lambda _: contradictions(claims, pairs, [likely.get(pair, 0.0) for pair in pairs], one_answer=True), stage="3c"
    )


def doubtful(claims: Sequence[Claim], pairs: Sequence[Pair], envelope: Envelope) -> list[Pair]:
    """Return the pairs that the model is asked about: not two sentences of one source."""
    units = envelope.cut.units
    copies = Copies.of(units) if pairs else None
    facts = {
        number: units[unit].fact
        for number in {number for pair in pairs for number in pair}
        if copies is not None and (unit := copies.of_claim(claims[number].text, claims[number].text)) is not None
    }
    return [(a, b) for a, b in pairs if a not in facts or facts[a] != facts.get(b)]

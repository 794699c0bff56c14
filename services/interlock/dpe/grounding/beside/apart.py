"""Claims that are judged apart from the sources in the mode ``auto``: what none is about, and what is in another language."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim
from interlock.dpe.grounding import fabrication
from interlock.dpe.grounding.attribution import NO_EVIDENCE, ClaimEvidence, Method, supported
from interlock.dpe.grounding.beside import aboutness, across, own_tongue
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.given import basis
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Inference
from interlock.dpe.request import Request


@dataclass(frozen=True)
class Apart:
    """Ids of the claims that are judged apart, with the evidence and the fabrications of all claims."""

    evidence: Mapping[str, ClaimEvidence]
    fabrications: Mapping[str, tuple[str, ...]]
    judged: Sequence[Claim] = ()
    """The claims that the models compare with the sources."""
    open: frozenset[str] = frozenset()
    """No source is about them: only invented citations and links count."""
    translated: frozenset[str] = frozenset()
    """They are in another language, and what they share with the sources agrees."""
    unread: frozenset[str] = frozenset()
    """They are in another language and share nothing with the sources that could be compared."""

    @property
    def unmeasured(self) -> frozenset[str]:
        """The claims that are not measured against the sources."""
        return self.open | self.translated | self.unread

    def unread_most(self, names: Collection[str]) -> bool:
        """Whether most of these claims could not be read."""
        return 2 * len(self.unread.intersection(names)) > len(names)

    def open_all(self, names: Collection[str]) -> bool:
        """Whether there are claims, and no source is about any of them."""
        return bool(names) and self.open.issuperset(names)


ALL_JUDGED = Apart({}, {})


async def apart(
    request: Request,
    readings: Sequence[ChoiceReading],
    envelope: Envelope,
    evidence: Mapping[str, ClaimEvidence],
    fabrications: Mapping[str, tuple[str, ...]],
    *,
    method: Method,
    inference: Inference,
    language: Language,
) -> Apart:
    """Return which claims are judged apart, and what is found in them instead."""
    free = await aboutness.open_claims(request, readings, envelope, evidence, inference=inference, language=language)
    claims = [claim for reading in readings for claim in reading.checked]

    def find(_: Cancelled) -> Apart:
        found = {name: list(texts) for name, texts in fabrications.items() if name not in free}
        foreign = {
            n: each for n, each in across.compared(request, readings, envelope.cut.texts).items() if n not in free
        }
        found = own_tongue.without_readings(found, readings, envelope.cut.texts, request, foreign=foreign)
        cited: Mapping[str, tuple[str, ...]] = {}
        if free or foreign:
            index = fabrication.EnvelopeIndex.of(basis.shown(request, envelope.cut.texts), request.query)
            cited = fabrication.invented([c for c in claims if c.claim_id in free or c.claim_id in foreign], index)
        found |= {n: list(cited[n]) for n in free if n in cited}
        found |= {n: list(dict.fromkeys((*each.wrong, *cited.get(n, ())))) for n, each in foreign.items()}
        wrong = frozenset(n for n in foreign if found[n])
        borne = frozenset(n for n, each in foreign.items() if each.anchored or supported(evidence[n], method)) - wrong
        mute = {n for n in foreign if n in wrong or not supported(evidence[n], method)}
        kept = {
            n: replace(each, scores=NO_EVIDENCE, plain_scores=NO_EVIDENCE) if n in mute else each
            for n, each in evidence.items()
        }
        texts = {n: tuple(each) for n, each in found.items() if each}
        judged = [claim for claim in claims if claim.claim_id not in free and claim.claim_id not in foreign]
        return Apart(kept, texts, judged, free, borne, frozenset(foreign) - wrong - borne)

    return await language.run(find, stage="3a")

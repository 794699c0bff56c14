"""One choice judged on what the models found: attributions, omissions, the weakest claim, the risk. No model runs here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from interlock.domain.composite import Amplifier, Calibration
from interlock.dpe import attribution, entailment, omission
from interlock.dpe.attribution import Attribution, Evidence
from interlock.dpe.contradiction import Contradiction, counted
from interlock.dpe.envelope import Envelope
from interlock.dpe.fidelity import Flaws
from interlock.dpe.inference import Floats
from interlock.dpe.reading import Reading
from interlock.dpe.report import Choice
from interlock.dpe.risk import Findings, assess


def judged(
    reading: Reading,
    envelope: Envelope,
    evidence: Mapping[str, Evidence],
    flaws: Flaws,
    contradictions: Sequence[Contradiction],
    *,
    said: Floats,
    amplifiers: Sequence[Amplifier],
    method: attribution.Method,
    calibration: Calibration,
    between: int = 0,
) -> Choice:
    """Return everything about one choice; *said* has a row for each of its sentences and claims.

    *between* are the contradictions among the answers that it was made from.
    """
    names = [claim.claim_id for claim in reading.checked]
    mine = {name: evidence[name] if method == "nli" else evidence[name].plain() for name in names}
    fabrications = {name: flaws.fabrications.get(name, ()) for name in names}
    distortions = {name: flaws.distortions.get(name, ()) for name in names}
    attributions = {
        claim.claim_id: attribution.attribute(
            claim,
            mine[claim.claim_id],
            flawed=bool(fabrications[claim.claim_id] or distortions[claim.claim_id]),
            method=method,
        )
        for claim in reading.checked
    }
    weakest = entailment.weakest([found.scores for found in mine.values()])
    used = {mine[name].fact_id for name, kind in attributions.items() if kind is Attribution.CONTEXT_GROUNDED}
    findings = Findings(
        empty=reading.empty,
        attributions=attributions,
        fabrications=len({text for texts in fabrications.values() for text in texts}),
        distortions=sum(map(bool, distortions.values())),
        contradictions=len(counted(contradictions)) + between,
        weakest=weakest,
        hidden_characters=reading.hidden,
        addresses_judge=reading.addressed,
    )
    return Choice(
        index=reading.index,
        claims=reading.claims,
        evidence=mine,
        attributions=attributions,
        fabrications=fabrications,
        distortions=distortions,
        contradictions=contradictions,
        omissions=omission.omissions(envelope, said, used),
        weakest=weakest,
        risk=assess(findings, amplifiers, calibration),
    )

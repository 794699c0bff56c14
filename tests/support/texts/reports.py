"""Reports made by hand, with a value in every field, for what must hold of their bytes."""

from __future__ import annotations

import numpy as np
from google.protobuf.json_format import MessageToDict

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.policy.directives import Repetition
from interlock.domain.risk.composite import Amplifier, Calibration
from interlock.domain.risk.regulatory import Controls
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Distortion, NliScores, PiiFinding
from interlock.dpe.grounding.attribution import Attribution, ClaimEvidence
from interlock.dpe.grounding.omission import Omission
from interlock.dpe.inference.port import ModelInfo
from interlock.dpe.quality.coherence import CrossWindow
from interlock.dpe.quality.completeness import completeness
from interlock.dpe.quality.cross_agent import CrossAgent
from interlock.dpe.quality.flow import FlowSignals, flow
from interlock.dpe.quality.quality import Quality
from interlock.dpe.quality.queries import Need
from interlock.dpe.quality.repetition import Repeated, Repetitions
from interlock.dpe.regulatory import classify
from interlock.dpe.report.message import Choice, Context, report
from interlock.dpe.request import LinkedResult, Request
from interlock.dpe.risk import RiskFindings, assess
from tests.support.dpe import claim

SCORES = NliScores(0.75, 0.25, 0.0)


def choice() -> Choice:
    """Two claims: one that is bent, one that contradicts the other and an earlier window."""
    claims = [claim("Acme had 5 plants.", 1), claim("Acme had 6 plants.", 2)]
    evidence = {
        c.claim_id: ClaimEvidence("f1", 0.5, "Acme had 5 plants.", SCORES, "Acme had 5 plants.", SCORES) for c in claims
    }
    attributions = {"c1": Attribution.CONTEXT_GROUNDED, "c2": Attribution.MIXED}
    findings = RiskFindings(
        empty=False,
        attributions=attributions,
        fabrications=1,
        distortions=1,
        contradictions=2,
        weakest=SCORES,
        hidden_characters=0,
    )
    return Choice(
        index=0,
        claims=claims,
        evidence=evidence,
        attributions=attributions,
        fabrications={"c1": (), "c2": ("6",)},
        distortions={"c1": (), "c2": (Distortion("NUMBER_CHANGED", "5", "6", "f1"),)},
        contradictions=[
            Contradiction("c1", "c2", "Acme had 6 plants.", 0.75, "CRITICAL", "numbers", "numeric"),
            CrossWindow("c2", "", "Acme had 4 plants.", 0.75, "CRITICAL", "numbers", "numeric", window_id="w1"),
        ],
        omissions=[Omission("f2", "HIGH", 0.25)],
        weakest=SCORES,
        risk=assess(findings, [Amplifier.CROSS_WINDOW_CONTRADICTION], Calibration()),
    )


def sample(*linked: LinkedResult, crossed: CrossAgent | None = None) -> dpe_pb2.Report:
    """A report with a value in every field that is no fan-in's."""
    covered = completeness((Need("plants", "plants"),), np.eye(1), ["five plants"], np.array([[0.5]]), method="nli")
    quality = Quality(
        cross_window=(), completeness=covered, flow=flow(FlowSignals(0.5, 0.25, 1.0, 0.0)), coherence=0.5, score=0.5,
        repetitions=Repetitions(0.125, 0.0, Repetition.MINOR, (Repeated("Acme had 5 plants.", "w1", 0.9375, 0),)),
    )  # fmt: skip
    context = Context(
        facts=2, tier="B", etag="sha256:" + "0" * 64, envelope_tokens=12,
        pii=[PiiFinding("EMAIL_ADDRESS", "direct", "response", 0, 4, 1.0, 0)],
        models=[ModelInfo("nli", "judge 1", "sha256:" + "1" * 64, "embedded")], method="nli+values", ran={"1": "parser", "13": ""},
        not_run={"8": "no query"}, classification=classify(Request(outputs=()), []),
        controls=lambda _: Controls((), 3), flow_remediation="stitched", linked=linked,
    )  # fmt: skip
    return report([choice()], [quality], context, crossed)


def as_sealed(message: dpe_pb2.Report) -> str:
    """Return the text that the report hash is over."""
    return canonical_json(MessageToDict(message, preserving_proto_field_name=True))

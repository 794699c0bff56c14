"""What the report says about the call itself: its envelope, its models, its class, the stages that ran (SPEC-005 §20)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from interlock.domain.risk.grounding import GroundingMode
from interlock.dpe import regulatory
from interlock.dpe.document import PiiFinding
from interlock.dpe.grounding import envelope
from interlock.dpe.grounding.attribution import Method
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.given import basis
from interlock.dpe.inference.port import Inference, ModelInfo
from interlock.dpe.quality.quality import Query
from interlock.dpe.regulatory import Classification
from interlock.dpe.report.message import Context, stages_run
from interlock.dpe.request import Request


async def context(
    request: Request,
    base: Envelope,
    personal: Sequence[PiiFinding],
    query: Query,
    classification: Classification,
    *,
    inference: Inference,
    parser: ModelInfo,
    method: Method,
    followed: bool,
    mode: GroundingMode,
) -> Context:
    """Return the parts of the report that belong to no choice; *followed*: there is an earlier answer."""
    relevance = 0.0
    if request.query.strip() and request.facts:
        vector = (await inference.embed([request.query]))[0]
        relevance = float(np.mean([base.similarity(number, vector) for number in range(len(request.facts))]))
    told = "nli+values" if method == "nli" else "cosine"
    ran = stages_run(
        told if request.facts else "no facts to rest on",
        method,
        query,
        request,
        followed=followed,
        mode=mode,
    )
    models = [*inference.models(), parser]
    return Context(
        facts=len(request.facts),
        tier=envelope.quality_tier(facts=len(request.facts), relevance=relevance),
        etag=envelope.etag(request.facts),
        envelope_tokens=sum(unit.tokens for unit in base.cut.units),
        pii=personal,
        models=models,
        method=told,
        ran=ran,
        not_run={"8": query.why_not} if query.why_not else {},
        classification=classification,
        controls=lambda scored: regulatory.evidenced_controls(
            classification, ran=ran, tiered=True, scored=scored, pinned=all(m.hash for m in models),
            governed=request.governed, personal=bool(personal),
        ),
        flow_remediation=request.flow_remediation,
        linked=request.linked,
        basis=basis.basis(request.facts),
        mode=mode,
    )  # fmt: skip

"""The dpe gRPC service (SPEC-005). It converts requests and hands out places; the pipeline does the work."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Coroutine, Mapping
from dataclasses import asdict
from typing import Any, NoReturn, TypeVar

import structlog

from interlock.api.dpe.v1 import dpe_pb2, dpe_pb2_grpc
from interlock.domain.errors import Kind, Refused, invalid
from interlock.domain.policy.quality import TIER_BOUNDS, QualityWeights
from interlock.domain.risk.composite import Calibration
from interlock.domain.risk.grounding import GroundingMode
from interlock.domain.risk.risk import CRITICAL_FROM, HIGH_FROM, MEDIUM_FROM
from interlock.dpe import summary
from interlock.dpe.comparison import contradiction
from interlock.dpe.document import Fact
from interlock.dpe.grounding import attribution, omission
from interlock.dpe.inference.fairness import analysing
from interlock.dpe.inference.places import MOST_LEASE_S, PlaceLedger
from interlock.dpe.inference.port import ModelInfo, deadline
from interlock.dpe.pipeline import Pipeline
from interlock.dpe.quality import completeness, coverage, flow, repetition
from interlock.dpe.request import (
    ConsumedAnswer,
    DeclaredTool,
    LinkedResult,
    MergedAnswer,
    Output,
    PriorWindow,
    Request,
    SaidText,
)
from interlock.dpe.risk import LOOP_DEPTH_ABOVE
from interlock.dpe.text.memory.remembered import STORE
from interlock.runtime.rpc.errors import answers_refusals

_MARGIN, _MARGIN_S = 0.05, 0.25

T = TypeVar("T")

log = structlog.get_logger()


class DpeServicer(dpe_pb2_grpc.DpeServiceServicer):
    """Serves places, Analyze, CheckSummary and Describe. Analyses under way take turns on *workers* threads."""

    def __init__(self, pipeline: Pipeline, *, timeout_s: float, workers: int) -> None:
        self._pipeline = pipeline
        self._timeout_s = timeout_s
        self._places = PlaceLedger(workers)
        self._failing: dict[str, str] = {}
        self._probes = 0
        self._forgetting: asyncio.TimerHandle | None = None

    @answers_refusals(dpe_pb2.ReservePlaceResponse)
    async def ReservePlace(  # noqa: N802 - gRPC's name
        self, request: dpe_pb2.ReservePlaceRequest, context: Any
    ) -> dpe_pb2.ReservePlaceResponse:
        """Take a place for a call whose provider is not asked yet."""
        del context
        if not 1 <= request.lease_ms <= MOST_LEASE_S * 1000:
            raise invalid(
                "INVALID_PARAMETER", f"lease_ms must be from 1 to {MOST_LEASE_S * 1000:.0f}", param="lease_ms"
            )
        lease_s = request.lease_ms / 1000
        if self._places.keep(request.place_id, lease_s):
            return dpe_pb2.ReservePlaceResponse(place_id=request.place_id)
        return dpe_pb2.ReservePlaceResponse(place_id=self._places.reserve(lease_s, request.caller))

    async def ReleasePlace(  # noqa: N802 - gRPC's name
        self, request: dpe_pb2.ReleasePlaceRequest, context: Any
    ) -> dpe_pb2.ReleasePlaceResponse:
        """Give a place back."""
        del context
        self._places.release(request.place_id)
        return dpe_pb2.ReleasePlaceResponse()

    @answers_refusals(dpe_pb2.AnalyzeResponse)
    async def Analyze(  # noqa: N802 - gRPC's name
        self, request: dpe_pb2.AnalyzeRequest, context: Any
    ) -> dpe_pb2.AnalyzeResponse:
        """Run the pipeline over all outputs of one dispatch."""
        work = self._pipeline.analyse(read_request(request))
        place_for = request.place_for if request.HasField("place_for") else None
        report = await self._in_time(work, context, request.place_id, place_for)
        log.info(
            "dpe.analyzed",
            session_id=request.session_id,
            window_id=request.window_id,
            claims=report.claims_total,
            facts=report.facts_total,
            composite=round(report.composite_score, 4),
        )
        return dpe_pb2.AnalyzeResponse(report=report)

    @answers_refusals(dpe_pb2.CheckSummaryResponse)
    async def CheckSummary(  # noqa: N802 - gRPC's name
        self, request: dpe_pb2.CheckSummaryRequest, context: Any
    ) -> dpe_pb2.CheckSummaryResponse:
        """Return how faithful a summary is to its source."""
        work = self._pipeline.check_summary(request.source, request.summary)
        checked = await self._in_time(work, context, request.place_id)
        log.info(
            "dpe.summary_checked", claims=checked.claims, flawed=len(checked.flawed), score=round(checked.score, 4)
        )
        return dpe_pb2.CheckSummaryResponse(
            fidelity_score=checked.score, claims=checked.claims, flawed_claims=checked.flawed
        )

    async def Describe(  # noqa: N802 - gRPC's name
        self, request: dpe_pb2.DescribeRequest, context: Any
    ) -> dpe_pb2.DescribeResponse:
        """Return the calibration and the models in use."""
        del request, context
        pipeline = self._pipeline
        return describe(pipeline.calibration, self._models(), weights=pipeline.quality_weights, method=pipeline.method)

    async def _in_time(
        self, work: Coroutine[Any, Any, T], context: Any, place_id: str, place_for: str | None = None
    ) -> T:
        """Return the result of *work*, in turns with others and within the deadline. A model that fails is recorded."""
        limit_s = self._limit(context)
        deadline.set(asyncio.get_running_loop().time() + limit_s)
        try:
            with self._places.judging(place_id, place_for) as who, analysing(who):
                async with asyncio.timeout(limit_s):
                    return await work
        except TimeoutError:
            _out_of_time()
        except Refused as refused:
            if refused.kind is Kind.UNAVAILABLE and "slot" in refused.metadata:
                self._failing[refused.metadata["slot"]] = refused.message
                log.warning("dpe.model_failed", slot=refused.metadata["slot"], reason=refused.reason)
            raise
        finally:
            work.close()
            self._forget_later()

    def _forget_later(self) -> None:
        """Have what this analysis remembers forgotten in time, also where none follows it."""
        if self._forgetting is not None:
            self._forgetting.cancel()
        self._forgetting = asyncio.get_running_loop().call_later(STORE.unused_s + 1, STORE.forget_unused)

    async def unready_dependencies(self) -> Mapping[str, str]:
        """Return the models that still fail, and a text thread that hangs. A model that answers a probe is removed."""
        for slot in list(self._failing):
            if await self._answers(slot):
                self._failing.pop(slot, None)  # another probe may have seen it meanwhile
        return {**self._failing, **self._pipeline.language.unready_dependencies()}

    async def _answers(self, slot: str) -> bool:
        self._probes += 1
        text = f"probe {self._probes}"  # a new text for each probe, so that no cache answers for the model
        try:
            if slot == "embed":
                await self._pipeline.inference.embed([text])
            else:
                await self._pipeline.inference.nli([(text, text)])
        except Refused as refused:
            self._failing[slot] = refused.message
            return False
        return True

    def _models(self) -> tuple[ModelInfo, ...]:
        return (*self._pipeline.inference.models(), self._pipeline.language.model)

    def _limit(self, context: Any) -> float:
        """Return the time limit in seconds, a little less than the caller waits, so that the caller gets the reason."""
        left = context.time_remaining()
        remaining = math.inf if left is None else left - min(_MARGIN * left, _MARGIN_S)
        return min(self._timeout_s, remaining)


def describe(
    calibration: Calibration, models: tuple[ModelInfo, ...], *, weights: QualityWeights, method: attribution.Method
) -> dpe_pb2.DescribeResponse:
    """Return weights, factors, thresholds and models for the conformance report (SPEC-005 §16.3, §18.2)."""
    return dpe_pb2.DescribeResponse(
        weights=asdict(calibration.weights),
        quality_weights=asdict(weights),
        method="nli+values" if method == "nli" else method,
        amplifiers={amplifier.value: factor for amplifier, factor in calibration.factors.items()},
        thresholds={
            "risk.critical": CRITICAL_FROM,
            "risk.high": HIGH_FROM,
            "risk.medium": MEDIUM_FROM,
            "risk.floor": calibration.floor,
            "attribution.grounded_entailment": attribution.GROUNDED_ENTAILMENT,
            "attribution.mixed_entailment": attribution.MIXED_ENTAILMENT,
            "attribution.grounded_cosine": attribution.GROUNDED_COSINE,
            "attribution.mixed_cosine": attribution.MIXED_COSINE,
            "attribution.generic_specificity": attribution.GENERIC_BELOW,
            "contradiction.probability": contradiction.CONTRADICTED_ABOVE,
            "omission.cosine": omission.COVERED_FROM,
            "amplifier.loop_depth": LOOP_DEPTH_ABOVE,
            **_quality_thresholds(),
        },
        models=[dpe_pb2.Model(slot=m.slot, name=m.name, hash=m.hash, runtime=m.runtime) for m in models],
    )


def _quality_thresholds() -> dict[str, float]:
    """Return the thresholds of stages 7 to 9, and the lower bound of each quality tier (§18.4)."""
    levels = ("minor_from", "significant_from", "severe_above")
    return {
        **{f"repetition.overlap.{n}": bound for n, bound in zip(levels, repetition.OVERLAP_BANDS, strict=True)},
        **{f"repetition.semantic.{n}": bound for n, bound in zip(levels, repetition.SEMANTIC_BANDS, strict=True)},
        "repetition.sentence_cosine": repetition.SAME_ABOVE,
        "completeness.about": completeness.ABOUT_FROM,
        "completeness.nearest_within": completeness.NEAREST_WITHIN,
        "completeness.plain_cosine": completeness.PLAIN_ABOVE,
        **{f"completeness.{level.lower()}": bound for level, bound in completeness.BANDS},
        **{f"flow.weight.{name}": weight for name, weight in flow.weights().items()},
        "completeness.field": coverage.FIELD_FROM,
        "completeness.field_assigned": coverage.ASSIGNED_FROM,
        "flow.remedy_below": flow.REMEDY_BELOW,
        "summary.used_from": summary.USED_FROM,
        **{f"quality.tier.{tier.value}": bound for tier, bound in TIER_BOUNDS},
    }


def read_request(message: dpe_pb2.AnalyzeRequest) -> Request:
    """Return the request of a message, unchecked."""
    answers = frozenset(tool.name for tool in message.tools if tool.returns_answer)
    return Request(
        outputs=tuple(_output(one, answers) for one in message.outputs),
        facts=tuple(Fact(f.id, f.content, f.importance) for f in message.facts),
        query=message.query,
        prompt=message.prompt,
        loop_depth=message.loop_depth,
        domain=message.domain,
        prior=tuple(PriorWindow(w.window_id, w.text) for w in message.prior),
        flow_remediation=message.flow_remediation,
        governed=bool(message.session_id and message.window_id),
        merged=tuple(MergedAnswer(m.source_id, m.text, m.label, m.sub_query) for m in message.merged),
        sub_queries=tuple(message.sub_queries),
        linked=tuple(
            LinkedResult(one.session_id, one.window_id, one.hmac, one.chain_tip, one.agent_type)
            for one in message.linked_results
        ),
        grounding_mode=_grounding_mode(message.grounding_mode),
        grounding_required=message.grounding_required,
        said=tuple(SaidText(one.id, one.text, one.kind) for one in message.said),
        tools=tuple(
            DeclaredTool(one.name, one.description, one.parameters_json, one.returns_answer) for one in message.tools
        ),
        earlier_facts=frozenset(message.earlier_facts),
        consumed=tuple(_consumed(one) for one in message.consumed),
    )


def _consumed(message: dpe_pb2.ConsumedAnswer) -> ConsumedAnswer:
    grounding = message.grounding_pct if message.HasField("grounding_pct") else None
    return ConsumedAnswer(
        message.window_id, frozenset(message.fact_ids), message.composite_score, grounding, int(message.attribution)
    )


def _grounding_mode(asked: str) -> GroundingMode:
    try:
        return GroundingMode(asked or GroundingMode.AUTO)
    except ValueError:
        named = ", ".join(GroundingMode)
        raise invalid("GROUNDING_MODE_UNKNOWN", f"the grounding mode must be empty or one of: {named}") from None


def _output(message: dpe_pb2.Output, answers: frozenset[str]) -> Output:
    """Return an output. The arguments of a function that returns the answer are the answer."""
    kind = message.kind or "content"
    is_answer = kind == "tool_call" and message.tool_name in answers
    return Output(message.choice_index, message.text, "answer" if is_answer else kind, message.tool_name)


def _out_of_time() -> NoReturn:
    raise Refused(Kind.TIMEOUT, "ANALYSIS_DEADLINE_EXCEEDED", "the analysis did not finish in time") from None

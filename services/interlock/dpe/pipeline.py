"""The pipeline: a request in, a report out, stage by stage (SPEC-005 §2).

``analyse`` is the story, and the methods below it follow the order of the specification. Model calls run on the models'
threads and Python on the text thread, concurrently where neither needs the other, so the event loop stays free. Every
text is embedded once. No stage is skipped to save work: a request that is too large is refused.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from prometheus_client import Counter

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.policy.quality import QualityWeights
from interlock.domain.risk.composite import Amplifier, Calibration
from interlock.domain.risk.grounding import Basis, GroundingMode
from interlock.dpe import regulatory
from interlock.dpe.comparison import contradiction
from interlock.dpe.comparison.bindings.reading import Passages
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding import attribution, bound, citations, fabrication, fidelity, joined
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.beside import consumed
from interlock.dpe.grounding.beside.apart import Apart, apart
from interlock.dpe.grounding.beside.inside import contradicted_inside
from interlock.dpe.grounding.citations import Misattribution
from interlock.dpe.grounding.doubt import Doubts
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.given import basis, work
from interlock.dpe.grounding.placing import calculated, listed_amounts, within_reach
from interlock.dpe.grounding.said import SaidEvidence
from interlock.dpe.grounding.tools import calls as tool_calls
from interlock.dpe.grounding.tools.calls import JudgedCall
from interlock.dpe.grounding.twins.names import names_of_others
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Inference
from interlock.dpe.inputs import Inputs, ReadAnswer, timed
from interlock.dpe.intake import Bounds
from interlock.dpe.judging import judge_choice, worst_views
from interlock.dpe.quality import profile
from interlock.dpe.quality.coherence import CrossWindow
from interlock.dpe.quality.cross_agent import CrossAgent, FanIn, FanInStages
from interlock.dpe.quality.profile import Memory
from interlock.dpe.quality.quality import NOT_AN_ANSWER, EarlierWindows, Quality, Query, quality, session_amplifiers
from interlock.dpe.regulatory import Classification
from interlock.dpe.report import call_context
from interlock.dpe.report.message import Choice, Context, report
from interlock.dpe.request import ConsumedAnswer, Output, Request
from interlock.dpe.risk import amplifiers_for
from interlock.dpe.summary import Checked, check, source_facts

if TYPE_CHECKING:
    from interlock.dpe.pii.detection import PiiDetector  # presidio is heavy: the wiring imports it

RISK = Counter("interlock_dpe_risk", "Analyses by the risk level that they found.", ["level"])
REPETITION = Counter("interlock_dpe_repetition", "Analyses by the repetition level that they found.", ["level"])


@dataclass(frozen=True)
class Pipeline:
    """The stages of an analysis over models that were loaded once."""

    language: Language
    inference: Inference
    pii: PiiDetector
    bounds: Bounds
    method: attribution.Method
    calibration: Calibration
    quality_weights: QualityWeights = field(default_factory=QualityWeights)
    doubts: Doubts = Doubts.FREE
    memory: Memory = field(default_factory=Memory)
    passages: Passages = field(default_factory=Passages)

    def close(self) -> None:
        """Stop the threads and drop queued work."""
        self.language.close()
        self.inference.close()

    async def analyse(self, request: Request) -> dpe_pb2.Report:
        """Return the report on the worst choice, with the risk of each choice.

        Refused with EXHAUSTED above a bound, INVALID for a malformed request, UNAVAILABLE when a model fails, and
        TIMEOUT when a stage takes too long.
        """
        self.bounds.check(request)
        mode, given = basis.mode(request), basis.basis(request.facts)
        # Stages 1, 6 and 8: read the answer, the facts, the earlier windows, the query and the merged answers.
        answer, base, earlier, query, merged = await _together(
            self._inputs.answer(request),
            self._inputs.envelope(request),
            self._inputs.session(request),
            self._inputs.query(request),
            self._fan_in.compare_answers(request),
        )
        # Stages 2, 3a, 3c, 4, 6 and 11: compare the claims with facts, with each other and with earlier answers.
        evidence, fabricated, personal, inside, across = await _together(
            self._evidence(answer, base, request),
            self._fabrications(answer, base, request, mode),
            self._inputs.personal_data(request, self.pii.find),
            self._contradictions(answer, base, request),
            self._cross_window(answer, earlier, request, merged),
        )
        # What no source is about, and what is in another language, is judged apart.
        beside = await apart(
            request, answer.readings, base, evidence, fabricated,
            method=self.method, inference=self.inference, language=self.language,
        )  # fmt: skip
        fabricated, across = await self._out_of_reach(beside.fabrications, across, answer, beside, request)
        evidence = within_reach.reckoned(beside.evidence, beside.fabrications, fabricated, answer.readings)
        # Stages 3b, 7, 8 and 9: they need the evidence and the contradictions.
        said, calls, distorted, misattributed, qualities, cross_agent = await _together(
            self._said(answer, evidence, request),
            self._calls(request),
            self._distortions(beside.judged if given is Basis.SOURCES else (), answer, evidence, base, request),
            self._citations(answer, base, request, evidence, given=given, mode=mode),
            self._qualities(answer, earlier, query, inside=inside, across=across, merged=merged),
            self._fan_in.report(request, query.sub_queries, query.vectors, merged),
        )
        # Stage 12: classify the system, and collect what the report says about the call.
        classification = regulatory.classify(request, personal)
        context = await call_context.context(
            request, base, personal, query, classification, inference=self.inference, parser=self.language.model,
            method=self.method, followed=earlier.last is not None, mode=mode,
        )  # fmt: skip
        # Stages 10 and 5: the omissions and the risk of each choice.
        choices = await self._choices(
            answer, base, evidence, citations.with_missing(fabricated, misattributed), distorted, inside=inside, across=across, qualities=qualities,
            amplifiers=_amplifiers(request, classification, personal_data=bool(personal)), between=len(contradiction.counted([each.found for each in merged.between])),
            mode=mode, misattributed=misattributed, said=said, calls=calls, beside=beside, results=request.consumed,
            doubts=Doubts.COUNT if request.grounding_required or mode is GroundingMode.STRICT else self.doubts,
        )  # fmt: skip
        # Stage 13: the report.
        message = await self._report(choices, qualities, context, cross_agent)
        self._inputs.remember(request, answer.profiles)
        return message

    async def check_summary(self, source: str, summary: str) -> Checked:
        """Return how faithful a summary is to its source, judged by the stages that check an answer against facts.

        Refused as ``analyse`` is, and with SUMMARY_SOURCE_EMPTY when the source has no text.
        """
        self.bounds.check_text("source", source)
        request = Request(outputs=(Output(0, summary),), facts=source_facts(source))
        self.bounds.check(request)
        answer, base = await _together(self._inputs.answer(request), self._inputs.envelope(request))
        evidence, fabricated, inside = await _together(
            self._evidence(answer, base, request),
            self._fabrications(answer, base, request, GroundingMode.PREFERRED),
            self._contradictions(answer, base, request),
        )
        distorted = await self._distortions(answer.checked, answer, evidence, base, request)

        def judge(_: Cancelled) -> Checked:
            flaws = fidelity.flaws(fabricated, distorted, base.cut.texts, evidence)
            return check(answer.readings, evidence, flaws, inside, method=self.method)

        return await self.language.run(judge, stage="5")

    # Stages 2 and 4

    async def _evidence(self, answer: ReadAnswer, base: Envelope, request: Request) -> Mapping[str, ClaimEvidence]:
        """Return the evidence on each checked claim; its scores serve stage 4 too. The caller's own facts come first."""
        titles = {name for reading in answer.readings for name in reading.titles}
        with timed("2"):
            vectors = await self.inference.embed([claim.text for claim in answer.checked])
            found = await calculated.evidence(
                answer.checked, vectors, base, self.inference, self.language, titles=titles, query=request.query,
                own=request.own_words, sentences=answer.sentences,
            )  # fmt: skip
            return await consumed.own_first(
                answer.readings, base, found, request, inference=self.inference, language=self.language,
                method=self.method,
            )  # fmt: skip

    async def _said(self, answer: ReadAnswer, evidence: Mapping[str, ClaimEvidence], request: Request) -> SaidEvidence:
        """Return what those claims rest on in the user's words that no source supports."""
        left = [claim for claim in answer.checked if not attribution.supported(evidence[claim.claim_id], self.method)]
        titles = {name for reading in answer.readings for name in reading.titles}
        with timed("2"):
            asserted = await self._inputs.asserted(request)
            return await joined.said(
                left, evidence, asserted, request, self.inference, method=self.method, titles=titles, sentences=answer.sentences
            )  # fmt: skip

    async def _calls(self, request: Request) -> list[JudgedCall]:
        """Return what was found in each tool call."""
        with timed("3a"):
            return await self.language.run(lambda _: tool_calls.judge(request), stage="3a")

    # Stage 3

    async def _fabrications(
        self, answer: ReadAnswer, base: Envelope, request: Request, mode: GroundingMode
    ) -> dict[str, tuple[str, ...]]:
        """Return the fabrications by claim, found beside the models; in the mode ``open`` only references that nothing shown has."""
        of = fabrication.EnvelopeIndex.of
        find, index = fabrication.find, partial(of, base.cut.texts, request.own_words, base.facts)
        if mode is GroundingMode.OPEN:
            find, index = fabrication.invented, partial(of, basis.shown(request, base.cut.texts), request.query, ())
        with timed("3a"):
            left = partial(work.without_made, claims=answer.checked, query=request.query)
            return await self.language.run(lambda _: left(find(answer.checked, index())), stage="3a")

    async def _out_of_reach(
        self,
        fabricated: Mapping[str, tuple[str, ...]],
        across: Sequence[Sequence[CrossWindow]],
        answer: ReadAnswer,
        beside: Apart,
        request: Request,
    ) -> tuple[dict[str, tuple[str, ...]], list[list[CrossWindow]]]:
        """Return the figures that nothing makes, and the contradictions with earlier answers that no new figure explains."""
        judged = {claim.claim_id for claim in beside.judged}
        with timed("3a"):
            left = await self.language.run(
                lambda _: within_reach.beyond(fabricated, answer.readings, beside.evidence, request, judged=judged),
                stage="3a",
            )
        across = within_reach.supposed(across, fabricated, left, request)
        return left, listed_amounts.without_other_lists(across, answer.readings, left) if request.facts else across

    async def _distortions(
        self,
        claims: Sequence[Claim],
        answer: ReadAnswer,
        evidence: Mapping[str, ClaimEvidence],
        base: Envelope,
        request: Request,
    ) -> dict[str, tuple[Distortion, ...]]:
        with timed("3b"):
            bent = [claim for claim in claims if not evidence[claim.claim_id].copied]
            own = await fidelity.distortions(bent, evidence, self.inference, self.language, sentences=answer.sentences)
            exchanged = await names_of_others(bent, evidence, base, self.inference, self.language)
            before = exchanged | within_reach.derived(own, answer.readings, request)
            return await bound.distortions(
                bent, evidence, before, readings=answer.readings, parses=answer.parses, envelope=base,
                known=self.passages, language=self.language, asked=f"{request.query}\n{request.own_words}", query=request.query,
            )  # fmt: skip

    async def _citations(
        self,
        answer: ReadAnswer,
        base: Envelope,
        request: Request,
        evidence: Mapping[str, ClaimEvidence],
        *,
        given: Basis,
        mode: GroundingMode,
    ) -> list[list[Misattribution]]:
        with timed("3a"):
            return await citations.check(
                answer.readings, base, evidence, self.inference, self.language, basis=given, query=request.query,
                prompt=request.prompt, held=mode is not GroundingMode.OPEN,
            )  # fmt: skip

    async def _contradictions(self, answer: ReadAnswer, base: Envelope, request: Request) -> list[list[Contradiction]]:
        """Return the contradictions within each choice. Claims of different choices are not compared."""
        with timed("3c"):
            found = [
                await contradicted_inside(reading.checked, base, self.inference, self.language)
                for reading in answer.readings
            ]
            return await self._fan_in.drop_other_subjects(answer.readings, request, found)

    # Stage 5

    async def _choices(
        self,
        answer: ReadAnswer,
        base: Envelope,
        evidence: Mapping[str, ClaimEvidence],
        fabricated: Mapping[str, tuple[str, ...]],
        distorted: Mapping[str, tuple[Distortion, ...]],
        *,
        inside: Sequence[Sequence[Contradiction]],
        across: Sequence[Sequence[CrossWindow]],
        qualities: Sequence[Quality],
        amplifiers: Sequence[Amplifier],
        between: int,
        mode: GroundingMode,
        misattributed: Sequence[Sequence[Misattribution]],
        said: SaidEvidence,
        calls: Sequence[JudgedCall],
        beside: Apart,
        doubts: Doubts,
        results: Sequence[ConsumedAnswer],
    ) -> list[Choice]:
        """Return everything about each reading; *between* counts the contradictions among the merged answers."""

        def judge(_: Cancelled) -> list[Choice]:
            flaws = fidelity.flaws(fabricated, distorted, base.cut.texts, evidence)
            return [
                judge_choice(
                    reading, base, evidence, flaws, [*inside[n], *across[n]], vectors=answer.vectors[n],
                    amplifiers=[*amplifiers, *session_amplifiers(qualities[n], between)], method=self.method,
                    calibration=self.calibration, between=between, mode=mode,
                    misattributed=misattributed[n], said=said, beside=beside, doubts=doubts, consumed=results,
                    calls=[call for call in calls if call.choice_index == reading.index],
                )
                for n, reading in enumerate(answer.readings)
            ]  # fmt: skip

        with timed("5"):
            return await self.language.run(judge, stage="5")

    # Stages 6 to 9

    @property
    def _inputs(self) -> Inputs:
        return Inputs(self.language, self.inference, self.bounds, self.memory)

    @property
    def _fan_in(self) -> FanInStages:
        most = self.bounds.claims * self.bounds.choices
        return FanInStages(
            self.language, self.inference, most, self.method, self._inputs.earlier_profile, self._inputs.output_profiles
        )

    async def _cross_window(
        self, answer: ReadAnswer, earlier: EarlierWindows, request: Request, merged: FanIn
    ) -> list[list[CrossWindow]]:
        """Return the contradictions of each choice with earlier windows and with the merged answers."""
        with timed("6"):
            return await self._fan_in.cross_window(answer.readings, earlier.claims, request, merged)

    async def _qualities(
        self,
        answer: ReadAnswer,
        earlier: EarlierWindows,
        query: Query,
        *,
        inside: Sequence[Sequence[Contradiction]],
        across: Sequence[Sequence[CrossWindow]],
        merged: FanIn,
    ) -> list[Quality]:
        """Return the findings of stages 6 to 9 in each choice."""
        profiles = [
            await profile.embed_profile(each, self.inference, whole=earlier.last is not None)
            for each in answer.profiles
        ]

        def find(_: Cancelled) -> list[Quality]:
            return [
                quality(
                    profiles[n], *((earlier, query) if reading.sentences or not reading.calls else NOT_AN_ANSWER), choice_index=reading.index, cross_window=across[n], intra=inside[n],
                    method=self.method, weights=self.quality_weights, merged=merged,
                )
                for n, reading in enumerate(answer.readings)
            ]  # fmt: skip

        with timed("7"):  # includes 8 and 9: a few products of vectors that exist already
            return await self.language.run(find, stage="7")

    # Stages 11 to 13

    async def _report(
        self,
        choices: Sequence[Choice],
        qualities: Sequence[Quality],
        context: Context,
        cross_agent: CrossAgent | None,
    ) -> dpe_pb2.Report:
        with timed("13"):
            message = await self.language.run(
                lambda _: report(worst_views(choices), qualities, context, cross_agent), stage="13"
            )
        RISK.labels(common_pb2.RiskLevel.Name(message.risk_level).removeprefix("RISK_LEVEL_")).inc()
        REPETITION.labels(message.repetition_level).inc()
        return message


def _amplifiers(request: Request, classification: Classification, *, personal_data: bool) -> list[Amplifier]:
    return amplifiers_for(
        personal_data=personal_data,
        loop_depth=request.loop_depth,
        domain=classification.domain,
        high_risk=classification.high_risk,
    )


async def _together(*work: Awaitable[Any]) -> list[Any]:
    """Await all of *work* at once. When one part fails, the others are cancelled."""
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()

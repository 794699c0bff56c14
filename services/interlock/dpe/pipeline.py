"""The pipeline: a request in, a report out, stage by stage (SPEC-005 §2).

``analyse`` is the story, and the methods below it follow the order of the specification. Model calls run on the models'
threads and Python on the text thread, concurrently where neither needs the other, so the event loop stays free. Every
text is embedded once. No stage is skipped to save work: a request that is too large is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from prometheus_client import Counter, Histogram

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.quality import QualityWeights
from interlock.domain.risk.composite import Amplifier, Calibration
from interlock.dpe import regulatory
from interlock.dpe.claims import naming
from interlock.dpe.claims.reading import ChoiceReading, OutputReader, claim_sentences
from interlock.dpe.comparison import contradiction
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim, Distortion, PiiFinding
from interlock.dpe.grounding import attribution, envelope, fabrication, fidelity
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Cut, Envelope
from interlock.dpe.inference.language import Cancelled, Language, Spent
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.intake import Bounds
from interlock.dpe.judging import judge_choice, worst_views
from interlock.dpe.quality import coherence, profile
from interlock.dpe.quality.coherence import CrossWindow, EarlierWindow
from interlock.dpe.quality.coverage import decompose_sub_queries
from interlock.dpe.quality.cross_agent import CrossAgent, FanIn, FanInStages
from interlock.dpe.quality.decomposition import decomposed
from interlock.dpe.quality.profile import EmbeddedProfile, Memory, StyleRecorder, TextProfile
from interlock.dpe.quality.quality import EarlierWindows, Quality, Query, merge_windows, quality, session_amplifiers
from interlock.dpe.regulatory import Classification
from interlock.dpe.report import Choice, Context, report, stages_run
from interlock.dpe.request import Output, Request
from interlock.dpe.risk import amplifiers_for
from interlock.dpe.summary import Checked, check, source_facts
from interlock.dpe.text.views import personal as personal_in

if TYPE_CHECKING:
    from interlock.dpe.pii.detection import PiiDetector  # presidio is heavy: the wiring imports it

DURATION = Histogram(
    "interlock_dpe_stage_duration_seconds",
    "Time that one stage of an analysis took, waiting included; stage 2 holds the model's part of 4.",
    ["stage"],
)
RISK = Counter("interlock_dpe_risk", "Analyses by the risk level that they found.", ["level"])
REPETITION = Counter("interlock_dpe_repetition", "Analyses by the repetition level that they found.", ["level"])


@dataclass(frozen=True)
class _Answer:
    """The outputs after stage 1: one reading, one matrix of sentence and claim vectors and one profile for each view."""

    readings: Sequence[ChoiceReading]
    vectors: Sequence[Floats]
    profiles: Sequence[TextProfile]

    @property
    def checked(self) -> list[Claim]:
        """The checked claims of all readings, in order."""
        return [claim for reading in self.readings for claim in reading.checked]

    @property
    def sentences(self) -> dict[str, str]:
        """The sentence that each checked claim was cut from, by claim id."""
        return claim_sentences(self.readings)


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
    memory: Memory = field(default_factory=Memory)

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
        # Stages 1, 6 and 8: read the answer, the facts, the earlier windows, the query and the merged answers.
        answer, base, earlier, query, merged = await _together(
            self._read_answer(request),
            self._read_envelope(request),
            self._read_session(request),
            self._read_query(request),
            self._fan_in.compare_answers(request),
        )
        # Stages 2, 3a, 3c, 4, 6 and 11: compare the claims with facts, with each other and with earlier answers.
        evidence, fabricated, personal, inside, across = await _together(
            self._evidence(answer, base, request.query),
            self._fabrications(answer, base, request.query),
            self._personal_data(request),
            self._contradictions(answer, request),
            self._cross_window(answer, earlier, request, merged),
        )
        # Stages 3b, 7, 8 and 9: they need the evidence and the contradictions.
        distorted, qualities, cross_agent = await _together(
            self._distortions(answer, evidence),
            self._qualities(answer, earlier, query, inside=inside, across=across, merged=merged),
            self._fan_in.report(request, query.sub_queries, query.vectors, merged),
        )
        # Stage 12: classify the system, and collect what the report says about the call.
        classification = regulatory.classify(request, personal)
        amplifiers = amplifiers_for(
            personal_data=bool(personal),
            loop_depth=request.loop_depth,
            domain=classification.domain,
            high_risk=classification.high_risk,
        )
        context = await self._context(request, base, personal, query, classification, followed=earlier.last is not None)
        # Stages 10 and 5: the omissions and the risk of each choice.
        choices = await self._choices(
            answer, base, evidence, fabricated, distorted, inside=inside, across=across, qualities=qualities,
            amplifiers=amplifiers, between=len(contradiction.counted([each.found for each in merged.between])),
        )  # fmt: skip
        # Stage 13: the report.
        message = await self._report(choices, qualities, context, cross_agent)
        self._remember(request, answer.profiles)
        return message

    async def check_summary(self, source: str, summary: str) -> Checked:
        """Return how faithful a summary is to its source, judged by the stages that check an answer against facts.

        Refused as ``analyse`` is, and with SUMMARY_SOURCE_EMPTY when the source has no text.
        """
        self.bounds.check_text("source", source)
        request = Request(outputs=(Output(0, summary),), facts=source_facts(source))
        self.bounds.check(request)
        answer, base = await _together(self._read_answer(request), self._read_envelope(request))
        evidence, fabricated, inside = await _together(
            self._evidence(answer, base, ""),
            self._fabrications(answer, base, ""),
            self._contradictions(answer, request),
        )
        distorted = await self._distortions(answer, evidence)

        def judge(_: Cancelled) -> Checked:
            flaws = fidelity.flaws(fabricated, distorted, base.cut.texts)
            return check(answer.readings, evidence, flaws, inside, method=self.method)

        return await self.language.run(judge, stage="5")

    # Stage 1, and the vectors for stage 10

    async def _read_answer(self, request: Request) -> _Answer:
        """Read the outputs and embed the sentences and claims of each choice, each distinct text once."""
        with _timed("1"):
            readings, profiles = await self._read(request.outputs, self.bounds.claims, stage="1")
        with _timed("10"):
            vectors = [
                await self.inference.embed(
                    list(dict.fromkeys([*(s.text for s in reading.sentences), *(c.text for c in reading.claims)]))
                )
                for reading in readings
            ]
        return _Answer(readings, vectors, profiles)

    async def _read(
        self, outputs: Sequence[Output], claims: int, *, stage: str
    ) -> tuple[list[ChoiceReading], list[TextProfile]]:
        """Return the readings of outputs and their profiles; no choice may have more than *claims* claims."""
        spent = Spent()
        named = await naming.named(
            outputs, self.language, self.inference, self._reader(self.language, claims), stage=stage, spent=spent
        )
        recorder = StyleRecorder(cast("Language", named))
        reader = self._reader(recorder, claims)

        def read(cancelled: Cancelled) -> tuple[list[ChoiceReading], list[TextProfile]]:
            readings = reader.read(outputs, cancelled)
            return readings, [profile.profile(reading, recorder.styles) for reading in readings]

        return await self.language.run(read, stage=stage, spent=spent)

    def _reader(self, language: Language | StyleRecorder, claims: int) -> OutputReader:
        claim_tokens, _ = attribution.limits(self.inference)
        # The reader only calls the parser.
        return OutputReader(cast("Language", language), claims, claim_tokens, self.inference.tokens)

    # Stages 2 and 4

    async def _read_envelope(self, request: Request) -> Envelope:
        """Cut the facts into units, and embed the units and each whole fact."""
        _, premise_tokens = attribution.limits(self.inference)

        def cut(_: Cancelled) -> Cut:
            return envelope.cut(
                request.facts, limit=premise_tokens, count=self.inference.tokens, split=self.language.split
            )

        facts = await self.language.run(cut, stage="2")
        vectors = await self.inference.embed([*(unit.text for unit in facts.units), *facts.texts])
        return Envelope(facts, vectors[: len(facts.units)], vectors[len(facts.units) :])

    async def _evidence(self, answer: _Answer, base: Envelope, query: str) -> dict[str, ClaimEvidence]:
        """Return the evidence on each checked claim; its scores serve stage 4 too."""
        titles = {name for reading in answer.readings for name in reading.titles}
        with _timed("2"):
            vectors = await self.inference.embed([claim.text for claim in answer.checked])
            return await attribution.evidence(
                answer.checked, vectors, base, self.inference, titles=titles, query=query, sentences=answer.sentences
            )

    # Stage 3

    async def _fabrications(self, answer: _Answer, base: Envelope, query: str) -> dict[str, tuple[str, ...]]:
        """Return the fabrications by claim. The text thread finds them while the models score the claims."""

        def find(_: Cancelled) -> dict[str, tuple[str, ...]]:
            return fabrication.find(answer.checked, fabrication.EnvelopeIndex.of(base.cut.texts, query))

        with _timed("3a"):
            return await self.language.run(find, stage="3a")

    async def _distortions(
        self, answer: _Answer, evidence: Mapping[str, ClaimEvidence]
    ) -> dict[str, tuple[Distortion, ...]]:
        with _timed("3b"):
            return await fidelity.distortions(
                answer.checked, evidence, self.inference, self.language, sentences=answer.sentences
            )

    async def _contradictions(self, answer: _Answer, request: Request) -> list[list[Contradiction]]:
        """Return the contradictions within each choice. Claims of different choices are not compared."""
        with _timed("3c"):
            found = [await self._contradictions_in(reading.checked) for reading in answer.readings]
            return await self._fan_in.drop_other_subjects(answer.readings, request, found)

    async def _contradictions_in(self, claims: Sequence[Claim]) -> list[Contradiction]:
        pairs = contradiction.neighbours(claims, await self.inference.embed([claim.text for claim in claims]))
        likely = await contradiction.probabilities(claims, pairs, self.inference)
        return await self.language.run(lambda _: contradiction.contradictions(claims, pairs, likely), stage="3c")

    # Stage 5

    async def _choices(
        self,
        answer: _Answer,
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
    ) -> list[Choice]:
        """Return everything about each reading; *between* counts the contradictions among the merged answers."""

        def judge(_: Cancelled) -> list[Choice]:
            flaws = fidelity.flaws(fabricated, distorted, base.cut.texts)
            return [
                judge_choice(
                    reading, base, evidence, flaws, [*inside[n], *across[n]], vectors=answer.vectors[n],
                    amplifiers=[*amplifiers, *session_amplifiers(qualities[n], between)], method=self.method,
                    calibration=self.calibration, between=between,
                )
                for n, reading in enumerate(answer.readings)
            ]  # fmt: skip

        with _timed("5"):
            return await self.language.run(judge, stage="5")

    # Stages 6 to 9

    async def _read_session(self, request: Request) -> EarlierWindows:
        """Read the earlier answers that are not cached, and combine all of them."""
        with _timed("6"):
            windows = [EarlierWindow(w.window_id, await self._earlier_profile(w.text)) for w in request.prior]
            return await self.language.run(lambda _: merge_windows(windows), stage="6")

    async def _earlier_profile(self, text: str) -> EmbeddedProfile:
        cached = self.memory.recall(text)
        if isinstance(cached, EmbeddedProfile):
            return cached
        if cached is None:
            limit = self.bounds.claims * self.bounds.choices  # an earlier answer may hold every choice of its window
            cached = (await self._read((Output(0, text),), limit, stage="6"))[1][-1]
        embedded = await profile.embed_profile(cached, self.inference)
        self.memory.keep(text, embedded)
        return embedded

    def _remember(self, request: Request, profiles: Sequence[TextProfile]) -> None:
        """Cache the profile of an answer, which the next window sends as an earlier one."""
        if len(request.outputs) == 1 and not isinstance(self.memory.recall(request.outputs[0].text), EmbeddedProfile):
            self.memory.keep(request.outputs[0].text, profiles[-1])

    @property
    def _fan_in(self) -> FanInStages:
        most = self.bounds.claims * self.bounds.choices
        return FanInStages(
            self.language, self.inference, most, self.method, self._earlier_profile, self._output_profiles
        )

    async def _output_profiles(self, outputs: Sequence[Output]) -> list[TextProfile]:
        """Return the profile of each output, read as its own choice. The last reading of a masked output counts."""
        readings, profiles = await self._read(outputs, self.bounds.claims, stage="9")
        return list({reading.index: each for reading, each in zip(readings, profiles, strict=True)}.values())

    async def _cross_window(
        self, answer: _Answer, earlier: EarlierWindows, request: Request, merged: FanIn
    ) -> list[list[CrossWindow]]:
        """Return the contradictions of each choice with earlier windows and with the merged answers."""
        found = []
        with _timed("6"):
            for reading in answer.readings:
                vectors = await self.inference.embed([claim.text for claim in reading.checked])
                windows = await coherence.contradictions(
                    reading.checked, vectors, earlier.claims, inference=self.inference, language=self.language
                )
                found.append([*windows, *await self._fan_in.contradicted(reading, vectors, request, merged, windows)])
        return found

    async def _read_query(self, request: Request) -> Query:
        """Return the information needs of the query, or of its sub-queries, with their vectors."""
        with _timed("8"):
            if request.sub_queries:
                parts = await self.language.run(
                    lambda _: decompose_sub_queries(request.sub_queries, self.language), stage="8"
                )
                needed = tuple(need for part in parts for need in part.needs)
                return Query(needed, await self.inference.embed([need.text for need in needed]), parts=parts)
            needs, why_not = await self.language.run(lambda _: decomposed(request.query, self.language), stage="8")
            return Query(needs, await self.inference.embed([need.text for need in needs]), why_not)

    async def _qualities(
        self,
        answer: _Answer,
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
                    profiles[n], earlier, query, choice_index=reading.index, cross_window=across[n], intra=inside[n],
                    method=self.method, weights=self.quality_weights, merged=merged,
                )
                for n, reading in enumerate(answer.readings)
            ]  # fmt: skip

        with _timed("7"):  # includes 8 and 9: a few products of vectors that exist already
            return await self.language.run(find, stage="7")

    # Stages 11 to 13

    async def _personal_data(self, request: Request) -> list[PiiFinding]:
        def find(cancelled: Cancelled) -> list[PiiFinding]:
            found = personal_in(self.pii.find, request.prompt, "prompt")
            for number, output in enumerate(request.outputs):
                if not cancelled():
                    found += personal_in(partial(self.pii.find, output_index=number), output.text, "response")
            return found

        with _timed("11"):
            return await self.language.run(find, stage="11")

    async def _context(
        self,
        request: Request,
        base: Envelope,
        personal: Sequence[PiiFinding],
        query: Query,
        classification: Classification,
        *,
        followed: bool,
    ) -> Context:
        """Return the parts of the report that belong to no choice; *followed*: there is an earlier answer."""
        relevance = 0.0
        if request.query.strip() and request.facts:
            vector = (await self.inference.embed([request.query]))[0]
            relevance = float(np.mean([base.similarity(number, vector) for number in range(len(request.facts))]))
        method = "nli+values" if self.method == "nli" else "cosine"
        ran = stages_run(
            method if request.facts else "no facts to rest on", self.method, query, request, followed=followed
        )
        models = [*self.inference.models(), self.language.model]
        return Context(
            facts=len(request.facts),
            tier=envelope.quality_tier(facts=len(request.facts), relevance=relevance),
            etag=envelope.etag(request.facts),
            envelope_tokens=sum(unit.tokens for unit in base.cut.units),
            pii=personal,
            models=models,
            method=method,
            ran=ran,
            not_run={"8": query.why_not} if query.why_not else {},
            classification=classification,
            controls=lambda scored: regulatory.evidenced_controls(
                classification, ran=ran, tiered=True, scored=scored, pinned=all(m.hash for m in models),
                governed=request.governed, personal=bool(personal),
            ),
            flow_remediation=request.flow_remediation,
            linked=request.linked,
        )  # fmt: skip

    async def _report(
        self,
        choices: Sequence[Choice],
        qualities: Sequence[Quality],
        context: Context,
        cross_agent: CrossAgent | None,
    ) -> dpe_pb2.Report:
        with _timed("13"):
            message = await self.language.run(
                lambda _: report(worst_views(choices), qualities, context, cross_agent), stage="13"
            )
        RISK.labels(common_pb2.RiskLevel.Name(message.risk_level).removeprefix("RISK_LEVEL_")).inc()
        REPETITION.labels(message.repetition_level).inc()
        return message


async def _together(*work: Awaitable[Any]) -> list[Any]:
    """Await all of *work* at once. When one part fails, the others are cancelled."""
    tasks = [asyncio.ensure_future(part) for part in work]
    try:
        return await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()


@contextmanager
def _timed(stage: str) -> Iterator[None]:
    started = time.perf_counter()
    try:
        yield
    finally:
        DURATION.labels(stage).observe(time.perf_counter() - started)

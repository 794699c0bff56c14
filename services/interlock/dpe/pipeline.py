"""The pipeline: an answer in, a report out (SPEC-005 §2).

It reads top to bottom. What is arithmetic runs on the models' threads, what is Python on the text thread, side by side
where neither needs the other, so that the event loop stays free; every text is encoded once. Nothing is skipped to save
work: what is too much is refused.
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
from interlock.domain.risk.composite import Calibration
from interlock.dpe import regulatory
from interlock.dpe.claims import naming
from interlock.dpe.claims.reading import ChoiceReading, OutputReader, sentences_of
from interlock.dpe.comparison import contradiction
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim, Distortion, PiiFinding
from interlock.dpe.grounding import attribution, envelope, fabrication, fidelity
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Cut, Envelope
from interlock.dpe.inference.language import Cancelled, Language, Spent
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.intake import Bounds
from interlock.dpe.judging import judged, worst_views
from interlock.dpe.quality import coherence, profile
from interlock.dpe.quality.coherence import CrossWindow, EarlierWindow
from interlock.dpe.quality.coverage import parts_of
from interlock.dpe.quality.cross_agent import FanIn, Stages
from interlock.dpe.quality.decomposition import decomposed
from interlock.dpe.quality.profile import EmbeddedProfile, Listener, Memory, TextProfile
from interlock.dpe.quality.quality import EarlierWindows, Quality, Query, quality, session, session_amplifiers
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
        (readings, said, profiles), base, before, query, merged = await _together(
            self._answer(request), self._envelope(request), self._session(request), self._query(request),
            self._merged.fan_in(request),
        )  # fmt: skip
        checked = [claim for reading in readings for claim in reading.checked]
        evidence, made_up, personal, inside, across = await _together(
            self._evidence(readings, base, request.query),
            self._fabrications(checked, base, request.query),
            self._personal(request),
            self._contradictions(readings, request),
            self._cross_window(readings, before, request, merged),
        )
        bent, qualities, crossed = await _together(
            self._distortions(checked, evidence, sentences_of(readings)),
            self._qualities(readings, profiles, before, query, inside=inside, across=across, merged=merged),
            self._merged.report(request, query.sub_queries, query.vectors, merged),
        )
        classification = regulatory.classify(request, personal)
        shared = amplifiers_for(
            personal_data=bool(personal), loop_depth=request.loop_depth, domain=classification.domain,
            high_risk=classification.high_risk,
        )  # fmt: skip
        context = await self._context(request, base, personal, query, classification, followed=before.last is not None)
        between = len(contradiction.counted([each.found for each in merged.between]))

        def judge(_: Cancelled) -> list[Choice]:
            flaws = fidelity.flaws(made_up, bent, base.cut.texts)
            return [
                judged(
                    reading, base, evidence, flaws, [*inside[n], *across[n]], said=said[n],
                    amplifiers=[*shared, *session_amplifiers(qualities[n], between)], method=self.method,
                    calibration=self.calibration, between=between,
                )
                for n, reading in enumerate(readings)
            ]  # fmt: skip

        with _timed("5"):
            choices = await self.language.run(judge, stage="5")
        with _timed("13"):
            message = await self.language.run(
                lambda _: report(worst_views(choices), qualities, context, crossed), stage="13"
            )
        RISK.labels(common_pb2.RiskLevel.Name(message.risk_level).removeprefix("RISK_LEVEL_")).inc()
        REPETITION.labels(message.repetition_level).inc()
        self._remember(request, profiles)
        return message

    async def check_summary(self, source: str, summary: str) -> Checked:
        """Return how faithful a summary is to its source, judged by the stages that check an answer against facts.

        Refused as ``analyse`` is, and with SUMMARY_SOURCE_EMPTY when the source has no text.
        """
        self.bounds.check_text("source", source)
        request = Request(outputs=(Output(0, summary),), facts=source_facts(source))
        self.bounds.check(request)
        (readings, _, _), base = await _together(self._answer(request), self._envelope(request))
        checked = [claim for reading in readings for claim in reading.checked]
        evidence, made_up, inside = await _together(
            self._evidence(readings, base, ""),
            self._fabrications(checked, base, ""),
            self._contradictions(readings, request),
        )
        bent = await self._distortions(checked, evidence, sentences_of(readings))

        def judge(_: Cancelled) -> Checked:
            flaws = fidelity.flaws(made_up, bent, base.cut.texts)
            return check(readings, evidence, flaws, inside, method=self.method)

        return await self.language.run(judge, stage="5")

    async def _answer(self, request: Request) -> tuple[list[ChoiceReading], list[Floats], list[TextProfile]]:
        """Read the outputs, and encode what each choice says: its sentences and claims, each once."""
        with _timed("1"):
            readings, profiles = await self._read(request.outputs, self.bounds.claims, stage="1")
        with _timed("10"):
            said = [
                await self.inference.embed(
                    list(dict.fromkeys([*(s.text for s in reading.sentences), *(c.text for c in reading.claims)]))
                )
                for reading in readings
            ]
        return readings, said, profiles

    async def _read(
        self, outputs: Sequence[Output], claims: int, *, stage: str
    ) -> tuple[list[ChoiceReading], list[TextProfile]]:
        spent = Spent()
        named = await naming.named(
            outputs, self.language, self.inference, self._reader(self.language, claims), stage=stage, spent=spent
        )
        listener = Listener(cast("Language", named))
        reader = self._reader(listener, claims)

        def read(left: Cancelled) -> tuple[list[ChoiceReading], list[TextProfile]]:
            readings = reader.read(outputs, left)
            return readings, [profile.profile(reading, listener.manners) for reading in readings]

        return await self.language.run(read, stage=stage, spent=spent)

    def _reader(self, language: Language | Listener, claims: int) -> OutputReader:
        claim_tokens, _ = attribution.limits(self.inference)
        # The reader only calls the parser.
        return OutputReader(cast("Language", language), claims, claim_tokens, self.inference.tokens)

    async def _session(self, request: Request) -> EarlierWindows:
        """Read the earlier answers that are not known any more, and put them together."""
        with _timed("6"):
            windows = [EarlierWindow(w.window_id, await self._prior(w.text)) for w in request.prior]
            return await self.language.run(lambda _: session(windows), stage="6")

    async def _prior(self, text: str) -> EmbeddedProfile:
        known = self.memory.recall(text)
        if isinstance(known, EmbeddedProfile):
            return known
        if known is None:
            limit = self.bounds.claims * self.bounds.choices  # an earlier answer may hold every choice of its window
            known = (await self._read((Output(0, text),), limit, stage="6"))[1][-1]
        found = await profile.heard(known, self.inference)
        self.memory.keep(text, found)
        return found

    def _remember(self, request: Request, profiles: Sequence[TextProfile]) -> None:
        """Keep what was read of an answer: with the next window it comes back as an earlier one."""
        if len(request.outputs) == 1 and not isinstance(self.memory.recall(request.outputs[0].text), EmbeddedProfile):
            self.memory.keep(request.outputs[0].text, profiles[-1])

    async def _query(self, request: Request) -> Query:
        with _timed("8"):
            if request.sub_queries:
                parts = await self.language.run(lambda _: parts_of(request.sub_queries, self.language), stage="8")
                needed = tuple(need for part in parts for need in part.needs)
                return Query(needed, await self.inference.embed([need.text for need in needed]), parts=parts)
            needs, why_not = await self.language.run(lambda _: decomposed(request.query, self.language), stage="8")
            return Query(needs, await self.inference.embed([need.text for need in needs]), why_not)

    @property
    def _merged(self) -> Stages:
        most = self.bounds.claims * self.bounds.choices
        return Stages(self.language, self.inference, most, self.method, self._prior, self._profiles)

    async def _profiles(self, outputs: Sequence[Output]) -> list[TextProfile]:
        """Return the profile of each output, a choice of its own; of a masked one what its last reading says."""
        readings, profiles = await self._read(outputs, self.bounds.claims, stage="9")
        return list({reading.index: each for reading, each in zip(readings, profiles, strict=True)}.values())

    async def _envelope(self, request: Request) -> Envelope:
        """Cut the facts and encode their units, and each fact as a whole."""
        _, premise_tokens = attribution.limits(self.inference)

        def cut(_: Cancelled) -> Cut:
            return envelope.cut(
                request.facts, limit=premise_tokens, count=self.inference.tokens, split=self.language.split
            )

        made = await self.language.run(cut, stage="2")
        vectors = await self.inference.embed([*(unit.text for unit in made.units), *made.texts])
        return Envelope(made, vectors[: len(made.units)], vectors[len(made.units) :])

    async def _evidence(
        self, readings: Sequence[ChoiceReading], base: Envelope, query: str
    ) -> dict[str, ClaimEvidence]:
        checked = [claim for reading in readings for claim in reading.checked]
        titles = {name for reading in readings for name in reading.titles}
        with _timed("2"):
            vectors = await self.inference.embed([claim.text for claim in checked])
            return await attribution.evidence(
                checked, vectors, base, self.inference, titles=titles, query=query, sentences=sentences_of(readings)
            )

    async def _fabrications(self, checked: Sequence[Claim], base: Envelope, query: str) -> dict[str, tuple[str, ...]]:
        """Find what is made up; the text thread does so while the models weigh the claims."""

        def find(_: Cancelled) -> dict[str, tuple[str, ...]]:
            return fabrication.find(checked, fabrication.EnvelopeIndex.of(base.cut.texts, query))

        with _timed("3a"):
            return await self.language.run(find, stage="3a")

    async def _personal(self, request: Request) -> list[PiiFinding]:
        def find(left: Cancelled) -> list[PiiFinding]:
            found = personal_in(self.pii.find, request.prompt, "prompt")
            for number, output in enumerate(request.outputs):
                if not left():
                    found += personal_in(partial(self.pii.find, output_index=number), output.text, "response")
            return found

        with _timed("11"):
            return await self.language.run(find, stage="11")

    async def _distortions(
        self, checked: Sequence[Claim], evidence: Mapping[str, ClaimEvidence], sentences: Mapping[str, str]
    ) -> dict[str, tuple[Distortion, ...]]:
        with _timed("3b"):
            return await fidelity.distortions(checked, evidence, self.inference, self.language, sentences=sentences)

    async def _contradictions(self, readings: Sequence[ChoiceReading], request: Request) -> list[list[Contradiction]]:
        """Return the contradictions of each choice: claims of different choices do not stand beside each other."""
        with _timed("3c"):
            found = [await self._contradictions_in(reading.checked) for reading in readings]
            return await self._merged.of_one_subject(readings, request, found)

    async def _contradictions_in(self, claims: Sequence[Claim]) -> list[Contradiction]:
        pairs = contradiction.neighbours(claims, await self.inference.embed([claim.text for claim in claims]))
        likely = await contradiction.probabilities(claims, pairs, self.inference)
        return await self.language.run(lambda _: contradiction.contradictions(claims, pairs, likely), stage="3c")

    async def _cross_window(
        self, readings: Sequence[ChoiceReading], before: EarlierWindows, request: Request, merged: FanIn
    ) -> list[list[CrossWindow]]:
        """Return the contradictions of each choice with earlier windows, and with what it was made from."""
        found = []
        with _timed("6"):
            for reading in readings:
                vectors = await self.inference.embed([claim.text for claim in reading.checked])
                known = await coherence.contradictions(
                    reading.checked, vectors, before.before, inference=self.inference, language=self.language
                )
                found.append([*known, *await self._merged.contradicted(reading, vectors, request, merged, known)])
        return found

    async def _qualities(
        self,
        readings: Sequence[ChoiceReading],
        profiles: Sequence[TextProfile],
        before: EarlierWindows,
        query: Query,
        *,
        inside: Sequence[Sequence[Contradiction]],
        across: Sequence[Sequence[CrossWindow]],
        merged: FanIn,
    ) -> list[Quality]:
        """Return what stages 6 to 9 find in each choice."""
        heard = [await profile.heard(each, self.inference, whole=before.last is not None) for each in profiles]

        def find(_: Cancelled) -> list[Quality]:
            return [
                quality(
                    heard[n], before, query, choice_index=reading.index, cross_window=across[n], intra=inside[n],
                    method=self.method, weights=self.quality_weights, merged=merged,
                )
                for n, reading in enumerate(readings)
            ]  # fmt: skip

        with _timed("7"):  # with 8 and 9: they are a few products of vectors that are there
            return await self.language.run(find, stage="7")

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
            controls=lambda scored: regulatory.controls_of(
                classification, ran=ran, tiered=True, scored=scored, pinned=all(m.hash for m in models),
                governed=request.governed, personal=bool(personal),
            ),
            flow_remediation=request.flow_remediation,
            linked=request.linked,
        )  # fmt: skip


async def _together(*work: Awaitable[Any]) -> list[Any]:
    """Await all of *work* at once; when one part fails, the others are called off."""
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

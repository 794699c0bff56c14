"""The pipeline: an answer in, a report out (SPEC-005 §2). Stages 6 to 9 and 12 do not run in this version.

It reads top to bottom. What is arithmetic runs on the models' threads, what is Python on the text thread, side by side
where neither needs the other, so that the event loop stays free; every text is encoded once. Nothing is skipped to save
work: what is too much is refused.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from prometheus_client import Counter, Histogram

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.composite import Calibration
from interlock.dpe import attribution, contradiction, envelope, fabrication, fidelity
from interlock.dpe.attribution import Evidence
from interlock.dpe.contradiction import Contradiction
from interlock.dpe.document import Claim, Distortion, PiiFinding
from interlock.dpe.envelope import Cut, Envelope
from interlock.dpe.inference import Floats, Inference
from interlock.dpe.intake import Bounds, Request
from interlock.dpe.judging import judged
from interlock.dpe.language import Cancelled, Language
from interlock.dpe.reading import Reader, Reading
from interlock.dpe.report import Context, report
from interlock.dpe.risk import amplifiers_for

if TYPE_CHECKING:
    from interlock.dpe.pii import PiiDetector  # presidio is heavy: who opens the service imports it

DURATION = Histogram(
    "interlock_dpe_stage_duration_seconds",
    "Time that one stage of an analysis took, waiting included; stage 2 holds the model's part of 4.",
    ["stage"],
)
RISK = Counter("interlock_dpe_risk", "Analyses by the risk level that they found.", ["level"])


@dataclass(frozen=True)
class Pipeline:
    """The stages over models that were loaded once."""

    language: Language
    inference: Inference
    pii: PiiDetector
    bounds: Bounds
    method: attribution.Method
    calibration: Calibration

    def close(self) -> None:
        """Stop the threads; what is queued is dropped."""
        self.language.close()
        self.inference.close()

    async def analyse(self, request: Request) -> dpe_pb2.Report:
        """Return the report on the worst choice, with the risk of each.

        Refused with EXHAUSTED above a bound, INVALID for what breaks the interface, UNAVAILABLE when a model fails.
        """
        self.bounds.check(request)
        base, readings = await _together(self._envelope(request), self._readings(request))
        checked = [claim for reading in readings for claim in reading.checked]
        evidence, made_up, personal, said = await _together(
            self._evidence(readings, base, request.query),
            self._fabrications(checked, base, request.query),
            self._personal(request),
            self._said(readings),
        )
        bent, contradictions = await _together(self._distortions(checked, evidence), self._contradictions(readings))
        flaws = fidelity.flaws(made_up, bent, base.cut.texts)
        amplifiers = amplifiers_for(personal_data=bool(personal), loop_depth=request.loop_depth, domain=request.domain)
        with _timed("5"):
            choices = [
                judged(
                    reading, base, evidence, flaws, contradictions[n], said=said[n], amplifiers=amplifiers,
                    method=self.method, calibration=self.calibration,
                )
                for n, reading in enumerate(readings)
            ]  # fmt: skip
        with _timed("13"):
            message = report(choices, await self._context(request, base, personal))
        RISK.labels(common_pb2.RiskLevel.Name(message.risk_level).removeprefix("RISK_LEVEL_")).inc()
        return message

    async def _readings(self, request: Request) -> list[Reading]:
        claim_tokens, _ = attribution.limits(self.inference)
        reader = Reader(self.language, self.bounds.claims, claim_tokens, self.inference.tokens)
        with _timed("1"):
            return await self.language.run(lambda left: reader.read(request.outputs, left))

    async def _envelope(self, request: Request) -> Envelope:
        """Cut the facts and encode their units, and each fact as a whole."""
        _, premise_tokens = attribution.limits(self.inference)

        def cut(_: Cancelled) -> Cut:
            return envelope.cut(
                request.facts, limit=premise_tokens, count=self.inference.tokens, split=self.language.split
            )

        made = await self.language.run(cut)
        vectors = await self.inference.embed([*(unit.text for unit in made.units), *made.texts])
        return Envelope(made, vectors[: len(made.units)], vectors[len(made.units) :])

    async def _evidence(self, readings: Sequence[Reading], base: Envelope, query: str) -> dict[str, Evidence]:
        checked = [claim for reading in readings for claim in reading.checked]
        titles = {name for reading in readings for name in reading.titles}
        with _timed("2"):
            vectors = await self.inference.embed([claim.text for claim in checked])
            return await attribution.evidence(checked, vectors, base, self.inference, titles=titles, query=query)

    async def _fabrications(self, checked: Sequence[Claim], base: Envelope, query: str) -> dict[str, tuple[str, ...]]:
        """Find what is made up; the text thread does so while the models weigh the claims."""

        def find(left: Cancelled) -> dict[str, tuple[str, ...]]:
            named = self.language.names(base.cut.texts, left)
            return fabrication.find(checked, fabrication.EnvelopeIndex.of(base.cut.texts, named, query))

        with _timed("3a"):
            return await self.language.run(find)

    async def _personal(self, request: Request) -> list[PiiFinding]:
        texts = [("prompt", request.prompt), *(("response", output.text) for output in request.outputs)]

        def find(left: Cancelled) -> list[PiiFinding]:
            return [found for where, text in texts if not left() for found in self.pii.find(text, where)]

        with _timed("11"):
            return await self.language.run(find)

    async def _said(self, readings: Sequence[Reading]) -> list[Floats]:
        """Encode what each choice says: its sentences and claims, each once."""
        with _timed("10"):
            return [
                await self.inference.embed(
                    list(dict.fromkeys([*(s.text for s in reading.sentences), *(c.text for c in reading.claims)]))
                )
                for reading in readings
            ]

    async def _distortions(
        self, checked: Sequence[Claim], evidence: Mapping[str, Evidence]
    ) -> dict[str, tuple[Distortion, ...]]:
        with _timed("3b"):
            return await fidelity.distortions(checked, evidence, self.inference, self.language)

    async def _contradictions(self, readings: Sequence[Reading]) -> list[list[Contradiction]]:
        """Return the contradictions of each choice: claims of different choices do not stand beside each other."""
        with _timed("3c"):
            return [await self._contradictions_in(reading.checked) for reading in readings]

    async def _contradictions_in(self, claims: Sequence[Claim]) -> list[Contradiction]:
        pairs = contradiction.neighbours(claims, await self.inference.embed([claim.text for claim in claims]))
        likely = await contradiction.probabilities(claims, pairs, self.inference)
        return await self.language.run(lambda _: contradiction.contradictions(claims, pairs, likely))

    async def _context(self, request: Request, base: Envelope, personal: Sequence[PiiFinding]) -> Context:
        relevance = 0.0
        if request.query.strip() and request.facts:
            query = (await self.inference.embed([request.query]))[0]
            relevance = float(np.mean([base.similarity(number, query) for number in range(len(request.facts))]))
        method = "nli+values" if self.method == "nli" else "cosine"
        return Context(
            facts=len(request.facts),
            tier=envelope.quality_tier(facts=len(request.facts), relevance=relevance),
            etag=envelope.etag(request.facts),
            envelope_tokens=sum(unit.tokens for unit in base.cut.units),
            pii=personal,
            models=[*self.inference.models(), self.language.model],
            method=method,
            ran=_ran(method if request.facts else "no facts to rest on"),
        )


def _ran(method: str) -> dict[str, str]:
    return {
        "1": "parser", "2": method, "3a": "names+values", "3b": "values+nli", "3c": "nli+values, five neighbours",
        "4": "nli, weakest claim", "5": "weighted", "10": "cosine", "11": "presidio", "13": "",
    }  # fmt: skip


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

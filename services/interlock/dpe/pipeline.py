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
from typing import Any

import numpy as np
from prometheus_client import Counter, Histogram

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.composite import Amplifier, Calibration
from interlock.dpe import attribution, contradiction, entailment, envelope, fidelity, omission
from interlock.dpe.attribution import Attribution, Evidence
from interlock.dpe.contradiction import Contradiction
from interlock.dpe.document import Entity, PiiFinding
from interlock.dpe.envelope import Cut, Envelope
from interlock.dpe.fidelity import Flaws
from interlock.dpe.inference import Inference
from interlock.dpe.intake import Bounds, Request
from interlock.dpe.language import Cancelled, Language
from interlock.dpe.pii import PiiDetector
from interlock.dpe.reading import Reader, Reading
from interlock.dpe.report import Choice, Context, report
from interlock.dpe.risk import Findings, amplifiers_for, assess

DURATION = Histogram(
    "interlock_dpe_stage_duration_seconds", "Time that one stage of an analysis took, waiting included.", ["stage"]
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
        evidence, named, personal = await _together(
            self._evidence(readings, base, request.query), self._named(base), self._personal(request)
        )
        flaws = await self._flaws(request, base, readings, evidence, named)
        amplifiers = amplifiers_for(personal_data=bool(personal), loop_depth=request.loop_depth, domain=request.domain)
        choices = [await self._choice(reading, base, evidence, flaws, amplifiers) for reading in readings]
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

    async def _named(self, base: Envelope) -> list[Entity]:
        """Return what the facts name; the text thread looks for it while the models weigh the claims."""
        return await self.language.run(lambda left: self.language.names(base.cut.texts, left))

    async def _personal(self, request: Request) -> list[PiiFinding]:
        texts = [("prompt", request.prompt), *(("response", output.text) for output in request.outputs)]

        def find(left: Cancelled) -> list[PiiFinding]:
            return [found for where, text in texts if not left() for found in self.pii.find(text, where)]

        with _timed("11"):
            return await self.language.run(find)

    async def _flaws(
        self,
        request: Request,
        base: Envelope,
        readings: Sequence[Reading],
        evidence: Mapping[str, Evidence],
        named: Sequence[Entity],
    ) -> Flaws:
        checked = [claim for reading in readings for claim in reading.checked]
        with _timed("3a"):
            index = fidelity.Index(base.cut.texts, named, request.query)
            made_up = await fidelity.fabrications(checked, index, self.language)
        with _timed("3b"):
            bent = await fidelity.distortions(checked, evidence, self.inference, self.language)
        return fidelity.flaws(made_up, bent)

    async def _choice(
        self,
        reading: Reading,
        base: Envelope,
        evidence: Mapping[str, Evidence],
        flaws: Flaws,
        amplifiers: Sequence[Amplifier],
    ) -> Choice:
        """Judge one choice on its own: contradictions, entailment, omissions, risk."""
        names = [claim.claim_id for claim in reading.checked]
        mine = {name: evidence[name] for name in names}
        fabrications = {name: flaws.fabrications.get(name, ()) for name in names}
        distortions = {name: flaws.distortions.get(name, ()) for name in names}
        attributions = {
            claim.claim_id: attribution.attribute(
                claim,
                mine[claim.claim_id],
                flawed=bool(fabrications[claim.claim_id] or distortions[claim.claim_id]),
                method=self.method,
            )
            for claim in reading.checked
        }
        with _timed("3c"):
            pairs = await self._contradictions(reading)
        with _timed("4"):
            weakest = entailment.weakest([found.scores for found in mine.values()])
        with _timed("10"):
            said = await self.inference.embed(_said(reading))
            used = {mine[name].fact_id for name, kind in attributions.items() if kind is Attribution.CONTEXT_GROUNDED}
            left_out = omission.omissions(base, said, used)
        with _timed("5"):
            findings = Findings(
                empty=reading.empty,
                attributions=attributions,
                fabrications=len({text for texts in fabrications.values() for text in texts}),
                distortions=sum(map(bool, distortions.values())),
                contradictions=len(pairs),
                weakest=weakest,
                hidden_characters=reading.hidden,
            )
            risk = assess(findings, amplifiers, self.calibration)
        return Choice(
            index=reading.index, claims=reading.claims, evidence=mine, attributions=attributions,
            fabrications=fabrications, distortions=distortions, contradictions=pairs, omissions=left_out,
            weakest=weakest, risk=risk,
        )  # fmt: skip

    async def _contradictions(self, reading: Reading) -> list[Contradiction]:
        claims = reading.checked
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


def _said(reading: Reading) -> list[str]:
    """Return the sentences and claims of a choice, each once."""
    return list(dict.fromkeys([*(s.text for s in reading.sentences), *(c.text for c in reading.claims)]))


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

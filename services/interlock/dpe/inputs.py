"""What an analysis reads before it compares anything: the answer, the facts, the query and the earlier answers (SPEC-005 §2, §3).

Every text is embedded once. An earlier answer that was analysed here is not read again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

from prometheus_client import Histogram

from interlock.dpe.claims import naming
from interlock.dpe.claims.reading import ChoiceReading, OutputReader, claim_sentences
from interlock.dpe.comparison.bindings.reading import ParseRecorder
from interlock.dpe.document import Claim, PiiFinding, Sentence
from interlock.dpe.grounding import attribution, said
from interlock.dpe.grounding import envelope as grounding_envelope
from interlock.dpe.grounding.envelope import Cut, Envelope
from interlock.dpe.inference.language import Cancelled, Language, Spent
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.intake import Bounds
from interlock.dpe.quality import profile
from interlock.dpe.quality.coherence import EarlierWindow
from interlock.dpe.quality.coverage import decompose_sub_queries
from interlock.dpe.quality.decomposition import decomposed
from interlock.dpe.quality.profile import EmbeddedProfile, Memory, StyleRecorder, TextProfile
from interlock.dpe.quality.quality import EarlierWindows, Query, merge_windows
from interlock.dpe.quality.queries import Need
from interlock.dpe.request import OWN_KINDS, Output, Request
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.views import personal as personal_in

DURATION = Histogram(
    "interlock_dpe_stage_duration_seconds",
    "Time that one stage of an analysis took, waiting included; stage 2 holds the model's part of 4.",
    ["stage"],
)


@contextmanager
def timed(stage: str) -> Iterator[None]:
    """Observe the time that a stage takes."""
    started = time.perf_counter()
    try:
        yield
    finally:
        DURATION.labels(stage).observe(time.perf_counter() - started)


@dataclass(frozen=True)
class ReadAnswer:
    """The outputs after stage 1: one reading, one matrix of sentence and claim vectors and one profile for each view."""

    readings: Sequence[ChoiceReading]
    vectors: Sequence[Floats]
    profiles: Sequence[TextProfile]
    parses: Mapping[Sentence, Any]
    """The parse of each sentence of prose, a spaCy span. Used on the text thread alone."""

    @property
    def checked(self) -> list[Claim]:
        """The checked claims of all readings, in order."""
        return [claim for reading in self.readings for claim in reading.checked]

    @property
    def sentences(self) -> dict[str, str]:
        """The sentence that each checked claim was cut from, by claim id."""
        return claim_sentences(self.readings)


@dataclass(frozen=True)
class Inputs:
    """Reads the parts of a request with the models of a pipeline."""

    language: Language
    inference: Inference
    bounds: Bounds
    memory: Memory

    async def answer(self, request: Request) -> ReadAnswer:
        """Read the outputs and embed the sentences and claims of each choice, each distinct text once."""
        with timed("1"):
            parses: dict[Sentence, Any] = {}
            readings, profiles = await self._read(request.outputs, self.bounds.claims, stage="1", parses=parses)
        with timed("10"):
            vectors = [
                await self.inference.embed(
                    list(dict.fromkeys([*(s.text for s in reading.sentences), *(c.text for c in reading.claims)]))
                )
                for reading in readings
            ]
        return ReadAnswer(readings, vectors, profiles, parses)

    async def _read(
        self, outputs: Sequence[Output], claims: int, *, stage: str, parses: dict[Sentence, Any] | None = None
    ) -> tuple[list[ChoiceReading], list[TextProfile]]:
        """Return the readings of outputs and their profiles; no choice may have more than *claims* claims.

        *parses* receives the parse of each sentence of prose.
        """
        spent = Spent()
        named, views = await naming.named(
            outputs, self.language, self.inference, self._reader(self.language, claims), stage=stage, spent=spent
        )
        kept = named if parses is None else ParseRecorder(named, parses)
        recorder = StyleRecorder(cast("Language", kept))
        reader = self._reader(recorder, claims)

        def read(cancelled: Cancelled) -> tuple[list[ChoiceReading], list[TextProfile]]:
            readings = reader.read(views, cancelled)
            return readings, [profile.profile(reading, recorder.styles) for reading in readings]

        return await self.language.run(read, stage=stage, spent=spent)

    def _reader(self, language: Language | StyleRecorder, claims: int) -> OutputReader:
        claim_tokens, _ = attribution.limits(self.inference)
        # The reader only calls the parser.
        return OutputReader(cast("Language", language), claims, claim_tokens, self.inference.tokens)

    async def envelope(self, request: Request) -> Envelope:
        """Cut the facts into units, and embed the units and each whole fact."""
        _, premise_tokens = attribution.limits(self.inference)

        def cut(_: Cancelled) -> Cut:
            return grounding_envelope.cut(
                request.facts, limit=premise_tokens, count=self.inference.tokens, split=self.language.split,
                own=self.memory.own,
            )  # fmt: skip

        facts = await self.language.run(cut, stage="2")
        vectors = await self.inference.embed([*(unit.text for unit in facts.units), *facts.texts])
        return Envelope(facts, vectors[: len(facts.units)], vectors[len(facts.units) :])

    async def asserted(self, request: Request) -> Cut:
        """Cut what the user and the system assert into units."""
        if not any(one.kind in OWN_KINDS for one in request.said):
            return grounding_envelope.Cut((), (), ())
        _, premise_tokens = attribution.limits(self.inference)
        return await self.language.run(
            lambda _: said.cut(
                request.said,
                limit=premise_tokens,
                count=self.inference.tokens,
                split=self.language.split,
                own=self.memory.own,
            ),
            stage="2",
        )

    async def query(self, request: Request) -> Query:
        """Return the information needs of the query, or of its sub-queries, with their vectors."""
        with timed("8"):
            if request.sub_queries:
                parts = await self.language.run(
                    lambda _: decompose_sub_queries(request.sub_queries, self.language), stage="8"
                )
                needed = tuple(need for part in parts for need in part.needs)
                return Query(needed, await self.inference.embed([need.text for need in needed]), parts=parts)
            needs, why_not = await self.language.run(lambda _: self._needs(request.query), stage="8")
            return Query(needs, await self.inference.embed([need.text for need in needs]), why_not)

    def _needs(self, query: str) -> tuple[tuple[Need, ...], str]:
        return STORE.of(
            f"needs {self.memory.own}", (query,), lambda: decomposed(query, self.language), bytes_a_character=20
        )

    async def session(self, request: Request) -> EarlierWindows:
        """Read the earlier answers that are not cached, and combine all of them."""
        with timed("6"):
            windows = [EarlierWindow(w.window_id, await self.earlier_profile(w.text)) for w in request.prior]
            if not windows:
                return merge_windows(())
            return await self.language.run(lambda _: merge_windows(windows), stage="6")

    async def earlier_profile(self, text: str) -> EmbeddedProfile:
        cached = self.memory.recall(text)
        if isinstance(cached, EmbeddedProfile):
            return cached
        if cached is None:
            limit = self.bounds.claims * self.bounds.choices  # an earlier answer may hold every choice of its window
            cached = (await self._read((Output(0, text),), limit, stage="6"))[1][-1]
        embedded = await profile.embed_profile(cached, self.inference)
        self.memory.keep(text, embedded)
        return embedded

    async def personal_data(self, request: Request, find: Any) -> list[PiiFinding]:
        """Return the personal data in the prompt and in the outputs."""

        def found(cancelled: Cancelled) -> list[PiiFinding]:
            in_texts = [*self._personal_in_prompt(request.prompt, find)]
            for number, output in enumerate(request.outputs):
                if not cancelled():
                    in_texts += personal_in(partial(find, output_index=number), output.text, "response")
            return in_texts

        with timed("11"):
            return await self.language.run(found, stage="11")

    def _personal_in_prompt(self, prompt: str, find: Any) -> Sequence[PiiFinding]:
        return STORE.of(
            f"personal {self.memory.own}", (prompt,), lambda: personal_in(find, prompt, "prompt"), bytes_a_character=10
        )

    def remember(self, request: Request, profiles: Sequence[TextProfile]) -> None:
        """Cache the profile of an answer, which the next window sends as an earlier one."""
        if len(request.outputs) == 1 and not isinstance(self.memory.recall(request.outputs[0].text), EmbeddedProfile):
            self.memory.keep(request.outputs[0].text, profiles[-1])

    async def output_profiles(self, outputs: Sequence[Output]) -> list[TextProfile]:
        """Return the profile of each output, read as its own choice. The last reading of a masked output counts."""
        readings, profiles = await self._read(outputs, self.bounds.claims, stage="9")
        return list({reading.index: each for reading, each in zip(readings, profiles, strict=True)}.values())

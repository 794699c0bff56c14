"""The parser (spaCy) and the sentence splitter for evidence, run on one thread with a CPU deadline for each stage.

A spaCy pipeline is not safe for concurrent use, so there is one thread. Deadlines count CPU time: a slow machine or a
long queue refuses no one, a hostile text does. Running out of time is a refusal, never a partial result (reliability.md
A-23).
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

import structlog
from prometheus_client import Counter

from interlock.domain.errors import Kind, Refused
from interlock.dpe.document import Entity
from interlock.dpe.inference.fairness import current_flow
from interlock.dpe.inference.port import ModelInfo
from interlock.dpe.inference.worker import Expired, Job, Left, OutOfTime, Worker
from interlock.dpe.text.layout import Layout, layout
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.parse.trees import ParseSpan, ParseTree, TreeParser
from interlock.dpe.text.segmentation import Parsed, pieces, sentences
from interlock.dpe.text.text import Text

BATCH = 16
BATCH_CHARS = 2000
"""Texts that the parser reads at once, and their characters together; a longer text is read alone."""
BYTES_A_CHARACTER = 500
"""About what a parse holds for each character of its text, with what is derived from it."""
MOST_DERIVED = 100
_NAMES, _DERIVED = "interlock.names", "interlock.derived"
STAGE_TIMEOUT_S = 10.0
GRACE_S = 2.0
MOST_LEFT_BEHIND = 2

EXPIRED = Counter(
    "interlock_dpe_stage_deadlines_exceeded", "Stages that ran out of CPU time, and were refused.", ["stage"]
)

T = TypeVar("T")
Cancelled = Left
Names = Mapping[str, Sequence[Entity]]
"""Named entities by the text that the parser receives."""

log = structlog.get_logger()


@dataclass
class Spent:
    """CPU seconds that the parts of one stage have used together."""

    cpu_s: float = 0.0

    def on(self, work: Callable[[Cancelled], T], cancelled: Cancelled) -> T:
        """Run *work* and add its CPU time."""
        began = time.thread_time()
        try:
            return work(cancelled)
        finally:
            self.cpu_s += time.thread_time() - began


class Language:
    """Parses answers and runs pure Python off the event loop."""

    def __init__(
        self,
        nlp: TreeParser,
        split: Callable[[str], Iterator[tuple[int, int]]],
        model: ModelInfo,
        *,
        stage_timeout_s: float = STAGE_TIMEOUT_S,
        grace_s: float = GRACE_S,
    ) -> None:
        self.nlp = nlp
        self.split = split
        self.model = model
        self._stage_timeout_s = stage_timeout_s
        self._grace_s = grace_s
        self._worker = Worker("dpe-text")
        self._late: set[Job] = set()
        self._parses = f"parse {os.urandom(8).hex()}"  # of this parser, used on this thread alone

    def close(self) -> None:
        """Stop the thread and drop queued work."""
        self._worker.close()

    async def run(self, work: Callable[[Cancelled], T], *, stage: str = "", spent: Spent | None = None) -> T:
        """Run *work* on the thread and return its result.

        *work* receives a callable that returns true once the caller has left or the time is up; it should end then.
        NumberedParts that share one *spent* share the time of one stage.

        Refused with STAGE_DEADLINE_EXCEEDED when the stage used more CPU time than it has. Work that never asks is
        interrupted, and the caller is answered at once.
        """
        spent = spent or Spent()
        job = self._worker.submit(partial(spent.on, work), self._stage_timeout_s - spent.cpu_s, current_flow())
        try:
            return cast("T", await self._await_answer(job, stage))
        except (Expired, OutOfTime):
            raise self._expired(stage) from None
        finally:
            job.leave()

    def unready_dependencies(self) -> dict[str, str]:
        """Return why text cannot be processed: a thread that hangs, or too many abandoned threads."""
        self._late = {job for job in self._late if self._worker.is_at(job)}
        if self._late or self._worker.left_behind() >= MOST_LEFT_BEHIND:
            return {"text": "a stage did not end when its time was up: restart the dpe service if this stays"}
        return {}

    async def _await_answer(self, job: Job, stage: str) -> Any:
        """Await the answer while CPU time remains.

        CPU time never runs faster than wall time, so the wait is long enough.
        """
        answer = asyncio.wrap_future(job.answer)
        try:
            while (remaining := job.limit_s - job.used_s()) > 0:
                if (await asyncio.wait([answer], timeout=remaining))[0]:
                    return answer.result()
        finally:
            answer.cancel()
        self._cancel(job)
        raise self._expired(stage)

    def _cancel(self, job: Job) -> None:
        self._worker.interrupt(job)
        self._late.add(job)
        asyncio.get_running_loop().call_later(self._grace_s, self._replace, job)

    def _replace(self, job: Job) -> None:
        self._late.discard(job)
        if self._worker.replace(job):
            log.error("dpe.text_thread_replaced", left_behind=self._worker.left_behind())

    def _expired(self, stage: str) -> Refused:
        EXPIRED.labels(stage).inc()
        log.warning("dpe.stage_deadline_exceeded", stage=stage)
        return Refused(
            Kind.TIMEOUT,
            "STAGE_DEADLINE_EXCEEDED",
            "a stage of the analysis used up its CPU time",
            metadata={"stage": stage, "limit_s": f"{self._stage_timeout_s:g}"},
        )

    def parsed(
        self, text: str | Text, *, choice_index: int, first_index: int, parser: Any = None
    ) -> tuple[Iterator[Parsed], int]:
        """Return the sentences of an output, parsed lazily, and its number of hidden characters.

        Offsets of a ``Text`` refer to the text that it was made from.
        """
        laid_out, nlp = _laid_out(text), parser or self.nlp
        return sentences(laid_out.blocks, nlp, choice_index=choice_index, first_index=first_index), laid_out.hidden

    @staticmethod
    def texts(text: Text) -> list[str]:
        """Return the texts that the parser receives for an output, for the names classifier."""
        return [piece.text.chars for piece in pieces(_laid_out(text).blocks)]

    def parses(self, texts: Sequence[str], cancelled: Cancelled) -> dict[str, Any]:
        """Return the parse of each distinct text, so that parsing can start before the names are known."""
        parsed: dict[str, Any] = {}
        for some in batches(list(dict.fromkeys(texts))):
            parsed |= STORE.of_each(self._parses, some, self._parsed_anew, bytes_a_character=BYTES_A_CHARACTER)
            if cancelled():
                break
        return parsed

    def _parsed_anew(self, texts: list[str]) -> list[Any]:
        return list(self.nlp.pipe(texts, batch_size=BATCH))


@dataclass(frozen=True)
class NamedLanguage:
    """A language whose parses carry the named entities found beforehand. Some texts may be parsed already."""

    language: Language
    names: Names
    parses: Mapping[str, Any] = field(default_factory=dict)

    def parsed(self, text: str | Text, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return what ``Language.parsed`` returns, with the named entities set."""
        return self.language.parsed(text, choice_index=choice_index, first_index=first_index, parser=self)

    def pipe(self, texts: Iterable[str], *, batch_size: int) -> Iterator[Any]:
        """Yield the parses of texts in order, as a spaCy pipeline does."""
        if self.parses:
            docs: Iterator[Any] = (self.parses[text] for text in texts)
        else:
            docs = self.language.nlp.pipe(texts, batch_size=batch_size)
        for doc in docs:
            names = self.names[doc.text]
            if doc.user_data.get(_NAMES) != names:
                doc.user_data.pop(_NAMES, None)  # an interrupt may come between
                doc.name(list(_spans(doc, names)))
                doc.user_data |= {_NAMES: names, _DERIVED: {}}
            yield doc


def derived(tokens: Any, key: Hashable, derive: Callable[[], T]) -> T:
    """Return what *derive* makes of the parse that *tokens* are of: kept with it under *key*, as long as it has the same names.

    An answer that grows brings its first sentences again. Bounded: a sentence may come in many places of many answers. Used on the
    text thread alone.
    """
    found: dict[Hashable, Any] = tokens.doc.user_data.setdefault(_DERIVED, {})
    if key not in found:
        made = derive()
        if len(found) >= MOST_DERIVED:
            found.clear()
        found[key] = made
    return cast("T", found[key])


def batches(texts: Sequence[str]) -> Iterator[list[str]]:
    """Yield texts in order in batches for the parser, each small enough that others need not wait long for their turns."""
    batch: list[str] = []
    for text in texts:
        if batch and (len(batch) >= BATCH or sum(map(len, batch)) + len(text) > BATCH_CHARS):
            yield batch
            batch = []
        batch.append(text)
    if batch:
        yield batch


def _spans(doc: ParseTree, names: Sequence[Entity]) -> Iterator[ParseSpan]:
    """Yield names as spans of whole parser tokens without overlap. Parser and classifier tokenise differently."""
    free = 0
    for name in names:
        span = doc.char_span(name.start, name.end, label=name.label)
        if span is not None and span.start >= free:
            free = span.end
            yield span


def _laid_out(text: str | Text) -> Layout:
    if isinstance(text, str):
        return layout(text, structures=True)
    found = layout(text.chars, structures=True)
    return replace(found, blocks=tuple(replace(block, text=block.text.traced(text)) for block in found.blocks))

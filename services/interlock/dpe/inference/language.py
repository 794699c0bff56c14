"""The linguistic models: the parser (spaCy) and the splitter of evidence, on a thread of their own.

One thread, because a spaCy pipeline is not made for several at once.

Each stage's work has a deadline in CPU time, so that a slow machine or a long queue refuses nobody and a hostile text
does. Running out is a refusal, never a partial result (reliability.md A-23).
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar, cast

import structlog
from prometheus_client import Counter

from interlock.domain.errors import Kind, Refused
from interlock.dpe.document import Entity
from interlock.dpe.inference.port import ModelInfo
from interlock.dpe.inference.worker import Expired, Job, Left, OutOfTime, Worker
from interlock.dpe.text.layout import Layout, layout
from interlock.dpe.text.segmentation import Parsed, pieces, sentences
from interlock.dpe.text.text import Text

BATCH = 16
STAGE_TIMEOUT_S = 10.0
GRACE_S = 2.0
MOST_LEFT_BEHIND = 2

EXPIRED = Counter(
    "interlock_dpe_stage_deadlines_exceeded", "Stages that ran out of CPU time, and were refused.", ["stage"]
)

T = TypeVar("T")
Cancelled = Left
Names = Mapping[str, Sequence[Entity]]
"""The names in each text that the parser is given."""

log = structlog.get_logger()


@dataclass
class Spent:
    """The CPU time that the parts of one stage have used."""

    cpu_s: float = 0.0

    def on(self, work: Callable[[Cancelled], T], left: Cancelled) -> T:
        """Do the work, and count it."""
        began = time.thread_time()
        try:
            return work(left)
        finally:
            self.cpu_s += time.thread_time() - began


class Language:
    """Parses answers, and runs what is pure Python beside the event loop."""

    def __init__(
        self,
        nlp: Any,
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

    def close(self) -> None:
        """Stop the thread; what is queued is dropped."""
        self._worker.close()

    async def run(self, work: Callable[[Cancelled], T], *, stage: str = "", spent: Spent | None = None) -> T:
        """Run *work* on the thread; it is told when its caller has left or its time is up, and should end then.

        What is done in parts, with one *spent*, has the time of one stage together.

        Refused with STAGE_DEADLINE_EXCEEDED when it used more CPU time than a stage has. Work that does not ask is
        interrupted, and the caller hears at once.
        """
        spent = spent or Spent()
        job = self._worker.submit(partial(spent.on, work), self._stage_timeout_s - spent.cpu_s)
        try:
            return cast("T", await self._watched(job, stage))
        except (Expired, OutOfTime):
            raise self._expired(stage) from None
        finally:
            job.leave()

    def unready_dependencies(self) -> dict[str, str]:
        """Return what keeps text from being read: a thread that hangs, or too many left behind."""
        self._late = {job for job in self._late if self._worker.is_at(job)}
        if self._late or self._worker.left_behind() >= MOST_LEFT_BEHIND:
            return {"text": "a stage did not end when its time was up: restart the dpe service if this stays"}
        return {}

    async def _watched(self, job: Job, stage: str) -> Any:
        """Await the answer for as long as the CPU time lasts: it never runs ahead of the wall."""
        answer = asyncio.wrap_future(job.answer)
        try:
            while (remaining := job.limit_s - job.used_s()) > 0:
                if (await asyncio.wait([answer], timeout=remaining))[0]:
                    return answer.result()
        finally:
            answer.cancel()
        self._call_off(job)
        raise self._expired(stage)

    def _call_off(self, job: Job) -> None:
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
        """Return the sentences of an output, parsed as they are taken, and its hidden characters.

        A ``Text`` keeps pointing at what it was made from.
        """
        found, nlp = _laid_out(text), parser or self.nlp
        return sentences(found.blocks, nlp, choice_index=choice_index, first_index=first_index), found.hidden

    @staticmethod
    def texts(text: Text) -> list[str]:
        """Return the texts that the parser is given for an output: what is looked through for names beforehand."""
        return [piece.text.chars for piece in pieces(_laid_out(text).blocks)]

    def parses(self, texts: Sequence[str], left: Cancelled) -> dict[str, Any]:
        """Return the parse of each of some such texts, so that they wait for nothing else."""
        found: dict[str, Any] = {}
        for doc in self.nlp.pipe(dict.fromkeys(texts), batch_size=BATCH):
            found[doc.text] = doc
            if left():
                break
        return found


@dataclass(frozen=True)
class NamedLanguage:
    """A language whose parses bear the names that were found beforehand; some texts may be parsed already."""

    language: Language
    names: Names
    parses: Mapping[str, Any] = field(default_factory=dict)

    def parsed(self, text: str | Text, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return what the language returns, with the names in it."""
        return self.language.parsed(text, choice_index=choice_index, first_index=first_index, parser=self)

    def pipe(self, texts: Iterable[str], *, batch_size: int) -> Iterator[Any]:
        """Yield the parses of texts, in order, as a spaCy pipeline does."""
        if self.parses:
            docs: Iterator[Any] = (self.parses[text] for text in texts)
        else:
            docs = self.language.nlp.pipe(texts, batch_size=batch_size)
        for doc in docs:
            doc.ents = list(_spans(doc, self.names[doc.text]))
            yield doc


def _spans(doc: Any, names: Sequence[Entity]) -> Iterator[Any]:
    """Yield names as whole tokens of the parser, which cuts words otherwise than the classifier; none overlap."""
    free = 0
    for name in names:
        span = doc.char_span(name.start, name.end, label=name.label, alignment_mode="expand")
        if span is not None and span.start >= free:
            free = span.end
            yield span


def _laid_out(text: str | Text) -> Layout:
    if isinstance(text, str):
        return layout(text)
    found = layout(text.chars)
    return replace(found, blocks=tuple(replace(block, text=block.text.traced(text)) for block in found.blocks))

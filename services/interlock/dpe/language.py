"""The linguistic models: the parser with its names (spaCy) and the splitter of evidence, on a thread of their own.

One thread, because a spaCy pipeline is not made for several at once. What the recent facts name is kept: agents send
the same evidence with every call.

Each stage's work has a deadline in CPU time, so that a slow machine or a long queue refuses nobody and a hostile text
does. Running out is a refusal, never a partial result (reliability.md A-23).
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, TypeVar, cast

import structlog
from prometheus_client import Counter

from interlock.domain.errors import Kind, Refused
from interlock.dpe.document import Entity
from interlock.dpe.inference import ModelInfo
from interlock.dpe.layout import layout
from interlock.dpe.segmentation import Parsed, sentences
from interlock.dpe.text import Text
from interlock.dpe.worker import Expired, Job, Left, OutOfTime, Worker

REMEMBERED_FACTS = 4096
PIECE_CHARS = 3000
BATCH = 16
STAGE_TIMEOUT_S = 10.0
GRACE_S = 2.0
MOST_LEFT_BEHIND = 2

EXPIRED = Counter(
    "interlock_dpe_stage_deadlines_exceeded", "Stages that ran out of CPU time, and were refused.", ["stage"]
)

T = TypeVar("T")
Cancelled = Left

log = structlog.get_logger()


class Language:
    """Parses answers, names what facts name, and runs what is pure Python beside the event loop."""

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
        self._named: OrderedDict[str, tuple[Entity, ...]] = OrderedDict()  # only its own thread touches it

    def close(self) -> None:
        """Stop the thread; what is queued is dropped."""
        self._worker.close()

    async def run(self, work: Callable[[Cancelled], T], *, stage: str = "") -> T:
        """Run *work* on the thread; it is told when its caller has left or its time is up, and should end then.

        Refused with STAGE_DEADLINE_EXCEEDED when it used more CPU time than a stage has. Work that does not ask is
        interrupted, and the caller hears at once.
        """
        job = self._worker.submit(work, self._stage_timeout_s)
        try:
            return cast("T", await self._watched(job, stage))
        except (Expired, OutOfTime):
            raise self._expired(stage) from None
        finally:
            job.leave()

    def missing(self) -> dict[str, str]:
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

    def parsed(self, text: str | Text, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return the sentences of an output, parsed as they are taken, and its hidden characters.

        A ``Text`` keeps pointing at what it was made from.
        """
        found = layout(text if isinstance(text, str) else text.chars)
        blocks = found.blocks
        if isinstance(text, Text):
            blocks = tuple(replace(block, text=block.text.traced(text)) for block in blocks)
        return sentences(blocks, self.nlp, choice_index=choice_index, first_index=first_index), found.hidden

    def names(self, texts: Sequence[str], left: Cancelled) -> list[Entity]:
        """Return the named entities of the facts. Names need no parser, so it is left out."""
        unknown = list(dict.fromkeys(text for text in texts if text not in self._named))
        found: dict[str, list[Entity]] = {text: [] for text in unknown}
        pieces = [(text, at) for text in unknown for at in range(0, len(text), PIECE_CHARS)]
        docs = (self.nlp.make_doc(text[at : at + PIECE_CHARS]) for text, at in pieces)
        for (text, at), doc in zip(pieces, self.nlp.get_pipe("ner").pipe(docs, batch_size=BATCH), strict=False):
            if left():
                return []
            found[text] += [Entity(e.text, e.label_, at + e.start_char, at + e.end_char) for e in doc.ents]
        self._named.update((text, tuple(entities)) for text, entities in found.items())
        result = [entity for text in texts for entity in self._named[text]]
        while len(self._named) > REMEMBERED_FACTS:
            self._named.popitem(last=False)
        return result

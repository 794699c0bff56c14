"""The linguistic models: the parser with its names (spaCy) and the splitter of evidence, on a thread of their own.

One thread, because a spaCy pipeline is not made for several at once. What the recent facts name is kept: agents send
the same evidence with every call.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from interlock.dpe.document import Entity
from interlock.dpe.inference import ModelInfo
from interlock.dpe.layout import layout
from interlock.dpe.segmentation import Parsed, sentences

REMEMBERED_FACTS = 4096
PIECE_CHARS = 3000
BATCH = 16

T = TypeVar("T")
Cancelled = Callable[[], bool]


class Language:
    """Parses answers, names what facts name, and runs what is pure Python beside the event loop."""

    def __init__(self, nlp: Any, split: Callable[[str], Iterator[tuple[int, int]]], model: ModelInfo) -> None:
        self.nlp = nlp
        self.split = split
        self.model = model
        self._worker = ThreadPoolExecutor(1, thread_name_prefix="dpe-text")
        self._named: OrderedDict[str, tuple[Entity, ...]] = OrderedDict()  # only its own thread touches it

    def close(self) -> None:
        """Stop the thread; what is queued is dropped."""
        self._worker.shutdown(wait=True, cancel_futures=True)

    async def run(self, work: Callable[[Cancelled], T]) -> T:
        """Run *work* on the thread; it is told when its caller has left, and should end then."""
        left = threading.Event()
        try:
            return await asyncio.wrap_future(self._worker.submit(work, left.is_set))
        finally:
            left.set()

    def parsed(self, text: str, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return the sentences of an output, parsed as they are taken, and its hidden characters."""
        found = layout(text)
        return sentences(found.blocks, self.nlp, choice_index=choice_index, first_index=first_index), found.hidden

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

"""Passages of answers and of sources: an answer's parse is kept while it is read, and a source's sentences once read are remembered."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.document import Sentence
from interlock.dpe.text.layout import BlockKind
from interlock.dpe.text.memory.remembered import STORE
from interlock.dpe.text.segmentation import Parsed
from interlock.dpe.text.text import Text

LONGEST_TEXT = 2000
_BATCH = 64


class Parser(Protocol):
    """What reads the sentences of an output."""

    def parsed(self, text: str | Text, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return the sentences of an output and its number of hidden characters."""


@dataclass(frozen=True)
class ParseRecorder:
    """A parser that keeps the parse of each sentence of prose that it returns."""

    parser: Parser
    parses: dict[Sentence, Any] = field(default_factory=dict)

    def parsed(self, text: str | Text, *, choice_index: int, first_index: int) -> tuple[Iterator[Parsed], int]:
        """Return what the parser returns."""
        found, hidden = self.parser.parsed(text, choice_index=choice_index, first_index=first_index)
        return self._recorded(found), hidden

    def _recorded(self, found: Iterator[Parsed]) -> Iterator[Parsed]:
        for each in found:
            if each.kind is BlockKind.PROSE:
                self.parses[each.sentence] = each.tokens
            yield each


def in_order(sentences: Iterable[ReadSentence]) -> Iterator[ReadSentence]:
    """Yield the sentences of one text, each with what it leaves to the one before it."""
    before: ReadSentence | None = None
    for sentence in sentences:
        yield sentence if before is None else sentence.behind(before)
        before = sentence


@dataclass(frozen=True)
class Passages:
    """The passages of source texts, remembered under a name of their own: another parser may read them otherwise."""

    own: str = field(default_factory=lambda: secrets.token_hex(8))

    def of(self, texts: Sequence[str], nlp: Any) -> Mapping[str, tuple[ReadSentence, ...]]:
        """Return the passages of each text. A text too long to be a sentence or a paragraph has none."""

        def read(new: list[str]) -> list[tuple[ReadSentence, ...]]:
            return [tuple(in_order(map(ReadSentence, doc.sents))) for doc in nlp.pipe(new, batch_size=_BATCH)]

        wanted = [text for text in texts if len(text) <= LONGEST_TEXT]
        return STORE.of_each(f"passages {self.own}", wanted, read, bytes_a_character=700)

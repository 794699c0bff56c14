"""Sources inside a message: retrieved text and data, apart from the words of the one who writes (ATT-5).

A prompt of retrieval carries its documents in the user's message. What a reader would see as given text is a source: elements
such as ``<doc>``, fenced blocks, triple or long quotations, quoted lines, JSON, tables, numbered passages, and sections such as
``Context:``. Every other word is the writer's own. Nothing is read twice, and nothing but labels is left out.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from interlock.sidecar.call import answers, blocks, examples, sections

_TAG = re.compile(r"</?[^\W\d_][^<>]{0,400}>")
MOST_KNOWN = 2048
"""Messages whose parts are known again, those read last; of each there is a digest and places, and no text."""
MOST_SPANS = 64
"""Parts of a message that is known again. With ``MOST_KNOWN`` it bounds what strangers can make a sidecar keep: about 20 MiB."""

Span = blocks.Span
TakenSpan = tuple[int, int, bool]
"""A span, and whether it loses its meaning when it is cut."""

_KNOWN: dict[bytes, tuple[TakenSpan, ...]] = {}


@dataclass(frozen=True)
class GivenText:
    """A part of a message that is given text. ``whole``: it loses its meaning when it is cut, as a table or JSON does."""

    text: str
    whole: bool


@dataclass(frozen=True)
class Parts:
    """A message taken apart."""

    sources: tuple[GivenText, ...]
    own: str
    """The words of the one who writes, a line for each run of them."""
    answered: str = ""
    """What the model said before, told again here: no evidence of anything."""


def read(text: str) -> Parts:
    """Return the given text and the own words of a message, each in order."""
    taken = _taken(text)
    return Parts(tuple(taken.sources()), *_own(text, taken))


def _taken(text: str) -> _Taken:
    """Return what is given in a message. A conversation brings the same messages with each of its calls."""
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    known = _KNOWN.pop(digest, None)
    taken = _Taken(text, known or ())
    if known is None:
        _find(text, taken)
    if len(taken.spans) <= MOST_SPANS:
        _KNOWN[digest] = tuple(taken.spans)
    if len(_KNOWN) > MOST_KNOWN:
        del _KNOWN[next(iter(_KNOWN))]
    return taken


def _find(text: str, taken: _Taken) -> None:
    for span in blocks.elements(text):
        taken.take(span, whole=False)
    for span in blocks.fences(text):
        taken.take(span, whole=True)
    taken.bar(examples.find(text))
    for whole, finder in _FINDERS:
        for span in finder(text):
            taken.take(span, whole=whole)
    for span in sections.find(text, taken.covers):
        taken.take(span, whole=False, around=True)


def data(text: str) -> bool:
    """Whether a text is one piece of data, JSON or a table, that means nothing line by line."""
    stripped = text.strip()
    if stripped[:1] in {"{", "["} and blocks.json_end(stripped, 0) == len(stripped):
        return True
    return any(start == 0 and end >= len(stripped) for start, end in blocks.tables(stripped))


class _Taken:
    """Spans of a text that are taken, in order and apart from one another."""

    def __init__(self, text: str, spans: Iterable[TakenSpan] = ()) -> None:
        self._text = text
        self.spans = list(spans)
        self._starts = [start for start, _, _ in self.spans]
        self._barred: list[Span] = []

    def bar(self, spans: Iterable[Span]) -> None:
        """Take nothing more that lies in one of *spans*; one that begins in what is taken bars nothing."""
        self._barred = sorted(span for span in spans if not self.covers(span[0]))

    def take(self, span: Span, *, whole: bool, around: bool = False) -> None:
        """Take a span that has text. One that overlaps another is left, or with *around* taken in the gaps."""
        gaps = [] if self._is_barred(span) else self._gaps(span)
        for start, end in gaps if around or gaps == [span] else []:
            if any(map(str.isalnum, self._text[start:end])):
                place = bisect_left(self._starts, start)
                self._starts.insert(place, start)
                self.spans.insert(place, (start, end, whole))

    def covers(self, place: int) -> bool:
        """Whether a character is taken, or in what is barred."""
        before = bisect_right(self._starts, place) - 1
        return (before >= 0 and place < self.spans[before][1]) or self._is_barred((place, place))

    def _is_barred(self, span: Span) -> bool:
        before = bisect_right(self._barred, (span[0], len(self._text))) - 1
        return before >= 0 and span[0] < self._barred[before][1] and span[1] <= self._barred[before][1]

    def outside(self) -> list[Span]:
        """Return what is not taken, in order."""
        return self._gaps((0, len(self._text)))

    def sources(self) -> Iterator[GivenText]:
        """Yield what is taken, in order."""
        for start, end, whole in self.spans:
            lines = self._text[start:end].strip().splitlines()
            yield GivenText("\n".join(line for line in lines if whole or not blocks.RULE.match(line)).strip(), whole)

    def _gaps(self, span: Span) -> list[Span]:
        gaps, at = [], span[0]
        for start, end, _ in self.spans[max(0, bisect_right(self._starts, at) - 1) :]:
            if start >= span[1]:
                break
            if end <= at:
                continue
            if start > at:
                gaps.append((at, start))
            at = max(at, end)
        return [*gaps, (at, span[1])] if at < span[1] else gaps


def _own(text: str, taken: _Taken) -> tuple[str, str]:
    """Return the own words and the earlier answers: what is not taken, without the labels that only said what follows."""
    pieces = [text[start:end] for start, end in taken.outside()]
    told = [piece[slice(*span)] for piece in pieces for span in _histories(piece)]
    pieces = [_without(piece, list(_histories(piece))) for piece in pieces]
    own, answered = answers.apart(_TAG.sub(" ", line) for piece in pieces for line in piece.splitlines())
    return _joined(own), "\n".join([*told, _joined(answered)]).strip()


def _joined(lines: Iterable[str]) -> str:
    kept = (line[sections.own_label(line) :] for line in lines if not sections.is_label(line))
    return "\n".join(line.strip() for line in kept if any(map(str.isalnum, line)))


def _histories(text: str) -> Iterator[Span]:
    if '"role"' in text:
        yield from (span for span in blocks.json_values(text) if answers.is_history(text[slice(*span)]))


def _without(text: str, spans: Sequence[Span]) -> str:
    """Return a text without *spans*, which are in order."""
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(text)]
    return "\n".join(text[start:end] for start, end in zip(ends, starts, strict=True))


def _data(text: str) -> Iterator[Span]:
    """Yield JSON that is no conversation."""
    yield from (span for span in blocks.json_values(text) if not answers.is_history(text[slice(*span)]))


_FINDERS: Sequence[tuple[bool, Callable[[str], Iterator[Span]]]] = (
    (False, blocks.triple_quotes),
    (True, blocks.logs),
    (True, blocks.traces),
    (True, _data),
    (True, blocks.tables),
    (False, blocks.quoted_lines),
    (False, blocks.numbered),
    (False, blocks.quotes),
)
"""What is given text wherever it stands behind elements and fences, and whether it stays whole; of two that overlap the first counts."""

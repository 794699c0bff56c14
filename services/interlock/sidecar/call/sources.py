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

from interlock.sidecar.call import blocks

_KINDS = (
    r"contexts?|background|documents?|docs?|sources?|passages?|articles?|excerpts?|references?|texts?|snippets?|chunks?"
    r"|transcripts?|emails?|letters?|reports?|contracts?|notes|logs?|data|tables?|records?|paragraphs?|content|knowledge"
    r"|evidence|facts|results|search results|faq|manual|policy|message|review|story|extract|material|file"
)
_QUALIFIED = (
    rf"(?:[\w-]+ ){{0,3}}(?:{_KINDS})(?: (?:information|documents?|passages?|text|data|base|articles?|results))?"
)
_LABEL = re.compile(
    rf"[ \t]*(?:#{{1,6}} *)?(?:\*\*)?(?:{_QUALIFIED})(?: ?(?:\d{{1,3}}|\(\d{{1,3}}\)|\[\d{{1,3}}\]))?(?:\*\*)?"
    r"(?: (?:is|are) (?:given |provided |shown )?below\.?)?[ \t]*(?:\*\*)?(?::|(?<=below\.)|(?<=below))(?:\*\*)?",
    re.IGNORECASE,
)
_HEADING = re.compile(rf"[ \t]*#{{1,6}} +(?:{_QUALIFIED})[ \t]*$", re.IGNORECASE)
_LEAD = re.compile(
    rf"\b(?:following|below|attached|this|these|here (?:is|are)|given|retrieved|provided)\b[^.?!\n]{{0,60}}\b(?:{_KINDS})\b",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\s*(?:given|based on|using|with|from) (?:the|this|that|only)\b[^.?!\n]{0,60}\b(?:" + _KINDS + r")\b",
    re.IGNORECASE,
)
_IMPERATIVE = re.compile(
    r"(?:please |now |so,? |then |and |but )?(?:answer|summari[sz]e|explain|list|write|tell|give|compare|describe|extract"
    r"|translate|identify|find|what|who|whom|whose|when|where|which|why|how|is|are|was|were|do|does|did|can|could|would|should|will"
    r"|has|have|using|use|based on|respond|reply|return|provide|show|create|make|draft|send|book|if you|i |let me|help|check"
    r"|do not|don't|only|rewrite|classify|rate|calculate|compute)\b",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,400}>")
_QUESTION_LABEL = re.compile(
    r"^[ \t]*(?:\*\*)?(?:question|query|user query|user question|user|q)(?:\*\*)?[ \t]*:", re.IGNORECASE | re.MULTILINE
)

MOST_READ = 300_000
"""Characters of one request that are searched for given text; see ``roles``."""

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


def read(text: str) -> Parts:
    """Return the given text and the own words of a message, each in order."""
    taken = _taken(text)
    return Parts(tuple(taken.sources()), _own(text, taken))


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
    for whole, finder in _FINDERS:
        for span in finder(text):
            taken.take(span, whole=whole)
    for span in _sections(text, taken):
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

    def take(self, span: Span, *, whole: bool, around: bool = False) -> None:
        """Take a span that has text. One that overlaps another is left, or with *around* taken in the gaps."""
        gaps = self._gaps(span)
        for start, end in gaps if around or gaps == [span] else []:
            if any(map(str.isalnum, self._text[start:end])):
                place = bisect_left(self._starts, start)
                self._starts.insert(place, start)
                self.spans.insert(place, (start, end, whole))

    def covers(self, place: int) -> bool:
        """Whether a character is taken."""
        before = bisect_right(self._starts, place) - 1
        return before >= 0 and place < self.spans[before][1]

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


def _own(text: str, taken: _Taken) -> str:
    """Return the own words: what is not taken, without the labels that only said what follows."""
    lines = [_TAG.sub(" ", line) for start, end in taken.outside() for line in text[start:end].splitlines()]
    kept = (blocks.OWN_LABEL.sub("", line, count=1) if blocks.OWN_LABEL.match(line) else line for line in lines)
    return "\n".join(line.strip() for line in kept if any(map(str.isalnum, line)) and not _is_label(line))


def _is_label(line: str) -> bool:
    """Whether a line only says what follows. *Summarize this article:* says what to do with it."""
    return bool(_LABEL.fullmatch(line.rstrip()) or _HEADING.fullmatch(line)) and not _IMPERATIVE.match(line.lstrip())


_FINDERS: Sequence[tuple[bool, Callable[[str], Iterator[Span]]]] = (
    (False, blocks.elements),
    (True, blocks.fences),
    (False, blocks.triple_quotes),
    (True, blocks.json_values),
    (True, blocks.tables),
    (False, blocks.quoted_lines),
    (False, blocks.numbered),
    (False, blocks.quotes),
)
"""What is given text wherever it stands, and whether it stays whole; of two that overlap the first counts."""


def _sections(text: str, taken: _Taken) -> Iterator[Span]:
    """Yield sections that a label opens, such as Context: …, up to a label of the writer's own or its closing words."""
    lines = blocks.line_spans(text)
    asks = max((match.start() for match in _QUESTION_LABEL.finditer(text)), default=-1)
    number = 0
    while number < len(lines):
        start, end = lines[number]
        opened = None if taken.covers(start) else _opened(text, start, end, asks=asks)
        if opened is None:
            number += 1
            continue
        last = _section_end(text, lines, number, inline=bool(text[opened:end].strip()))
        stop = lines[last][1]
        yield opened, opened + len(_without_own_tail(text[opened:stop]))
        number = last + 1


def _opened(text: str, start: int, end: int, *, asks: int) -> int | None:
    """Return where the section begins that a line opens, ``None`` when it opens none. *asks*: place of the last Question:."""
    line = text[start:end]
    label = _LABEL.match(line)
    if label and (not line[label.end() :].strip() or not _IMPERATIVE.match(line.lstrip())):
        return start + label.end()
    if _HEADING.match(line):
        return end
    if not _LEAD.search(line) or blocks.OWN_LABEL.match(line):
        return None
    if line.rstrip().endswith((":", "below.", "below")):
        return end
    # A template of retrieval: the lead, the documents, then the question behind its label.
    return end if asks > end and text.startswith(("\n\n", "\r\n\r\n"), end) else None


def _section_end(text: str, lines: Sequence[Span], opening: int, *, inline: bool) -> int:
    """Return the last line of the section that the line *opening* opens."""
    last, ruled, said = opening, False, inline
    for number in range(opening + 1, len(lines)):
        line = text[slice(*lines[number])]
        if blocks.RULE.match(line):
            if ruled or said:
                return number
            ruled = True
            continue
        if blocks.OWN_LABEL.match(line) or _GIVEN.match(line):
            break
        said = said or bool(line.strip())
        last = number
    return last


def _without_own_tail(section: str) -> str:
    """Return a section without the question or the order that follows it without a label."""
    kept = section.rstrip()
    for _ in range(3):
        cut = max(kept.rfind("\n\n"), kept.rfind("\n"))
        tail, head = kept[cut + 1 :].strip(), kept[: cut + 1].rstrip()
        apart = kept[:cut].endswith("\n") or kept[cut - 1 : cut + 1] == "\n\n"
        asks = tail.endswith("?") or (apart and len(tail) < 400 and bool(_IMPERATIVE.match(tail)))
        if not tail or not asks:
            break
        inner = _last_question(tail)
        if not any(map(str.isalnum, head)) or inner > 0:
            return kept[: len(kept) - len(tail) + inner]
        kept = head
    return kept


def _last_question(line: str) -> int:
    """Return where the questions at the end of a line begin; the line's start when it is all question."""
    if not line.endswith("?"):
        return 0
    at = len(line)
    for match in reversed(list(re.finditer(r"(?<=[.!?])\s+", line))):
        if not line[match.end() : at].rstrip().endswith("?"):
            return at
        at = match.end()
    return 0 if line[:at].rstrip().endswith("?") or at == len(line) else at

"""Sources inside a message: retrieved text and data, apart from the words of the one who writes (ATT-5).

A prompt of retrieval carries its documents in the user's message. What a reader would see as given text is a source: elements
such as ``<doc>``, fenced blocks, triple or long quotations, quoted lines, JSON, tables, numbered passages, and sections such as
``Context:``. Every other word is the writer's own. Nothing is read twice, and nothing but labels is left out.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

LONG_QUOTE_WORDS = 8
"""Words from which a quotation is given text; a shorter one names a thing or says how to say it."""

MOST_TRIES = 200
"""Places of one message that are tried as the beginning of JSON."""

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
_OWN_LABEL = re.compile(
    r"[ \t]*(?:#{1,6} *)?(?:\*\*)?(?:(?:the |my |user(?:'s)? |current |follow-?up |standalone )?(?:question|query|request|task"
    r"|input|instructions?|prompt)|user|human|q|(?:helpful |final |your |original )?answer|output|response|assistant|rules?"
    r"|constraints?)(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*|[ \t]*#{1,6} +(?:question|query|task|instructions?|answer)[ \t]*$",
    re.IGNORECASE,
)
_GIVEN = re.compile(
    r"\s*(?:given|based on|using|with|from) (?:the|this|that|only)\b[^.?!\n]{0,60}\b(?:" + _KINDS + r")\b",
    re.IGNORECASE,
)
_RULE = re.compile(r"[ \t]*(?:-{4,}|={4,}|_{4,}|\*{4,}|#{4,}|~{5,})[ \t]*$")
_NUMBERED = re.compile(
    r"[ \t]*(?:\[\d{1,3}\]|【\d{1,3}[^】\n]{0,20}】|(?:document|doc|source|passage|chunk|result|snippet) ?"
    r"(?:#?\d{1,3}|\[\d{1,3}\]|\(\d{1,3}\))[ \t]*(?::|\(|-|\.|$))",
    re.IGNORECASE,
)
_QUOTED_LINE = re.compile(r"[ \t]*>")
_PIPES = re.compile(r"[ \t]*\|?[^|\n]+\|[^\n]*")
_IMPERATIVE = re.compile(
    r"(?:please |now |so,? |then |and |but )?(?:answer|summari[sz]e|explain|list|write|tell|give|compare|describe|extract"
    r"|translate|identify|find|what|who|whom|whose|when|where|which|why|how|is|are|was|were|do|does|did|can|could|would|should|will"
    r"|has|have|using|use|based on|respond|reply|return|provide|show|create|make|draft|send|book|if you|i |let me|help|check"
    r"|do not|don't|only|rewrite|classify|rate|calculate|compute)\b",
    re.IGNORECASE,
)
_OPEN_TAG = re.compile(r"<([A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,400})?>")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,400}>")
_FIRST_TAG = re.compile(r"\s*<([A-Za-z][\w:.-]{0,40})(?:\s[^<>]{0,400})?>")
_NO_SOURCE_TAGS = frozenset(
    [
        "question",
        "query",
        "instructions",
        "instruction",
        "task",
        "rules",
        "rule",
        "format",
        "output",
        "answer",
        "system",
        "user",
        "user_query",
        "userquery",
        "thinking",
        "prompt",
        "role",
        "goal",
        "request",
        "user_question",
        "user_input",
        "user_message",
        "b",
        "i",
        "u",
        "em",
        "strong",
        "code",
        "br",
        "p",
        "a",
    ]
)
_FENCE = re.compile(r"^[ \t]{0,3}(`{3,}|~{3,})[^\n]*\n", re.MULTILINE)
_TRIPLE = re.compile(r'"""|\'\'\'')
_QUOTE = re.compile(r'"([^"\n]{20,4000})"|“([^”]{20,4000})”|«([^»]{20,4000})»|„([^“”]{20,4000})[“”]')
_JSON_START = re.compile(r"[\[{](?=\s*[\[{\"])")
_QUESTION_LABEL = re.compile(
    r"^[ \t]*(?:\*\*)?(?:question|query|user query|user question|user|q)(?:\*\*)?[ \t]*:", re.IGNORECASE | re.MULTILINE
)

MOST_READ = 300_000
"""Characters of one request that are searched for given text; see ``roles``."""

Span = tuple[int, int]


@dataclass(frozen=True)
class Source:
    """A part of a message that is given text. ``whole``: it loses its meaning when it is cut, as a table or JSON does."""

    text: str
    whole: bool


@dataclass(frozen=True)
class Parts:
    """A message taken apart."""

    sources: tuple[Source, ...]
    own: str
    """The words of the one who writes, a line for each run of them."""


def read(text: str) -> Parts:
    """Return the given text and the own words of a message, each in order."""
    taken = _Taken(text)
    for whole, finder in _FINDERS:
        for span in finder(text):
            taken.take(span, whole=whole)
    for span in _sections(text, taken):
        taken.take(span, whole=False, around=True)
    return Parts(tuple(taken.sources()), _own(text, taken))


def data(text: str) -> bool:
    """Whether a text is one piece of data, JSON or a table, that means nothing line by line."""
    stripped = text.strip()
    if stripped[:1] in {"{", "["} and _json_end(stripped, 0) == len(stripped):
        return True
    return any(start == 0 and end >= len(stripped) for start, end in _tables(stripped))


class _Taken:
    """Spans of a text that are taken, in order and apart from one another."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts: list[int] = []
        self._spans: list[tuple[int, int, bool]] = []

    def take(self, span: Span, *, whole: bool, around: bool = False) -> None:
        """Take a span that has text. One that overlaps another is left, or with *around* taken in the gaps."""
        gaps = self._gaps(span)
        for start, end in gaps if around or gaps == [span] else []:
            if any(map(str.isalnum, self._text[start:end])):
                place = bisect_left(self._starts, start)
                self._starts.insert(place, start)
                self._spans.insert(place, (start, end, whole))

    def covers(self, place: int) -> bool:
        """Whether a character is taken."""
        before = bisect_right(self._starts, place) - 1
        return before >= 0 and place < self._spans[before][1]

    def outside(self) -> list[Span]:
        """Return what is not taken, in order."""
        return self._gaps((0, len(self._text)))

    def sources(self) -> Iterator[Source]:
        """Yield what is taken, in order."""
        for start, end, whole in self._spans:
            lines = self._text[start:end].strip().splitlines()
            yield Source("\n".join(line for line in lines if whole or not _RULE.match(line)).strip(), whole)

    def _gaps(self, span: Span) -> list[Span]:
        gaps, at = [], span[0]
        for start, end, _ in self._spans[max(0, bisect_right(self._starts, at) - 1) :]:
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
    kept = (_OWN_LABEL.sub("", line, count=1) if _OWN_LABEL.match(line) else line for line in lines)
    return "\n".join(line.strip() for line in kept if any(map(str.isalnum, line)) and not _is_label(line))


def _is_label(line: str) -> bool:
    """Whether a line only says what follows. *Summarize this article:* says what to do with it."""
    return bool(_LABEL.fullmatch(line.rstrip()) or _HEADING.fullmatch(line)) and not _IMPERATIVE.match(line.lstrip())


def _elements(text: str) -> Iterator[Span]:
    """Yield the content of elements such as <doc>; names of instructions and of simple markup are none.

    An element that begins with another one is a list of them: <documents><document>…
    """
    lowered, at, closes = text.lower(), 0, dict[str, int]()
    while opening := _OPEN_TAG.search(text, at):
        name = opening[1].lower()
        at = opening.end()
        if name in _NO_SOURCE_TAGS:
            continue
        if (
            0 <= closes.get(name, 0) < at
        ):  # looked for once for each run of opening tags: many unclosed ones cost nothing
            closes[name] = lowered.find(f"</{name}", at)
        close = closes[name] if name in closes else closes.setdefault(name, lowered.find(f"</{name}", at))
        if close < 0:
            continue
        inner = _FIRST_TAG.match(text, at)
        if inner and inner[1].lower() not in {*_NO_SOURCE_TAGS, name}:
            continue
        yield at, close
        at = close + len(name) + 3


def _fences(text: str) -> Iterator[Span]:
    at = 0
    while opening := _FENCE.search(text, at):
        close = text.find("\n" + opening[1][:3], opening.end() - 1)
        end = close if close >= 0 else len(text)
        yield opening.end(), end
        line = text.find("\n", end + 1)
        at = line if line >= 0 and close >= 0 else len(text)


def _triple_quotes(text: str) -> Iterator[Span]:
    at = 0
    while opening := _TRIPLE.search(text, at):
        close = text.find(opening[0], opening.end())
        if close < 0:
            return
        yield opening.end(), close
        at = close + 3


def _quotes(text: str) -> Iterator[Span]:
    for match in _QUOTE.finditer(text):
        number = next(n for n in range(1, 5) if match[n] is not None)
        if len(match[number].split()) >= LONG_QUOTE_WORDS:
            yield match.span(number)


def _json(text: str) -> Iterator[Span]:
    at = tries = 0
    while tries < MOST_TRIES and (opening := _JSON_START.search(text, at)):
        tries += 1
        end = _json_end(text, opening.start())
        if end:
            yield opening.start(), end
        at = end or opening.end()


def _json_end(text: str, start: int) -> int:
    """Return the end of the JSON that begins at *start*; 0 when none does."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0


def _lines(text: str) -> list[Span]:
    """Return the span of each line, without its end."""
    spans, at = [], 0
    for line in text.splitlines(keepends=True):
        spans.append((at, at + len(line.rstrip("\r\n"))))
        at += len(line)
    return spans


def _runs(text: str, belongs: Callable[[str, str], bool], *, least: int) -> Iterator[Span]:
    """Yield runs of at least *least* lines that belong together; *belongs* sees the line before and the line."""
    lines = _lines(text)
    first = 0
    while first < len(lines):
        last, before = first, ""
        while last < len(lines) and belongs(before, line := text[slice(*lines[last])]):
            last, before = last + 1, line
        if last - first >= least:
            yield lines[first][0], lines[last - 1][1]
        first = max(last, first + 1)


def _quoted_lines(text: str) -> Iterator[Span]:
    if ">" in text:
        yield from _runs(text, lambda _, line: bool(_QUOTED_LINE.match(line)), least=1)


def _tables(text: str) -> Iterator[Span]:
    if "|" in text:
        yield from _runs(text, lambda _, line: "|" in line and bool(_PIPES.match(line)), least=2)
    for mark in ",\t;":
        if mark in text:
            yield from _runs(text, partial(_same_cells, mark), least=3)


def _same_cells(mark: str, before: str, line: str) -> bool:
    """Whether a line has as many short cells as the one before it, as the lines of a CSV table have."""
    if mark not in line:
        return False
    cells = line.split(mark)
    short = all(len(cell) <= 80 and ". " not in cell for cell in cells) and not line.rstrip().endswith((".", "?", "!"))
    return len(cells) > 1 and short and (not before or before.count(mark) == len(cells) - 1)


def _numbered(text: str) -> Iterator[Span]:
    """Yield numbered passages such as [1] …, each up to a blank line, a rule or a label of the writer's own."""
    lines = _lines(text)
    number = 0
    while number < len(lines):
        line = text[slice(*lines[number])]
        if not _NUMBERED.match(line):
            number += 1
            continue
        last = number
        while last + 1 < len(lines) and _goes_on(text[slice(*lines[last + 1])]):
            last += 1
        yield lines[number][0], lines[last][1]
        number = last + 1


def _goes_on(line: str) -> bool:
    return bool(line.strip()) and not (_OWN_LABEL.match(line) or _NUMBERED.match(line) or _RULE.match(line))


_FINDERS: Sequence[tuple[bool, Callable[[str], Iterator[Span]]]] = (
    (False, _elements),
    (True, _fences),
    (False, _triple_quotes),
    (True, _json),
    (True, _tables),
    (False, _quoted_lines),
    (False, _numbered),
    (False, _quotes),
)
"""What is given text wherever it stands, and whether it stays whole; of two that overlap the first counts."""


def _sections(text: str, taken: _Taken) -> Iterator[Span]:
    """Yield sections that a label opens, such as Context: …, up to a label of the writer's own or its closing words."""
    lines = _lines(text)
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
    if not _LEAD.search(line) or _OWN_LABEL.match(line):
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
        if _RULE.match(line):
            if ruled or said:
                return number
            ruled = True
            continue
        if _OWN_LABEL.match(line) or _GIVEN.match(line):
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

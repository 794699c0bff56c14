"""Blocks of given text: elements, fenced blocks, quotations, JSON, tables and numbered passages inside a message (ATT-5).

Each finder yields spans of the text and takes time in proportion to its length.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Callable, Iterator
from functools import partial

from interlock.sidecar.call import vocabulary

LONG_QUOTE_WORDS = 8
"""Words from which a quotation is given text; a shorter one names a thing or says how to say it."""

MOST_TRIES = 200
"""Places of one message that are tried as the beginning of JSON."""

Span = tuple[int, int]

OWN_LABEL = re.compile(
    r"[ \t]*(?:#{1,6} *)?(?:\*\*)?(?:(?:the |my |new |next |user(?:'s)? |current |follow-?up |standalone )?(?:question|query|request|task"
    r"|input|instructions?|prompt)|user|human|q|(?:helpful |final |your |original )?answer|output|response|assistant|rules?"
    r"|constraints?)(?:\*\*)?[ \t]*:(?:\*\*)?[ \t]*|[ \t]*#{1,6} +(?:question|query|task|instructions?|answer)[ \t]*$",
    re.IGNORECASE,
)
"""A label of the writer: what follows is no given text."""
RULE = re.compile(r"[ \t]*(?:# )?(?:-{4,}|={4,}|_{4,}|\*{4,}|#{4,}|~{5,})[ \t]*$")
SHORT_RULE = re.compile(r"[ \t]*(?:# )?(?:-{3,}|={3,}|_{3,}|\*{3,}|#{3,}|~{3,})[ \t]*$")
_NUMBERED = re.compile(
    r"[ \t]*(?:\[\d{1,3}\]|【\d{1,3}[^】\n]{0,20}】|(?:document|doc|source|passage|chunk|result|snippet) ?"
    r"(?:#?\d{1,3}|\[\d{1,3}\]|\(\d{1,3}\))[ \t]*(?::|\(|-|\.|$))",
    re.IGNORECASE,
)
_OPEN_TAG = re.compile(r"<([^\W\d_][\w:.-]{0,40})(?:\s[^<>]{0,400})?>")
_FIRST_TAG = re.compile(r"\s*<([^\W\d_][\w:.-]{0,40})(?:\s[^<>]{0,400})?>")
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
        "sys",
        "inst",
    ]
)
_MARKUP_TAGS = frozenset(["b", "i", "u", "em", "strong", "code", "br", "p", "a"])
_ONE_TEXT_TAGS = frozenset(
    [
        "article",
        "body",
        "chunk",
        "doc",
        "document",
        "email",
        "excerpt",
        "html",
        "page",
        "passage",
        "result",
        "search_result",
        "snippet",
        "transcript",
    ]
)
"""Elements that are one given text, whatever stands in them: what a page holds may begin with a tag of its own."""
_GIVEN_TAGS = frozenset(
    [
        "background",
        "content",
        "context",
        "contexts",
        "data",
        "docs",
        "documents",
        "file",
        "files",
        "knowledge",
        "material",
        "references",
        "results",
        "search_results",
        "sources",
        "text",
    ]
)
"""Elements that are given text, or a list of elements that are."""
_SPEAKS_ON = re.compile(r"[ \t]+[a-z]|[`)\]'\",.]")
_NEAR = 100
LONGEST_SHOWN = 1000
"""Characters of a line that may lead to examples."""
_LOG_LINE = re.compile(
    r"[ \t]*(?:\[?\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d{1,2}/[A-Z][a-z]{2}/\d{4}:\d\d|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d |\d\d:\d\d:\d\d[.,:\] ]"
    r"|\[?(?:TRACE|DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|FATAL|CRITICAL)\b[\]:| ])"
)
_STACK_LINE = re.compile(
    r"[ \t]*(?:Traceback \(most recent call last\):|File \"[^\"\n]{1,300}\", line \d|at [\w.$<>/]{1,200}\(|Caused by: |[\w.]{1,120}(?:Error|Exception)\b)|[ \t]{2,}\S"
)
_COUNTED = re.compile(r"-\d+\Z")
_LOWER = {ord(letter): letter.lower() for letter in string.ascii_uppercase}
_TRIPLE = re.compile(r'"""|\'\'\'')
_QUOTE = re.compile('["“«„]')
_CLOSING = {'"': '"', "“": "”", "«": "»", "„": "“”"}
_LEAST_QUOTED, _MOST_QUOTED = 20, 4000
"""Characters of a long quotation."""
_JSON_START = re.compile(r"[\[{](?=\s*[\[{\"])")


def asks(name: str) -> bool:
    """Whether an element holds the writer's own words, by its name."""
    lowered = name.lower()
    if lowered in _NO_SOURCE_TAGS:
        return True
    found = vocabulary.words(lowered.replace("_", " ").replace("-", " "))
    return bool(found) and vocabulary.ASKS in found[-1].means


def is_none(name: str) -> bool:
    """Whether an element is no given text: it asks, or it is simple markup."""
    return name.lower() in _MARKUP_TAGS or asks(name)


def elements(text: str) -> Iterator[Span]:
    """Yield the content of elements such as <doc>; names of instructions and of simple markup are none.

    An element that begins with another one is a list of them: <documents><document>…
    """
    lowered, at, closes = _lowered(text), 0, dict[str, int]()
    while opening := _OPEN_TAG.search(text, at):
        name = opening[1].lower()
        at = opening.end()
        if is_none(name):
            continue
        if (
            0 <= closes.get(name, 0) < at
        ):  # looked for once for each run of opening tags: many unclosed ones cost nothing
            closes[name] = lowered.find(f"</{name}", at)
        close = closes[name] if name in closes else closes.setdefault(name, lowered.find(f"</{name}", at))
        if close < 0 or _is_mentioned(text, lowered, opening, close):
            continue
        inner = _FIRST_TAG.match(text, at)
        if inner and inner[1].lower() != name and not is_none(inner[1]) and _may_be_list(lowered, name, at, close):
            continue
        yield at, close
        at = close + len(name) + 3


def _is_mentioned(text: str, lowered: str, opening: re.Match[str], close: int) -> bool:
    """Whether a sentence only speaks of an element: *cite when the <source> tag has an id*, before the first one opens."""
    begin = max(text.rfind("\n", max(0, opening.start() - _NEAR), opening.start()) + 1, opening.start() - _NEAR)
    speaks = text[begin : opening.start()].strip() and _SPEAKS_ON.match(text, opening.end())
    return bool(speaks) and lowered.find(f"<{opening[1].lower()}", opening.end(), close) >= 0


def _lowered(text: str) -> str:
    """Return *text* with ASCII letters in lower case, every character in its place: ``İ`` would become two."""
    return text.lower() if text.isascii() else text.translate(_LOWER)


def _may_be_list(lowered: str, name: str, at: int, close: int) -> bool:
    """Tell whether the element between *at* and *close*, which begins with another one, may be a list of elements."""
    plain = _COUNTED.sub("", name)
    if plain in _ONE_TEXT_TAGS:
        return False
    return plain not in _GIVEN_TAGS or _only_elements(lowered, at, close)


def _only_elements(lowered: str, at: int, close: int) -> bool:
    """Tell whether there is nothing but elements between *at* and *close*: text beside them would belong to none."""
    while opening := _FIRST_TAG.match(lowered, at, close):
        end = lowered.find(f"</{opening[1]}", opening.end(), close)
        if end < 0:
            return False
        at = lowered.find(">", end, close) + 1
        if at == 0:
            return False
    return not lowered[at:close].strip()


def fences(text: str) -> Iterator[Span]:
    start, mark = -1, ""
    for first, end in line_spans(text):
        line = text[first:end].lstrip(" \t")
        if start < 0 and line.startswith(("```", "~~~")):
            start, mark = end, line[:3]
        elif start >= 0 and line.startswith(mark):
            yield start, first
            start = -1
    if start >= 0:
        yield start, len(text)


def triple_quotes(text: str) -> Iterator[Span]:
    at = 0
    while opening := _TRIPLE.search(text, at):
        close = text.find(opening[0], opening.end())
        if close < 0:
            return
        yield opening.end(), close
        at = close + 3


def quotes(text: str) -> Iterator[Span]:
    """Yield long quotations; a mark that nothing closes near it quotes nothing."""
    at, closes = 0, dict[str, int]()
    while opening := _QUOTE.search(text, at):
        at = opening.end()
        end = _quote_end(text, opening[0], at, closes)
        if _LEAST_QUOTED <= end - at <= _MOST_QUOTED and "\n" not in (text[at:end] if opening[0] == '"' else ""):
            if len(text[at:end].split()) >= LONG_QUOTE_WORDS:
                yield at, end
            at = end + 1


def _quote_end(text: str, mark: str, at: int, closes: dict[str, int]) -> int:
    """Return the place of the first sign from *at* on that closes what *mark* opens; -1 where there is none. Each is looked for once."""
    found = []
    for sign in _CLOSING[mark]:
        if 0 <= closes.get(sign, 0) < at or sign not in closes:
            closes[sign] = text.find(sign, at)
        if closes[sign] >= 0:
            found.append(closes[sign])
    return min(found, default=-1)


def json_values(text: str) -> Iterator[Span]:
    at = tries = 0
    while tries < MOST_TRIES and (opening := _JSON_START.search(text, at)):
        tries += 1
        end = json_end(text, opening.start())
        if end:
            yield opening.start(), end
        at = end or opening.end()


def json_end(text: str, start: int) -> int:
    """Return the end of the JSON that begins at *start*; 0 when none does."""
    try:
        return json.JSONDecoder().raw_decode(text, start)[1]
    except (ValueError, RecursionError):
        return 0


def line_spans(text: str) -> list[Span]:
    """Return the span of each line, without its end."""
    spans, at = [], 0
    for line in text.splitlines(keepends=True):
        spans.append((at, at + len(line.rstrip("\r\n"))))
        at += len(line)
    return spans


def _runs(text: str, belongs: Callable[[str, str], bool], *, least: int) -> Iterator[Span]:
    """Yield runs of at least *least* lines that belong together; *belongs* sees the line before and the line."""
    lines = line_spans(text)
    first = 0
    while first < len(lines):
        last, before = first, ""
        while last < len(lines) and belongs(before, line := text[slice(*lines[last])]):
            last, before = last + 1, line
        if last - first >= least:
            yield lines[first][0], lines[last - 1][1]
        first = max(last, first + 1)


def quoted_lines(text: str) -> Iterator[Span]:
    if ">" in text:
        yield from _runs(text, lambda _, line: line.lstrip().startswith(">"), least=1)


def tables(text: str) -> Iterator[Span]:
    if "|" in text:
        yield from _runs(text, lambda _, line: "|" in line, least=2)
    for mark in ",\t;":
        if mark in text:
            yield from _runs(text, partial(_same_cells, mark), least=3)


def logs(text: str) -> Iterator[Span]:
    """Yield runs of lines of a log."""
    yield from _runs(text, lambda _, line: _LOG_LINE.match(line) is not None, least=2)


def traces(text: str) -> Iterator[Span]:
    """Yield traces of a stack, from the line that begins one to the error that it ends in."""
    if "Traceback (most" in text or "\tat " in text or "    at " in text:
        yield from _runs(text, _in_trace, least=2)


def _in_trace(before: str, line: str) -> bool:
    starts = line.lstrip().startswith(("Traceback (most", "Exception in thread", "Caused by: "))
    return starts or bool(before and _STACK_LINE.match(line))


def _same_cells(mark: str, before: str, line: str) -> bool:
    """Whether a line has as many short cells as the one before it, as the lines of a CSV table have."""
    if mark not in line:
        return False
    cells = line.split(mark)
    short = all(len(cell) <= 80 and ". " not in cell for cell in cells) and not line.rstrip().endswith((".", "?", "!"))
    return len(cells) > 1 and short and (not before or before.count(mark) == len(cells) - 1)


def numbered(text: str) -> Iterator[Span]:
    """Yield numbered passages such as [1] …, each up to a blank line, a rule or a label of the writer's own."""
    lines = line_spans(text)
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
    return bool(line.strip()) and not (OWN_LABEL.match(line) or _NUMBERED.match(line) or RULE.match(line))

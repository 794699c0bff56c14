"""Citation marks of an answer: cut before its sentences are judged, and kept for the check of where they point (ATT-7).

A mark is no part of what its sentence asserts: "completed in 1889 [2]" and "tower²" would be read as values. Marks are
found in the text as the model wrote it, so that superscripts are still raised. What only looks like a mark stays: the
number of a list item, an exponent, an index or interval, the argument of a function, a year.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.dpe.text.patterns import pattern, spaced, span_of
from interlock.dpe.text.references.parts import references
from interlock.dpe.text.text import Text

_RAISED = "⁰¹²³⁴⁵⁶⁷⁸⁹"
_LOWER = str.maketrans(_RAISED, "0123456789")
_NUMBERS = r"\d{1,3}(?:\s*[,;–-]\s*\d{1,3}){0,12}"
_SOURCE = (
    r"(?:sources?|docs?|documents?|refs?\.?|references?|passages?|facts?|contexts?|articles?|chunks?|citations?|excerpts?"
    r"|quellen?|dokumente?|documentos?|fuentes?|références?)"
)
_CODE = r"[A-Z][A-Z0-9]{0,9}(?:[-_.:#/][A-Z0-9]{1,8}){0,3}[-_.:#/]\d{1,8}[a-z]?"
"""An identifier that a collection gives its articles: KB-101, DOC-2024-17."""
_MARK = spaced(
    rf"""
      (?P<code>`[^`\n]{{1,200}}`)
    | (?m:(?P<defined>^[\x20\t]*\[\^?(?P<own>[\w-]{{1,20}})\]:)[\x20\t]+\S)
    | (?P<link>!?\[(?P<shown>\[?[^\[\]\n]{{1,300}}\]?)\]\((?P<url>(?:https?://|www\.|doi\.org/)[^()\s]{{1,900}})\))
    | (?P<square>\[\^?(?P<numbers>{_NUMBERS})\])
    | (?P<note>\[\^(?P<label>[\w-]{{1,20}})\])
    | (?P<coded>\[(?P<codes>(?-i:{_CODE})(?:\s*[,;]\s*(?-i:{_CODE})){{0,6}})\])
    | (?P<named>[\[(]\s*(?:see\s+|siehe\s+)?{_SOURCE}\s*(?:[:#№]\s*|\s)(?P<name>[^\[\]()\n]{{1,80}})[\])])
    | (?P<lens>【(?P<inside>[^【】\n]{{1,80}})】)
    | (?P<sup><sup>\s*[\[(]?\s*(?P<raised>{_NUMBERS})\s*[\])]?\s*</sup>)
    | (?P<raise>[{_RAISED}]+(?:[,˒][{_RAISED}]+)*)
    | (?P<address>[\x20\t]*\((?P<plain>(?:https?://|www\.)[^()\s]{{1,900}})\))
    | (?P<round>\((?P<count>\d{{1,2}}(?:\s*,\s*\d{{1,2}}){{0,5}})\))
    """,
    ignore_case=True,
)
_CODES = pattern(_CODE)
_FENCE = pattern(r"\s{0,3}(?:`{3,}|~{3,})")
_ONLY_NUMBERS = pattern(_NUMBERS)
_INDEXED = pattern(r"(?:\A|[^\p{L}])\p{L}{1,2}\z")
_WORD_BEFORE = pattern(r"(\p{L}+)[^\p{L}\d\n]{0,2}\z")
_LETTERS_BEFORE = pattern(r"(?:\p{L}{4}[\"'”’)\]*_]{0,3}|[.,;:!?…][\"'”’)\]*_]{0,2})\z")
_UNITS = pattern(
    r"(?:inch(?:es)?|feet|foot|yards?|miles?|acres?|\w{0,6}met(?:er|re)s?|hertz|newtons?|seconds?|mètres?|metros?)\z",
    ignore_case=True,
)
_LABELLED = pattern(
    r"(?:table|figure|fig|equation|eq|section|step|option|type|item|part|chapter|clause|article|paragraph|annex|appendix|rule"
    r"|note|level|grade|phase|class|case|point|tier|version|question|answer|number|no)\z",
    ignore_case=True,
)
_SPAN = pattern(
    r"(?:interval|range|list|array|vector|tuple|matrix|set|shape|index|indices|values?|sequence)\z", ignore_case=True
)
_PART_OF = pattern(
    r"\b(?:according to|as per|per|by|in|from|see|cites?|of|and|source|sources|with|laut|selon|según)[ \t]+\z",
    ignore_case=True,
)
_CLOSES = pattern(r"[\"'”’)\]*_]*(?:[.!?;:,]|\s*\z|\s*\n)")
_COUNTED = {
    "one": 1,
    "two": 2,
    "three": 3,
    "four": 4,
    "five": 5,
    "six": 6,
    "seven": 7,
    "eight": 8,
    "nine": 9,
    "ten": 10,
}
_DIGITS = pattern(r"\d+")
_BLANKS = " \t"


@dataclass(frozen=True)
class CitationMark:
    """A citation mark as written, with its span in the output.

    ``labels`` are the numbers or names of the sources that it points to. ``sure`` is false for a form that is also used
    for other things: a number in round brackets or a raised one. ``opens`` tells that it stands before its line.
    ``parts`` are the kinds and numbers of the parts of a source that it names (clause 2), and ``leads`` tells that what it
    vouches for comes after it.
    """

    written: str
    start: int
    end: int
    labels: tuple[str, ...] = ()
    url: str = ""
    sure: bool = True
    opens: bool = False
    output_index: int = 0
    parts: tuple[tuple[str, str], ...] = ()
    leads: bool = False


@dataclass(frozen=True)
class Marks:
    """The marks of an output, the spans to cut with what takes their place, and the labels of its own list of notes."""

    found: tuple[CitationMark, ...] = ()
    spans: tuple[tuple[int, int, str], ...] = ()
    defined: frozenset[str] = frozenset()


NO_MARKS = Marks()


def marks(raw: str) -> Marks:
    """Return the citation marks of an output as the model wrote it. Code and JSON have none."""
    if _is_json(raw):
        return NO_MARKS
    found: list[CitationMark] = []
    spans: list[tuple[int, int, str]] = []
    defined: set[str] = set()
    fenced = _fences(raw)
    for match in _MARK.finditer(raw):
        if any(start <= match.start() < end for start, end in fenced):
            continue
        if match["defined"]:
            defined.add(match["own"].casefold())
            spans.append((*span_of(match, "defined"), ""))
        elif (mark := _mark(raw, match)) is not None:
            found.append(mark)
            spans += _cut(raw, match)
    taken = [(mark.start, mark.end) for mark in found]
    for reference in references(raw):
        span = (reference.start, reference.end)
        if any(start < span[1] and span[0] < end for start, end in [*fenced, *taken]):
            continue
        place = raw.find(reference.written, reference.start)
        found.append(
            CitationMark(
                reference.written, place, place + len(reference.written), parts=reference.parts, leads=reference.leads
            )
        )
        spans.append((*span, reference.put))
    return Marks(tuple(sorted(found, key=lambda mark: mark.start)), tuple(sorted(spans)), frozenset(defined))


def traced(found: Marks, text: Text) -> Marks:
    """Return the marks of a text that was made from another one, at their places in that one."""
    if not (found.found or found.spans):
        return found
    marked = [(mark, *text.span(mark.start, mark.end)) for mark in found.found]
    return Marks(
        tuple(replace(mark, start=start, end=end) for mark, start, end in marked),
        tuple((*text.span(start, end), put) for start, end, put in found.spans),
        found.defined,
    )


def is_article_code(label: str) -> bool:
    """Whether a label is an identifier of an article, such as KB-101."""
    return _CODES.fullmatch(label) is not None


def _fences(raw: str) -> list[tuple[int, int]]:
    """Return the spans of the code blocks; an unclosed one extends to the end."""
    found: list[tuple[int, int]] = []
    at, opened = 0, -1
    for line in raw.splitlines(keepends=True):
        if _FENCE.match(line):
            if opened < 0:
                opened = at
            else:
                found.append((opened, at + len(line)))
                opened = -1
        at += len(line)
    return [*found, (opened, at)] if opened >= 0 else found


def _is_json(raw: str) -> bool:
    if raw.lstrip()[:1] not in {"{", "["} or raw.rstrip()[-1:] not in {"}", "]"}:
        return False
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True


def unmarked(text: Text, spans: Sequence[tuple[int, int, str]]) -> Text:
    """Return *text* without the characters that were made from *spans* of its origin, which are in rising order."""
    if not spans:
        return text
    gone = {place: number for number, (start, end, _) in enumerate(spans) for place in range(start, end)}
    edits: list[tuple[int, int, str]] = []
    last = -1
    for at, origin in enumerate(text.starts):
        number = gone.get(origin, -1)
        if number >= 0 and number == last and edits[-1][1] == at:
            edits[-1] = (edits[-1][0], at + 1, edits[-1][2])
        elif number >= 0:
            edits.append((at, at + 1, spans[number][2] if number != last else ""))
            last = number
    return text.replaced(edits)


def placed(found: Sequence[CitationMark], output_index: int) -> list[CitationMark]:
    """Return marks with the place of their output."""
    return [replace(mark, output_index=output_index) for mark in found]


def _mark(raw: str, match: Any) -> CitationMark | None:
    """Return the mark of a match, or ``None`` for code and for what only looks like one."""
    before, after = raw[: match.start()], raw[match.end() :]
    url = match["url"] or match["plain"] or ""
    labels = () if match["plain"] else _labels(match)
    if labels is None or not (labels or url) or not _is_mark(match, before, after, labels):
        return None
    sure = not (match["sup"] or match["raise"] or match["round"] or (match["lens"] and labels[0].isdigit()))
    opens = not before.rpartition("\n")[2].strip() and any(map(str.isalnum, after.partition("\n")[0]))
    return CitationMark(match.group().strip(), match.start(), match.end(), labels, url, sure, opens)


def _labels(match: Any) -> tuple[str, ...] | None:
    """Return the numbers or the name that a match points to; ``None`` for code."""
    if match["link"]:
        shown = match["shown"].strip("[]^ ")
        return tuple(_numbers(shown)) if _ONLY_NUMBERS.fullmatch(shown) else ()
    if match["named"]:
        name = match["name"].strip()
        return tuple(_numbers(name)) if _ONLY_NUMBERS.fullmatch(name) else (name,)
    if match["lens"]:
        name = match["inside"].partition("†")[0].partition(":")[0].strip()
        return (str(int(name)),) if name.isdecimal() and len(name) < 4 else (name,)
    if match["coded"]:
        return tuple(_CODES.findall(match["codes"]))
    numbers = match["numbers"] or match["raised"] or match["raise"] or match["count"]
    if numbers:
        return tuple(_numbers(numbers.translate(_LOWER)))
    return (match["label"],) if match["note"] else None


def _is_mark(match: Any, before: str, after: str, labels: Sequence[str]) -> bool:
    """Whether a match is a mark where it stands: no index, interval, exponent, aside or list number."""
    if match["coded"]:
        return not after.startswith(("(", "[")) and _INDEXED.search(before[-4:]) is None
    if match["square"]:
        return not after.startswith("(") and not _before(before, _SPAN) and _INDEXED.search(before[-4:]) is None
    if match["named"]:
        return match["named"][0] == "[" or labels[0].isdigit() or ":" in match["named"]
    if match["sup"] or match["raise"]:
        apart = before[-1:] in {" ", "\t"} and bool(before.strip())  # no exponent stands apart from its number
        return apart or (_LETTERS_BEFORE.search(before[-40:]) is not None and not _before(before, _UNITS))
    return not match["round"] or _is_round_mark(before, after, labels)


def _is_round_mark(before: str, after: str, labels: Sequence[str]) -> bool:
    """Whether a number in round brackets closes a sentence or a clause: not "(1) first", f(1), Table (2), two (2)."""
    if not _CLOSES.match(after) or not before.strip() or before[-1:] == "\n":
        return False
    if before[-1:] not in ' \t.!?"”’' or _before(before, _LABELLED):
        return False
    word = _WORD_BEFORE.search(before[-40:])
    return word is not None and str(_COUNTED.get(word[1].lower(), "")) not in labels


def _before(before: str, words: Any) -> bool:
    word = _WORD_BEFORE.search(before[-40:])
    return word is not None and words.match(word[1]) is not None


def _numbers(text: str) -> Iterator[str]:
    """Yield the numbers of a mark; nothing when they cannot number sources: 0, a falling range."""
    for part in text.replace(";", ",").replace("˒", ",").split(","):
        ends = [int(each) for each in _DIGITS.findall(part)]
        if not ends or ends[0] == 0 or (len(ends) > 1 and not ends[0] < ends[1] <= ends[0] + 20):
            return
        yield from map(str, range(ends[0], (ends[1] if len(ends) > 1 else ends[0]) + 1))


def _cut(raw: str, match: Any) -> list[tuple[int, int, str]]:
    """Return the spans to cut for a mark: with the blanks before it where nothing of its line follows directly.

    A mark that is a part of its sentence ("according to [2]") leaves a word for what it points to.
    """
    start, end = match.span()
    if match["link"] and not _ONLY_NUMBERS.fullmatch(match["shown"].strip("[]^ ")):
        first, last = span_of(match, "shown")
        return [(start, first, ""), (last, end, "")]
    line = raw[:start].rstrip(_BLANKS).rpartition("\n")[2]
    opens = (not line or line[-1] in ".!?") and raw[end:].lstrip(_BLANKS)[:1].islower()
    if opens or _PART_OF.search(raw[max(0, start - 20) : start]):
        return [(start, end, "The source" if opens else "the source")]
    if raw[end : end + 1] in {"", "\n", " ", ".", ",", ";", ":", "!", "?", ")"}:
        while start and raw[start - 1] in _BLANKS:
            start -= 1
    return [(start, end, "")]

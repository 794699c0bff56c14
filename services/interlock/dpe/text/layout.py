"""Layout: an output as blocks of paragraphs, list items, table rows, code and JSON (SPEC-005 §3, §21.2).

Blocks are separated at blank lines first: without that every sentence splitter loses 10 to 30 points of recall. Markup
is removed so that the models read what a reader sees. No text is skipped because of its place: code is text, table rows
carry their headers, and the arguments of a tool call become lines of ``key: value``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from interlock.dpe.text.program import LineKind, ProgramReader
from interlock.dpe.text.structures.parts import KeyedValue, StructurePart
from interlock.dpe.text.structures.read import structure
from interlock.dpe.text.text import Text, joined, normalised

CODE_CHARS = 320
SHORT_LINE = 55
MAX_PATH = 120
MAX_NAME = 40
MAX_LEAD = 160

_FENCE = re.compile(r"\s{0,3}(?:`{3,}|~{3,})")
_MARKER = re.compile(r"\s*(?:(#{1,6})\s+|>\s?|[-*+•‣·–—]\s+|\(?\d{1,3}[.)]\s+|\(?[a-z]\)\s+)")
_BOLD_LINE = re.compile(r"\s*(\*\*|__)[^*_]{1,200}\1:?\s*\Z")
_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|-?\d[\d.eE+-]*|true|false|null|NaN|-?Infinity', re.DOTALL)
_NUMERAL = re.compile(r"-?\d[\d.eE+-]*|true|false|null")
_FIGURES = re.compile(r": -?\d[\d.eE+, -]*\Z")
_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\.", re.DOTALL)
_RULE = re.compile(r"[-=_*|:+\s]+\Z")
_EMPHASIS = re.compile(r"\*\*|~~|`+|(?<!\w)[*_]{1,3}(?=[\w\"'(])|(?<=[\w.,;:!?)\"'])[*_]{1,3}(?!\w)")
_LINK = re.compile(r"!?\[([^\[\]]{1,300})\]\((?=[^()\s]{1,2000}(?:\s[^()]{0,200})?\))")
_TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+")
_ATTRIBUTE = re.compile(r"""\s+[\w:.-]{1,60}(?:\s*=\s*("[^"]{0,200}"|'[^']{0,200}'|[^\s"'=<>]{1,200}))?""")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_\-]+")


class BlockKind(Enum):
    """The kind of a block. Lines of a fence are ``PROGRAM`` and ``COMMENT``, and ``CODE`` where they are neither."""

    PROSE = "prose"
    TITLE = "title"
    CODE = "code"
    PROGRAM = "program"
    COMMENT = "comment"
    DATA = "data"


_IN_FENCE = {
    LineKind.PROGRAM: BlockKind.PROGRAM,
    LineKind.COMMENT: BlockKind.COMMENT,
    LineKind.OTHER: BlockKind.CODE,
}


@dataclass(frozen=True)
class TextBlock:
    """A span of text that no sentence crosses. ``lead`` is the line with a colon above a list item."""

    text: Text
    kind: BlockKind
    lead: str = ""


@dataclass(frozen=True)
class Layout:
    """The blocks of an output, and the number of its characters that are hidden from a reader."""

    blocks: tuple[TextBlock, ...]
    hidden: int


def layout(raw: str, *, structures: bool = False) -> Layout:
    """Return the blocks of *raw*. Offsets count its code points.

    *structures*: its objects, rows and settings are read value by value, as those of an answer are.
    """
    text, hidden = normalised(raw)
    found = _json_blocks(text) if text.chars.lstrip()[:1] in {"{", "["} else None
    found = found if found is not None else _structured(text, 0, len(text.chars)) if structures else None
    blocks = found if found is not None else list(_prose_blocks(text, structures=structures))
    return Layout(tuple(b for b in blocks if any(c.isalnum() for c in b.text.chars)), hidden)


def _prose_blocks(text: Text, *, structures: bool = False) -> Iterator[TextBlock]:
    lines = _lines(text.chars)
    number = 0
    lead = ""
    while number < len(lines):
        start, end = lines[number]
        line = text.chars[start:end]
        if structures and (found := _structure_at(text, lines, number)):
            blocks, number = found
            yield from blocks
        elif _FENCE.match(line):
            number = yield from _code(text, lines, number)
        elif _is_table(text.chars, lines, number):
            number = yield from _table(text, lines, number)
        elif _RULE.match(line + " ") or not line.strip():
            number += 1
        else:
            block, number, listed = _paragraph(text, lines, number)
            yield replace(block, lead=lead) if listed else block
            if not listed:
                lead = _lead(block.text.chars)


def _structure_at(text: Text, lines: Sequence[tuple[int, int]], number: int) -> tuple[Sequence[TextBlock], int] | None:
    """Return the blocks of the structure that starts at a line, in a fence or up to an empty line, and the number of the next line."""
    first = text.chars[slice(*lines[number])]
    fenced = bool(_FENCE.match(first))
    above = text.chars[slice(*lines[number - 1])].strip() if number else ""
    if not fenced and (not first.strip() or (above and not above.endswith(":") and not _FENCE.match(above))):
        return None
    start = stop = number + fenced
    while stop < len(lines):
        line = text.chars[slice(*lines[stop])]
        if _FENCE.match(line) or not (fenced or line.strip()):
            break
        stop += 1
    if stop == start or (fenced and len(first.strip().strip("`~").split()) > 1):
        return None
    blocks = _structured(text, lines[start][0], lines[stop - 1][1])
    return (blocks, stop + fenced) if blocks is not None else None


def _structured(text: Text, start: int, end: int) -> list[TextBlock] | None:
    """Return a block for each value and row of a part of a text that is one structure, or ``None``."""
    part = text.part(start, end)
    found = structure(part.chars)
    return None if found is None else [TextBlock(_of_part(part, each), BlockKind.DATA) for each in found]


def _of_part(text: Text, part: StructurePart) -> Text:
    if isinstance(part, KeyedValue):
        value = text.cut(part.start, part.end)
        return joined([_label_at(part.label, value), value], ": ") if part.label else value
    cells = [(each.label, text.cut(each.start, each.end)) for each in part.cells]
    return joined(
        [joined([_label_at(head, cell), cell], ": ") if n else cell for n, (head, cell) in enumerate(cells)], "; "
    )


def _lead(line: str) -> str:
    """Return the last sentence of a line that ends with a colon, the lead of the items below, or ""."""
    last = _SENTENCE_END.split(line)[-1]
    return last if last.endswith(":") and len(last) <= MAX_LEAD else ""


def _lines(chars: str) -> list[tuple[int, int]]:
    spans, at = [], 0
    for line in chars.splitlines(keepends=True):
        spans.append((at, at + len(line)))
        at += len(line)
    return spans


def _paragraph(text: Text, lines: Sequence[tuple[int, int]], number: int) -> tuple[TextBlock, int, bool]:
    """Return the block that starts at a line, the number of the next line, and whether it is a list item.

    Lines that only wrap a sentence are joined.
    """
    parts: list[Text] = []
    first = number
    listed = titled = False
    while number < len(lines):
        start, end = lines[number]
        line = text.chars[start:end]
        marker = _MARKER.match(text.chars, start, end)
        if number > first and (not line.strip() or marker or _FENCE.match(line) or _RULE.match(line + " ")):
            break
        titled = titled or (number == first and bool(_BOLD_LINE.match(line)))
        while marker:
            titled, listed = titled or bool(marker[1]), listed or not marker[1]
            start = marker.end()
            marker = _MARKER.match(text.chars, start, end)
        parts.append(text.cut(start, end))
        number += 1
        if titled or _ends_a_line(parts[-1].chars):
            break
    return TextBlock(_unmarked(joined(parts)), BlockKind.TITLE if titled else BlockKind.PROSE), number, listed


def _ends_a_line(line: str) -> bool:
    return len(line) < SHORT_LINE or line.endswith((".", "!", "?", ":", ";", "。", "！", "？"))


def _unmarked(text: Text) -> Text:
    """Return the text without emphasis, backticks, tags and link brackets. A link keeps its address."""
    spans = [span for m in _TAG.finditer(text.chars) for span in _tag(m.group(), m.start())]
    spans += [m.span() for m in _EMPHASIS.finditer(text.chars)]
    chars = list(text.chars)
    for link in _LINK.finditer(text.chars):
        spans.append((link.start(), link.start(1)))
        chars[link.end(1)] = " "
    text = Text("".join(chars), text.starts, text.ends)
    taken: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if not taken or start >= taken[-1][1]:
            taken.append((start, end))
    return text.without(taken).cut(0, len(text.chars) - sum(end - start for start, end in taken))


def _tag(tag: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield the spans to remove from a tag: all but attribute values of several words, or nothing if it is no tag."""
    name = re.match(r"</?[\w:-]+", tag)
    place = name.end() if name else 0
    values: list[tuple[int, int]] = []
    bare = 0
    while attribute := _ATTRIBUTE.match(tag, place):
        place = attribute.end()
        bare += attribute[1] is None
        if attribute[1] and " " in attribute[1].strip("\"' "):
            values.append((attribute.start(1) + 1, attribute.end(1) - 1))
    if bare > 1 or tag[place:].strip() not in {">", "/>"}:
        return
    start = 0
    for first, last in values:
        yield at + start, at + first
        start = last
    yield at + start, at + len(tag)


def _fence_info(text: Text, line: tuple[int, int]) -> Iterator[TextBlock]:
    """Yield the info string of a fence if it is more than the name of a language."""
    fence = _FENCE.match(text.chars, *line)
    info = text.cut(fence.end() if fence else line[0], line[1])
    if len(info.chars.split()) > 1:
        yield TextBlock(info, BlockKind.PROSE)


def _code(text: Text, lines: Sequence[tuple[int, int]], number: int) -> Generator[TextBlock, None, int]:
    """Yield the lines of a fence in groups of one kind. An unclosed fence extends to the end."""
    yield from _fence_info(text, lines[number])
    number += 1
    parts: list[Text] = []
    group = BlockKind.CODE
    reader = ProgramReader()
    while number < len(lines) and not _FENCE.match(text.chars[slice(*lines[number])]):
        for kind, part in reader.parts(text.cut(*lines[number])):
            full = sum(len(p.chars) for p in parts) + len(part.chars) > CODE_CHARS
            if parts and (full or _IN_FENCE[kind] is not group):
                yield TextBlock(joined(parts), group)
                parts = []
            group = _IN_FENCE[kind]
            if part.chars:
                parts.append(part)
        number += 1
    if parts:
        yield TextBlock(joined(parts), group)
    if number < len(lines):
        yield from _fence_info(text, lines[number])
    return number + 1


def _is_table(chars: str, lines: Sequence[tuple[int, int]], number: int) -> bool:
    if number + 1 >= len(lines) or chars.count("|", *lines[number]) < 1:
        return False
    rule = chars[slice(*lines[number + 1])]
    return "|" in rule and "-" in rule and bool(_RULE.match(rule))


def _table(text: Text, lines: Sequence[tuple[int, int]], number: int) -> Generator[TextBlock, None, int]:
    """Yield the header row, then each row with its headers: ``Country: France; Population: 68 million``."""
    head = _cells(text, *lines[number])
    yield TextBlock(_unmarked(joined([cell for cell in head if cell.chars], "; ")), BlockKind.TITLE)
    number += 2
    while number < len(lines) and "|" in text.chars[slice(*lines[number])]:
        cells = _cells(text, *lines[number])
        named = [
            joined([_label_at(head[n].chars, cell), cell], ": ") if n < len(head) and head[n].chars and n else cell
            for n, cell in enumerate(cells)
            if cell.chars
        ]
        yield TextBlock(_unmarked(joined(named, "; ")), BlockKind.DATA)
        number += 1
    return number


def _cells(text: Text, start: int, end: int) -> list[Text]:
    cells, at = [], start
    for bar in [*(i for i in range(start, end) if text.chars[i] == "|"), end]:
        cells.append(text.cut(at, bar))
        at = bar + 1
    return cells[bool(cells and not cells[0].chars) :]


def _json_blocks(text: Text) -> list[TextBlock] | None:
    """Return the blocks of a JSON document, or ``None`` if it is not JSON and is read as prose."""
    try:
        document = json.loads(text.chars, object_pairs_hook=_Pairs, parse_constant=str, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return None
    blocks: list[TextBlock] = []
    places = _places(text.chars)
    before: tuple[str, ...] = ()
    for path, leaf in _leaves(document):
        start, end = next(places) if leaf is not None else (0, 0)
        value = _literal(text, start, end)
        label = _label_at(" ".join(path), value)
        if "\n" in value.chars or len(value.chars) > CODE_CHARS:
            blocks += [TextBlock(label, BlockKind.TITLE)] if path else []
            blocks += list(_prose_blocks(value))
        else:
            behind = bool(path) and path == before and _NUMERAL.fullmatch(value.chars) is not None
            if behind and _FIGURES.search(blocks[-1].text.chars):
                blocks[-1] = replace(blocks[-1], text=joined([blocks[-1].text, value], ", "))  # [0, 2] is one value
            else:
                blocks.append(TextBlock(joined([label, value], ": ") if path else value, BlockKind.DATA))
        before = path
    return blocks


class _Pairs(list[tuple[str, Any]]):
    """A JSON object with all its pairs, so that a duplicate key hides nothing."""


def _leaves(document: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield each leaf with the words of its path, in document order.

    ``None`` is no leaf: it stands for an empty container, or for a path so long that it is emitted once and then
    dropped.
    """
    todo: list[tuple[tuple[str, ...], Any]] = [((), document)]
    while todo:
        path, node = todo.pop()
        if sum(map(len, path)) > MAX_PATH:
            yield path, None
            path = ()
        if isinstance(node, _Pairs) and node:
            todo += [((*path, _CAMEL.sub(" ", key)), child) for key, child in reversed(node)]
        elif isinstance(node, list) and node:
            todo += [((*path, *_named(node, child)), child) for child in reversed(node)]
        else:
            yield path, None if isinstance(node, list) else str(node)


def _named(nodes: Sequence[Any], node: Any) -> Iterator[str]:
    """Yield the name of an object among several of a list: its first text, so that its fields are told from the others'."""
    if len(nodes) > 1 and isinstance(node, _Pairs) and len(node) > 1:
        first = node[0][1]
        if isinstance(first, str) and 0 < len(first) <= MAX_NAME and not _NUMERAL.fullmatch(first):
            yield first


def _places(chars: str) -> Iterator[tuple[int, int]]:
    """Yield the span of each value of a JSON document. A token before a colon is a key."""
    for token in _JSON_TOKEN.finditer(chars):
        after = token.end()
        while after < len(chars) and chars[after].isspace():
            after += 1
        if chars[after : after + 1] != ":":
            yield token.span()


def _literal(text: Text, start: int, end: int) -> Text:
    """Return the value of a JSON token with escapes resolved. Each character keeps its span."""
    if text.chars[start:end][:1] != '"':
        return text.cut(start, end)
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = start + 1
    while at < end - 1:
        escape = _ESCAPE.match(text.chars, at, end - 1) if text.chars[at] == "\\" else None
        after = escape.end() if escape else at + 1
        decoded = json.loads(f'"{escape[0]}"') if escape else text.chars[at]
        chars.append(decoded)
        starts += [text.starts[at]] * len(decoded)
        ends += [text.ends[after - 1]] * len(decoded)
        at = after
    return Text("".join(chars), starts, ends)


def _label_at(label: str, value: Text) -> Text:
    """Return *label* with the offset at which *value* starts."""
    at = value.origin[0]
    return Text(label, [at] * len(label), [at] * len(label))

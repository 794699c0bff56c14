"""Where a text that is still being written may be cut for release: behind whole sentences, list items, table rows and code blocks.

A unit is released when its end is certain from what follows it; what is in doubt waits. Pure.
"""

from __future__ import annotations

import re

_FENCE = re.compile(r"[ ]{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"\s*(?:[-*+\u2022]|\d{1,3}[.)])\s")
_END = re.compile(
    r"(?:[.!?\u2026]+[\"'\u201d\u2019\u00bb)\]*_]*(?=\s)|[\u3002\uff01\uff1f]+[\u300d\u300f\uff09\u201d]*)"
)
_WORD = re.compile(r"[\w.]+\Z")
_ABBREVIATIONS = frozenset({
    "approx", "art", "bzw", "ca", "cf", "co", "corp", "dept", "dr", "ed", "etc", "fig", "gov", "inc", "jr", "ltd", "mr", "mrs",
    "ms", "mt", "no", "nr", "op", "pp", "prof", "rev", "sec", "sen", "sr", "st", "usw", "vol", "vs",
})  # fmt: skip


def whole_until(text: str, start: int = 0) -> int:
    """Return the end of the last whole unit of *text*; *start* is the end of a unit that is known already.

    In prose a unit is a sentence: its mark is followed by a space and something that is not in lower case. A list item and a table
    row end with their line, a code block with its closing fence, a paragraph with an empty line.
    """
    end = at = start
    while at < len(text):
        line_end = text.find("\n", at)
        line = text[at:] if line_end < 0 else text[at:line_end]
        if fence := _FENCE.match(line):
            at = _closed(text, line_end, fence[1])
            if at < 0:
                return end
            end = at
        elif _stands_alone(line):
            if line_end < 0:
                return end
            end = at = line_end + 1
        else:
            upto, closed = _paragraph(text, at)
            if not closed:
                return max(end, _sentences(text, at, upto))
            end = at = upto
    return end


def _stands_alone(line: str) -> bool:
    bare = line.lstrip()
    return not bare or bare.startswith(("|", "#")) or bool(_ITEM.match(line))


def _closed(text: str, line_end: int, fence: str) -> int:
    """Return where the block that *fence* opened ends; -1 while it does not."""
    at = line_end + 1
    while line_end >= 0:
        line_end = text.find("\n", at)
        line = text[at:] if line_end < 0 else text[at:line_end]
        if line_end >= 0 and line.strip() and set(line.strip()) == {fence[0]} and len(line.strip()) >= len(fence):
            return line_end + 1
        at = line_end + 1
    return -1


def _paragraph(text: str, at: int) -> tuple[int, bool]:
    """Return where the paragraph at *at* ends, and whether something else follows it."""
    while True:
        line_end = text.find("\n", at)
        if line_end < 0:
            return len(text), False
        at = line_end + 1
        following = text.find("\n", at)
        line = text[at:] if following < 0 else text[at:following]
        if following < 0 and not line.strip():
            return len(text), False
        if (_stands_alone(line) and (following >= 0 or line.strip())) or _FENCE.match(line):
            return at, True


def _sentences(text: str, at: int, upto: int) -> int:
    """Return the end of the last sentence between *at* and *upto* that is certain."""
    end = at
    for mark in _END.finditer(text, at, upto):
        rest = text[mark.end() : upto].lstrip()
        if not rest or (rest[0].islower() and mark[0][0] not in "\u3002\uff01\uff1f"):
            continue
        if mark[0] == "." and _abbreviates(text[end : mark.start()]):
            continue
        end = mark.end()
    return end if end > at else 0


def _abbreviates(before: str) -> bool:
    """Tell whether a full stop may belong to the word before it: an abbreviation, an initial, a number."""
    word = _WORD.search(before)
    if word is None:
        return False
    last = word[0].lower()
    return len(last) == 1 or "." in last.strip(".") or last in _ABBREVIATIONS or (last.isdigit() and len(last) < 3)

"""Lines that say what a part of a prompt is: labels, headings, marks and leads, in any language (ATT-5).

A label stands before a colon, in a heading, or between marks such as ``[ ]``, ``=== ===`` and ``<<< >>>``. Which part it opens is
told by its words (``vocabulary``).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from interlock.sidecar.call import vocabulary
from interlock.sidecar.call.vocabulary import (
    ABOVE,
    ASKS,
    ENDS,
    ENGLISH,
    ORDERS,
    POINTS,
    SHOWS,
    SOURCES,
    WORKS,
    LabelWord,
)

_MARKS = " \t#*=-_~<>[]{}|+•【】「」『』《》〔〕`"
_LONGEST_HEAD = 120
"""Characters of a line in which a label ends."""
LONGEST_LEAD = 400
"""Characters of a line that may lead to given text, and say what to do with what stood above."""
_MOST_WORDS_INLINE = 3
_MOST_WORDS_BARE = 7
_MOST_WORDS_SHOUTED = 5
_MOST_WORDS_TITLE = 14
"""Words of a label in capitals that begins with what it names."""
_MOST_WORDS_ASKING = 9
_LAST_ONLY = re.compile(
    r"(?:user|human|answer|response|output|input|rule|assistant|guideline|constraint|request|quer|prompt|task)"
)
"""English has the word that names a thing last: *response time* is no response, *user question* is a question."""
_LEAST_INLINE = 60
"""Characters from which the rest of an order to work on a text is that text: *Translate this: good morning* is a request."""
_BOX = re.compile(
    r"[ \t]*(?:[=*#>-]{1,6}[ \t]*)?(?:\[{1,2}|【|「|『|《|〔)[^\]】」』》〕\n]{1,160}(?:\]{1,2}|】|」|』|》|〕)"
)
_RULED_MARKS = frozenset("=*~_-<>")
_LONGEST_MARK = 200
"""Characters of a label between marks, marks and all."""
_COLON = re.compile("[:：]")
_HEADING = re.compile(r"[ \t]*#{1,6}[ \t]+\S")
_BOLD = re.compile(r"[ \t]*\*\*[^*\n]{1,80}\*\*[ \t]*$")
_LINK = re.compile(r"\s*\(")
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s*")
_PUNCTUATED = re.compile(r"[.!?](?:\s|\Z)|[。！？]")
_REMARK = re.compile(r"\([^()\n]{1,80}\)")
_LEADS_ON = re.compile(r"[:：]\s*$")


_POSSESSIVES = frozenset(["my", "mein", "meine", "mon", "ma", "mes", "mi", "mis", "mio", "mia", "meu", "minha", "mijn"])


class LabelPart(Enum):
    """What a label opens."""

    SOURCE = "source"
    OWN = "own"
    END = "end"


@dataclass(frozen=True)
class Label:
    """What a line opens, and where in the line that begins."""

    part: LabelPart
    end: int


def read(line: str) -> Label | None:
    """Return what a line opens by a label, a heading or a mark of its own."""
    if not line or line.isspace():
        return None
    if box := _BOX.match(line):
        return _boxed(line, box.end())
    if _is_ruled(line):
        return _made(_of_mark(line.strip(_MARKS)), len(line))
    start = len(line) - len(line.lstrip(_MARKS))
    colon = _COLON.search(line, start, start + _LONGEST_HEAD)
    if colon is None:
        if line.isupper() and len(line) <= _LONGEST_HEAD and len(vocabulary.words(line)) <= _MOST_WORDS_SHOUTED:
            return _made(_of_shout(line), len(line))
        heading = len(line) <= _LONGEST_HEAD and (_HEADING.match(line) or _BOLD.match(line))
        return _made(_of_words(line, inline=False), len(line)) if heading else None
    end = colon.end() + len(line[colon.end() :]) - len(line[colon.end() :].lstrip("* "))
    return _made(_of_words(line[start : colon.start()], inline=bool(line[end:].strip())), end)


def leads(line: str) -> bool:
    """Whether a line tells that given text is at hand: *Use the following context …*, *Kontext steht unten*."""
    if len(line) > LONGEST_LEAD:
        return False
    means = vocabulary.meanings(_last_sentence(line))
    return {POINTS, SOURCES} <= means or {POINTS, SOURCES} <= vocabulary.meanings(line)


def leads_on(line: str) -> bool:
    """Whether a line ends in a colon and leads to given text."""
    if len(line) > LONGEST_LEAD or not _LEADS_ON.search(line):
        return False
    means = vocabulary.meanings(_last_sentence(line))
    return {POINTS, SOURCES} <= means or works(line)


def works(line: str) -> bool:
    """Whether a line orders to work on a text: to summarise, to translate, to rewrite it."""
    return len(line) <= LONGEST_LEAD and WORKS in vocabulary.meanings(line)


def works_on(line: str) -> int | None:
    """Return where the text begins that stands behind an order to work on it, in the same line."""
    colon = _COLON.search(line, 0, _LONGEST_HEAD)
    if (
        colon is None
        or len(line) - colon.end() < _LEAST_INLINE // 2
        or WORKS not in vocabulary.meanings(line[: colon.start()])
    ):
        return None
    return colon.end()


def asks_for(head: str) -> bool:
    """Whether a label is an order to make what it names: *Send an email:*."""
    found = vocabulary.words(head)
    return bool(found) and ORDERS in found[0].means and found[0].text not in _POSSESSIVES


def shows(line: str) -> bool:
    """Whether a heading is one of examples."""
    return len(line) <= _LONGEST_HEAD and SHOWS in vocabulary.meanings(line)


def points_back(line: str) -> bool:
    """Whether a line speaks of given text that stood above it, and asks something: the given text has ended."""
    if len(line) > LONGEST_LEAD:
        return False
    found = vocabulary.words(line)
    means = frozenset[str]().union(*(word.means for word in found))
    if ABOVE not in means or not {SOURCES, ASKS} & means:
        return False
    says_so = len(found) <= _MOST_WORDS_ASKING and any(SOURCES in word.means for word in found[-2:])
    return says_so or ASKS in means or bool(_LEADS_ON.search(line))


def works_back(line: str) -> bool:
    """Whether a line orders to work on a text that stands above it."""
    return {WORKS} <= (means := vocabulary.meanings(line[:LONGEST_LEAD])) and bool({ABOVE, POINTS, SOURCES} & means)


def orders(text: str) -> bool:
    """Whether a text begins with an order of the writer's."""
    found = vocabulary.words(text[:_LONGEST_HEAD])
    return bool(found) and bool({ORDERS, WORKS} & found[0].means)


def _boxed(line: str, end: int) -> Label | None:
    """Return what a label in brackets opens: ``[CONTEXT 0]:``, ``【資料】``, ``[[ ## question ## ]]``."""
    rest, head = line[end:], line[:end].strip(_MARKS)
    if _LINK.match(rest):
        return None
    bare = not rest.strip(" \t:：*=")
    if not bare and not rest.lstrip().startswith((":", "：")) and not any(map(str.isdigit, head)) and ":" not in head:
        return None
    if not bare and len(vocabulary.words(head)) > _MOST_WORDS_INLINE and ":" not in head:
        return None
    return _made(_of_mark(head), end + len(rest) - len(rest.lstrip(" \t:：*=")))


def _is_ruled(line: str) -> bool:
    """Whether a label stands between two runs of marks: ``=== DOCUMENT 1 ===``, ``<<<CONTEXT>>>``."""
    body = line.strip()
    if not 6 < len(body) <= _LONGEST_MARK or not body.strip("=*~_-<> "):
        return False
    return all(len(set(run)) == 1 and run[0] in _RULED_MARKS for run in (body[:3], body[-3:]))


def _of_mark(head: str) -> LabelPart | None:
    """Return what a label between marks opens; a name of a file, a number or the like may follow it."""
    found = [] if _PUNCTUATED.search(head) else vocabulary.words(head)
    if not found:
        return None
    if ENDS in found[0].means or head.lstrip().startswith("/"):
        return LabelPart.END
    if len(found) > 1 and ASKS in found[-1].means and not any(map(str.isdigit, head)):
        return LabelPart.OWN
    return next((part for word in found[:4] if (part := _part(word)) is not None), None)


def _of_shout(line: str) -> LabelPart | None:
    """Return what a line of capitals opens or ends, such as ``START CONTEXT BLOCK``; a question in capitals is none."""
    part = _of_mark(line) if any(map(str.isupper, line)) else None
    return None if part is LabelPart.OWN else part


def _of_words(head: str, *, inline: bool) -> LabelPart | None:
    plain = _REMARK.sub(" ", head)
    found = [] if _PUNCTUATED.search(plain) else vocabulary.without_copula(vocabulary.words(plain))
    if not found or len(found) > _MOST_WORDS_ASKING:
        title = found and not inline and plain.isupper() and len(found) <= _MOST_WORDS_TITLE
        return LabelPart.SOURCE if title and SOURCES in found[0].means else None
    if ASKS in found[-1].means or (ASKS in found[0].means and not _LAST_ONLY.match(found[0].text)):
        most = _MOST_WORDS_INLINE if inline or any(SOURCES in word.means for word in found) else _MOST_WORDS_ASKING
        return LabelPart.OWN if len(found) <= most else None
    if any({ORDERS, WORKS} & word.means for word in found):
        return None
    if len(found) > (_MOST_WORDS_INLINE if inline else _MOST_WORDS_BARE):
        return None
    names = any(SOURCES in word.means for word in (*found[:3], found[-1]))
    if inline and (ENGLISH in found[0].means or "," in head):
        return LabelPart.SOURCE if SOURCES in found[-1].means and "," not in head else None
    named = any(SOURCES in word.means for word in ((found[0], found[-1]) if inline else found))
    return LabelPart.SOURCE if names and named else None


def _part(word: LabelWord) -> LabelPart | None:
    if ASKS in word.means:
        return LabelPart.OWN
    return LabelPart.SOURCE if SOURCES in word.means else None


def _made(part: LabelPart | None, end: int) -> Label | None:
    return None if part is None else Label(part, end)


def _last_sentence(line: str) -> str:
    pieces = [piece for piece in _SENTENCE_END.split(line) if piece.strip()]
    return pieces[-1] if pieces else ""

"""Whether an answer was cut off, and whether more text adds to it (ATT-10, docs/adr/0019). Text alone is looked at.

An answer that is merely short, such as "Yes.", is finished. Whatever cannot be told counts as finished, because a
continuation of a finished answer does harm and a missing one is told by the completeness that the response carries.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

LENGTH = "length"
"""The ``finish_reason`` of an answer that a limit ended."""

NEW_FROM = 0.5
"""Least share of the added words that stand in sentences which the answer does not have yet."""

SAME_FROM = 0.6
"""Share of a sentence's word triples that another text has, from which the sentence counts as said there."""

LONGEST_OVERLAP = 400
"""Characters of the end of an answer that a continuation may begin with again; they are not repeated."""

LEAST_OVERLAP = 8

LEAST_WORDS = 3
"""Words of a line up to which it may end in any way: "Grade a", "It is on"."""

_LINE = "\n"
_WORD = re.compile(r"\w+")
_SENTENCE_END = re.compile(r"[.!?…][\"'”’)\]»*_`]*\s+|\n+|(?<=[。！？])")
_TERMINAL = re.compile(r"[.!?…。！？][\"'”’)\]»*_`]*$")
_ENDED_BEFORE = re.compile(r"(?:\b(?!(?:Prof|Sept|Dept|Corp|Inst)\.)(?:\w{4,}|\d{2,})\.|\w[!?])[\"”’)]*\s+[A-ZÀ-Ý]")
_FENCE = re.compile(r"^ {0,3}(?:```|~~~)", re.MULTILINE)
_OPEN_END = re.compile(r"(?:[,:：\[{–—]|(?<![:;=])\(|(?<=\s)-)$")
_ITEM = re.compile(r"\s*(?:[-*+•]|\(?(?:\d{1,3}|[a-z])[.)])(?=\s|$)")
_NO_PROSE = re.compile(r"\s*(?:[-*+•>#|]|\(?(?:\d{1,3}|[a-z])[.)]\s)")

_LINKS = frozenset(
    _WORD.findall(
        "a an the and or but of to in on at by for from with without about between into onto than that which who whose because although while if as "
        "is are was were has have had will would can could should may might must its their his her our your my "
        "der die das dem den ein eine einen einem einer und oder aber von zu im am bei für aus mit nach dass weil wenn als ist sind war wurde wird "
        "le la les un une des et ou mais de du à au aux dans sur par pour avec que qui parce est sont était ont sa son ses "
        "el los las una unos y pero del al en por para con porque cuando es fue era han su sus"
    )
)
"""Words that no sentence ends with, in English, German, French and Spanish: articles, prepositions, conjunctions, auxiliaries."""

_PLEASANTRY = re.compile(
    r"^(?:hello|hi|hey|greetings|thanks|thank you|hallo|guten tag|danke|bonjour|salut|merci|hola|gracias)"
    r"(?:[\s,]+\w+){0,3}[\s.!?,]*$"
    r"|\bhow (?:can|may) i (?:help|assist)\b|\b(?:can|may) i help you\b|\bwhat can i do for you\b|\bis there anything else\b"
    r"|\blet me know (?:if|how|what)\b|\bfeel free to\b|\bhappy to help\b|\bi hope (?:this|that) helps\b"
    r"|\bwie kann ich (?:ihnen|dir)\b|\bcomment puis-je vous aider\b|\ben quoi puis-je\b|\ben qué puedo ayudar",
    re.IGNORECASE,
)


def is_cut_off(text: str, finish_reason: str) -> bool:
    """Tell whether *text* ends before it is finished: by its ``finish_reason``, or within a sentence, list, code or JSON."""
    kept = text.rstrip()
    if not kept:
        return False
    return finish_reason == LENGTH or _is_open(kept) or _ends_within_a_sentence(kept)


def adds(before: str, more: str) -> bool:
    """Tell whether *more* adds to *before*: half of its words at least are in sentences that are new.

    A sentence of *before*, one that *more* itself has said already, a greeting and an offer of help are not new.
    """
    had, total, new = _triples(before), 0, 0
    seen = Counter(_normal(sentence) for sentence in _sentences(before))
    for sentence in _sentences(more):
        name, words = _normal(sentence), _words(sentence)
        said = seen[name] or _share(words, had) >= SAME_FROM
        total += len(words)
        new += 0 if said or _PLEASANTRY.search(sentence.strip()) else len(words)
        seen[name] += 1
        had |= _triples(sentence)
    return new > 0 and new >= NEW_FROM * total


def joined(before: str, more: str) -> str:
    """Return both as one text. What *more* repeats of the end of *before* stands once; a cut sentence goes on in its line."""
    head, tail = before.rstrip(), more.lstrip()
    repeated = _overlap(head, tail)
    if repeated:
        return head + tail[repeated:]
    between = before[len(head) :] + more[: len(more) - len(tail)]
    if _TERMINAL.search(head) and not _is_open(head):
        return f"{head}\n\n{tail}"
    return f"{head}{between or (_LINE if _is_code(head) else ' ')}{tail}"


def _is_open(text: str) -> bool:
    """Tell whether code, JSON or a list is not closed, or the text ends on a mark that announces more."""
    return _is_code(text) or bool(_OPEN_END.search(text)) or _ends_on_an_empty_item(text)


def _is_code(text: str) -> bool:
    """Tell whether *text* ends within a code block or a JSON value."""
    if len(_FENCE.findall(text)) % 2:
        return True
    return text[:1] in {"{", "["} and not _TERMINAL.search(text) and _depth(text) > 0


def _ends_on_an_empty_item(text: str) -> bool:
    """Tell whether the last line is the mark of a list item alone, after an item; "4." by itself is an answer."""
    *lines, last = [line for line in text.splitlines() if line.strip()]
    mark = _ITEM.match(last)
    return mark is not None and mark.end() == len(last) and bool(lines) and _ITEM.match(lines[-1]) is not None


def _depth(text: str) -> int:
    """Return how many brackets of a JSON text are open at its end; one within a string counts as one more."""
    depth, quoted, escaped = 0, False, False
    for sign in text:
        if quoted:
            quoted, escaped = escaped or sign != '"', sign == "\\" and not escaped
        elif sign == '"':
            quoted = True
        else:
            depth += (sign in "{[") - (sign in "}]")
    return depth + quoted


def _ends_within_a_sentence(text: str) -> bool:
    """Tell whether the last line stops in a sentence: on a word that none ends with, or without a stop where others have one."""
    line = text.rsplit("\n", 1)[-1]
    words = _words(line)
    if _TERMINAL.search(line):
        return False
    if line.count("(") > line.count(")"):
        return True
    if len(words) <= LEAST_WORDS:
        return False
    if words[-1] in _LINKS and line.endswith(words[-1]):
        return True
    return not _NO_PROSE.match(line) and _ENDED_BEFORE.search(line) is not None


def _overlap(before: str, more: str) -> int:
    """Return how many characters *more* begins with that *before* ends with."""
    most = min(LONGEST_OVERLAP, len(before), len(more))
    return next((size for size in range(most, LEAST_OVERLAP - 1, -1) if before.endswith(more[:size])), 0)


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in _SENTENCE_END.split(text) if _WORD.search(sentence)]


def _words(text: str) -> list[str]:
    return _WORD.findall(text)


def _normal(text: str) -> str:
    return " ".join(word.casefold() for word in _words(text))


def _triples(text: str) -> set[tuple[str, ...]]:
    words = [word.casefold() for word in _words(text)]
    return set(_grams(words))


def _grams(words: Sequence[str]) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + 3]) for start in range(max(1, len(words) - 2))] if words else []


def _share(words: Sequence[str], had: set[tuple[str, ...]]) -> float:
    """Return the share of a sentence's word triples that *had* holds."""
    grams = _grams([word.casefold() for word in words])
    return sum(gram in had for gram in grams) / len(grams) if grams else 1.0

"""Texts of the NLI sources: sentences, content words, and the window of a document that a claim is about."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence

WORD = re.compile(r"[A-Za-z0-9]+(?:[.,'-][A-Za-z0-9]+)*")
SMALL_WORDS = (
    "the a an of to in on at and or is are was were be been by for with as that this it its his her their he she they "
    "from has have had not but which who will would can could may might than into about after before over under also"
)
STOP = frozenset(SMALL_WORDS.split())
SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")
WINDOW_WORDS = 110
# What tokenised corpora did to punctuation, undone in this order.
MENDED = (
    (re.compile(r"\s+([.,;:!?%)\]])"), r"\1"),
    (re.compile(r"([(\[$])\s+"), r"\1"),
    (re.compile(r"\s+('s|n't|'re|'ve|'ll|'d)\b"), r"\1"),
    (re.compile(r"\s+"), " "),
)


def clean(text: str) -> str:
    """Return text as people write it: brackets, quotation marks and spaces of tokenised corpora undone."""
    for old, new in (("``", '"'), ("''", '"'), ("-LRB-", "("), ("-RRB-", ")")):
        text = text.replace(old, new)
    for mended, new in MENDED:
        text = mended.sub(new, text)
    return text.strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; a line break ends one."""
    return [part.strip() for part in SENTENCE_END.split(text) if part and part.strip()]


def content(text: str) -> set[str]:
    """Return the words that carry meaning, in lower case."""
    return {word.lower() for word in WORD.findall(text)} - STOP


def window(document: Sequence[str], claim: str) -> str:
    """Return the run of sentences, at most 110 words, that shares most content words with the claim."""
    wanted, best, best_score = content(claim), "", -1.0
    shared = [content(sentence) & wanted for sentence in document]
    sizes = [len(sentence.split()) for sentence in document]
    for first in range(len(document)):
        seen: set[str] = set()
        total = 0
        for last in range(first, len(document)):
            total += sizes[last]
            if total > WINDOW_WORDS and last > first:
                break
            seen |= shared[last]
            score = len(seen) - 0.002 * total
            if score > best_score:
                best_score, best = score, " ".join(document[first : last + 1])
    return best


def share(key: str) -> float:
    """Return a number below 1.0 that only the key decides, to split sets by."""
    return int(hashlib.sha256(key.encode()).hexdigest()[:12], 16) / 16**12

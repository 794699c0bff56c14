"""Content words: the words of a text without the most common function words."""

from __future__ import annotations

import re

from interlock.dpe.text.wordlists import word_set

_WORD = re.compile(r"[^\W_]+(?:[.,'’-][^\W_]+)*")
_COMMON = word_set(
    """
    a about after also an and are as at be been before but by can could for from had has have he her his in into
    is it its may might not of on or over she than that the their they this to under was were which who will with
    would
    """
)


def content_words(text: str) -> frozenset[str]:
    """Return the content words of *text* in lower case."""
    return frozenset(word.lower() for word in _WORD.findall(text)) - _COMMON

"""Lookalikes: letters of other scripts that resemble Latin ones, and words that mix scripts (reliability.md A-24).

The table is Unicode's (UTS #39), reduced to characters that resemble one Latin letter or digit; see
scripts/make_confusables.py. A lookalike in a text of its own script is an honest letter. Only words that mix scripts
count as hidden.
"""

from __future__ import annotations

import unicodedata
from functools import cache
from itertools import pairwise

from interlock.dpe.text.names import COMMON_WORDS
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import lines

_TABLE = {
    lookalike: plain
    for plain, _, others in (row.partition(" ") for row in lines("confusables.txt"))
    for lookalike in others
}
_WORD = pattern(r"[\p{L}\p{M}\p{So}\p{Nd}]*[^\x00-\x7f[:space:]\p{P}\p{Sm}\p{Sc}][\p{L}\p{M}\p{So}\p{Nd}]*")
_SHORTEST_KNOWN = 3
_LATIN_IN_GREEK = 3


def resembled_letter(char: str) -> str:
    """Return the Latin letter or digit that *char* resembles, or *char* itself."""
    return _TABLE.get(char, char)


@cache
def in_script_of_latin(char: str) -> bool:
    """Whether *char* is a letter or digit of a script with accents: Latin, Greek or Cyrillic."""
    return char.isascii() or unicodedata.name(char, "").startswith(("LATIN ", "GREEK ", "CYRILLIC "))


def folded(text: str) -> str:
    """Return *text* with lookalikes replaced by Latin letters. The length is unchanged.

    Only words that become Latin are changed. A word without any Latin letter is changed only in a mostly Latin text.
    """
    if text.isascii():
        return text
    mostly_latin = 2 * sum(map(_is_latin, text)) > sum(c.isalpha() for c in text)
    chars = list(text)
    for match in _WORD.finditer(text):
        word = match.group()
        plain = "".join(map(resembled_letter, word))
        latin = mostly_latin or any(c.isascii() and c.isalpha() for c in word)
        if mostly_latin and any(c.isdecimal() for c in word):
            plain = "".join(str(unicodedata.decimal(c, c)) for c in plain)
        if latin and plain != word and plain.isascii() and (len(word) > 1 or _stands_alone(word)):
            chars[match.start() : match.end()] = plain
    return "".join(chars)


def _stands_alone(char: str) -> bool:
    """Whether a single character is Latin or a digit. A lone Greek or Cyrillic letter is a symbol or a word."""
    return char.isdecimal() or unicodedata.name(char, "").startswith("LATIN ")


def mixed_words(text: str) -> int:
    """Return the number of words that mix Latin letters with lookalikes of another script and read as Latin."""
    if text.isascii():
        return 0
    return sum(_is_mixed(match.group()) for match in _WORD.finditer(text) if not match.group().isascii())


def _is_mixed(word: str) -> bool:
    foreign = [_is_foreign(char) for char in word]
    latin = sum(char.isascii() and char.isalpha() for char in word)
    if not latin or not any(foreign):
        return False
    plain = "".join(map(resembled_letter, word))
    if not plain.isascii():
        return False
    if len(word) >= _SHORTEST_KNOWN and plain.lower() in COMMON_WORDS:
        return True
    greek = any(unicodedata.name(char, "").startswith("GREEK") for char in word)
    changes = sum(one != other for one, other in pairwise(foreign))
    return changes > 1 and latin >= (_LATIN_IN_GREEK if greek else 2)


@cache
def _is_latin(char: str) -> bool:
    return char.isalpha() and (char.isascii() or unicodedata.name(char, "").startswith("LATIN "))


@cache
def _is_foreign(char: str) -> bool:
    return char in _TABLE and char.isalpha() and not unicodedata.name(char, "").startswith("LATIN ")

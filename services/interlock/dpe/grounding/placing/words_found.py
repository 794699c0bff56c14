"""Where a text has a cell: by the stems of its words, and by its digits however they are written (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP, stem

Needle = tuple[str, ...]

_WORD = pattern(r"\d+(?:[.,:]\d+)*|\p{L}+(?:'s|’s)?")
_TITLES = word_set("mr mrs ms dr prof professor sir")
_SMALL = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"]
_COUNTED = {word: str(n) for n, word in enumerate(_SMALL)}
_LONGEST = 5
_THOUSANDS = pattern(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?")


def words(text: str) -> list[str]:
    """Return the words of a text as cells are looked up in it: stems, and numbers in digits."""
    return [_plain(word) for word in _WORD.findall(text)]


def needle(cell: str) -> Needle:
    """Return what a cell is found by: its words, or of a measured value its figures; nothing for a cell of many words."""
    written = [word for word in _WORD.findall(cell) if word.casefold() not in STOP or word.casefold() in _COUNTED]
    kept = (
        [word for word in written if word.casefold() not in _TITLES] or written or _WORD.findall(cell)
    )  # the month of May
    if any(word[0].isdigit() for word in kept):
        kept = [word for word in kept if word[0].isdigit() or word[0].isupper()]
    return tuple(map(_plain, kept)) if len(kept) <= _LONGEST else ()


def places(found: Needle, text: Sequence[str]) -> list[int]:
    """Return where a text has the words of a needle one after the other."""
    size = len(found)
    return [n for n in range(len(text) - size + 1) if text[n] == found[0] and tuple(text[n : n + size]) == found]


def _plain(word: str) -> str:
    low = word.casefold().removesuffix("'s").removesuffix("’s")
    if low[0].isdigit():
        return low.replace(",", "") if _THOUSANDS.fullmatch(low) else low
    return _COUNTED.get(low) or stem(low).removeprefix("±")

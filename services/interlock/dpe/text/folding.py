"""Unicode folding: one spelling for characters that Unicode writes in many ways (reliability.md A-24, A-25).

Width variants, digits of any script, dashes, quotes, fractions and superscripts become plain characters. Characters
without width (zero-width, soft hyphen, bidi, tags, variation selectors) are removed. Every folded character keeps its
index in the original, so findings refer to the text that the reader sees.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

GROUP_MARK = "'"
FRACTION_SLASH = "\u2044"
_NARROW_SPACES = "\u00a0\u2007\u2009\u202f"
_PLAIN = {
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2212\ufe63\uff0d", "-"),
    **dict.fromkeys("\u2018\u2019\u201b\u02bc\u2032\uff07", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u2033\uff02", '"'),
    **dict.fromkeys(_NARROW_SPACES, " "),
}
_VARIATION_SELECTORS = (range(0xFE00, 0xFE10), range(0xE0100, 0xE01F0))


@dataclass(frozen=True, slots=True)
class Folded:
    """Folded text, and for each character the index of the original one."""

    text: str
    places: Sequence[int]

    def original(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the original text behind a span of the folded text."""
        return self.places[start], self.places[end - 1] + 1


def fold(text: str) -> Folded:
    """Fold a text. ASCII is unchanged."""
    if text.isascii():
        return Folded(text, range(len(text)))
    characters: list[str] = []
    places: list[int] = []
    for place, character in enumerate(text):
        for plain in _in_context(text, place, character, characters):
            characters.append(plain)
            places.append(place)
    return Folded("".join(characters), places)


def _in_context(text: str, place: int, character: str, before: Sequence[str]) -> str:
    """Fold one character. A fraction or superscript after a digit is kept apart from it."""
    if character.isascii():
        return character
    last = before[-1] if before else ""
    if character in _NARROW_SPACES and last.isdigit() and text[place + 1 : place + 2].isdecimal():
        return GROUP_MARK
    plain = _folded(character)
    if FRACTION_SLASH in plain and len(plain) > 1 and last.isdigit():
        return " " + plain
    if plain.startswith("^") and len(before) > 1 and last.isdigit() and _inside_exponent(before):
        return plain[1:]
    return plain


def _inside_exponent(before: Sequence[str]) -> bool:
    """Whether the characters so far end in an exponent, whose further digits need no caret."""
    for character in reversed(before[-4:]):
        if character == "^":
            return True
        if not character.isdigit():
            return False
    return False


@cache
def _folded(character: str) -> str:
    if character in _PLAIN:
        return _PLAIN[character]
    if unicodedata.category(character) == "Cf" or any(ord(character) in span for span in _VARIATION_SELECTORS):
        return ""
    decimal = unicodedata.decimal(character, None)
    superscript = unicodedata.decomposition(character).startswith("<super>")
    if decimal is not None and not superscript:
        return str(decimal)
    plain = unicodedata.normalize("NFKC", character)
    return f"^{plain}" if superscript and plain.isdigit() else plain

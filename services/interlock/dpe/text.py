"""Text that remembers where each of its characters came from.

Every stage reads a normalised text: NFKC, without characters that a reader cannot see (reliability.md A-24). What is
reported points at the text as the model wrote it, so each character keeps the span that it was made from.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

_SINGLES = (0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x3164, 0xFEFF, 0xFFA0)
_RANGES = (
    range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2070), range(0xFFF9, 0xFFFC),
    range(0xFE00, 0xFE10), range(0x180B, 0x180E), range(0xE0000, 0xE1000),
)  # fmt: skip
_HIDDEN = frozenset({*_SINGLES, *(code for span in _RANGES for code in span)})
FRACTION_SLASH = "\u2044"
_JOINERS = frozenset([0x200C, 0x200D])
_MARKS_OF_DIRECTION = frozenset([0x200E, 0x200F, 0x061C])
_VARIANTS = range(0xFE00, 0xFE10)
_IDEOGRAPHIC_VARIANTS = range(0xE0100, 0xE01F0)
_TAGS = range(0xE0020, 0xE0080)
_BLACK_FLAG = "\U0001f3f4"
_LAYOUT = "\n\t\r"


@dataclass(frozen=True)
class Text:
    """A text made from another: character *i* came from ``starts[i]`` up to ``ends[i]`` of it."""

    chars: str
    starts: Sequence[int]
    ends: Sequence[int]

    def cut(self, start: int, end: int) -> Text:
        """Return the part between two offsets, without surrounding white space."""
        while start < end and self.chars[start].isspace():
            start += 1
        while end > start and self.chars[end - 1].isspace():
            end -= 1
        return Text(self.chars[start:end], self.starts[start:end], self.ends[start:end])

    def without(self, spans: Sequence[tuple[int, int]]) -> Text:
        """Return the text with *spans*, in rising order, taken out."""
        parts, at = [], 0
        for start, end in spans:
            parts.append(self._slice(at, start))
            at = end
        parts.append(self._slice(at, len(self.chars)))
        return joined(parts, "")

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the place in the origin of the characters from *start* up to *end*."""
        if start >= end:
            return (0, 0)
        return (min(self.starts[start:end]), max(self.ends[start:end]))

    @property
    def origin(self) -> tuple[int, int]:
        """Place in the origin of the whole."""
        return self.span(0, len(self.chars))

    def _slice(self, start: int, end: int) -> Text:
        return Text(self.chars[start:end], self.starts[start:end], self.ends[start:end])


def joined(parts: Sequence[Text], glue: str = " ") -> Text:
    """Return *parts* as one text; the glue points at the end of what it follows."""
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for number, part in enumerate(parts):
        if number and glue:
            edge = ends[-1] if ends else 0
            chars.append(glue)
            starts.extend([edge] * len(glue))
            ends.extend([edge] * len(glue))
        chars.append(part.chars)
        starts.extend(part.starts)
        ends.extend(part.ends)
    return Text("".join(chars), starts, ends)


def plain(raw: str) -> Text:
    """Return *raw* as a text that is its own origin."""
    return Text(raw, range(len(raw)), range(1, len(raw) + 1))


def normalised(raw: str) -> tuple[Text, int]:
    """Return *raw* in NFKC without hidden characters, and how many hidden characters had no honest use.

    Joiners inside emoji and inside scripts that need them, variation selectors, direction marks beside right-to-left
    letters and the tags of a flag emoji are honest; the same characters between Latin letters are not.
    """
    if raw.isascii() and raw.isprintable():
        return plain(raw), 0
    right_to_left = any(unicodedata.bidirectional(c) in {"R", "AL"} and ord(c) not in _MARKS_OF_DIRECTION for c in raw)
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    suspicious = at = 0
    while at < len(raw):
        if _is_hidden(raw[at]):
            honest = _is_honest(raw, at, right_to_left=right_to_left)
            suspicious += not honest
            if honest and ord(raw[at]) in _JOINERS:
                chars.append(raw[at])
                starts.append(at)
                ends.append(at + 1)
            at += 1
            continue
        end = at + 1
        while end < len(raw) and unicodedata.combining(raw[end]):
            end += 1
        for char in _kept_apart(raw[at], unicodedata.normalize("NFKC", raw[at:end]), chars):
            chars.append(char)
            starts.append(at)
            ends.append(end)
        at = end
    return Text("".join(chars), starts, ends), suspicious


def _kept_apart(char: str, plain: str, before: Sequence[str]) -> str:
    """Return *plain* so that it does not run into the number before it: 3½ is not 31/2, and 10⁶ is not 106."""
    if not before or not before[-1].isdigit():
        return plain
    if unicodedata.category(char) == "No" and FRACTION_SLASH in plain:
        return " " + plain
    raised = unicodedata.decomposition(char).startswith("<super>") and plain.isdigit()
    in_exponent = next((c for c in reversed(before) if not c.isdigit()), "") == "^"
    return "^" + plain if raised and not in_exponent else plain


def _is_hidden(char: str) -> bool:
    return ord(char) in _HIDDEN or (unicodedata.category(char) == "Cc" and char not in _LAYOUT)


def _is_honest(raw: str, at: int, *, right_to_left: bool) -> bool:
    code = ord(raw[at])
    before, after = raw[at - 1 : at], raw[at + 1 : at + 2]
    if code in _JOINERS:
        return all(_joins(c) for c in (before, after) if c) and bool(before)
    if code in _VARIANTS or code in _IDEOGRAPHIC_VARIANTS:
        # One behind a sign chooses its look; several in a row, or one behind a letter, carry a message.
        return bool(before) and not _is_hidden(before) and not (before.isascii() and before.isalpha())
    if code in _MARKS_OF_DIRECTION:
        return right_to_left
    if code in _TAGS or code == _TAGS.stop - 1:
        head = raw.rfind(_BLACK_FLAG, max(0, at - 8), at)
        return head >= 0 and all(ord(c) in _TAGS for c in raw[head + 1 : at])
    return code == 0xFEFF and at == 0


def _joins(char: str) -> bool:
    """Whether a joiner may stand beside *char*: an emoji, or a letter of a script that shapes its letters."""
    if char.isascii():
        return char in " \n\t.,;:!?"
    if ord(char) in _VARIANTS or unicodedata.category(char) in {"So", "Sk", "Mn", "Mc"}:
        return True
    name = unicodedata.name(char, "")
    return not name.startswith(("LATIN", "GREEK", "CYRILLIC", "FULLWIDTH", "MODIFIER LETTER"))


def words_of(listing: str) -> frozenset[str]:
    """Return the words of a listing, so that a long list of words can be read."""
    return frozenset(listing.split())

"""Text whose characters keep their origin, and its normalisation (reliability.md A-24).

Every stage reads a normalised text: NFKC, without characters that a reader cannot see. Findings refer to the text as
the model wrote it, so each character keeps the span that it was made from.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.dpe.text.lookalikes import in_script_of_latin, mixed_words

_SINGLES = (0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, 0x2800, 0x3164, 0xFEFF, 0xFFA0)
_RANGES = (
    range(0x200B, 0x2010), range(0x202A, 0x202F), range(0x2060, 0x2070), range(0xFFF0, 0xFFFC),
    range(0xFE00, 0xFE10), range(0x180B, 0x180E), range(0x13430, 0x13440), range(0x1BCA0, 0x1BCA4),
    range(0x1D173, 0x1D17B), range(0xE0000, 0xE1000),
)  # fmt: skip
_HIDDEN = frozenset({*_SINGLES, *(code for span in _RANGES for code in span)})
FRACTION_SLASH = "\u2044"
_JOINERS = frozenset([0x200C, 0x200D])
_MARKS_OF_DIRECTION = frozenset([0x200E, 0x200F, 0x061C])
_VARIANTS = range(0xFE00, 0xFE10)
_IDEOGRAPHIC_VARIANTS = range(0xE0100, 0xE01F0)
_BREAK = 0x200B
_WRITTEN_ON = ("THAI ", "LAO ", "KHMER ", "MYANMAR ", "TIBETAN ", "JAVANESE ", "BALINESE ", "TAI ", "NEW TAI ", "CJK ")
_TAGS = range(0xE0020, 0xE0080)
_BLACK_FLAG = "\U0001f3f4"
_LAYOUT = "\n\t\r"
_WITHOUT_LAYOUT = str.maketrans("", "", _LAYOUT)
_STRUCK = frozenset(
    {*map(chr, (0x0305, 0x0332, 0x0333, 0x033F, 0x0347, 0x0488, 0x0489)), *map(chr, range(0x0334, 0x0339))}
    | {*map(chr, range(0x035C, 0x0363)), *map(chr, range(0x20D0, 0x20F1))}
)
_MOST_MARKS = 2
_MOST_STRUCK = 4


@dataclass(frozen=True)
class Text:
    """A text made from another: character *i* was made from ``starts[i]`` to ``ends[i]`` of the origin."""

    chars: str
    starts: Sequence[int]
    ends: Sequence[int]

    @staticmethod
    def of(parts: Sequence[Text]) -> Text:
        """Return the concatenation of *parts*."""
        return joined(parts, "")

    def cut(self, start: int, end: int) -> Text:
        """Return the part between two offsets, without surrounding white space."""
        while start < end and self.chars[start].isspace():
            start += 1
        while end > start and self.chars[end - 1].isspace():
            end -= 1
        return Text(self.chars[start:end], self.starts[start:end], self.ends[start:end])

    def without(self, spans: Sequence[tuple[int, int]]) -> Text:
        """Return the text without *spans*, which are in rising order."""
        parts, at = [], 0
        for start, end in spans:
            parts.append(self.part(at, start))
            at = end
        parts.append(self.part(at, len(self.chars)))
        return joined(parts, "")

    def replaced(self, edits: Sequence[tuple[int, int, str]]) -> Text:
        """Return the text with *edits* applied, which are in rising order. Each replaces a span by a string.

        The characters of the string are spread over the span, so that each refers to a part of it.
        """
        parts, at = [], 0
        for start, end, put in edits:
            parts.append(self.part(at, start))
            parts.append(self._spread(start, end, put))
            at = end
        parts.append(self.part(at, len(self.chars)))
        return joined(parts, "")

    def turned(self, start: int, end: int) -> Text:
        """Return the text with the characters from *start* to *end* reversed."""
        part = self.part(start, end)
        back = Text(part.chars[::-1], part.starts[::-1], part.ends[::-1])
        return joined([self.part(0, start), back, self.part(end, len(self.chars))], "")

    def traced(self, origin: Text) -> Text:
        """Return this text with the offsets of *origin* resolved to the text that *origin* was made from."""
        starts, ends = origin.starts, origin.ends
        places = [
            (starts[start], ends[start]) if end == start + 1 else origin.span(start, end)
            for start, end in zip(self.starts, self.ends, strict=True)
        ]
        return Text(self.chars, [start for start, _ in places], [end for _, end in places])

    def _spread(self, start: int, end: int, put: str) -> Text:
        size = end - start
        places = [(start + n * size // len(put), start + ((n + 1) * size - 1) // len(put)) for n in range(len(put))]
        starts = [self.starts[first] for first, _ in places]
        return Text(put, starts, [max(self.ends[last], self.ends[first]) for first, last in places])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Return the span of the origin behind the characters from *start* to *end*."""
        if start >= end:
            return (0, 0)
        return (min(self.starts[start:end]), max(self.ends[start:end]))

    @property
    def origin(self) -> tuple[int, int]:
        """The span of the origin behind the whole text."""
        return self.span(0, len(self.chars))

    def part(self, start: int, end: int) -> Text:
        """Return the characters from *start* to *end*."""
        return Text(self.chars[start:end], self.starts[start:end], self.ends[start:end])


def joined(parts: Sequence[Text], glue: str = " ") -> Text:
    """Return *parts* as one text. The glue refers to the end of the part before it."""
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
    """Return *raw* in NFKC without hidden characters, and the number of hidden characters without an honest use.

    Joiners are honest inside emoji and inside scripts that need them, and so are variation selectors, direction marks
    next to right-to-left letters and the tags of a flag emoji. The same characters between Latin letters are not. Words
    that mix Latin letters with lookalikes of other scripts, and letters with stacked marks, count as hidden too.
    """
    if raw.isascii() and raw.translate(_WITHOUT_LAYOUT).isprintable():
        return plain(raw), 0
    right_to_left = any(unicodedata.bidirectional(c) in {"R", "AL"} and ord(c) not in _MARKS_OF_DIRECTION for c in raw)
    chars: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    suspicious = struck = at = 0
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
        written = raw[at:end]
        if unicodedata.decomposition(raw[at]).startswith("<compat> 0020 "):
            end, written = at + 1, ""  # a sign such as ´, which NFKC would split into a space and a loose mark
            chars.append(raw[at])
            starts.append(at)
            ends.append(end)
        if end > at + 1 and in_script_of_latin(raw[at]):
            written, lines, heap = _bared(written)
            struck += lines
            suspicious += heap
        for char in _kept_apart(raw[at], unicodedata.normalize("NFKC", written), chars):
            chars.append(char)
            starts.append(at)
            ends.append(end)
        at = end
    text = Text("".join(chars), starts, ends)
    suspicious += struck if struck >= _MOST_STRUCK else 0
    return text, suspicious + mixed_words(text.chars)


def _bared(cluster: str) -> tuple[str, int, bool]:
    """Return a letter without strike-through and underline marks, their number, and whether its marks are stacked."""
    kept = "".join(char for char in cluster if char not in _STRUCK)
    lines = len(cluster) - len(kept)
    composed = unicodedata.normalize("NFKC", kept)
    heap = len(composed) > 1 + _MOST_MARKS
    return (cluster[0] if heap else kept), lines, heap


def _kept_apart(char: str, plain: str, before: Sequence[str]) -> str:
    """Return *plain* kept apart from the number before it: 3½ is not 31/2, and 10⁶ is not 106."""
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
    if code == _BREAK:
        return bool(before) and all(unicodedata.name(c, "").startswith(_WRITTEN_ON) for c in (before, after) if c)
    if code in _VARIANTS or code in _IDEOGRAPHIC_VARIANTS:
        # One selector after a symbol chooses its variant. Several in a row, or one after a letter, carry a message.
        return bool(before) and not _is_hidden(before) and not (before.isascii() and before.isalpha())
    if code in _MARKS_OF_DIRECTION:
        return right_to_left
    if code in _TAGS or code == _TAGS.stop - 1:
        head = raw.rfind(_BLACK_FLAG, max(0, at - 8), at)
        return head >= 0 and all(ord(c) in _TAGS for c in raw[head + 1 : at])
    return code == 0xFEFF and at == 0


def _joins(char: str) -> bool:
    """Whether a joiner may stand next to *char*: an emoji, or a letter of a script with contextual shapes."""
    if char.isascii():
        return char in " \n\t.,;:!?"
    if ord(char) in _VARIANTS or unicodedata.category(char) in {"So", "Sk", "Mn", "Mc"}:
        return True
    name = unicodedata.name(char, "")
    return not name.startswith(("LATIN", "GREEK", "CYRILLIC", "FULLWIDTH", "MODIFIER LETTER"))

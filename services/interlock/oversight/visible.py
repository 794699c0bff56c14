"""Display of untrusted text without hidden characters (reliability.md A-31).

A character that has no visible shape, or that moves its neighbours, is shown as its code point: control characters, direction
marks, zero-width characters, invisible fillers, private use, and more stacked accents than any language needs.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

_HIDDEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK = frozenset("\u115f\u1160\u3164\uffa0\u2800\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f\U0001d159\U00016fe4") | {
    chr(code) for first, last in ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF)) for code in range(first, last + 1)
}
"""Letters and marks without a visible shape: fillers, the blank braille pattern, joiners, variation selectors of all three blocks."""
_PLAIN = frozenset("\n\t")
MOST_MARKS = 3
"""Maximum number of accents on one letter that a language may need."""


def segments(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of *text* in order: visible text with False, and hidden characters as code points with True."""
    shown: list[str] = []
    marks = 0
    for char in text:
        category = unicodedata.category(char)
        marks = marks + 1 if category in {"Mn", "Me"} else 0
        if char not in _PLAIN and (category in _HIDDEN or char in _BLANK or marks > MOST_MARKS):
            if shown:
                yield "".join(shown), False
                shown = []
            yield code_point(char), True
        else:
            shown.append(char)
    if shown:
        yield "".join(shown), False


def visible(text: str) -> str:
    """Return *text* with each hidden character shown as its code point, such as ⟦U+202E⟧."""
    return "".join(f"⟦{part}⟧" if hidden else part for part, hidden in segments(text))


def code_point(char: str) -> str:
    """Return the code point of a character, such as U+202E."""
    return f"U+{ord(char):04X}"


def character_name(code: str) -> str:
    """Return the Unicode name of the character at a code point, in lower case."""
    return unicodedata.name(chr(int(code.removeprefix("U+"), 16)), "without a name").lower()

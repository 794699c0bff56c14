"""Lexing: a folded text as lexemes for the readers of numbers, dates and names (SPEC-005 §5.2)."""

import re
import unicodedata
from collections.abc import Sequence
from typing import NamedTuple

from interlock.dpe.text.folding import Folded
from interlock.dpe.text.patterns import pattern

NUMBER = "number"
WORD = "word"
SYMBOL = "symbol"

_NO_LETTERS_FROM = 0x40000
_SELECTORS = "\\U000e0100-\\U000e01ef"
"""Beyond the ideographs there are these marks and private characters alone."""


def _letters() -> str:
    """Return the letters and marks of Unicode as ranges of a character class."""
    held = [unicodedata.category(chr(point))[0] in "LM" for point in range(_NO_LETTERS_FROM + 1)]
    edges = [point for point in range(1, len(held)) if held[point] != held[point - 1]]
    ranges = (f"\\U{first:08x}-\\U{end - 1:08x}" for first, end in zip(edges[::2], edges[1::2], strict=True))
    return "".join(ranges) + _SELECTORS


# Letters with inner apostrophes, digits with inner separators, and every other character by itself.
# A thousands comma in LaTeX stands in braces: 11{,}222.40. Not by RE2, which is asked through Python for each token and costs ten
# times as much. It is linear all the same: what has matched is never given back.
_LEXEME = r"([0-9]+(?:(?:[.,']|\{{,\}})[0-9]+)*)|([{0}]+(?:'[{0}]+)*)|([^ \t\n\f\r{0}0-9])"
_ASCII_TOKEN = re.compile(_LEXEME.format("A-Za-z"), re.ASCII)
_TOKEN = re.compile(_LEXEME.format(_letters()))
# Digits inside addresses are no figures.
_ADDRESS = pattern(
    r"(?:https?://|www\.)[^\s<>\"]+|\b10\.\d{4,9}/[^\s<>\"]+|[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+", ignore_case=True
)


class Lexeme(NamedTuple):
    """A token with its span in the folded text."""

    kind: str
    text: str
    low: str
    start: int
    end: int
    glued: bool  # adjacent to the previous token
    opens_line: bool
    capital: bool  # a word that begins with a capital letter


END = Lexeme(SYMBOL, "", "", 0, 0, glued=False, opens_line=False, capital=False)


def lex(folded: Folded) -> list[Lexeme]:
    """Split a folded text into tokens. Addresses are skipped."""
    text = _without_addresses(folded.text)
    tokens: list[Lexeme] = []
    end = 0
    for match in (_ASCII_TOKEN if text.isascii() else _TOKEN).finditer(text):
        start, stop = match.span()
        kind = NUMBER if match.group(1) else WORD if match.group(2) else SYMBOL
        word = text[start:stop].replace("{,}", ",")
        opens_line = not tokens or "\n" in text[end:start]
        tokens.append(
            Lexeme(
                kind,
                word,
                word.lower(),
                start,
                stop,
                glued=bool(tokens) and start == end,
                opens_line=opens_line,
                capital=kind == WORD and word[0].isupper(),
            )
        )
        end = stop
    return tokens


def at(tokens: Sequence[Lexeme], index: int) -> Lexeme:
    """Return the token at an index, or an empty one out of range."""
    return tokens[index] if 0 <= index < len(tokens) else END


def _without_addresses(text: str) -> str:
    """Blank out URLs, DOIs and e-mail addresses. Every other character keeps its offset."""
    pieces: list[str] = []
    end = 0
    for match in _ADDRESS.finditer(text):
        start, stop = match.span()
        while text[stop - 1] in ".,;:!?)]'" and stop > start + 1:
            stop -= 1
        pieces += (text[end:start], " " * (stop - start))
        end = stop
    return "".join((*pieces, text[end:]))

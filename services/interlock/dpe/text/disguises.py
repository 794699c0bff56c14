"""Removal of obfuscation that hides text from a detector but not from a person or a model (reliability.md A-24).

It undoes lookalikes, accents, leetspeak, letters set apart, words broken over lines, mixed case, and text reversed,
upside down or in rot13. Each change is kept only if it yields common English words that were not there before, so
honest text in any language is unchanged.
"""

from __future__ import annotations

import codecs
import itertools
import unicodedata
from collections.abc import Callable, Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from interlock.dpe.text.lookalikes import folded, in_script_of_latin
from interlock.dpe.text.names import COMMON_WORDS
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.text import Text
from interlock.dpe.text.wordlists import word_set

Edit = tuple[int, int, str]

_WORD = pattern(r"[\p{L}\p{M}]+")
_LEET = {"0": "o", "1": "il", "3": "e", "4": "a", "5": "s", "7": "t", "8": "b", "9": "g", "@": "a", "$": "s", "!": "il",
         "|": "l", "€": "e", "£": "l", "+": "t", "(": "c"}  # fmt: skip
_LEET_WORD = pattern(r"[\p{L}\d@$!|€£+(]+")
_LEET_INSIDE = pattern(r"\p{L}[\d@$!|€£+(]+\p{L}|(?:^|[^\p{L}\d])[\d@$€£]\p{L}{2,}")
_MOST_CHOICES = 4
_AROUND = ".,;:!?\"'()[]{}*_<>“”‘’…-–—"
_CHANGES_CASE = pattern(r"\p{Ll}\p{Lu}\p{Ll}|\p{Lu}\p{Ll}\p{Lu}")
_SPACED = pattern(r"\S(?: {1,3}\S){4,}")
_MARKED = tuple(
    (pattern(rf"[\p{{L}}\d](?:{mark}[\p{{L}}\d]){{4,}}"), pattern(rf"[\p{{L}}\d](?:{mark}[\p{{L}}\d])+"))
    for mark in (r"\.", "-", "_", r"\*", "·", "•", r"\|", "/")
)
_PIECE = pattern(r"[\p{L}\p{M}]+|\d+(?:[.,]\d+)*|.")
_LONGEST_WORD = 20
_BROKEN_LINES, _WORDS_A_LINE = 4, 3
_OF_STRUCTURE = pattern(r"[^\s=,;:](?:[=,;]| = |: )\S")
"""What stands in the lines of settings, of CSV and of forms: a key with its value, cells without a space between them."""
_GAIN, _SHIFTED_FROM, _LEAST_WORDS = 0.3, 0.55, 3
_SHORT_WORD = 2
_SMALL_WORDS = word_set("a i am an as at be by do go he if in is it me my no of on or so to up us we")
_NUMBERS_FOR_WORDS = {"15": "is", "17": "it", "45": "as", "50": "so", "70": "to", "4": "a", "411": "all", "175": "its"}
_OVER = str.maketrans(
    "ɐqɔpǝɟƃɓɥᴉıɾʞlןɯuodbɹsʇnʌʍxʎz∀𐐒ƆᗡƎℲ⅁HIſʞ˥WNOԀΌᴚS⊥∩ΛMX⅄ZƖᄅƐㄣϛㄥ˙'؛,",
    "abcdefgghiijkllmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ123457.,;'",
)  # fmt: skip


def undisguised(text: Text, *, short: bool = False) -> Text:
    """Return the text without obfuscation.

    *short* prefers shorter words where letters set apart allow two readings: every day, not everyday.
    """
    apart = partial(_apart, short=short)
    for step in (_turned, _shifted, _lookalikes, _unaccented, apart, _leet, _mixed_case, _broken):
        text = step(text)
    return text


def known_share(text: str) -> float:
    """Return the share of common English words in a text, 0.0 if it has too few words to tell."""
    words = [word for each in text.lower().split() if (word := each.strip(_AROUND)).isalpha()]
    return sum(map(_is_known, words)) / len(words) if len(words) >= _LEAST_WORDS else 0.0


def _is_known(low: str) -> bool:
    return low in COMMON_WORDS if len(low) > 2 else low in _SMALL_WORDS


def _turned(text: Text) -> Text:
    """Undo reversed or upside-down text, as a whole or line by line."""
    turned = _turned_line(text)
    return turned if turned is not text else _by_line(text, _turned_line)


def _turned_line(text: Text) -> Text:
    if known_share(text.chars) > 1.0 - _GAIN:
        return text
    back = text.turned(0, len(text.chars))
    over = Text(back.chars.translate(_OVER), back.starts, back.ends)
    words = _each_word(text, _reversed)
    best = max((back, over, words), key=lambda each: known_share(each.chars) - 0.2 * (each.chars[:1] in ".,!?"))
    if not _is_better(best.chars, text.chars):
        return text
    return _each_word(text, _reversed_unless_worse) if best is words else best


def _is_better(after: str, before: str) -> bool:
    share = known_share(after)
    return share >= _SHIFTED_FROM and share >= known_share(before) + _GAIN


def _each_word(text: Text, change: Callable[[str], str]) -> Text:
    return text.replaced([(*m.span(), change(m.group())) for m in _WORD.finditer(text.chars)])


def _reversed(word: str) -> str:
    return word[::-1]


def _reversed_unless_worse(word: str) -> str:
    """Reverse a word, unless it is likelier as it stands: it may have been left unreversed."""
    return max((word[::-1], word), key=lambda each: _worth(each.lower(), each))


def _shifted(text: Text) -> Text:
    """Undo rot13, line by line."""
    if known_share(text.chars) > 1.0 - _GAIN and "\n" not in text.chars:
        return text
    return _by_line(text, _shifted_line)


def _shifted_line(text: Text) -> Text:
    if known_share(text.chars) > 1.0 - _GAIN:
        return text
    shifted = codecs.encode(text.chars, "rot13")
    words = [word.strip(_AROUND) for word in shifted.lower().split()]
    if not any(len(word) > _SHORT_WORD and _is_known(word) for word in words):
        return text  # units alone, GB and TB, are TO and GO
    return Text(shifted, text.starts, text.ends) if _is_better(shifted, text.chars) else text


def _by_line(text: Text, change: Callable[[Text], Text]) -> Text:
    parts: list[Text] = []
    at = 0
    for line in text.chars.splitlines(keepends=True):
        end = at + len(line)
        inside = text.part(at, end - 1 if line[-1:].isspace() else end)
        parts += [change(inside), text.part(at + len(inside.chars), end)]
        at = end
    return _same_or_joined(text, parts)


def _same_or_joined(text: Text, parts: list[Text]) -> Text:
    return text if "".join(part.chars for part in parts) == text.chars else Text.of(parts)


def _lookalikes(text: Text) -> Text:
    plain = folded(text.chars)
    return text if plain == text.chars else Text(plain, text.starts, text.ends)


def _unaccented(text: Text) -> Text:
    """Remove accents from common English words, if there are three of them and most accented words are common."""
    if text.chars.isascii():
        return text
    accented = [m for m in _WORD.finditer(text.chars) if not m.group().isascii() and in_script_of_latin(m.group()[0])]
    plain = {m.group(): _bare(m.group()) for m in accented}
    long = [word for word in map(str.lower, plain.values()) if len(word) > 3]
    known = sum(word in COMMON_WORDS for word in long)
    words = sum(1 for _ in _WORD.finditer(text.chars))
    if known < _LEAST_WORDS or known < 0.6 * len(long) or 4 * len(accented) < words:
        return text
    return text.replaced([(*m.span(), plain[m.group()]) for m in accented if plain[m.group()] != m.group()])


def _bare(word: str) -> str:
    return "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))


def _apart(text: Text, *, short: bool) -> Text:
    """Join letters set apart by spaces or by one mark: a p p r o v e d."""
    edits = [(start, end, _split_run(text.chars[start:end], short=short)) for start, end in _spaced_out(text.chars)]
    text = text.replaced(edits) if edits else text
    for run, pair in _MARKED:
        edits = list(_joined_letters(text.chars, run, least=4))
        if edits:  # then shorter runs are words too
            text = text.replaced(edits)
            text = text.replaced(list(_joined_letters(text.chars, pair, least=2)))
    return text


def _spaced_out(chars: str) -> Iterator[tuple[int, int]]:
    """Yield runs of single characters separated by spaces. Characters of an adjacent longer word are excluded."""
    for match in _SPACED.finditer(chars):
        start, end = match.span()
        if chars[start - 1 : start].strip():
            start = next((at for at in range(start + 1, end) if not chars[at].isspace()), end)
        if chars[end : end + 1].strip():
            end = 1 + next((at for at in range(end - 2, start, -1) if not chars[at].isspace()), start)
        if sum(c.isalpha() for c in chars[start:end]) >= 4:
            yield start, end


def _split_run(run: str, *, short: bool) -> str:
    """Return the words of a run, split at wider spaces or else by the common words."""
    words = [word.replace(" ", "") for word in run.split("  ") if word.strip()]
    return " ".join(words) if len(words) > 1 else _segmented(words[0], short=short)


def _joined_letters(chars: str, expression: Any, *, least: int) -> Iterator[Edit]:
    for match in expression.finditer(chars):
        start, end = match.span()
        if chars[start - 1 : start].isalnum():
            start += 2
        if chars[end : end + 1].isalnum():
            end -= 2
        plain = "".join(c for c in chars[start:end] if c.isalnum())
        if sum(c.isalpha() for c in plain) >= least:
            yield start, end, plain


def _segmented(run: str, *, short: bool) -> str:
    """Return a run of letters, digits and marks without spaces as words."""
    pieces = [match.group() for match in _PIECE.finditer(run)]
    words: list[str] = []
    for piece, after in zip(pieces, [*pieces[1:], ""], strict=True):
        ends = piece in ",;:!?" or (piece == "." and after[:1].isupper())
        words.append(_cut(piece, short=short) if piece.isalpha() else piece + " " * ends)
        if piece.isalnum() and after.isalnum():
            words.append(" ")
    return "".join(words).strip()


def _cut(run: str, *, short: bool) -> str:
    """Split letters into words: common words cover as many letters as possible, in words as long as possible.

    *short* then splits each common word that consists of two others.
    """
    best: list[tuple[float, int]] = [(0.0, 0)]
    low = run.lower()
    for end in range(1, len(run) + 1):
        starts = range(max(0, end - _LONGEST_WORD), end)
        best.append(max((best[start][0] + _worth(low[start:end], run[start:end]), start) for start in starts))
    words, at = [], len(run)
    while at:
        start = best[at][1]
        words.append(_two_words(run[start:at]) if short else run[start:at])
        at = start
    return " ".join(reversed(words))


def _two_words(word: str) -> str:
    """Return a word as its two common words, the first as long as possible, or unchanged if it is not two."""
    ends = range(len(word) - 1, 0, -1)
    end = next((at for at in ends if _is_known(word[:at].lower()) and _is_known(word[at:].lower())), None)
    return f"{word[:end]} {word[end:]}" if end else word


def _worth(low: str, word: str) -> float:
    """Return a score of how likely letters are a word: common, a name, or unknown."""
    if _is_known(low):
        return float(len(low) ** 2)
    named = word[:1].isupper() and word[1:].islower()
    return 2.2 * len(low) if named else 0.5 * len(low) - (2.0 if len(low) > 1 else 3.5)


def _leet(text: Text) -> Text:
    """Replace leetspeak digits and signs by letters, if that yields at least two common words."""
    if not _LEET_INSIDE.search(text.chars):
        return text
    found: list[Edit] = []
    sure = 0
    for match in _LEET_WORD.finditer(text.chars):
        word = match.group().rstrip("!(+|")
        if word in _NUMBERS_FOR_WORDS or (word == "5" and text.chars[match.start() - 1 : match.start()] in {"'", "’"}):
            found.append((match.start(), match.start() + len(word), _NUMBERS_FOR_WORDS.get(word, "s")))
        if word.isalpha() or not any(c.isalpha() for c in word):
            continue
        inside = _LEET_INSIDE.search(word) is not None
        plain = _spelled(word)
        known = plain.lower() in COMMON_WORDS
        sure += inside and known
        if known or inside:
            found.append((match.start(), match.start() + len(word), plain))
    return text.replaced(found) if sure >= 2 else text


def _spelled(word: str) -> str:
    options = [_LEET.get(c, c) for c in word]
    if sum(len(option) > 1 for option in options) > _MOST_CHOICES:
        options = [option[0] for option in options]
    spellings = ["".join(letters) for letters in itertools.product(*options)]
    spelled = next((each for each in spellings if each.lower() in COMMON_WORDS), spellings[0])
    return spelled.upper() if word.isupper() and sum(c.isalpha() for c in word) > 1 else spelled


def _mixed_case(text: Text) -> Text:
    """Undo case changes inside most words: common words become lower case, others capitalised."""
    if not _CHANGES_CASE.search(text.chars):
        return text
    words = [m for m in _WORD.finditer(text.chars) if len(m.group()) > 3]
    changes = (sum(a.isupper() != b.isupper() for a, b in pairwise(m.group())) / (len(m.group()) - 1) for m in words)
    mixed = sum(share > 0.7 for share in changes)
    if mixed < 2 or mixed < 0.3 * len(words):
        return text
    chars = list(text.chars)
    opens = True
    for match in _WORD.finditer(text.chars):
        start, end = match.span()
        opens = opens or any(c in ".!?\n" for c in text.chars[max(0, start - 2) : start])
        low = match.group().lower()
        inside = text.chars[start - 1 : start] in {"'", "’"}
        chars[start:end] = low if inside or (low in COMMON_WORDS and not opens) else low[:1].upper() + low[1:]
        opens = False
    return Text("".join(chars), text.starts, text.ends) if len("".join(chars)) == len(text.chars) else text


def _broken(text: Text) -> Text:
    """Join lines of one to three words each, if there are at least four of them and no list, table or code."""
    lines = [line.strip() for line in text.chars.splitlines() if line.strip()]
    if len(lines) < _BROKEN_LINES or any(line[0] in "|`~#>*-•<{}[]" or line[-1] in "|;{}" for line in lines):
        return text
    if 2 * sum(_OF_STRUCTURE.search(line) is not None for line in lines) >= len(lines):
        return text
    ended = sum(line[-1] in ".,:!?" for line in lines)
    if sum(len(line.split()) for line in lines) > _WORDS_A_LINE * len(lines) or 3 * ended >= len(lines):
        return text
    edits = [(at, at + 1, " ") for at, char in enumerate(text.chars) if char in "\n\r\u2028\u2029\x85"]
    return text.replaced(edits)

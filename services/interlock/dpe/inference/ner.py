"""Decoding of the names token classifier: its token types as input and its BIO labels as spans (DPE-18).

The encoder is uncased, but capitals identify most names, so the case of each word is its token type. The labels are
``O``, ``B-<kind>`` and ``I-<kind>``, one for each word, taken from its first token. Long texts are read in overlapping
windows; each word takes its label from the window in which it is farthest from an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PLAIN, CAPITAL, UPPER, MIXED = 0, 1, 2, 3
CASES = 4
OUTSIDE = "O"
KINDS = ("PERSON", "ORG", "LOC", "MISC")
"""MISC covers all other names: products, works, peoples, events."""
OVERLAP = 32

Offset = tuple[int, int]
Span = tuple[int, int, str]


@dataclass(frozen=True)
class TokenWindow:
    """One run of the model: for each token its word index (``None`` for special tokens), its span and its scores.

    Word indexes run through the whole text.
    """

    words: Sequence[int | None]
    offsets: Sequence[Offset]
    scores: Sequence[Sequence[float]]


def word_case(word: str) -> int:
    """Return the case class of a word. A single capital is CAPITAL; a word without letters is PLAIN."""
    letters = [letter for letter in word if letter.isalpha()]
    if not any(letter.isupper() for letter in letters):
        return PLAIN
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return UPPER
    if letters[0].isupper() and not any(letter.isupper() for letter in letters[1:]):
        return CAPITAL
    return MIXED


def token_types(text: str, words: Sequence[int | None], offsets: Sequence[Offset]) -> list[int]:
    """Return the token types of one window: for each token the case class of its word, 0 for special tokens.

    *words* and *offsets* are ``word_ids`` and ``offsets`` of the tokenizer's encoding of *text*.
    """
    places = _word_places(words, offsets)
    cases = {word: word_case(text[start:end]) for word, (start, end) in places.items()}
    return [PLAIN if word is None else cases[word] for word in words]


def names_in(windows: Sequence[TokenWindow], labels: Sequence[str]) -> list[Span]:
    """Return the spans of the names with their kinds, such as PERSON, in order.

    Raises ValueError when the scores do not fit the tokens or the labels.
    """
    found: list[Span] = []
    kind = OUTSIDE
    for (start, end), label in _word_labels(windows, labels):
        mark, _, name_kind = label.partition("-")
        if label == OUTSIDE:
            kind = OUTSIDE
        elif mark == "I" and name_kind == kind:
            found[-1] = (found[-1][0], end, name_kind)
        else:
            kind = name_kind
            found.append((start, end, name_kind))
    return found


def _word_labels(windows: Sequence[TokenWindow], labels: Sequence[str]) -> list[tuple[Offset, str]]:
    """Return the span and the label of each word of the text, in order."""
    best: dict[int, tuple[int, str]] = {}
    places: dict[int, Offset] = {}
    for window in windows:
        if not len(window.words) == len(window.offsets) == len(window.scores):
            raise ValueError("a window has as many scores as tokens")
        for word, (start, end) in _word_places(window.words, window.offsets).items():
            seen = places.get(word, (start, end))
            places[word] = min(start, seen[0]), max(end, seen[1])  # the edge of a window may cut a word
        for word, first in _first_tokens(window.words):
            depth = min(first, len(window.words) - 1 - first)
            if word not in best or depth > best[word][0]:
                best[word] = depth, _label(window.scores[first], labels)
    return sorted((places[word], label) for word, (_, label) in best.items())


def _first_tokens(words: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Yield each word with the index of its first token. The tokens of a word are adjacent."""
    before = None
    for number, word in enumerate(words):
        if word is not None and word != before:
            yield word, number
        before = word


def _label(scores: Sequence[float], labels: Sequence[str]) -> str:
    if len(scores) != len(labels):
        raise ValueError("a token has one score for each label")
    return labels[max(range(len(labels)), key=lambda number: scores[number])]


def _word_places(words: Sequence[int | None], offsets: Sequence[Offset]) -> dict[int, Offset]:
    """Return the span of each word of a window."""
    places: dict[int, Offset] = {}
    for word, (start, end) in zip(words, offsets, strict=True):
        if word is not None:
            places[word] = places[word][0] if word in places else start, end
    return places

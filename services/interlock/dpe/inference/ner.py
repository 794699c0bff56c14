"""Names from a token classifier: what goes into the model besides the ids, and what its scores mean (DPE-18).

The encoder reads lower case only, while capitals tell most names apart, so the case of each word enters as its token
type. The labels are ``O``, ``B-<kind>`` and ``I-<kind>``, one for each word: that of its first token. Long texts are
read in windows that overlap; a word counts as the window saw it in which it stands farthest from an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

PLAIN, CAPITAL, UPPER, MIXED = 0, 1, 2, 3
CASES = 4
OUTSIDE = "O"
KINDS = ("PERSON", "ORG", "LOC", "MISC")
"""MISC is what else has a name: products, works, peoples, events."""
OVERLAP = 32

Offset = tuple[int, int]
Span = tuple[int, int, str]


@dataclass(frozen=True)
class TokenWindow:
    """One run of the model: for each token its word (``None`` for special tokens), its place, and its scores.

    Words are numbered through the whole text.
    """

    words: Sequence[int | None]
    offsets: Sequence[Offset]
    scores: Sequence[Sequence[float]]


def case_of(word: str) -> int:
    """Return the class of a word by its capitals; a single capital is CAPITAL, words without letters are PLAIN."""
    letters = [letter for letter in word if letter.isalpha()]
    if not any(letter.isupper() for letter in letters):
        return PLAIN
    if len(letters) > 1 and all(letter.isupper() for letter in letters):
        return UPPER
    if letters[0].isupper() and not any(letter.isupper() for letter in letters[1:]):
        return CAPITAL
    return MIXED


def token_types(text: str, words: Sequence[int | None], offsets: Sequence[Offset]) -> list[int]:
    """Return the token types of one window: for each token the case of its word, 0 for special tokens.

    *words* and *offsets* are ``word_ids`` and ``offsets`` of the tokenizer's encoding of *text*.
    """
    places = _word_places(words, offsets)
    cases = {word: case_of(text[start:end]) for word, (start, end) in places.items()}
    return [PLAIN if word is None else cases[word] for word in words]


def names_in(windows: Sequence[TokenWindow], labels: Sequence[str]) -> list[Span]:
    """Return where the model sees names and of which kind, such as PERSON, in order.

    Raises ValueError when the scores do not fit the tokens or the labels.
    """
    found: list[Span] = []
    kind = OUTSIDE
    for (start, end), label in _read(windows, labels):
        mark, _, this = label.partition("-")
        if label == OUTSIDE:
            kind = OUTSIDE
        elif mark == "I" and this == kind:
            found[-1] = (found[-1][0], end, this)
        else:
            kind = this
            found.append((start, end, this))
    return found


def _read(windows: Sequence[TokenWindow], labels: Sequence[str]) -> list[tuple[Offset, str]]:
    """Return the place and the label of each word of the text, in order."""
    best: dict[int, tuple[int, str]] = {}
    places: dict[int, Offset] = {}
    for window in windows:
        if not len(window.words) == len(window.offsets) == len(window.scores):
            raise ValueError("a window has as many scores as tokens")
        for word, (start, end) in _word_places(window.words, window.offsets).items():
            known = places.get(word, (start, end))
            places[word] = min(start, known[0]), max(end, known[1])  # an edge may cut a word
        for word, first in _first_tokens(window.words):
            depth = min(first, len(window.words) - 1 - first)
            if word not in best or depth > best[word][0]:
                best[word] = depth, _label(window.scores[first], labels)
    return sorted((places[word], label) for word, (_, label) in best.items())


def _first_tokens(words: Sequence[int | None]) -> Iterator[tuple[int, int]]:
    """Yield each word with its first token; the tokens of a word stand together."""
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
    """Return where each word of a window begins and ends."""
    places: dict[int, Offset] = {}
    for word, (start, end) in zip(words, offsets, strict=True):
        if word is not None:
            places[word] = places[word][0] if word in places else start, end
    return places

"""Stage 7, repetition: what an answer repeats from an earlier answer of the session (SPEC-005 §9).

Both ratios count visible text: case, white space, markup and hidden characters are removed, because the sentences are
those of stage 1. The 4-grams run across sentence ends, and each occurrence counts: a line copied twice is two copies.
An answer of fewer than four words has no 4-gram; its overlap is 0.0 and its sentences alone decide.

§9.2 gives each level two bands and does not combine them. The worse band counts, except that shared words alone reach
at most SIGNIFICANT: SEVERE calls for a new answer, so it needs sentences that repeat, in the same words or others. With
this rule TV-013 of SPEC-014 (one sentence of three copied, half of the 4-grams) has the printed result, and a copy or a
paraphrase of most of an answer is SEVERE.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from interlock.domain.policy.directives import Repetition
from interlock.dpe.inference.port import Floats
from interlock.dpe.text.patterns import pattern

GRAM = 4
SAME_ABOVE = 0.92
OVERLAP_BANDS = (0.05, 0.15, 0.30)
SEMANTIC_BANDS = (0.10, 0.25, 0.50)
_ROUNDING = 1e-6
_WORD = pattern(r"\p{Han}|\p{Hiragana}|\p{Katakana}|\p{Thai}|[\p{L}\p{N}\p{M}]+")

Gram = tuple[str, ...]


@dataclass(frozen=True)
class EarlierSentence:
    """A sentence of an earlier window."""

    text: str
    window_id: str


@dataclass(frozen=True)
class Repeated:
    """A sentence of the answer that repeats one of an earlier window, verbatim or paraphrased."""

    text: str
    window_id: str
    similarity: float
    choice_index: int


@dataclass(frozen=True)
class Repetitions:
    """Both ratios, the resulting level, and the repeated sentences."""

    overlap: float
    semantic: float
    level: Repetition
    sentences: tuple[Repeated, ...]

    @property
    def ratio(self) -> float:
        """The larger of both ratios, which enters the quality score."""
        return max(self.overlap, self.semantic)


def grams(sentences: Sequence[str]) -> list[Gram]:
    """Return the 4-grams of a text, in order, duplicates included."""
    words = [word.casefold() for sentence in sentences for word in _WORD.findall(sentence)]
    return [tuple(words[at : at + GRAM]) for at in range(len(words) - GRAM + 1)]


def overlap(current: Sequence[Gram], windows: Sequence[Collection[Gram]]) -> float:
    """Return the share of the answer's 4-grams that any earlier window contains (§9.2, step 7.1)."""
    shared = sum(any(gram in window for window in windows) for gram in current)
    return shared / len(current) if current else 0.0


def repeated(
    sentences: Sequence[str],
    vectors: Floats,
    earlier: Sequence[EarlierSentence],
    earlier_vectors: Floats,
    *,
    choice_index: int,
) -> tuple[Repeated, ...]:
    """Return the sentences that repeat their nearest earlier sentence. On a tie the oldest one counts (step 7.2)."""
    if not sentences or not earlier:
        return ()
    similar = vectors @ earlier_vectors.T
    nearest = np.argmax(similar, axis=1)
    found = []
    for row, (sentence, column) in enumerate(zip(sentences, nearest, strict=True)):
        likeness = min(1.0, float(similar[row, column]))
        if likeness > SAME_ABOVE:
            found.append(Repeated(sentence, earlier[column].window_id, likeness, choice_index))
    return tuple(found)


def repetitions(overlapping: float, found: Sequence[Repeated], sentences: int) -> Repetitions:
    """Return both ratios with the level: the worse of their bands, SEVERE by sentences only (step 7.3)."""
    semantic = len(found) / sentences if sentences else 0.0
    by_words = min(band(overlapping, OVERLAP_BANDS), Repetition.SIGNIFICANT)
    level = max(by_words, band(semantic, SEMANTIC_BANDS))
    return Repetitions(overlapping, semantic, level, tuple(found))


def band(ratio: float, bounds: tuple[float, float, float]) -> Repetition:
    """Return the level of one ratio. The lower bound belongs to a band; SEVERE lies above the last bound."""
    minor, significant, severe = bounds
    if ratio > severe + _ROUNDING:
        return Repetition.SEVERE
    if ratio >= significant - _ROUNDING:
        return Repetition.SIGNIFICANT
    return Repetition.MINOR if ratio >= minor - _ROUNDING else Repetition.NONE

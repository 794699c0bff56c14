"""Register: the style of a text, and whether two texts share it (SPEC-005 §11.3, signal 9c).

Measured on the parse of stage 1. Vocabulary complexity is the mean word length, which does not depend on the length of
the text. The share of passive sentences is compared in percentage points, because a share may be zero. Personal
pronouns are those of the first and second person; "it" and "they" belong to the content, not to the style.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.text.wordlists import word_set

SENTENCE_LENGTH_WITHIN = 0.20
VOCABULARY_WITHIN = 0.15
PASSIVE_WITHIN = 0.10
_ROUNDING = 1e-9

_PERSONS = {
    "I": word_set("i me my mine myself"),
    "we": word_set("we us our ours ourselves"),
    "you": word_set("you your yours yourself yourselves"),
}
_PASSIVE = frozenset({"nsubjpass", "auxpass", "csubjpass"})


@dataclass(frozen=True)
class Voice:
    """Style features of one sentence."""

    words: int
    letters: int
    passive: bool
    persons: frozenset[str]


@dataclass(frozen=True)
class Register:
    """Style features of a text, averaged over its sentences."""

    sentence_length: float
    word_length: float
    passive_ratio: float
    persons: frozenset[str]


def sentence_voice(tokens: Sequence[Any]) -> Voice:
    """Return the style features of a parsed sentence."""
    words = [token.lower_ for token in tokens if any(c.isalpha() for c in token.lower_)]
    return Voice(
        words=len(words),
        letters=sum(map(len, words)),
        passive=any(token.dep_ in _PASSIVE for token in tokens),
        persons=frozenset(name for name, forms in _PERSONS.items() if not forms.isdisjoint(words)),
    )


def text_register(voices: Sequence[Voice]) -> Register | None:
    """Return the register of a text, or ``None`` for a text without a word."""
    worded = [voice for voice in voices if voice.words]
    if not worded:
        return None
    words = sum(voice.words for voice in worded)
    return Register(
        sentence_length=words / len(worded),
        word_length=sum(voice.letters for voice in worded) / words,
        passive_ratio=sum(voice.passive for voice in worded) / len(worded),
        persons=frozenset[str]().union(*(voice.persons for voice in worded)),
    )


def consistency(current: Register, prior: Register) -> float:
    """Return the share of the four register signals that agree, 0.0 to 1.0."""
    held = (
        _within(current.sentence_length, prior.sentence_length, SENTENCE_LENGTH_WITHIN),
        _within(current.word_length, prior.word_length, VOCABULARY_WITHIN),
        abs(current.passive_ratio - prior.passive_ratio) <= PASSIVE_WITHIN + _ROUNDING,
        current.persons == prior.persons,
    )
    return sum(held) / len(held)


def _within(value: float, reference: float, share: float) -> bool:
    return abs(value - reference) <= share * reference + _ROUNDING

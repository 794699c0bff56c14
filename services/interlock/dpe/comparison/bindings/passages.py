"""Passages: sentences as they are compared, with their frames, limits and content words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.clauses import SenseBag, clauses
from interlock.dpe.comparison.bindings.fillers import key_of
from interlock.dpe.comparison.bindings.frames import PredicateFrame, frames
from interlock.dpe.comparison.bindings.limits import Limit, degree, limits
from interlock.dpe.values.frames import STOP


@dataclass(frozen=True)
class ReadSentence:
    """A sentence: its frames, its limits, its degree from 0 to 4, its content words, and the fact that it stands in."""

    text: str
    frames: tuple[PredicateFrame, ...]
    limits: tuple[Limit, ...]
    degree: int
    degree_word: str
    content: frozenset[str]
    fact_id: str = ""
    clauses: tuple[SenseBag, ...] = ()


def passage(sentence: Any) -> ReadSentence:
    """Return the passage of a parsed sentence, a spaCy span."""
    held, word = degree(sentence)
    content = frozenset(
        key_of(t) for t in sentence if t.is_alpha and t.lower_ not in STOP and t.pos_ not in {"PRON", "AUX"}
    )
    found = clauses(sentence)
    return ReadSentence(sentence.text.strip(), frames(sentence), limits(sentence), held, word, content, clauses=found)

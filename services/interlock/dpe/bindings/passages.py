"""Passages: sentences as they are compared, with their frames, limits and content words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from interlock.dpe.bindings.fillers import key_of
from interlock.dpe.bindings.frames import Frame, frames
from interlock.dpe.bindings.limits import Limit, degree, limits
from interlock.dpe.values.frames import STOP


@dataclass(frozen=True)
class Passage:
    """A sentence: its frames, its limits, its degree from 0 to 4, its content words, and the fact that it stands in."""

    text: str
    frames: tuple[Frame, ...]
    limits: tuple[Limit, ...]
    degree: int
    degree_word: str
    content: frozenset[str]
    fact_id: str = ""


def passage(sentence: Any) -> Passage:
    """Return the passage of a parsed sentence, a spaCy span."""
    held, word = degree(sentence)
    content = frozenset(
        key_of(t) for t in sentence if t.is_alpha and t.lower_ not in STOP and t.pos_ not in {"PRON", "AUX"}
    )
    return Passage(sentence.text.strip(), frames(sentence), limits(sentence), held, word, content)

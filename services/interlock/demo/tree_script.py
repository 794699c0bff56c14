"""The script of the tree: its specialists, their questions, and the answers of the provider.

Passages, answers and labels are recorded data, as in the other demonstration. The questions are ours, and so are the words
that join two recorded answers into the answer of the orchestrator.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from interlock.demo.recording import Recording, Turn, load


@dataclass(frozen=True)
class TreeScript:
    """The questions to one specialist about its recording."""

    recording: str
    questions: tuple[str, ...]
    merged: bool
    """Whether the orchestrator merges its last answer."""


def _script(recording: str, *, merged: bool, skip: int = 0) -> TreeScript:
    return TreeScript(recording, tuple(turn.question for turn in load(recording).turns[skip:]), merged)


OPENING = load("tree_health").turns[0].question
SPECIALISTS: Mapping[str, TreeScript] = {
    "storage": _script("tree_storage", merged=True),
    "health": _script("tree_health", merged=True, skip=1),
    # All its answers except the first are labelled inconsistent with the e-mail.
    "investment": _script("tree_investment", merged=False),
}
SYNTHESIS = "Put both offers into one note."


def provider_recording() -> Recording:
    """Return all answers of the provider, as one recording."""
    recordings = [load(script.recording) for script in SPECIALISTS.values()]
    turns = tuple(turn for recording in recordings for turn in recording.turns)
    return replace(recordings[0], title="three sales e-mails", turns=(*turns, _synthesis()))


def _synthesis() -> Turn:
    storage, health = load("tree_storage").turns[-1], load("tree_health").turns[-1]
    answer = f"{storage.answer}\n\nThe other offer is for a clinic. {health.answer}"
    return replace(storage, item="synthesis", question=SYNTHESIS, answer=answer)

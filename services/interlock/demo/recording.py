"""The recorded conversation: real model answers about one real passage, with the human labels of the data set."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any

SECOND_TRIES = {
    "sales_email_6_9": (
        "Building on that note, the UltraLux Premium Package is priced at $1,500 per office space. Furthermore, FutureTech "
        "Solutions saw a 28% increase in staff productivity through the UltraLux Premium Package."
    ),
}
"""Second answers by item, for a request that forbids repetition. They are ours, not the data set's."""


@dataclass(frozen=True)
class Turn:
    """One recorded answer. The question is the demonstration's; the answer and its label are the data set's."""

    item: str
    source_set: str
    licence: str
    consistent: bool
    question: str
    answer: str

    @property
    def again(self) -> str:
        """Answer to a request that forbids repetition; in most cases the recorded answer again."""
        return SECOND_TRIES.get(self.item, self.answer)


@dataclass(frozen=True)
class Recording:
    """One conversation about one passage."""

    title: str
    origin: str
    licence: str
    citation: str
    passage_id: str
    passage: str
    turns: tuple[Turn, ...]

    def answer_to(self, question: str) -> Turn | None:
        """Return the turn that was recorded for *question*, compared without surrounding white space."""
        return next((turn for turn in self.turns if turn.question == question.strip()), None)


def parse(text: str) -> Recording:
    """Return the recording in the JSON *text* that ``scripts/make_demo_data.py`` writes."""
    data: dict[str, Any] = json.loads(text)
    turns = tuple(Turn(**turn) for turn in data.pop("turns"))
    return Recording(**data, turns=turns)


def load(name: str = "conversation") -> Recording:
    """Return a recording from the package."""
    return parse(resources.files(__package__).joinpath(f"{name}.json").read_text(encoding="utf-8"))

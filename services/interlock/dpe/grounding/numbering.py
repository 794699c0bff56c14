"""Which facts a citation mark points to: the numbering that the context itself gives its sources (ATT-7).

The numbers of the text win ("[1] …", "Source 2: …", "<doc id=3>"), then the numbers of the facts' ids (f1, doc-2), then
the order of facts that have no number at all. Facts that are the sentences of one message are no numbered sources: with
no number in their text, nothing is known about what "[2]" means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from interlock.dpe.document import Fact
from interlock.dpe.text.patterns import pattern, spaced

_LABEL = spaced(
    r"""
    (?m)^[\x20\t>*_#-]{0,6}
    (?: [\[【](?:(?:source|doc(?:ument)?|passage|ref(?:erence)?|chunk|context)\s*\#?)?\s*(?P<square>\d{1,3})(?:†[^】\n]{0,60})?[\]】]
      | (?:source|doc(?:ument)?|passage|ref(?:erence)?|chunk|context|article|quelle|dokument|fuente|documento)\s*\#?
        (?P<word>\d{1,3})\s*(?:[:.)—–-]|\z|\n|\()
      | <(?:doc(?:ument)?|source|passage)\b[^>\n]{0,80}?(?:id|index|number|n)\s*=\s*["']?(?P<tag>\d{1,3})["']?[^>\n]{0,80}>
    )
    """,
    ignore_case=True,
)
_OF_A_MESSAGE = pattern(r"(m\d+)s\d+")
_NUMBER_OF_ID = pattern(r"\D*?(\d{1,3})")


class Known(Enum):
    """What a numbering rests on. ``ORDER`` is a guess, and ``NOTHING`` says that a number means nothing here."""

    TEXT = "text"
    IDS = "ids"
    ORDER = "order"
    NOTHING = "nothing"


@dataclass(frozen=True)
class Passage:
    """A part of a fact that a label stands for: a span of its content."""

    fact: int
    start: int
    end: int


@dataclass(frozen=True)
class Numbering:
    """The passages of each label, and how they are known."""

    passages: Mapping[str, tuple[Passage, ...]]
    known: Known
    names: Mapping[str, int]

    @staticmethod
    def of(facts: Sequence[Fact]) -> Numbering:
        """Return the numbering of facts."""
        names = {_plain(fact.id): number for number, fact in enumerate(facts) if len(_plain(fact.id)) > 2}
        if labelled := _by_text(facts):
            return Numbering(labelled, Known.TEXT, names)
        whole = [Passage(number, 0, len(fact.content)) for number, fact in enumerate(facts)]
        if any(_OF_A_MESSAGE.fullmatch(fact.id) for fact in facts):
            return Numbering({}, Known.NOTHING, names)
        numbers = [_NUMBER_OF_ID.fullmatch(fact.id) for fact in facts]
        from_zero = any(found and int(found[1]) == 0 for found in numbers)  # people count from one: [1] may be either
        if facts and all(numbers) and not from_zero and len({found[1] for found in numbers if found}) == len(facts):
            by_id = {str(int(found[1])): (each,) for found, each in zip(numbers, whole, strict=True) if found}
            return Numbering(by_id, Known.IDS, names)
        order = {str(number): (each,) for number, each in enumerate(whole, 1)}
        return Numbering(order, Known.ORDER if facts else Known.NOTHING, names)

    def named(self, label: str) -> int | None:
        """Return the fact whose id is a name, or ``None``."""
        return self.names.get(_plain(label))


def _by_text(facts: Sequence[Fact]) -> dict[str, tuple[Passage, ...]]:
    """Return the passages of the labels in the text. A label holds to the next one, over the sentences of a message."""
    found: dict[str, list[Passage]] = {}
    message, label = "", ""
    for number, fact in enumerate(facts):
        cut_from = _OF_A_MESSAGE.fullmatch(fact.id)
        if cut_from is None or cut_from[1] != message:
            message, label = cut_from[1] if cut_from else "", ""
        at = 0
        for match in _LABEL.finditer(fact.content):
            if label and match.start() > at:
                found.setdefault(label, []).append(Passage(number, at, match.start()))
            label, at = str(int(match["square"] or match["word"] or match["tag"])), match.end()
            found.setdefault(label, [])
        if label and at < len(fact.content):
            found[label].append(Passage(number, at, len(fact.content)))
        if cut_from is None:
            label = ""
    return {name: tuple(parts) for name, parts in found.items()}


def message_of(fact_id: str) -> str:
    """Return the message that a fact is a sentence of, or an empty string."""
    found = _OF_A_MESSAGE.fullmatch(fact_id)
    return found[1] if found else ""


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalnum())

"""Stage 1: the outputs of a dispatch as choices with sentences and claims (SPEC-005 §3)."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from interlock.domain.errors import exhausted
from interlock.dpe.claims.claims import MOST_UNCHECKED_WORDS, Checkability, split_claims
from interlock.dpe.document import Claim, Sentence
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.text.marks import CitationMark, placed
from interlock.dpe.text.views import Viewed


@dataclass
class ChoiceReading:
    """The sentences and claims of one choice.

    ``checked`` are the claims for later stages, ``titles`` the ids of titles. ``marks`` are the citation marks that were cut
    from it, ``defined`` the labels of its own list of notes. ``wordless``: it has signs, and no word, figure or picture among
    them.
    ``checked`` are the claims for later stages, ``titles`` the ids of titles, ``in_calls`` those of claims that the
    arguments of tool calls make. ``calls`` counts the tool calls.
    """

    index: int
    claims: list[Claim] = field(default_factory=list)
    checked: list[Claim] = field(default_factory=list)
    titles: set[str] = field(default_factory=set)
    sentences: list[Sentence] = field(default_factory=list)
    hidden: int = 0
    addressed: int = 0
    empty: bool = True
    wordless: bool = False
    marks: list[CitationMark] = field(default_factory=list)
    defined: set[str] = field(default_factory=set)
    calls: int = 0
    in_calls: set[str] = field(default_factory=set)

    @property
    def unread(self) -> bool:
        """Whether nothing in it could be read: signs alone, or more words than a courtesy has, and none with content."""
        endless = any(len(claim.text.split()) > MOST_UNCHECKED_WORDS for claim in self.claims)
        return self.wordless or (not self.checked and endless)


@dataclass(frozen=True)
class OutputReader:
    """Splits outputs into claims, up to a maximum for each choice."""

    language: Language
    max_claims: int
    claim_tokens: int
    count: Callable[[Sequence[str]], list[int]]

    def read(self, views: Sequence[Viewed], cancelled: Cancelled) -> list[ChoiceReading]:
        """Return the choices by index, and an empty one when there is no view of an output.

        A masked choice has two or three readings: as written, then unmasked.

        Refused with CLAIM_LIMIT_EXCEEDED as soon as one claim too many is found.
        """
        choices: dict[tuple[int, int], ChoiceReading] = {}
        number = 1
        for output in views:
            reading = choices.setdefault((output.choice_index, output.view), ChoiceReading(output.choice_index))
            number = self._add(reading, output, number, cancelled)
        return [choices[key] for key in sorted(choices)] or [ChoiceReading(0)]

    def _add(self, reading: ChoiceReading, output: Viewed, number: int, cancelled: Cancelled) -> int:
        parsed, hidden = self.language.parsed(
            output.text, choice_index=output.choice_index, first_index=len(reading.sentences)
        )
        reading.hidden += hidden + output.hidden
        reading.addressed += output.addressed
        reading.marks += placed(output.marks.found, output.place)
        reading.defined |= output.marks.defined
        reading.calls += output.is_call
        said = output.text.chars.strip()
        reading.wordless = (reading.wordless or reading.empty) and not output.is_call and _is_wordless(said)
        reading.empty = reading.empty and not (output.is_call or said)
        for sentence in parsed:
            if cancelled():
                break
            reading.sentences.append(sentence.sentence)
            for claim, checkability in split_claims(
                sentence, limit=self.claim_tokens, count=self.count, number=number, output_index=output.place
            ):
                number += 1
                reading.claims.append(claim)
                if output.is_call:
                    reading.in_calls.add(claim.claim_id)
                if checkability is not Checkability.UNCHECKED:
                    reading.checked.append(claim)
                if checkability is Checkability.TITLE:
                    reading.titles.add(claim.claim_id)
            if len(reading.claims) > self.max_claims:
                raise exhausted(
                    "CLAIM_LIMIT_EXCEEDED",
                    "the answer makes more claims than are checked in one analysis",
                    limit=str(self.max_claims),
                    found=str(len(reading.claims)),
                )
        return number


def _is_wordless(said: str) -> bool:
    """Whether a text is signs alone; arguments without content ({}) are no signs."""
    if not said or said in {"{}", "[]"}:
        return False
    return not any(char.isalnum() or unicodedata.category(char) == "So" for char in said)


def claim_sentences(readings: Sequence[ChoiceReading]) -> dict[str, str]:
    """Return the sentence that each checked claim was cut from, by claim id."""
    return {c.claim_id: reading.sentences[c.sentence_index].text for reading in readings for c in reading.checked}

"""What a claim speaks of where it names nothing: "Revenue grew 15 %" in a report on Acme is said of Acme (SPEC-012 §9.1).

Two agents write about two companies in the same words, and neither names its own in every sentence. A claim that opens
with a name speaks of that; any other one of all that was named before it in its part of the text, and of what the
sub-query names. Two claims are of different subjects only where both are known and share none. Where it is not known
what a claim speaks of, it is compared: a contradiction too many is seen by a person, one too few by nobody.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from interlock.dpe.document import Claim, Entity
from interlock.dpe.inference.ner import KINDS
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import frame

Name = frozenset[str]
Subject = frozenset[Name]
"""The names that a claim may speak of; empty: it is not known."""

OPENING_WORDS = 2
"""As many words may stand before a name that a sentence opens with: The Acme, In the Netherlands."""

_KINDS_OF_FIRMS = word_set(
    "ab ag as asa bv co company corp corporation group gmbh holding holdings inc incorporated limited llc ltd nv oy plc sa spa"
)
_GAP = re.compile(r"\n\s*\n")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass
class _Known:
    """What was named so far in one part of a text, and whether a claim of it opened with a name."""

    names: set[Name] = field(default_factory=set)
    opened: bool = False


@dataclass(frozen=True)
class Subjects:
    """What the claims of one text speak of, by their wording, and the years that the text is about."""

    by_text: Mapping[str, tuple[Subject, ...]]
    years: frozenset[str] = frozenset()

    def of(self, text: str) -> tuple[Subject, ...]:
        """Return the subjects of a claim: one for each place where it stands."""
        return self.by_text.get(text, (frozenset(),))


def subjects(claims: Sequence[Claim], texts: Mapping[int, str], *, asked: str = "") -> Subjects:
    """Return what the claims of a text speak of; *texts* by output index, *asked* is what the text was to answer."""
    given = {name for found in frame(asked).names if found.sure and (name := _name(" ".join(found.words)))}
    known, at = _Known(set(given), bool(given)), (-1, 0)
    found: dict[str, list[Subject]] = {}
    for claim in sorted(claims, key=lambda one: (one.output_index, one.start)):
        opens = _opens_with(claim)
        if opens and _parts(at, claim, texts):
            known = _Known(set(given), opened=True)
        at = (claim.output_index, claim.end)
        named = {_name(entity.text) for entity in _entities(claim)} - {frozenset()}
        known.names |= named
        known.opened = known.opened or bool(opens)
        subject = opens or (known.names if known.opened else set())
        found.setdefault(claim.text, []).append(frozenset(subject))
    years = frozenset(_YEAR.findall(asked))
    return Subjects({text: tuple(dict.fromkeys(each)) for text, each in found.items()}, years)


def differ(one: Subjects, text: str, other: Subjects, other_text: str) -> bool:
    """Whether two claims surely speak of different things: no place of the one may speak of what the other does."""
    if one.years and other.years and not one.years & other.years and not _YEAR.search(f"{text} {other_text}"):
        return True
    return all(_apart(a, b) for a in one.of(text) for b in other.of(other_text))


def _apart(one: Subject, other: Subject) -> bool:
    return bool(one and other) and not any(a <= b or b <= a for a in one for b in other)


def _entities(claim: Claim) -> Iterable[Entity]:
    return (entity for entity in claim.entities if entity.label in KINDS)


def _opens_with(claim: Claim) -> set[Name]:
    """Return the name that a claim opens with, behind at most a word or two that are no names."""
    first = min(_entities(claim), key=lambda entity: entity.start, default=None)
    if first is None:
        return set()
    before = claim.text.partition(first.text)[0].split()
    name = _name(first.text)
    return {name} if name and len(before) <= OPENING_WORDS else set()


def _parts(at: tuple[int, int], claim: Claim, texts: Mapping[int, str]) -> bool:
    """Whether a new paragraph starts between the place *at* and a claim."""
    output, end = at
    if output != claim.output_index:
        return True
    return bool(_GAP.search(texts.get(output, ""), end, max(end, claim.start)))


def _name(text: str) -> Name:
    words = content_words(text.replace("’s", "").replace("'s", ""))
    return frozenset(words - _KINDS_OF_FIRMS) or words

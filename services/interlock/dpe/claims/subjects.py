"""Subjects of claims that name none: "Revenue grew 15 %" in a report on Acme is about Acme (SPEC-012 §9.1).

Two agents write about two companies in the same words, and neither names its own in every sentence. A claim that opens
with a name is about that name. Any other claim may be about all names before it in its part of the text, and about the
names in the sub-query. Two claims have different subjects only if both subjects are known and disjoint. Claims of
unknown subject are compared: a person sees a contradiction too many, but no one sees a missing one.
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
"""The names that a claim may be about. Empty means unknown."""

OPENING_WORDS = 2
"""Words that may precede the opening name of a sentence: The Acme, In the Netherlands."""

_KINDS_OF_FIRMS = word_set(
    "ab ag as asa bv co company corp corporation group gmbh holding holdings inc incorporated limited llc ltd nv oy plc sa spa"
)
_GAP = re.compile(r"\n\s*\n")
_YEAR = re.compile(r"\b(?:19|20)\d\d\b")


@dataclass
class _Context:
    """The names so far in one part of a text, and whether one of its claims opened with a name."""

    names: set[Name] = field(default_factory=set)
    opened: bool = False


@dataclass(frozen=True)
class Subjects:
    """The subjects of the claims of one text, by their wording, and the years that the text is about."""

    by_text: Mapping[str, tuple[Subject, ...]]
    years: frozenset[str] = frozenset()

    def of(self, text: str) -> tuple[Subject, ...]:
        """Return the subjects of a claim, one for each place where it occurs."""
        return self.by_text.get(text, (frozenset(),))


def subjects(claims: Sequence[Claim], texts: Mapping[int, str], *, sub_query: str = "") -> Subjects:
    """Return the subjects of the claims of a text.

    *texts* are by output index; *sub_query* is the sub-query that the text was to answer.
    """
    query_names = {name for found in frame(sub_query).names if found.sure and (name := _name(" ".join(found.words)))}
    context, at = _Context(set(query_names), bool(query_names)), (-1, 0)
    found: dict[str, list[Subject]] = {}
    for claim in sorted(claims, key=lambda one: (one.output_index, one.start)):
        opens = _opens_with(claim)
        if opens and _parts(at, claim, texts):
            context = _Context(set(query_names), opened=True)
        at = (claim.output_index, claim.end)
        named = {_name(entity.text) for entity in _entities(claim)} - {frozenset()}
        context.names |= named
        context.opened = context.opened or bool(opens)
        subject = opens or (context.names if context.opened else set())
        found.setdefault(claim.text, []).append(frozenset(subject))
    years = frozenset(_YEAR.findall(sub_query))
    return Subjects({text: tuple(dict.fromkeys(each)) for text, each in found.items()}, years)


def differ(one: Subjects, text: str, other: Subjects, other_text: str) -> bool:
    """Whether two claims surely have different subjects: no occurrence of one may share a subject with the other."""
    if one.years and other.years and not one.years & other.years and not _YEAR.search(f"{text} {other_text}"):
        return True
    return all(_apart(a, b) for a in one.of(text) for b in other.of(other_text))


def _apart(one: Subject, other: Subject) -> bool:
    return bool(one and other) and not any(a <= b or b <= a for a in one for b in other)


def _entities(claim: Claim) -> Iterable[Entity]:
    return (entity for entity in claim.entities if entity.label in KINDS)


def _opens_with(claim: Claim) -> set[Name]:
    """Return the name that a claim opens with, after at most two other words."""
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

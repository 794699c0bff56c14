"""What follows from the sources without a word that says how: days of the week, counts of things, and how often (SPEC-005 §5.2).

*On Wednesday* follows from *Monday to Friday*; *closed on Saturday* follows where no line states that day; *on Sunday* follows from
*Mon-Fri, Sat* no more than another date would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from interlock.dpe.comparison.cues import DATE_SHIFTED
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.document import Claim, Distortion, Fact
from interlock.dpe.values.reckoning.counted import settled_counts
from interlock.dpe.values.reckoning.frequencies import settled_frequencies
from interlock.dpe.values.reckoning.weekdays import LONGEST_SHORT, Days, days_in

_MOST_CHARACTERS = 64_000
_CLOSED = re.compile(r"\b(?:closed|closes|shut|unavailable|rest day|day off)\b", re.IGNORECASE)
_BY_TODAY = re.compile(r"\b(?:today|tomorrow|yesterday|tonight|next|last|this|coming|following)\b", re.IGNORECASE)
_EXCEPT = re.compile(r"\b(?:except|excluding|apart|other than|but not)\b", re.IGNORECASE)


@dataclass(frozen=True)
class Followed:
    """What the sources say of values of a claim: which of them follow, and which they give otherwise."""

    settled: frozenset[str] = frozenset()
    moved: tuple[Distortion, ...] = ()
    rest: bool = False
    """Whether the claim denies what its source leaves out."""

    def with_(self, other: Followed) -> Followed:
        """Return what both say."""
        return Followed(self.settled | other.settled, (*self.moved, *other.moved), self.rest or other.rest)


def following(claim: Claim, facts: Sequence[Fact], asked: str) -> Followed:
    """Return what the days, the counts and the frequencies of a claim follow from. *asked* is what the user said."""
    sources = [fact.content for fact in facts]
    counts = settled_counts(claim.text, sources)
    return days_told(claim, facts, asked).with_(Followed(counts | settled_frequencies(claim.text, sources)))


def days_told(claim: Claim, facts: Sequence[Fact], asked: str) -> Followed:
    """Return which days of a claim the sources hold, whether it denies one that they leave out, and which they do not know.

    *asked* is what the user said: a day that is named there is not the answer's own.
    """
    own = [one for one in days_in(claim.text) if one.words]
    if not own or sum(len(fact.content) for fact in facts) > _MOST_CHARACTERS:
        return Followed()
    told = [(fact, one) for fact in facts for one in days_in(fact.content)]
    held = frozenset(word for one in own for word in one.words if any(_follows(one, each) for _, each in told))
    left = [one for one in own if not held.intersection(one.words)]
    known = frozenset[int]().union(*(each.days for _, each in told))
    outside = [one for one in left if not one.days & known]
    if not told or not outside or any(_EXCEPT.search(fact.content) for fact, _ in told):
        return Followed(held)
    if _denies(claim.text):
        return Followed(held | {word for one in outside for word in one.words}, rest=True)
    return Followed(held, tuple(_foreign(outside, [fact for fact, _ in told], told[0][1], asked)))


def _follows(own: Days, told: Days) -> bool:
    """Tell whether a source states the days of a claim as a range or a group, or by a short name, that is no value of its own."""
    if len(own.words) > 1 or len(told.words) == 1:
        return own.days == told.days and (len(told.words) != 1 or len(told.words[0]) <= LONGEST_SHORT)
    return own.days <= told.days


def _denies(text: str) -> bool:
    return _CLOSED.search(text) is not None or has_negator(text)


def _foreign(own: Sequence[Days], facts: Sequence[Fact], told: Days, asked: str) -> list[Distortion]:
    """Return the days that a time table of short names does not have. Days in full are values, which others compare."""
    spoken = frozenset[int]().union(*(one.days for one in days_in(asked)))
    short = any(len(word) <= LONGEST_SHORT for word in told.words)
    if not short or _BY_TODAY.search(" ".join(fact.content for fact in facts)):
        return []
    return [
        Distortion(DATE_SHIFTED, " ".join(told.words), word, facts[0].id, slot="when")
        for one in own
        if not one.days & spoken
        for word in one.words[-1:]
    ]

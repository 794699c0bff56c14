"""What follows from the sources without a word that says how: days of the week, and counts of things (SPEC-005 §5.2).

*On Wednesday* follows from *Monday to Friday*; *closed on Saturday* follows where no line states that day; *on Sunday* follows from
*Mon-Fri, Sat* no more than another date would.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from interlock.dpe.comparison.cues import DATE_SHIFTED
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.document import Claim, Distortion, Fact
from interlock.dpe.grounding.placing.pins import Pinned
from interlock.dpe.values.reckoning.counted import settled_counts
from interlock.dpe.values.reckoning.weekdays import LONGEST_SHORT, Days, days_in

_MOST_CHARACTERS = 64_000
_CLOSED = re.compile(r"\b(?:closed|closes|shut|unavailable|rest day|day off)\b", re.IGNORECASE)
_BY_TODAY = re.compile(r"\b(?:today|tomorrow|yesterday|tonight|next|last|this|coming|following)\b", re.IGNORECASE)
_EVERY = re.compile(
    r"\b(?:every|each)\s+((?:two|three|six|twelve|2|3|6|12|14)\s+(?:weeks|months|days))\b", re.IGNORECASE
)
_ADVERBS = {
    "two weeks": ("fortnightly", "biweekly", "every fortnight", "every other week", "every second week"), "14 days": ("fortnightly",),
    "2 weeks": ("fortnightly", "biweekly"), "three months": ("quarterly", "every quarter"), "3 months": ("quarterly", "every quarter"),
    "six months": ("half-yearly", "twice a year", "semi-annual", "biannual"), "6 months": ("half-yearly", "twice a year", "semi-annual"),
    "twelve months": ("yearly", "annual", "every year"), "12 months": ("yearly", "annual", "every year"),
    "two months": ("bimonthly", "every other month"), "2 months": ("bimonthly", "every other month"),
}  # fmt: skip
_EXCEPT = re.compile(r"\b(?:except|excluding|apart|other than|but not)\b", re.IGNORECASE)


def following(claim: Claim, facts: Sequence[Fact], asked: str) -> Pinned:
    """Return what the days and the counts of a claim follow from. *asked* is what the user said."""
    sources = [fact.content for fact in facts]
    counts = settled_counts(claim.text, sources)
    return days_told(claim, facts, asked).with_(Pinned(counts | _periods(claim.text, sources)))


def _periods(text: str, sources: Sequence[str]) -> frozenset[str]:
    """Return the periods of a claim that an adverb of the sources names: *every three months*, for *quarterly*."""
    found = {" ".join(match[1].lower().split()): match[1] for match in _EVERY.finditer(text)}
    if not found:
        return frozenset()
    told = " ".join(sources).lower()
    return frozenset(
        written for period, written in found.items() if any(word in told for word in _ADVERBS.get(period, ()))
    )


def days_told(claim: Claim, facts: Sequence[Fact], asked: str) -> Pinned:
    """Return which days of a claim the sources hold, whether it denies one that they leave out, and which they do not know.

    *asked* is what the user said: a day that is named there is not the answer's own.
    """
    own = [one for one in days_in(claim.text) if one.words]
    if not own or sum(len(fact.content) for fact in facts) > _MOST_CHARACTERS:
        return Pinned()
    told = [(fact, one) for fact in facts for one in days_in(fact.content)]
    held = frozenset(word for one in own for word in one.words if any(_follows(one, each) for _, each in told))
    left = [one for one in own if not held.intersection(one.words)]
    known = frozenset[int]().union(*(each.days for _, each in told))
    outside = [one for one in left if not one.days & known]
    if not told or not outside or any(_EXCEPT.search(fact.content) for fact, _ in told):
        return Pinned(held)
    if _denies(claim.text):
        return Pinned(held | {word for one in outside for word in one.words}, rest=True)
    return Pinned(held, tuple(_foreign(outside, [fact for fact, _ in told], told[0][1], asked)))


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

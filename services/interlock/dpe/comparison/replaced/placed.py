"""Places turned round: *in front of the warehouse* for *behind the warehouse*, *on the right* for *to the left* (SPEC-005 §5.3).

A claim that puts something on one side of a thing is held against the sentences of the sources that put something on a side of the same
thing. If each of them names another side, and one speaks of what the claim speaks of, the place is not the source's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import STOP

_ARTICLE = r"\s+(?:the|a|an|its|his|her|their|our|your|my|this|that)\s+"
_NAMED = r"\s+"
_FLAT = frozenset({"latitude", "longitude", "order", "rank"})
"""Axes whose words are of a place or a person even before a bare name: *north of Ghent*."""
_LEADING = 8
_SIDES = {
    ("depth", "front"): r"in front of|at the front of",
    ("depth", "behind"): r"behind|at the back of|at the rear of|in back of",
    (
        "height",
        "above",
    ): r"above|over|on top of|upstream of|upstream from|upriver of|uphill of|upwind of|higher up than",
    (
        "height",
        "below",
    ): r"below|under|underneath|beneath|downstream of|downstream from|downriver of|downhill of|downwind of|lower down than",
    ("latitude", "north"): r"north of|to the north of",
    ("latitude", "south"): r"south of|to the south of",
    ("longitude", "east"): r"east of|to the east of",
    ("longitude", "west"): r"west of|to the west of",
    ("order", "ahead"): r"ahead of",
    ("rank", "senior"): r"senior to|superior to",
    ("rank", "junior"): r"junior to|inferior to|subordinate to",
    ("hand", "left"): r"(?:to|on|at) the left(?:-hand)?(?: side)? of|left of",
    ("hand", "right"): r"(?:to|on|at) the right(?:-hand)?(?: side)? of|right of",
    ("end", "top"): r"(?:at|on) the top of",
    ("end", "bottom"): r"(?:at|on) the bottom of",
    ("way", "opposite"): r"opposite|across from|across the (?:street|road) from",
    ("way", "beside"): r"next to|beside|adjacent to|right by|alongside",
    ("distance", "near"): r"near|close to|a short walk from",
    ("distance", "far"): r"far from|a long way from",
}
_PATTERNS = [
    (
        axis,
        side,
        pattern(
            rf"\b({words})(?:{_ARTICLE}|{_NAMED if axis in _FLAT else _ARTICLE})((?:[\p{{L}}\p{{N}}-]+\s?){{1,4}})",
            ignore_case=True,
        ),
    )
    for (axis, side), words in _SIDES.items()
]
_CLAUSE = pattern(r"[,;.:]\s")
_CUTS = word_set("and or but is are was were has have with where which that on in at of for to by from when if")


@dataclass(frozen=True)
class _Place:
    """A side of a thing, as it is written."""

    axis: str
    side: str
    thing: str
    text: str
    lead: frozenset[str] = frozenset()
    """What stands before it, which may be what lies on that side."""


def placed(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the side on which *claim* puts something, and its sources do not, or ``None``."""
    if has_negator(claim.text):
        return None
    for mine in _places(claim.text):
        told = [(its, source) for source in evidence.passages for its in _places(source.text) if its.axis == mine.axis]
        about = [(its, source) for its, source in told if its.thing == mine.thing]
        if not about and (crossed := _crossed(mine, told)) is not None:
            its, source = crossed
            return Misbinding(
                NEGATION_FLIP, "place", its.text, mine.text, source.text, source.fact_id, about=claim.content
            )
        if not about or any(its.side == mine.side for its, _ in about):
            continue
        for its, source in about:
            rest = claim.content - {key(word) for word in content_words(f"{mine.text} {its.text}")}
            if not has_negator(source.text) and (not rest or rest & source.content):
                return Misbinding(
                    NEGATION_FLIP, "place", its.text, mine.text, source.text, source.fact_id, about=claim.content
                )
    return None


def _crossed(mine: _Place, told: list[tuple[_Place, ReadSentence]]) -> tuple[_Place, ReadSentence] | None:
    """Return what a source puts on the same side of the other of two things: *the mill lies above the farm* for *the farm above the mill*."""
    return next(
        (
            (its, source)
            for its, source in told
            if its.side == mine.side
            and mine.thing in its.lead - mine.lead
            and its.thing in mine.lead - its.lead
            and not has_negator(source.text)
        ),
        None,
    )


def _places(text: str) -> Iterator[_Place]:
    for axis, side, found in _PATTERNS:
        for match in found.finditer(text):
            words = _thing(match[2])
            if words:
                lead = frozenset(map(key, _CLAUSE.split(text[: match.start()])[-1].lower().split()[-_LEADING:]))
                yield _Place(axis, side, key(words[-1]), f"{match[1]} the {' '.join(words)}".lower(), lead)


def _thing(written: str) -> list[str]:
    """Return the words of a thing, up to the first that goes on with something else: *the blue box in the hall*."""
    words: list[str] = []
    for word in written.lower().split():
        if word in _CUTS or word in STOP:
            break
        words.append(word)
    return words

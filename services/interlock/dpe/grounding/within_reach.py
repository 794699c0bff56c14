"""Figures that may follow from stated ones, and what an earlier answer said, are not invented (SPEC-005 §5.2).

Stage 3a calls a figure fabricated when neither a source nor the user states it. Most of the figures in good answers that nobody stated are
derived: totals, differences, shares, dates, a table with a column of results. One that lies within reach of the figures around it
(``values/reach.py``) is no fabrication. Neither is a name or a figure that an answer said before: it was judged when it was new.
Calculation may still show that such a figure is right (``placing``), and a comparison that it is wrong (stage 3b). Otherwise one cannot
tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.tables.cells import cells_of
from interlock.dpe.request import Request
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value, same
from interlock.dpe.values.reach import in_reach

BESIDE = 2
"""Sentences on either side of a claim whose figures are near to it."""

_EARLIER = 3
_MOST_TEXT = 4000
_MOST_COUNTED = 60


def beyond(
    fabricated: Mapping[str, tuple[str, ...]],
    readings: Sequence[ChoiceReading],
    evidence: Mapping[str, ClaimEvidence],
    request: Request,
) -> dict[str, tuple[str, ...]]:
    """Return the fabrications of each claim that are out of reach, by claim id. A claim without any is left out."""
    if not fabricated:
        return {}
    earlier = [window.text[:_MOST_TEXT] for window in request.prior[-_EARLIER:]]
    said = _Said(earlier)
    asked = read(request.query[-_MOST_TEXT:]).values
    found: dict[str, tuple[str, ...]] = {}
    for reading in readings:
        for claim in reading.checked:
            texts = fabricated.get(claim.claim_id)
            if texts and (left := tuple(_left(texts, claim, reading, evidence, asked, said))):
                found[claim.claim_id] = left
    return found


class _Said:
    """What the last answers of the session said."""

    def __init__(self, texts: Sequence[str]) -> None:
        self._folded = " ".join("\n".join(texts).casefold().split())
        self.values = [value for text in texts for value in read(text).values]

    def has(self, written: str) -> bool:
        """Whether a name stands there as a whole."""
        folded = " ".join(written.casefold().split())
        at = self._folded.find(folded)
        while at >= 0 and folded:
            before, after = self._folded[at - 1 : at], self._folded[at + len(folded) : at + len(folded) + 1]
            if not (before.isalnum() or after.isalnum()):
                return True
            at = self._folded.find(folded, at + 1)
        return False


def _left(
    texts: Sequence[str],
    claim: Claim,
    reading: ChoiceReading,
    evidence: Mapping[str, ClaimEvidence],
    asked: Sequence[Value],
    said: _Said,
) -> Iterator[str]:
    """Yield what is neither within reach nor was said before."""
    near, far, counts = _around(claim, reading, evidence)
    own = read(claim.text).values
    for text in texts:
        values = [value for value in own if value.text == text] or list(read(text).values)
        if not values:
            if any(map(str.isdigit, text)) or not said.has(text):
                yield text
            continue
        told = all(any(same(value, other) for other in said.values) for value in values)
        if not told and not all(
            in_reach(value, [*near, *asked], [*far, *said.values[-_MOST_COUNTED:]], counts) for value in values
        ):
            yield text


def _around(
    claim: Claim, reading: ChoiceReading, evidence: Mapping[str, ClaimEvidence]
) -> tuple[list[Value], list[Value], set[int]]:
    """Return the figures beside a claim, those of the sources that its answer rests on, and how many things are listed."""
    beside = [
        sentence.text
        for sentence in reading.sentences
        if abs(sentence.index - claim.sentence_index) <= BESIDE or cells_of(claim.text) is not None
    ]
    shown = evidence.get(claim.claim_id)
    own_source = [shown.source, shown.premise] if shown else []
    near = [value for text in dict.fromkeys([claim.text, *own_source, *beside]) for value in read(text).values]
    others = [
        text
        for one in reading.checked
        if (each := evidence.get(one.claim_id)) is not None
        for text in (each.source, *(other for _, other in each.others))
    ]
    far = [value for text in dict.fromkeys(others) for value in read(text).values]
    return near, far, _counts(reading, others)


def _counts(reading: ChoiceReading, sources: Sequence[str]) -> set[int]:
    """Return the sizes of what the answer and its sources list, and of the parts of it that hold a figure in common."""
    lists = [len(reading.sentences), len(reading.sentences) - 1, len(dict.fromkeys(sources))]
    rows = chain.from_iterable(text.splitlines() for text in dict.fromkeys(sources))
    lists.append(sum(bool(row.strip()) for row in rows))
    return {size for size in lists if 1 < size <= _MOST_COUNTED}

"""Figures that may follow from stated ones are not invented (SPEC-005 §5.2).

Stage 3a calls a figure fabricated when neither a source nor the user states it. Most of the figures in good answers that nobody stated are
derived: totals, differences, shares, dates, a table with a column of results. One that lies within reach of the figures around it
(``values/reach.py``) is no fabrication. Neither is one that an earlier answer derived in the same way.
Calculation may still show that such a figure is right (``placing``), and a comparison that it is wrong (stage 3b). Otherwise one cannot
tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.request import Request
from interlock.dpe.values.cells import cells_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value, same
from interlock.dpe.values.reach import in_reach

BESIDE = 1
"""Sentences on either side of a claim whose figures are near to it."""

_EARLIER = 24
_MOST_TEXT = 4000
_MOST_TOLD = 12
_AROUND = 6


def beyond(
    fabricated: Mapping[str, tuple[str, ...]],
    readings: Sequence[ChoiceReading],
    evidence: Mapping[str, ClaimEvidence],
    request: Request,
    *,
    judged: Collection[str],
) -> dict[str, tuple[str, ...]]:
    """Return the fabrications of each claim that are out of reach, by claim id. A claim without any is left out.

    *judged* are the ids of the claims that the sources are about and whose language the models read; of the others all are kept.
    """
    if not fabricated:
        return {}
    said = _said([window.text[:_MOST_TEXT] for window in request.prior[-_EARLIER:]])
    told = [*read(request.query[-_MOST_TEXT:]).values, *said[-_MOST_TOLD:]]
    found: dict[str, tuple[str, ...]] = {}
    for reading in readings:
        for claim in reading.checked:
            texts = fabricated.get(claim.claim_id, ())
            if texts and claim.claim_id in judged:
                near = _Near.of(claim, reading, told)
                texts = tuple(_left(texts, claim, near, said, evidence.get(claim.claim_id)))
            if texts:
                found[claim.claim_id] = texts
    return found


def _said(texts: Sequence[str]) -> list[Value]:
    """Return the figures of earlier answers that follow from the figures around them there.

    One that nothing bore out then is no evidence now: an invention does not become true by being repeated.
    """
    found: list[Value] = []
    for text in texts:
        values = read(text).values
        for place, value in enumerate(values):
            around = [*values[max(0, place - _AROUND) : place], *values[place + 1 : place + 1 + _AROUND]]
            if in_reach(value, around, ()):
                found.append(value)
    return found


def _left(
    texts: Sequence[str], claim: Claim, near: _Near, said: Sequence[Value], shown: ClaimEvidence | None
) -> Iterator[str]:
    """Yield what is neither within reach nor was derived before."""
    own = read(claim.text).values
    for text in texts:
        values = [value for value in own if value.text == text] or list(read(text).values)
        if not values:
            yield text
            continue
        told = all(any(same(value, other) for other in said) for value in values)
        if not told and not all(_reached(value, near, shown) for value in values):
            yield text


@dataclass(frozen=True)
class _Near:
    """The figures of a claim's own sentence, and those beside it: in its neighbours, the question and the last answer."""

    own: Sequence[Value]
    beside: Sequence[Value]

    @staticmethod
    def of(claim: Claim, reading: ChoiceReading, told: Sequence[Value]) -> _Near:
        """Read the sentences around *claim*. *told* are the figures of the question and of the last answers."""
        row = cells_of(claim.text) is not None
        texts = [
            sentence.text
            for sentence in reading.sentences
            if 0 < abs(sentence.index - claim.sentence_index) <= BESIDE and not row
        ]
        own = [reading.sentences[claim.sentence_index].text] if not row else []
        return _Near(_values([claim.text, *own]), [*_values(texts), *told])


def _reached(value: Value, near: _Near, shown: ClaimEvidence | None) -> bool:
    """Whether a figure follows from figures in and beside its sentence, or from one in it and one of its source."""
    if in_reach(value, [*near.own, *near.beside], ()):
        return True
    if any(_halves(value, other) for other in near.own):
        return True
    return shown is not None and in_reach(value, near.own, _values([shown.source, shown.premise]))


def _halves(value: Value, other: Value) -> bool:
    """Whether a figure is half or twice another one of its sentence."""
    one, two = value.amount, other.amount
    return bool(one and two) and value.unit == other.unit and (one == 2 * (two or 0.0) or two == 2 * (one or 0.0))


def _values(texts: Sequence[str]) -> list[Value]:
    return [value for text in dict.fromkeys(texts) for value in read(text).values]

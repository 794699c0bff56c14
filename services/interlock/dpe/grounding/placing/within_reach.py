"""Figures that may follow from stated ones are not invented (SPEC-005 §5.2).

Stage 3a calls a figure fabricated when neither a source nor the user states it. Most of the figures in good answers that nobody stated are
derived: totals, differences, shares, dates, a table with a column of results. One that lies within reach of the figures around it
(``values/reach.py``) is no fabrication. Neither is one that an earlier answer derived in the same way.
Calculation may still show that such a figure is right (``placing``), and a comparison that it is wrong (stage 3b). Otherwise one cannot
tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.request import Request
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import cells_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value, same
from interlock.dpe.values.reach import between_times, in_reach, scaled
from interlock.dpe.values.reckoning.derived import DIFFERS
from interlock.dpe.values.units import TIMES

BESIDE = 1
"""Sentences on either side of a claim whose figures are near to it."""

_EARLIER = 24
_MOST_TEXT = 4000
_MOST_TOLD = 12
_AROUND = 6
_MOST_OF_SENTENCE = 6
_MOST_FACTS = 200
_MOST_LISTED = 24
_ROUNDS = 6
_FIGURES = frozenset({"NUMBER_CHANGED", "MAGNITUDE_ALTERED"})
_FACTORS = {"double": 2.0, "doubled": 2.0, "twice": 2.0, "triple": 3.0, "tripled": 3.0, "half": 0.5, "halved": 0.5}
_COMPARES = DIFFERS | word_set("share rest own others other together total altogether all sum ratio makes leaves times")
_UNIT = "(minute|hour|day|week|month|year)"
_TOTALS = word_set("altogether total totals together sum all")
_ONE_UNIT = pattern(
    rf"\banother {_UNIT}\b|\b(?:an?|one) {_UNIT} (?:later|earlier|before|after|afterwards|longer|more|ahead)\b",
    ignore_case=True,
)


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
    told = _values([request.query[-_MOST_TEXT:]])
    times = _times(request)
    looked = [
        (c, reading)
        for reading in readings
        for c in reading.checked
        if c.claim_id in fabricated and c.claim_id in judged
    ]
    nears = {claim.claim_id: _Near.of(claim, reading, told, times) for claim, reading in looked}
    apart = {name: texts for name, texts in fabricated.items() if name not in nears}
    found = {name: texts for name, texts in fabricated.items() if name in nears}
    for _ in range(_ROUNDS):
        # A figure without a basis is none for others until it is within reach itself: 155 minutes first, then the hour.
        unknown = frozenset(
            text for name, texts in found.items() for text in texts if not _settled(text, evidence.get(name))
        )
        before, found = found, {}
        for claim, _reading in looked:
            name, near = claim.claim_id, nears[claim.claim_id].without(unknown)
            if left := tuple(_left(before.get(name, ()), claim, near, said, evidence.get(name))):
                found[name] = left
        if found == before:
            break
    return {**apart, **found}


def _settled(text: str, shown: ClaimEvidence | None) -> bool:
    """Whether calculation accounts for a figure already."""
    return shown is not None and text in shown.settled


def derived(
    distorted: Mapping[str, tuple[Distortion, ...]], readings: Sequence[ChoiceReading], request: Request
) -> dict[str, tuple[Distortion, ...]]:
    """Return the distortions of each claim without changed figures that follow from others of its sentence.

    *155 minutes in all* is no bent *35 minutes* where the sentence before says 140 minutes and this one adds 15; 87 of the 94 shops
    stay open where seven close.
    """
    if not any(each.type in _FIGURES for found in distorted.values() for each in found):
        return dict(distorted)
    told = _values([request.query[-_MOST_TEXT:]])
    kept = dict(distorted)
    for reading in readings:
        for claim in reading.checked:
            found = distorted.get(claim.claim_id, ())
            if not any(each.type in _FIGURES for each in found):
                continue
            near = _Near.of(claim, reading, told, ())
            left = tuple(each for each in found if each.type not in _FIGURES or not _follows(each, claim, near))
            kept[claim.claim_id] = left
    return {name: found for name, found in kept.items() if found}


def _follows(bent: Distortion, claim: Claim, near: _Near) -> bool:
    """Whether the claim's figure follows from others of its sentence and those beside it, or from one and the source's figure."""
    for value in (each for each in read(claim.text).values if each.text == bent.claim_value):
        others = [each for each in near.own if each.text != value.text and not each.vague]
        if others and value.amount is not None:
            replaced = [each for each in others if each.unit == value.unit]
            if in_reach(value, others, near.beside) or any(_apart(value, each, bent.source_value) for each in replaced):
                return True
    return False


def _apart(value: Value, other: Value, source: str) -> bool:
    """Whether a figure is what a source's figure leaves of another one, or adds to it."""
    one, two = value.amount or 0.0, other.amount or 0.0
    gap = abs(two - one) if two > one else 0.0
    return any(each.unit == value.unit and each.amount and abs(each.amount) == gap for each in read(source).values)


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
        if not told and not all(_reached(value, near, said, shown) for value in values):
            yield text


@dataclass(frozen=True)
class _Near:
    """The figures of a claim's own sentence, and those beside it: in its neighbours and the question."""

    own: Sequence[Value]
    beside: Sequence[Value]
    listed: Sequence[Value] = ()
    """Figures of the items of a list that the claim announces or closes."""
    times: Sequence[Value] = ()
    """Times of day that the sources state."""
    words: frozenset[str] = frozenset()

    def without(self, texts: frozenset[str]) -> _Near:
        """Leave out the figures that are written so."""
        own, beside, listed = (
            [each for each in group if each.text not in texts] for group in (self.own, self.beside, self.listed)
        )
        return replace(self, own=own, beside=beside, listed=listed)

    @staticmethod
    def of(claim: Claim, reading: ChoiceReading, told: Sequence[Value], times: Sequence[Value]) -> _Near:
        """Read the sentences around *claim*. *told* are the figures of the question and of the last answers."""
        row = cells_of(claim.text) is not None
        words = frozenset(token.low for token in read(claim.text).tokens)
        far = BESIDE + bool(words & _TOTALS)
        texts = [
            sentence.text
            for sentence in reading.sentences
            if 0 < abs(sentence.index - claim.sentence_index) <= far and not row
        ]
        own = [reading.sentences[claim.sentence_index].text] if not row else []
        whole = [sentence.text for sentence in reading.sentences if sentence.index != claim.sentence_index]
        listed = _values(whole[:_MOST_LISTED]) if not row else []
        return _Near(_values([claim.text, *own]), [*_values(texts), *told], listed, times, words)


def _reached(value: Value, near: _Near, said: Sequence[Value], shown: ClaimEvidence | None) -> bool:
    """Whether a figure follows from figures in and beside its sentence, or from one in it and one of its source."""
    if in_reach(value, [*near.own, *near.beside], said[-_MOST_TOLD:]):
        return True
    if any(_halves(value, other) for other in near.own) or between_times(value, near.times) or _sums_up(value, near):
        return True
    if shown is None:
        return False
    stated = _values([shown.source, shown.premise])
    if in_reach(value, near.own, stated):
        return True
    if any(scaled(value, factor, stated) for word, factor in _FACTORS.items() if word in near.words):
        return True
    sentence = _values([shown.source])
    return len(sentence) <= _MOST_OF_SENTENCE and bool(near.words & _COMPARES) and in_reach(value, sentence, ())


def _sums_up(value: Value, near: _Near) -> bool:
    """Whether a figure is the sum of the figures of its kind in a list beside it, or how many those are."""
    for unit in {each.unit for each in near.listed if each.unit}:
        alike = [each for each in near.listed if each.unit == unit and each.amount]
        if len(alike) > 1 and value.amount and unit == value.unit:
            return bool(abs(sum(each.amount or 0.0 for each in alike) - value.amount) <= value.step / 2)
    return value.unit == TIMES and value.amount in {
        float(sum(each.unit == unit for each in near.listed)) for unit in {each.unit for each in near.listed}
    }


def _halves(value: Value, other: Value) -> bool:
    """Whether a figure is half or twice another one of its sentence."""
    one, two = value.amount, other.amount
    return bool(one and two) and value.unit == other.unit and (one == 2 * (two or 0.0) or two == 2 * (one or 0.0))


def _values(texts: Sequence[str]) -> list[Value]:
    return [value for text in dict.fromkeys(texts) for value in (*read(text).values, *_ones(text))]


def _ones(text: str) -> Iterator[Value]:
    """Yield the periods that stand without a number: another week, an hour earlier."""
    for match in _ONE_UNIT.finditer(text):
        yield from read(f"1 {match[1] or match[2]}").values


def _times(request: Request) -> list[Value]:
    texts = [fact.content[:_MOST_TEXT] for fact in request.facts[:_MOST_FACTS] if ":" in fact.content]
    return [value for value in _values(texts) if value.moment is not None and value.moment.minute is not None]

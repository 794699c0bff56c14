"""Figures that may follow from stated ones are not invented (SPEC-005 §5.2).

Stage 3a calls a figure fabricated when neither a source nor the user states it. Most of the figures in good answers that nobody stated are
derived: totals, differences, shares, dates, conversions, a table with a column of results. One that lies within reach of the figures
around it (``values/reach.py``, ``values/reckoning/chains.py``) is no fabrication. Neither is one that an earlier answer derived in the
same way. Calculation may still show that such a figure is right (``placing``), and a comparison that it is wrong (stage 3b). Otherwise
one cannot tell.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TypeVar

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.cases.cases import is_case
from interlock.dpe.comparison.contradiction import Contradiction
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.doubt import is_denied
from interlock.dpe.grounding.placing import from_lines
from interlock.dpe.grounding.placing.calculated import UNSURE
from interlock.dpe.grounding.placing.near import MOST_TEXT, Near, Told, compounds, converts, values_of, weighs
from interlock.dpe.grounding.placing.reaches.codes import is_of_code
from interlock.dpe.grounding.placing.reaches.parts import is_part, is_times
from interlock.dpe.grounding.placing.reaches.rest import is_rest_or_sum
from interlock.dpe.grounding.placing.reaches.supposing import is_supposed
from interlock.dpe.grounding.placing.reaches.unheard import is_unheard
from interlock.dpe.grounding.placing.recounting.answers import changed_but_made, without_made
from interlock.dpe.grounding.placing.wholes.of_list import AVERAGE, TOTAL
from interlock.dpe.request import Request
from interlock.dpe.text.tongues import is_day_of_month
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import label_of
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import frame
from interlock.dpe.values.quantities import Value, same
from interlock.dpe.values.reach import adds, between_times, differs, in_reach, scaled
from interlock.dpe.values.reckoning.chains import follows_in_steps
from interlock.dpe.values.reckoning.day_words import days_meant
from interlock.dpe.values.reckoning.derived import DIFFERS
from interlock.dpe.values.reckoning.elliptic import with_unit_beside
from interlock.dpe.values.units import TIME, TIMES

_MOST_TOLD = 12
_MOST_ABOUT = 8
_MOST_OF_SENTENCE = 6
_ROUNDS = 6
_EXACT = 3  # significant digits of a figure that is not another one's by chance
_ON_FIGURES = frozenset({"nli", "numbers", "dates"})
Across = TypeVar("Across", bound=Contradiction)
_FIGURES = frozenset({"NUMBER_CHANGED", "MAGNITUDE_ALTERED"})
_OF_VALUES = _FIGURES | {"DATE_SHIFTED"}
_FACTORS = {"double": 2.0, "doubled": 2.0, "twice": 2.0, "triple": 3.0, "tripled": 3.0, "half": 0.5, "halved": 0.5}
_COMPARES = DIFFERS | word_set(
    "share rest own others other together total altogether all sum ratio makes leaves times profit loss margin balance surplus deficit net"
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
    looked = [
        (c, reading)
        for reading in readings
        for c in reading.checked
        if c.claim_id in fabricated and c.claim_id in judged
    ]
    apart = {name: texts for name, texts in fabricated.items() if name not in {claim.claim_id for claim, _ in looked}}
    left, firm = without_made(looked, fabricated, request)
    return {**apart, **_out_of_reach(looked, left, evidence, Told.of(request), firm)} if looked else apart


def reckoned(
    evidence: Mapping[str, ClaimEvidence],
    fabricated: Mapping[str, tuple[str, ...]],
    left: Mapping[str, tuple[str, ...]],
    readings: Sequence[ChoiceReading],
) -> dict[str, ClaimEvidence]:
    """Return the evidence, marked for the claims whose figures without a source are all within reach: *left* are those out of it.

    The model hears another figure than the source's as a denial. Of a result that shows how it is made, that says nothing.
    """
    made = {name for name, texts in fabricated.items() if texts and not left.get(name)}
    plain = {
        claim.claim_id
        for reading in readings
        for claim in reading.checked
        if claim.claim_id in made and is_unheard(claim.text)
    }
    unheard = {name for name in plain if is_denied(evidence[name])}
    marked = {name: replace(each, reckoned=name in made) for name, each in evidence.items()}
    return marked | {name: replace(marked[name], scores=UNSURE, plain_scores=UNSURE) for name in unheard}


def _out_of_reach(
    looked: Sequence[tuple[Claim, ChoiceReading]],
    fabricated: Mapping[str, tuple[str, ...]],
    evidence: Mapping[str, ClaimEvidence],
    told: Told,
    firm: frozenset[str],
) -> dict[str, tuple[str, ...]]:
    """Go over the claims until nothing more comes within reach. What one claim accounts for counts for the others."""
    nears = {claim.claim_id: Near.of(claim, reading, told) for claim, reading in looked}
    found = {claim.claim_id: fabricated[claim.claim_id] for claim, _ in looked}
    settled = {text for name, texts in found.items() for text in texts if _settled(text, evidence.get(name))}
    for _ in range(_ROUNDS):
        # A figure without a basis is none for others until it is within reach itself: 155 minutes first, then the hour.
        left = {name: tuple(text for text in texts if text not in settled) for name, texts in found.items()}
        unknown = frozenset(text for texts in left.values() for text in texts)
        before = found
        found = {
            claim.claim_id: tuple(
                _left(
                    left[claim.claim_id], claim, nears[claim.claim_id].without(unknown).resting(settled),
                    evidence.get(claim.claim_id), firm,
                )
            )
            for claim, _ in looked
        }  # fmt: skip
        settled |= {text for name, texts in before.items() for text in texts if text not in found[name]}
        if found == before:
            break
    return {name: texts for name, texts in found.items() if texts}


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
    if not any(each.type in _OF_VALUES for found in distorted.values() for each in found):
        return dict(distorted)
    told = Told.of(request)
    kept = dict(distorted)
    made = changed_but_made(distorted, request)
    for reading in readings:
        for claim in reading.checked:
            found = distorted.get(claim.claim_id, ())
            if not any(each.type in _OF_VALUES for each in found):
                continue
            near = Near.of(claim, reading, told)
            left = tuple(
                each
                for each in found
                if each.type not in _OF_VALUES
                or each.slot in {TOTAL, AVERAGE}  # one figure is right; that others make it too is chance
                or not (each.claim_value in made or _follows(each, claim, near) or _is_figure_of(each, claim, told))
            )
            kept[claim.claim_id] = left
    return {name: found for name, found in kept.items() if found}


def _is_figure_of(bent: Distortion, claim: Claim, told: Told) -> bool:
    """Whether a field states a source's exact figure without its unit: *total: 821.1* for 821.10 EUR."""
    if label_of(claim.text) is None or bent.type not in _FIGURES:
        return False
    figures = [each for each in read(claim.text).values if each.text == bent.claim_value and not each.unit]
    stated = [each for _, values, _ in told.facts for each in values if each.unit]
    exact = (each for each in figures if each.amount and (len(each.digits) >= _EXACT or "." in each.text))
    return any(one.amount == (other.amount or 0.0) / other.factor for one in exact for other in stated)


def _follows(bent: Distortion, claim: Claim, near: Near) -> bool:
    """Whether the claim's figure follows from others of its sentence and those beside it, or from one and the source's figure."""
    for value in (each for each in read(claim.text).values if each.text == bent.claim_value):
        others = [each for each in near.own if each.text != value.text and not each.vague]
        if _is_operand(value, near):
            return True
        if value.moment is not None and from_lines.follows(value, near):
            return True
        if value.amount is None:
            continue
        whole = from_lines.of_named_row(value, near) or is_part(value, near) or is_rest_or_sum(value, near)
        if whole or is_times(value, bent.source_value, others) or _is_elliptic(value, claim.text, near):
            return True
        if others:
            replaced = [each for each in others if each.unit == value.unit]
            if in_reach(value, others, near.beside) or any(_apart(value, each, bent.source_value) for each in replaced):
                return True
        if any(converts(value, each) for each in others) or _of_its_key(value, near) or _in_steps(value, near, ()):
            return True
    return False


def _is_elliptic(value: Value, text: str, near: Near) -> bool:
    """Whether a figure follows with the unit that it leaves out."""
    return any(_from_the_answer(each, near) for each in with_unit_beside(value, read(text)))


def _is_operand(value: Value, near: Near) -> bool:
    """Whether a stated figure stands in its sentence to be reckoned with: *from 15 May to 23 June is 39 days*."""
    stated = near.told is not None and any(same(value, each) for _, values, _ in near.told.facts for each in values)
    others = [each for each in near.own if each.text != value.text]
    made = (each for each in read(near.text).values if each.text != value.text and each.unit == TIME)
    rests = ((each, [one for one in others if one.text != each.text]) for each in made)
    return stated and any(in_reach(each, [value], rest) and not in_reach(each, rest, ()) for each, rest in rests)


def _apart(value: Value, other: Value, source: str) -> bool:
    """Whether a figure is what a source's figure leaves of another one, or adds to it."""
    one, two = value.amount or 0.0, other.amount or 0.0
    gap = abs(two - one) if two > one else 0.0
    return any(each.unit == value.unit and each.amount and abs(each.amount) == gap for each in read(source).values)


def _left(
    texts: Sequence[str], claim: Claim, near: Near, shown: ClaimEvidence | None, firm: frozenset[str]
) -> Iterator[str]:
    """Yield what is neither within reach nor was derived before. *firm* are totals that two free operations do not show."""
    own = read(claim.text).values
    for text in texts:
        values = [value for value in own if value.text == text] or list(read(text).values)
        if not values or is_day_of_month(text, claim.text) or is_of_code(values, claim.text):
            yield text
            continue
        said = [each for _, group, _ in (near.told.said if near.told else ()) for each in group]
        if all(any(same(value, other) or _one_figure(value, other) for other in said) for value in values):
            continue
        if shown is not None and all(is_case(each, frame(claim.text), frame(shown.source)) for each in values):
            continue
        if all(is_supposed(each, claim.text, near) for each in values):
            continue
        steps = text not in firm
        if not all(_reached_in_full(_whole(each, own), claim.text, near, shown, steps=steps) for each in values):
            yield text


def _reached_in_full(value: Value, text: str, near: Near, shown: ClaimEvidence | None, *, steps: bool) -> bool:
    """Whether a figure is within reach, as it is written or with what it leaves out: *another 15* of minutes, *the 14th* of a month."""
    filled = (*with_unit_beside(value, read(text)), *days_meant(value, read(text)))
    stated = [each for _, values, _ in (near.told.facts if near.told else ()) for each in values]
    if any(same(each, other) for each in filled for other in stated):
        return True  # nine hours instead of sixteen, where the source has the 16 hours
    return any(_reached(each, near, shown, steps=steps) for each in (value, *filled))


def _one_figure(value: Value, other: Value) -> bool:
    """Whether a field states a figure without its unit, or with another spelling of it: *kcal: 3080*, 3,080 kcal."""
    bare = bool(value.amount and other.amount) and (not value.unit or not other.unit) and len(value.digits) > 1
    return bare and (value.amount or 0.0) / value.factor == (other.amount or 0.0) / other.factor


def _whole(value: Value, own: Sequence[Value]) -> Value:
    """Return what a value is a part of where it is written in two units: 4 hours and 40 minutes."""
    for one, other in pairwise(own):
        if value in (one, other) and compounds(one, other):
            return next(
                each
                for each in values_of([f"{one.text} {other.text}"])
                if each.text.endswith(other.text) and each.text != other.text
            )
    return value


def _reached(value: Value, near: Near, shown: ClaimEvidence | None, *, steps: bool) -> bool:
    """Whether a figure follows from figures in and beside its sentence, or from one in it and one of its source."""
    if shown is not None and _slips(value, shown.source):
        return False
    if _from_the_answer(value, near) or _of_its_key(value, near) or from_lines.follows(value, near):
        return True
    return shown is not None and _from_a_source(value, near, shown, steps=steps)


def _from_the_answer(value: Value, near: Near) -> bool:
    """Whether a figure follows from those of the answer, of earlier ones and of the user's words."""
    said = near.told.said_about(near.text)[:_MOST_TOLD] if near.told else []
    around = [*near.own, *near.beside]
    if in_reach(value, around, [*said, *near.asked]) or adds(value, near.own, near.results):
        return True
    if any(converts(value, other) for other in [*around, *said]):
        return True
    weighed = any(weighs(value, other) for other in read(near.text).values)
    halved = any(_halves(value, other) for other in near.own)
    if weighed or halved or between_times(value, near.times) or _sums_up(value, near):
        return True
    if value.moment is None or value.moment.minute is None:
        return False
    # The period may stand in the sentence before: *the last one an hour before closing. That means 14:30*.
    steps = [each for each in near.beside if each.unit == TIME and each.amount]
    return in_reach(value, near.own, near.times) or in_reach(value, steps, near.times)


def _from_a_source(value: Value, near: Near, shown: ClaimEvidence, *, steps: bool) -> bool:
    """Whether a figure follows from those of the claim and of the passage that it is about."""
    stated = values_of([shown.source, shown.premise])
    named = any(scaled(value, factor, stated) for word, factor in _FACTORS.items() if word in near.words)
    if named or in_reach(value, near.own, stated):
        return True
    sentence = values_of([shown.source])
    compared = bool(near.words & _COMPARES)
    if len(sentence) <= _MOST_OF_SENTENCE and compared and in_reach(value, sentence, ()):
        return True
    if len(stated) <= _MOST_OF_SENTENCE and compared and differs(value, stated):
        return True
    return steps and _in_steps(value, near, sentence)


def _slips(value: Value, source: str) -> bool:
    """Whether a source states the same number of another unit of one measure: four weeks, for four days."""
    alike = (
        each
        for each in read(source).values
        if each.unit == value.unit and each.factor != value.factor and not each.vague
    )
    return bool(value.unit and value.amount) and any(
        (each.amount or 0.0) / each.factor == (value.amount or 0.0) / value.factor for each in alike
    )


def _of_its_key(value: Value, near: Near) -> bool:
    """Whether a figure is one operation away from what is stated under the same key or in a line with the same noun.

    8 slices with ``fat_g: 14``; *FLOUR 375 g* for one and a half times 250 g of flour.
    """
    told = near.told
    if told is None or not near.label:
        return False
    if stated := told.keyed.get(near.label):
        return in_reach(value, stated, [*told.question, *told.about(near.text)[:_MOST_TOLD]])
    factors = [
        each for each in (*near.listed, *near.beside) if each.amount and not each.unit and each.text != value.text
    ]
    named = [each for each in (*told.named(near.label), *told.said_named(near.label)) if each.unit == value.unit]
    return in_reach(value, named[:_MOST_ABOUT], factors[:_MOST_ABOUT])


def _in_steps(value: Value, near: Near, sentence: Sequence[Value]) -> bool:
    """Whether a figure is the total of a list, or follows by two operations from what is near and what the sources say of it."""
    groups = [[each for each in group if each.text != value.text] for group in near.groups]
    stated = near.told.of_label(near.label) if near.told is not None and near.label else []
    if alike := {each.text for each in stated if each.unit in {"", value.unit}}:
        # A source states what is asked for: only its own figure counts, or all of a column together.
        return len(alike) > 1 and follows_in_steps(value, (), groups)
    others = [each for each in near.own if each.text != value.text]
    about = near.told.about(near.text)[:_MOST_ABOUT] if near.told else []
    said = near.told.said_about(near.text)[:_MOST_ABOUT] if near.told else []
    return follows_in_steps(value, [*others, *sentence, *about[:2], *said[:2], *near.beside, *about, *said], groups)


def _sums_up(value: Value, near: Near) -> bool:
    """Whether a figure is the sum of the figures of its kind in a list beside it, or how many those are."""
    for unit in {each.unit for each in near.listed if each.unit}:
        alike = [each for each in near.listed if each.unit == unit and each.amount]
        if len(alike) > 1 and value.amount and unit == value.unit:
            return bool(abs(sum(each.amount or 0.0 for each in alike) - value.amount) <= value.step / 2)
    if value.unit in {"", TIMES} and value.amount and value.amount == near.items:
        return True
    return value.unit == TIMES and value.amount in {
        float(sum(each.unit == unit for each in near.listed)) for unit in {each.unit for each in near.listed}
    }


def _halves(value: Value, other: Value) -> bool:
    """Whether a figure is half or twice another one of its sentence."""
    one, two = value.amount, other.amount
    return bool(one and two) and value.unit == other.unit and (one == 2 * (two or 0.0) or two == 2 * (one or 0.0))


def supposed(
    across: Sequence[Sequence[Across]],
    fabricated: Mapping[str, tuple[str, ...]],
    left: Mapping[str, tuple[str, ...]],
    request: Request,
) -> list[list[Across]]:
    """Return the contradictions with earlier answers without those that another figure of the question explains.

    *The logo is 580 net*, *I have 12 guests*: the results that follow are new ones. *fabricated* are the figures that nobody states,
    by claim id, and *left* those of them that are out of reach.
    """
    if not read(request.query[-MOST_TEXT:]).values:
        return [list(each) for each in across]
    new = {name for name, texts in fabricated.items() if texts and not left.get(name)}
    return [[one for one in each if one.claim_id not in new or one.method not in _ON_FIGURES] for each in across]

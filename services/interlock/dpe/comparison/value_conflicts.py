"""Value comparison: a claim's values traced to an envelope, and its conflicts with a fact (SPEC-005 §5.2, §5.3).

These rules need no model and stand alone. All functions are pure functions of their texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from interlock.dpe.comparison.direct import cues
from interlock.dpe.text.lexing import at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values import moments
from interlock.dpe.values.extraction import ValuesRead, extract, read
from interlock.dpe.values.frames import Frame, frame
from interlock.dpe.values.moments import Moment
from interlock.dpe.values.quantities import DATE, NUMBER, ORDINAL, Value, same
from interlock.dpe.values.value_table import ValueTable

__all__ = [
    "EnvelopeValues",
    "Frame",
    "Value",
    "ValueConflict",
    "compare",
    "conflicts",
    "extract",
    "frame",
    "same",
    "untraced",
]

# Nouns that an answer enumerates itself: three reasons, two of the options.
_COUNTED_OFF = word_set(
    "main key major reasons ways types kinds steps points factors categories parts aspects areas examples options "
    "levels items sections things questions sides stages phases groups principles benefits challenges features "
    "components elements approaches methods strategies tips sentences paragraphs words different separate "
    "distinct of"
)
_MOST_COUNTED_OFF = 12
_EXACT = 1e-9
_MOST_IN_WORDS = 5  # two, three … count what the answer has just named


@dataclass(frozen=True)
class ValueConflict:
    """One conflict of a claim with its source. The types are those of SPEC-005 §5.3."""

    type: str
    source_value: str
    claim_value: str


def conflicts(claim_text: str, fact_text: str) -> tuple[ValueConflict, ...]:
    """Return the certain conflicts of a claim with a fact."""
    return compare(frame(claim_text), frame(fact_text))


def compare(claim: Frame, fact: Frame) -> tuple[ValueConflict, ...]:
    """Return what ``conflicts`` returns, for texts that are framed already: frame once, compare often."""
    found = [
        ValueConflict(cue.type, cue.source_value, cue.claim_value)
        for sentence in claim.sentences
        for cue in cues(sentence, claim, fact)
        if cue.certain
    ]
    return tuple(dict.fromkeys(found))


class EnvelopeValues:
    """The values of an envelope, indexed for lookup."""

    def __init__(self, values: Sequence[Value]) -> None:
        """Index the values of every fact."""
        self._table = ValueTable(values)
        stated = [reading for value in values if value.moment for reading in value.moment.readings()]
        self._moments = tuple(dict.fromkeys(stated))
        self._years = frozenset(moment.years for moment in stated)
        self._bare = ValueTable([value for value in values if value.kind == NUMBER and not value.vague])
        self._bare_counts = ValueTable([_without_unit(value) for value in values if value.kind == "MONEY"])

    @staticmethod
    def of(texts: Sequence[str]) -> "EnvelopeValues":
        """Return the index of the values of texts."""
        return EnvelopeValues([value for text in texts for value in extract(text)])

    def has(self, value: Value) -> bool:
        """Whether a value has a source here, in any notation. A claim may not be more exact than its source."""
        if value.moment is not None:
            return self._has_moment(value.moment) or self._has_hour(value.moment) or self._has_count(value)
        if any(
            other.bound == value.bound or not other.bound or _equal(value, other) for other in self._table.equals(value)
        ):
            return True
        if value.amount is None or value.vague:
            return False
        # A table states the unit in its header: 15 for 15 %, 4.2 million for $4.2 million.
        stripped = _without_unit(value)
        table = self._bare if value.unit else self._bare_counts
        return next(table.equals(stripped), None) is not None

    def _has_moment(self, moment: Moment) -> bool:
        """Whether a date is stated, or its year or its hour and the rest of it separately: in 2026 … on 25 May at 18:30."""
        if any(moments.covers(other, moment) for other in self._moments):
            return True
        if moment.minute is not None and moment.months is not None:
            hour, day = Moment(minute=moment.minute), replace(moment, minute=None)
            return any(moments.covers(other, hour) for other in self._moments) and self._has_moment(day)
        rest = Moment(None, moment.months, moment.day, moment.weekday, moment.minute, moment.other)
        if (
            moment.years is None
            or rest == Moment()
            or not any(years and _within(years, moment.years) for years in self._years)
        ):
            return False
        return any(moments.covers(other, rest) for other in self._moments)

    def _has_hour(self, moment: Moment) -> bool:
        """Whether a full hour is stated as a bare number: shall we say at 7? for 7 pm."""
        if moment.minute is None or moment.minute % 60 or moment != Moment(minute=moment.minute):
            return False
        hours = (moment.minute // 60, moment.minute // 60 - 12)
        return any(
            next(self._bare.equals(Value(NUMBER, "", 0, 0, amount=float(hour))), None) is not None
            for hour in hours
            if hour > 0
        )

    def _has_count(self, value: Value) -> bool:
        """Whether an apparent year is stated as a bare number."""
        return any(not other.moment for other in self._table.equals(value))


def untraced(claim_text: str, envelope: EnvelopeValues) -> tuple[Value, ...]:
    """Return the values of a claim that the envelope does not contain.

    Values are not derived: sums, differences and shares count as untraced. Sizes without a figure, ordinals in words
    and small counts of the answer's own items (three reasons) need no source.
    """
    return untraced_in(read(claim_text), envelope)


def untraced_in(reading: ValuesRead, envelope: EnvelopeValues) -> tuple[Value, ...]:
    """Return what ``untraced`` returns, for a claim that is read already."""
    return tuple(
        value
        for value in reading.values
        if not _needs_no_source(value, at(reading.tokens, value.last).low) and not envelope.has(value)
    )


def _needs_no_source(value: Value, follows: str) -> bool:
    if value.vague or (value.kind == ORDINAL and value.words):
        return True
    if value.kind == DATE or value.unit or value.label or value.amount is None or value.scale > 1 or value.fraction:
        return False
    counted_off = value.amount <= _MOST_COUNTED_OFF and follows in _COUNTED_OFF
    return counted_off or (value.words and value.amount <= _MOST_IN_WORDS)


def _without_unit(value: Value) -> Value:
    amount = (value.amount or 0.0) / value.factor
    return Value(
        NUMBER, value.text, value.start, value.end, amount=amount, step=value.step / value.factor,
        approximate=value.approximate, bound=value.bound, digits=value.digits, scale=value.scale,
    )  # fmt: skip


def _equal(value: Value, other: Value) -> bool:
    """Whether two amounts are one, of which one may be a fraction and the other a percentage: three fifths, 60%."""
    if value.amount is None or other.amount is None or (value.fraction == other.fraction and value.unit == other.unit):
        return value.amount == other.amount
    return abs(_in_per_cent(value) - _in_per_cent(other)) < _EXACT


def _in_per_cent(value: Value) -> float:
    return (value.amount or 0.0) * (100.0 if value.fraction and not value.unit else 1.0)


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]

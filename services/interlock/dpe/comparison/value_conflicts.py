"""Values: what a text states in figures and dates, whether a claim's are the source's, and where they are not.

Rules that need no model, and so stand alone (SPEC-005 §5.2 item 4, §5.3). All of it is a pure function of its texts.
"""

from collections.abc import Sequence
from dataclasses import dataclass

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

# What an answer counts off by itself: three reasons, two of the options.
_COUNTED_OFF = word_set(
    "main key major reasons ways types kinds steps points factors categories parts aspects areas examples options "
    "levels items sections things questions sides stages phases groups principles benefits challenges features "
    "components elements approaches methods strategies tips sentences paragraphs words different separate "
    "distinct of"
)
_MOST_COUNTED_OFF = 12
_MOST_IN_WORDS = 5  # two, three … are how an answer counts what it has just named


@dataclass(frozen=True)
class ValueConflict:
    """One thing that a claim says otherwise than its source; the types are those of SPEC-005 §5.3."""

    type: str
    source_value: str
    claim_value: str


def conflicts(claim_text: str, fact_text: str) -> tuple[ValueConflict, ...]:
    """Return what a claim certainly says otherwise than a fact."""
    return compare(frame(claim_text), frame(fact_text))


def compare(claim: Frame, fact: Frame) -> tuple[ValueConflict, ...]:
    """Return what ``conflicts`` does, for texts that were framed before: frame once, compare often."""
    found = [
        ValueConflict(cue.type, cue.source_value, cue.claim_value)
        for sentence in claim.sentences
        for cue in cues(sentence, claim, fact)
        if cue.certain
    ]
    return tuple(dict.fromkeys(found))


class EnvelopeValues:
    """All values of an envelope, to trace those of a claim to."""

    def __init__(self, values: Sequence[Value]) -> None:
        """Take the values of every fact."""
        self._table = ValueTable(values)
        stated = [reading for value in values if value.moment for reading in value.moment.readings()]
        self._moments = tuple(dict.fromkeys(stated))
        self._years = frozenset(moment.years for moment in stated)
        self._bare = ValueTable([value for value in values if value.kind == NUMBER and not value.vague])
        self._bare_counts = ValueTable([_without_unit(value) for value in values if value.kind == "MONEY"])

    @staticmethod
    def of(texts: Sequence[str]) -> "EnvelopeValues":
        """Read the values of texts."""
        return EnvelopeValues([value for text in texts for value in extract(text)])

    def has(self, value: Value) -> bool:
        """Whether a value has a source here, in any form of writing; a claim may not be more exact than its source."""
        if value.moment is not None:
            return self._has_moment(value.moment) or self._has_hour(value.moment) or self._has_count(value)
        if any(
            other.bound == value.bound or not other.bound or _equal(value, other) for other in self._table.equals(value)
        ):
            return True
        if value.amount is None or value.vague:
            return False
        # A table gives the unit in its head: 15 for 15 %, 4.2 million for $4.2 million.
        stripped = _without_unit(value)
        table = self._bare if value.unit else self._bare_counts
        return next(table.equals(stripped), None) is not None

    def _has_moment(self, moment: Moment) -> bool:
        """Whether a date is stated, or its year and the rest of it each are: in 2026 … on 25 May."""
        if any(moments.covers(other, moment) for other in self._moments):
            return True
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
        """Whether what looks like a year is stated as a bare number."""
        return any(not other.moment for other in self._table.equals(value))


def untraced(claim_text: str, envelope: EnvelopeValues) -> tuple[Value, ...]:
    """Return the values of a claim that stand nowhere in the whole envelope.

    What can be derived (sums, differences, shares) is not derived here and counts as untraced. Sizes without a figure,
    ordinals in words and small counts of the answer's own items (three reasons) are not looked for.
    """
    return untraced_in(read(claim_text), envelope)


def untraced_in(reading: ValuesRead, envelope: EnvelopeValues) -> tuple[Value, ...]:
    """Return what ``untraced`` does, for a claim that was read before."""
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
    return value.amount == other.amount


def _within(inner: tuple[int, int], outer: tuple[int, int]) -> bool:
    return outer[0] <= inner[0] and inner[1] <= outer[1]

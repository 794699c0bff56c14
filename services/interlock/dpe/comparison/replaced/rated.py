"""Rates over another time: *two hours a day* for *two hours a week* (SPEC-005 §5.3).

A claim's figure over a time is held against every place of the sources that states the same figure. Where each of them puts it over
another time, the rate is not the source's. A figure that stands anywhere without a time may be the claim's: *a monthly fee of 9 euros*.
"""

from __future__ import annotations

from dataclasses import dataclass

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import DATE, NUMBER, ORDINAL, Value, comparable

_PERIODS = {
    "second": "second", "minute": "minute", "hour": "hour", "day": "day", "night": "day", "evening": "day", "week": "week",
    "fortnight": "fortnight", "month": "month", "quarter": "quarter", "season": "season", "term": "term", "year": "year",
    "annum": "year", "hourly": "hour", "daily": "day", "nightly": "day", "weekly": "week", "fortnightly": "fortnight",
    "s": "second", "sec": "second", "min": "minute", "h": "hour", "hr": "hour", "d": "day", "wk": "week", "mo": "month", "yr": "year",
    "monthly": "month", "quarterly": "quarter", "yearly": "year", "annually": "year",
}  # fmt: skip
_OVER = pattern(
    r"\A(?:\s?%|[ \t]+(?:of )?[\p{L}-]+){0,3}?[ \t]*(?:/[ \t]?|[ \t](?:per|a|an|each|every|for each|for every|in a|in any)[ \t])"
    r"(?:calendar )?(second|minute|hour|day|night|evening|week|fortnight|month|quarter|season|term|year|annum)\b",
    ignore_case=True,
)
_SIGN = pattern(r"\A[ \t]?/[ \t]?(s|sec|min|h|hr|d|wk|mo|yr)\b")
_ADVERB = pattern(
    r"\A(?:\s?%|[ \t]+[\p{L}-]+){0,2}?[ \t](hourly|daily|nightly|weekly|fortnightly|monthly|quarterly|yearly|annually)\b",
    ignore_case=True,
)
_LEAD = pattern(r"\A(?:every|each|per)[ \t](second|minute|hour|day|night|week|month|quarter|year)\b", ignore_case=True)
_TIMES = {"once": 1.0, "twice": 2.0, "thrice": 3.0}
_ONCE = pattern(r"\b(once|twice|thrice)\b", ignore_case=True)
_TIMED = pattern(r"\A[ \t]times?\b", ignore_case=True)
_OFTEN = pattern(
    r"\b(?:(?:each|every|per) )?(hourly|daily|nightly|weekly|fortnightly|monthly|quarterly|yearly|annually|hour|day|night|week|fortnight"
    r"|month|quarter|year)\b",
    ignore_case=True,
)
_TIMES_UNIT = "times"
_SAID_OF_TIMES = frozenset(map(key, {*_PERIODS, "time", "times", "once", "twice"}))
_CONVERTS = pattern(
    r"\b(?:equals?|equivalent|corresponds?|converted|pro rata|average[ds]?|i\.e\.|that is)\b", ignore_case=True
)
_CUT = pattern(r"[,;:.!?()\n]\s|\s(?:and|but|while|whereas|or)\s")


@dataclass(frozen=True)
class _Rate:
    """A figure as it is written, what it measures, and the time that it is over; empty where none stands with it."""

    value: Value
    period: str
    text: str


def rated(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the rate of *claim* that its sources put over another time, or ``None``."""
    if _CONVERTS.search(claim.text):
        return None
    for mine in _rates(claim.text):
        if not mine.period or (mine.value.unit == _TIMES_UNIT and _is_named(mine.period, evidence)):
            continue
        told = [
            (its, source)
            for source in evidence.passages
            for its in _rates(source.text)
            if _is_one(mine.value, its.value)
        ]
        if not told or any(not its.period or its.period == mine.period for its, _ in told):
            continue
        for its, source in told:
            least = 2 if mine.value.unit == _TIMES_UNIT else 1  # once and twice are said of many things
            if len(claim.content & source.content - _SAID_OF_TIMES) >= least:
                return Misbinding(NUMBER_CHANGED, "rate", its.text, mine.text, source.text, source.fact_id)
    return None


def _is_one(mine: Value, its: Value) -> bool:
    return comparable(mine, its) and mine.amount == its.amount


def _is_named(period: str, evidence: Evidence) -> bool:
    """Whether a source says that anything happens so often: *weekly*, *every week*."""
    return any(
        _PERIODS[match[1].lower()] == period for source in evidence.passages for match in _OFTEN.finditer(source.text)
    )


@remembered(bytes_a_character=10, from_length=60)
def _rates(text: str) -> tuple[_Rate, ...]:
    """Return the figures of a text, each with the time that it is over: *9 euros a month*, *three per day*, *twice weekly*."""
    often = [_times(text, match.start(), match.end(), _TIMES[match[1].lower()]) for match in _ONCE.finditer(text)]
    plain = (
        value
        for value in read(text).values
        if value.amount is not None and not (value.vague or value.label) and value.kind not in {DATE, ORDINAL}
    )
    return tuple(_rate(text, value) for value in (*often, *(_counted(text, value) for value in plain)))


def _counted(text: str, value: Value) -> Value:
    """Return *three times* as what *twice* is; any other figure as it is."""
    times = _TIMED.search(text[value.end :]) if not value.unit else None
    return _times(text, value.start, value.end + times.end(), value.amount or 0.0) if times is not None else value


def _times(text: str, start: int, end: int, amount: float) -> Value:
    return Value(NUMBER, text[start:end], start, end, amount=amount, unit=_TIMES_UNIT)


def _rate(text: str, value: Value) -> _Rate:
    rest = text[value.end :]
    cut = _CUT.search(rest)
    rest = rest[: cut.start()] if cut is not None else rest.rstrip(" .!?")
    found = _OVER.search(rest) or _ADVERB.search(rest) or _SIGN.search(rest)
    if found is not None:
        return _Rate(value, _PERIODS[found[1].lower()], value.text + rest[: found.end()])
    lead = _LEAD.search(text) if value.unit else None
    return _Rate(value, _PERIODS[lead[1].lower()] if lead else "", f"{lead[0]} {value.text}" if lead else value.text)

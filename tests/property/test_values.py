"""Laws of the value comparer: another form of a value changes nothing, another value always shows."""

from __future__ import annotations

import datetime as dt
import string
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from interlock.dpe.comparison.value_conflicts import EnvelopeValues, conflicts, extract, same, untraced
from interlock.dpe.document import Claim, ClaimType, Fact, NliScores
from interlock.dpe.grounding.distortion import find

UNITS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen"
).split()
TENS = "- - twenty thirty forty fifty sixty seventy eighty ninety".split()
SCALES = ((1_000_000_000, "billion"), (1_000_000, "million"), (1000, "thousand"), (100, "hundred"))
COUNT_FRAMES = (
    "The survey counted {} people in the district.",
    "According to the ministry, {} households were without power on Friday.",
    "The archive holds {} letters by the composer.",
)
SHARE_FRAMES = (
    "Unemployment in the region rose to {} in March.",
    "Of all customers, {} renewed their contract in 2024.",
)
MONEY_FRAMES = ("The company reported a profit of {} for 2023.", "The city spent {} on its new library.")
DATE_FRAMES = ("The treaty was signed on {} in Geneva.", "The plant closed on {} after a fire.")


def in_words(number: int) -> str:
    """Write a number in English words."""
    if number < 20:
        return UNITS[number]
    if number < 100:
        return TENS[number // 10] + (f"-{UNITS[number % 10]}" if number % 10 else "")
    scale, name = next(pair for pair in SCALES if number >= pair[0])
    head, rest = f"{in_words(number // scale)} {name}", number % scale
    if not rest:
        return head
    return f"{head} and {in_words(rest)}" if rest < 100 and scale == 100 else f"{head} {in_words(rest)}"


def other_digits(text: str, zero: str) -> str:
    """Write digits in another script."""
    return "".join(chr(ord(zero) + int(c)) if c in string.digits else c for c in text)


def exact_forms(number: int) -> list[str]:
    """Every way of writing a whole number exactly."""
    grouped = f"{number:,}"
    return [
        grouped,
        grouped.replace(",", "\u00a0"),
        grouped.replace(",", "\u2009"),
        grouped.replace(",", "'"),
        other_digits(grouped, "\uff10"),
        other_digits(grouped, "\u0966"),
        in_words(number),
        *([f"{number / 1e6:g} million", f"{number / 1e6:g}M"] if number >= 1e6 and number % 100_000 == 0 else []),
    ]


def percentages(number: int) -> list[str]:
    """Every way of writing a percentage."""
    return [
        f"{number}%",
        f"{number} %",
        f"{number} percent",
        f"{number} per cent",
        f"{in_words(number)} percent",
        f"{number}\uff05",
    ]


def amounts(number: int) -> list[str]:
    """Every way of writing an amount of tenths of millions of dollars."""
    millions = f"{number / 10:g}"
    return [
        f"${millions} million", f"${millions}M", f"${millions}m", f"US${millions} million",
        f"{millions} million dollars", f"USD {millions} million", f"${number * 100_000:,}",
    ]  # fmt: skip


def dates(date: dt.date) -> list[str]:
    """Every way of writing a date."""
    suffix = {1: "st", 2: "nd", 3: "rd"}.get(date.day % 10 if date.day not in {11, 12, 13} else 0, "th")
    return [
        date.isoformat(), f"{date.day} {date:%B %Y}", f"{date:%B} {date.day}, {date.year}",
        f"the {date.day}{suffix} of {date:%B %Y}", f"{date:%B} {date.day}{suffix}, {date.year}",
        f"{date.day:02}/{date.month:02}/{date.year}", f"{date.day} {date:%b %Y}",
    ]  # fmt: skip


counts = st.integers(13, 9_999) | st.integers(10_000, 99_999_999) | st.integers(10, 990).map(lambda n: n * 100_000)
days = st.dates(dt.date(1801, 1, 1), dt.date(2099, 12, 31))
written = (
    st.tuples(st.sampled_from(COUNT_FRAMES), counts.map(exact_forms))
    | st.tuples(st.sampled_from(SHARE_FRAMES), st.integers(1, 99).map(percentages))
    | st.tuples(st.sampled_from(MONEY_FRAMES), st.integers(11, 9_999).map(amounts))
    | st.tuples(st.sampled_from(DATE_FRAMES), days.map(dates))
)


@pytest.mark.req("DPE-3")
@settings(max_examples=150)
@given(written, st.data())
def test_another_form_of_a_value_never_conflicts(case, data):
    """Rewriting a value in another written form accuses nobody and is traced to its source."""
    frame, forms = case
    source, claim = (frame.format(data.draw(st.sampled_from(forms))) for _ in range(2))

    assert conflicts(claim, source) == ()
    assert untraced(claim, EnvelopeValues.of([source])) == ()


@st.composite
def changed(draw):
    """Draw a frame with two different values, each in a form that states it exactly."""
    kind = draw(st.sampled_from(("count", "share", "money", "date")))
    numbers = {
        "count": (COUNT_FRAMES, counts, exact_forms),
        "share": (SHARE_FRAMES, st.integers(1, 99), percentages),
        "money": (MONEY_FRAMES, st.integers(11, 9_999), amounts),
        "date": (DATE_FRAMES, days, dates),
    }
    frames, values, forms = numbers[kind]
    first, second = draw(values), draw(values)
    assume(first != second)
    if kind == "date":  # 05/06/2026 is also the 6th of May
        assume((first.year, {first.day, first.month}) != (second.year, {second.day, second.month}))
    if kind in {"count", "money"}:  # a form that rounds may equal a neighbour
        assume(abs(first - second) > 0.11 * max(first, second))
    frame = draw(st.sampled_from(frames))
    return frame.format(draw(st.sampled_from(forms(first)))), frame.format(draw(st.sampled_from(forms(second)))), kind


@pytest.mark.req("DPE-3")
@settings(max_examples=150)
@given(changed())
def test_another_value_always_conflicts(case):
    """Changing a value is found, whichever way both are written."""
    source, claim, kind = case

    assert {conflict.type for conflict in conflicts(claim, source)} & {
        "DATE_SHIFTED" if kind == "date" else "NUMBER_CHANGED"
    }
    assert untraced(claim, EnvelopeValues.of([source])) != ()


@pytest.mark.req("DPE-3")
@settings(max_examples=60)
@given(st.integers(13, 10**9), st.integers(1, 10**6))
def test_an_exact_count_that_is_off_by_any_amount_conflicts(number, difference):
    """Two exact counts are never near enough."""
    source, claim = (f"The vault holds {value:,} coins." for value in (number, number + difference))

    assert [conflict.type for conflict in conflicts(claim, source)][:1] == ["NUMBER_CHANGED"]


@pytest.mark.req("DPE-3")
@settings(max_examples=150)
@given(st.text(max_size=120) | st.text(alphabet="0123456789.,-'% $€()/:[]½²\u2044\u00a0MkQ aintowhud", max_size=60))
@example("1/")
@example("[")
@example("$(")
@example("10^")
@example("Q")
@example("'")
def test_any_text_is_read_without_harm(text):
    """Every text is read; values lie in order inside it, and each equals itself."""
    values = extract(text)

    assert all(
        0 <= value.start < value.end <= len(text) and value.text == text[value.start : value.end] for value in values
    )
    assert all(one.start <= other.start for one, other in pairwise(values))
    assert all(same(value, value) for value in values)


@pytest.mark.req("DPE-3")
@settings(max_examples=100)
@given(st.text(max_size=80), st.text(max_size=80))
def test_any_pair_of_texts_is_compared_without_harm(claim, fact):
    """Every pair is compared, and what is quoted comes from the two texts."""
    assert all(
        each.claim_value in claim and each.source_value in fact
        for each in conflicts(claim, fact)
        if each.type not in {"NEGATION_FLIP", "CONTEXT_STRIPPED"}
    )


@pytest.mark.req("DPE-3")
@settings(max_examples=60)
@given(st.text(alphabet=string.ascii_letters + "0123456789 .,%$'not", min_size=1, max_size=100))
def test_a_copy_is_never_distorted(text):
    """A claim that equals its source misrepresents nothing, whatever the model thinks."""
    claim = Claim("c1", text, 0, 0, 0, len(text), ClaimType.FACTUAL, 1.0, ())

    assert find(claim, Fact("f1", text, 1.0), NliScores(0.0, 0.0, 1.0)) == ()

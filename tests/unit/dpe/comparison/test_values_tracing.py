"""Tracing the values of a claim to the whole envelope, and when two values are the same."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.value_conflicts import EnvelopeValues, extract, same, untraced

ENVELOPE = EnvelopeValues.of(
    [
        "Revenue was $4.2 million in Q3 2025, up 15% on the year; the firm has 1,234,567 users and 40 stores.",
        "The meeting is on 25 May. It was first held in 2026. The trail is 26.2 miles long. More than 300 people came.",
        "Growth (%): 12, 13, 14. Article 22(1) applies. They met at 7.",
    ]
)
TRACED = [
    "Revenue was US$4,200,000.", "It reached 4.2 million.", "It grew by fifteen percent.",
    "About 1.2 million people use it.", "In the third quarter of 2025 it grew.", "In 2025 it grew.",
    "The meeting is on 25 May 2026.", "The trail is 42.2 km long.", "More than 300 people came.", "Growth was 13%.",
    "Under Article 22 it is void.", "They met at 7 pm.", "It has forty stores.",
    "Thousands of people came in recent months.", "There are three reasons.", "It was the first meeting.",
    "Two of them left.",
]  # fmt: skip
UNTRACED = {
    "Revenue was $4.8 million.": ["$4.8 million"],
    "It grew by 50%.": ["50%"],
    "It grew by 15.7%.": ["15.7%"],
    "The firm has 12 percent more stores: 41.": ["41"],
    "It has 1,234,568 users.": ["1,234,568"],
    "It began in 2024.": ["2024"],
    "The meeting is on 26 May 2026.": ["26 May 2026"],
    "Revenue fell in September 2025.": ["September 2025"],
    "Under Article 21 it is void.": ["Article 21"],
    "312 people came.": ["312"],
    "Revenue was 4.2 million euros.": ["4.2 million euros"],
    "It killed nine people.": ["nine"],
    "It lost fifteen million dollars.": ["fifteen million dollars"],
}
SAME = [
    ("1.2 million", "1,234,567"), ("15%", "15.4%"), ("about 20 years", "21 years"), ("5 km", "3.1 miles"),
    ("90 days", "three months"), ("half of", "50%"), ("two-thirds of", "67%"), ("$5", "AUD 5"), ("0 °C", "32 °F"),
    ("1 GB", "1024 MB"), ("over 5,000", "5,200"), ("4 million", "4.2 million"),
]  # fmt: skip
DIFFERENT = [
    ("15%", "50%"), ("$4.2M", "$4.8M"), ("15%", "15 percentage points"), ("15%", "$15"), ("20 years", "21 years"),
    ("2 million", "2.4 million"), ("5 km", "5 miles"), ("$5", "€5"), ("1,286,930", "1,286,929"),
    ("over 5,000", "4,000"), ("first", "second"), ("1.5", "15"), ("about 20", "about 25"), ("1 year", "8 months"),
    ("-5 °C", "5 °C"), ("30 metres", "108 ft"),
]  # fmt: skip


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize("claim", TRACED)
def test_a_value_in_another_form_is_traced(claim):
    """What the envelope states, in whichever form, is no invention; nor is what needs no source."""
    assert untraced(claim, ENVELOPE) == ()


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("claim", "texts"), UNTRACED.items())
def test_a_value_that_stands_nowhere_is_untraced(claim, texts):
    """What no fact states is named as written."""
    assert [value.text for value in untraced(claim, ENVELOPE)] == texts


@pytest.mark.req("DPE-3")
def test_a_claim_may_not_be_more_exact_than_its_source():
    """The source's more than 300 is no ground for 312."""
    assert [value.text for value in untraced("Exactly 312 people came.", ENVELOPE)] == ["312"]


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("first", "second"), SAME)
def test_values_are_the_same_as_exactly_as_they_are_stated(first, second):
    """Two values are one when the coarser of them says nothing else."""
    (one,), (other,) = extract(f"it was {first} then"), extract(f"it was {second} then")

    assert same(one, other)
    assert same(other, one)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_values_that_differ_are_told_apart(first, second):
    """Other figures, units, currencies and signs are other values."""
    (one,), (other,) = extract(f"it was {first} then"), extract(f"it was {second} then")

    assert not same(one, other)
    assert not same(other, one)


@pytest.mark.req("DPE-3")
def test_a_year_is_not_a_count():
    """2,024 votes are no ground for the year 2024."""
    assert [
        value.text for value in untraced("It happened in 2024.", EnvelopeValues.of(["There were 2,024 votes."]))
    ] == ["2024"]


@pytest.mark.req("DPE-3")
def test_an_empty_envelope_traces_nothing():
    """Without facts every figure is without a source."""
    assert [value.text for value in untraced("It made $5 million in 2021.", EnvelopeValues.of([]))] == [
        "$5 million",
        "2021",
    ]


@pytest.mark.parametrize(
    ("source", "stated"), [("It closes at 24:00 in June.", True), ("It closes at 23:00 in June.", False)]
)
def test_24_00_is_midnight(source, stated):
    """The end of a day and the beginning of the next are one time."""
    assert (untraced("In June it closes at midnight.", EnvelopeValues.of([source])) == ()) is stated

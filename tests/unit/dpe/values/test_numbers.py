"""Reading numbers, units and money out of text."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.value_conflicts import extract

NUMBERS = {
    "1,234.5": 1234.5,
    "1.2 million": 1_200_000,
    "1.2M": 1_200_000,
    "1.2bn": 1_200_000_000,
    "twelve": 12,
    "two dozen": 24,
    "a dozen": 12,
    "half a dozen": 6,
    "one and a half": 1.5,
    "two and three quarters": 2.75,
    "a million and a half": 1_500_000,
    "half a million": 500_000,
    "twenty-five": 25,
    "two hundred and fifty thousand": 250_000,
    "three point five million": 3_500_000,
    "1 200 000": 1_200_000,
    "1\u00a0234\u00a0567": 1_234_567,
    "1\u2019234\u2019567": 1_234_567,
    "1.234.567,89": 1_234_567.89,
    "1,00,000": 100_000,
    "12,50": 12.5,
    "3\u00bd": 3.5,
    "3 1/2": 3.5,
    "10\u2076": 1_000_000,
    "3.2 × 10\u2076": 3_200_000,
    "\uff15\uff10": 50,
    "\u0661\u0662\u0663": 123,
    "1\u200b5": 15,
    "5 crore": 50_000_000,
    "70B": 70_000_000_000,
    "10k": 10_000,
    "minus 7": -7,
    "-7.5": -7.5,
    "one in five": 0.2,
}
MEASURES = {
    "15%": ("PERCENT", "%", 15),
    "15 percent": ("PERCENT", "%", 15),
    "15 per cent": ("PERCENT", "%", 15),
    "fifteen percent": ("PERCENT", "%", 15),
    "(3.1)%": ("PERCENT", "%", -3.1),
    "2 percentage points": ("PERCENT", "percentage points", 2),
    "50bps": ("PERCENT", "percentage points", 0.5),
    "$4.2M": ("MONEY", "USD", 4_200_000),
    "$4.2m": ("MONEY", "USD", 4_200_000),
    "US$4.2 million": ("MONEY", "USD", 4_200_000),
    "4.2 million dollars": ("MONEY", "USD", 4_200_000),
    "USD 4.2 million": ("MONEY", "USD", 4_200_000),
    "$(4.2) million": ("MONEY", "USD", -4_200_000),
    "-$20": ("MONEY", "USD", -20),
    "£20 pounds": ("MONEY", "GBP", 20),
    "3.5 billion euros": ("MONEY", "EUR", 3_500_000_000),
    "Rs. 5 crore": ("MONEY", "INR", 50_000_000),
    "50 cents": ("MONEY", "USD", 0.5),
    "5 km": ("QUANTITY", "length", 5000),
    "5 miles": ("QUANTITY", "length", 8046.72),
    "10-kilometre": ("QUANTITY", "length", 10_000),
    "12 km²": ("QUANTITY", "area", 12e6),
    "3 square miles": ("QUANTITY", "area", 3 * 1609.344**2),
    "90 km/h": ("QUANTITY", "speed", 25),
    "8 Mbit/s": ("QUANTITY", "data-rate", 1e6),
    "one gigabit per second": ("QUANTITY", "data-rate", 1.25e8),
    "40 Mbps": ("QUANTITY", "data-rate", 5e6),
    "400 Wh": ("QUANTITY", "energy", 1.44e6),
    "two and a half years": ("QUANTITY", "time", 2.5 * 31_557_600),
    "48 hours": ("QUANTITY", "time", 172_800),
    "-5 °C": ("QUANTITY", "temperature", -5),
    "41 degrees Fahrenheit": ("QUANTITY", "temperature", 5),
    "-40°F": ("QUANTITY", "temperature", -40),
    "a room 1,450 NOK": ("MONEY", "NOK", 1450),
    "a table 90 euros": ("MONEY", "EUR", 90),
    "16 GB": ("QUANTITY", "data", 16e9),
    "500 mg": ("QUANTITY", "mass", 0.0005),
    "3x": ("QUANTITY", "times", 3),
    "threefold": ("QUANTITY", "times", 3),
    "twice": ("QUANTITY", "times", 2),
    "21st": ("ORDINAL", "", 21),
    "twenty-first": ("ORDINAL", "", 21),
}
LABELS = {
    "Article 22": ("label:article", "22"),
    "Art. 5(1)(d)": ("label:article", "5(1)(d)"),
    "§5.3": ("label:section", "5.3"),
    "Section 5.3": ("label:section", "5.3"),
    "version 3.1": ("label:version", "3.1"),
    "Python 3.11": ("label:version", "3.11"),
    "1.2.3": ("label:version", "1.2.3"),
    "Regulation (EU) 2016/679": ("label:regulation", "2016/679"),
    "ISO 27001": ("label:iso", "27001"),
    "24/7": ("label:slash", "24/7"),
    "+1 212-555-0199": ("label:telephone", "12125550199"),
}
NO_VALUES = [
    "GPT-4", "COVID-19", "B2B", "5G", "F-16", "no one", "one of them", "see [12]", "see [3, 5-7]",
    "https://example.org/2024/05?x=15", "me42@example.org", "doi 10.1234/abc.55", "",
]  # fmt: skip


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("text", "amount"), NUMBERS.items())
def test_a_number_is_read_in_every_form(text, amount):
    """A number keeps its value whichever way it is written."""
    (value,) = extract(f"they saw {text} birds")

    assert value.amount == pytest.approx(amount)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("text", "expected"), MEASURES.items())
def test_a_measure_has_its_kind_unit_and_amount(text, expected):
    """Percentages, money, measures and ordinals are told apart and converted."""
    (value,) = extract(f"it was {text} there")

    assert (value.kind, value.unit, value.amount) == (expected[0], expected[1], pytest.approx(expected[2]))


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(("text", "expected"), LABELS.items())
def test_a_number_that_names_is_a_label(text, expected):
    """Articles, versions and telephone numbers count nothing: they are compared as written."""
    (value,) = extract(f"see {text} again")

    assert (value.unit, value.label, value.amount) == (*expected, None)


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize("text", NO_VALUES)
def test_a_name_with_digits_is_no_value(text):
    """Digits inside names, addresses and references are no figures."""
    assert extract(text) == ()


@pytest.mark.req("DPE-3")
def test_list_markers_are_no_values():
    """The numbers of a list's items state nothing; the figures in the items do."""
    assert [value.amount for value in extract("1. In all 40 apples\n2) then 50 pears")] == [40.0, 50.0]


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "amounts", "unit"),
    [
        ("between 3 and 5 percent", [3, 5], "%"),
        ("3-5 million euros", [3e6, 5e6], "EUR"),
        ("$3-5 million", [3e6, 5e6], "USD"),
        ("from 5 to 10 km", [5000, 10000], "length"),
        ("2.5\u20133.5 GB", [2.5e9, 3.5e9], "data"),
        ("15% to 20%", [15, 20], "%"),
    ],
)
def test_both_ends_of_a_range_share_unit_and_scale(text, amounts, unit):
    """What only one end of a range states holds for both."""
    values = extract(f"it cost {text} more")

    assert ([value.amount for value in values], {value.unit for value in values}) == (amounts, {unit})


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "approximate", "bound"),
    [
        ("about 15%", True, ""),
        ("~15%", True, ""),
        ("some 300 people", True, ""),
        ("close to 300 people", True, ""),
        ("300 or so people", True, ""),
        ("more than 300 people", False, ">"),
        ("at least 300 people", False, ">"),
        ("300+ people", False, ">"),
        ("300 or more people", False, ">"),
        ("up to 300 people", False, "<"),
        ("fewer than 300 people", False, "<"),
        ("no more than 300 people", False, "<"),
        ("300 people", False, ""),
    ],
)
def test_words_that_loosen_a_number_are_kept(text, approximate, bound):
    """About, more than and their kin belong to the value."""
    (value,) = extract(f"we saw {text}")

    assert (value.approximate, value.bound) == (approximate, bound)


@pytest.mark.req("DPE-3")
def test_a_value_points_at_the_original_text():
    """Offsets count code points of the text as written, hidden characters and wide digits included."""
    text = "Umsatz \U0001f4c8 stieg um \uff11\u200b\uff15\uff05 im Jahr."
    (value,) = extract(text)

    assert (value.text, text[value.start : value.end]) == ("\uff11\u200b\uff15\uff05", value.text)


@pytest.mark.req("ATT-5")
def test_who_is_a_third_one_is_no_share():
    """*By a third* tells of what something was, *by a third party* who did it."""
    assert [value.fraction for value in extract("Sales fell by a third since May.")[:1]] == [True]
    assert not any(value.fraction for value in extract("It was taken down by a third party."))

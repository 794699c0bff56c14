"""Rated amounts: a count of the claim's own and its result follow by a stated rate, another result does not (ATT-5, SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.rated import rated


def _settled(claim: str, *sources: str) -> set[str]:
    reading = read(claim)
    return {reading.values[n].text for n in rated(reading, reading.values, sources)}


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "right", "wrong", "source"),
    [
        ("For four days the van is {}.", "120 euros", "130 euros", "A van costs 30 euros a day."),
        ("Six minutes come to {} crowns.", "54", "56", "A call costs 9 crowns per minute."),
        ("Half a kilo costs {}.", "15 dollars", "20 dollars", "The tea costs 30 dollars a kilo."),
        ("Checking 300 pages costs {}.", "1,200 euros", "1,300 euros", "Checking costs 4 euros for each page."),
        ("Of a bill of 9,000 euros the fund pays {}.", "2,700 euros", "2,900 euros", "The fund pays 30 % of the bill."),
        ("What costs 80 euros is {} in May.", "72 euros", "70 euros", "In May there is a discount of 10 %."),
        ("A bill of 500 euros comes to {}.", "525 euros", "550 euros", "On top comes a surcharge of 5 %."),
        ("A hundred euros are {}.", "147 CAD", "149 CAD", "1 EUR = 1.47 CAD"),
        (
            "Two hours are {} cheaper here.",
            "6 euros",
            "7 euros",
            "It is 5 euros per hour here and 8 euros per hour there.",
        ),
    ],
)
def test_a_count_and_its_result(claim, right, wrong, source):
    """Both are settled with the right result, neither with another one."""
    assert right in _settled(claim.format(right), source)
    assert len(_settled(claim.format(right), source)) == 2
    assert _settled(claim.format(wrong), source) == set()


@pytest.mark.req("ATT-5")
def test_a_rate_of_another_thing():
    """What costs so much a day says nothing of kilograms, and a rate in euros none of hours."""
    assert _settled("Four kilos are 120 euros.", "A van costs 30 euros a day.") == set()
    assert _settled("Four days are 120 hours.", "A van costs 30 euros a day.") == set()


@pytest.mark.req("ATT-5")
def test_a_share_above_its_limit():
    """A share of 40 %, 500 euros at most, makes no 800 of 2,000."""
    source = "The fund pays 40 % of the cost, up to 500 euros."
    assert _settled("Of 2,000 euros it pays 800 euros.", source) == set()
    assert _settled("Of 1,000 euros it pays 400 euros.", source) == {"1,000 euros", "400 euros"}

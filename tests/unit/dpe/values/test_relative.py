"""Relative wording: a value that a source gives by another one follows, another value does not (ATT-5, SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.derived import Operand, words_of
from interlock.dpe.values.reckoning.relative import is_share, stands_to_another


def _follows(claim: str, *sources: str) -> bool:
    reading = read(claim)
    return stands_to_another(reading.values[-1], sources, words_of(reading.tokens))


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "right", "wrong", "sources"),
    [
        ("The ferry leaves at {}.", "half past ten", "half past nine", ["Boarding is from 10:10, twenty minutes before the ferry leaves."]),
        ("The café opens at {}.", "eight o'clock", "seven o'clock", ["The pool opens at 9:00, an hour after the café."]),
        ("The vote is on {}.", "12 May 2025", "8 May 2025", ["The list closes on 10 May 2025, two days before the vote."]),
        ("They had planned {}.", "75,000 euros", "45,000 euros", ["The bridge cost 60,000 euros, 15,000 less than planned."]),
        ("They had planned {}.", "80,000 euros", "70,000 euros", ["It cost 100,000 euros, 25 percent more than planned."]),
        ("By road it takes {}.", "12 hours", "10 hours", ["The train takes 6 hours, half as long as the road."]),
        ("The old one used {}.", "40 kWh", "30 kWh", ["The new one uses 80 kWh, twice as much as the old one."]),
        ("In rain it reaches {}.", "90 metres", "80 metres", ["It reaches 180 metres. ", "Rain halves that."]),
        ("Before doubling it was {}.", "35 dollars", "45 dollars", ["The price doubled to 70 dollars."]),
    ],
)  # fmt: skip
def test_what_a_source_gives_by_another_value(claim, right, wrong, sources):
    """The value that its wording makes follows, another one does not."""
    assert _follows(claim.format(right.strip()), *sources)
    assert not _follows(claim.format(wrong), *sources)


@pytest.mark.req("ATT-5")
def test_half_an_hour_halves_nothing():
    """A period of half an hour names no factor."""
    assert not _follows("It reaches 90 metres.", "It reaches 180 metres for half an hour.")


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("source", "share", "other"),
    [
        ("It costs four times as much.", "a quarter", "a third"),
        ("They expect 900 tonnes of plums instead of 4,500 tonnes.", "a fifth", "a quarter"),
        ("Letters brought 81 % back.", "about one in five", "one in five"),
        ("Of the 48 boats, 32 were sold.", "two thirds", "a half"),
    ],
)
def test_a_fraction_is_the_share_that_the_source_makes(source: str, share: str, other: str) -> None:
    """Of so many times as much, of two values of a sentence, of what a percentage leaves; another fraction is not."""
    stated = [Operand(each) for each in read(source).values]
    assert is_share(read(f"{share} of it").values[0], stated)
    assert not is_share(read(f"{other} of it").values[0], stated)

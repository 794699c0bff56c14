"""Compared lines and elliptic figures: what a claim makes of two values that it names follows, another figure does not (ATT-5)."""

import pytest

from interlock.dpe.grounding.placing.scopes import of_texts
from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.compared import compares
from interlock.dpe.values.reckoning.derived import derives, words_of
from interlock.dpe.values.reckoning.elliptic import filled


def _operands(sources):
    return [each for scope in of_texts(sources, 0) for each in scope.operands]


def _compares(claim: str, *sources: str) -> bool:
    reading = read(claim)
    target = reading.values[-1]
    return compares(target, reading, filled(target, _operands(sources)))


def _derives(claim: str, *sources: str) -> bool:
    reading = read(claim)
    target = reading.values[-1]
    return derives(target, words_of(reading.tokens), filled(target, _operands(sources)))


OVENS = ("Gas oven: 14 min", "Steam oven: 11 min", "Microwave oven: 6 min")


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "right", "wrong", "sources"),
    [
        ("The steam oven and the microwave differ by {}.", "five minutes", "seven minutes", OVENS),
        ("The gap between the gas oven and the steam oven is {}.", "3 minutes", "4 minutes", OVENS),
        ("Amina sold {} of the tickets.", "about a third", "half", ("tickets: 60", "seller Amina: 21")),
        ("With registration the pump has cover of, all told in total, {}.", "nine years", "eight years", ("pump: 7 years", "registration: 2 extra years on the pump")),
        ("By plane it costs more than by train, about {}.", "three times", "five times", ("plane: 240 euros", "train: 80 euros")),
    ],
)  # fmt: skip
def test_two_lines_that_a_claim_names(claim, right, wrong, sources):
    """The figure that both lines make follows, another one does not."""
    assert _compares(claim.format(right), *sources)
    assert not _compares(claim.format(wrong), *sources)


@pytest.mark.req("ATT-5")
def test_lines_that_a_claim_does_not_name():
    """Lines whose own words the claim has not are not compared, nor is anything without a word for it."""
    assert not _compares("The kilns differ by five minutes.", *OVENS)
    assert not _compares("The steam oven and the microwave need five minutes.", *OVENS)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "right", "wrong", "source"),
    [
        ("Members are paid more than {} earlier.", "two weeks", "three weeks", "Others are paid within 30 days, members within 14."),
        ("The trial ends {} sooner.", "four months", "three months", "The trial ends after two months instead of six."),
        ("By boat it takes more than {} as long.", "five times", "seven times", "By train it takes 12 hours, by boat 62."),
        ("The price rose by {}.", "15 euros", "25 euros", "The price went from 60 euros to 75."),
    ],
)  # fmt: skip
def test_a_figure_that_leaves_out_its_unit(claim, right, wrong, source):
    """It has that of the one beside it."""
    assert _derives(claim.format(right), source)
    assert not _derives(claim.format(wrong), source)


@pytest.mark.req("ATT-5")
def test_a_figure_that_counts_something_else():
    """Six dogs are no six months."""
    assert not _derives("The trial ends four months sooner.", "The trial ends after two months and has six dogs.")

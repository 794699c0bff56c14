"""Derived values: right ones follow, wrong ones do not, and no operation is tried that the words do not name (SPEC-005 §5.2)."""

import pytest

from interlock.dpe.values.extraction import read
from interlock.dpe.values.reckoning.derived import Operand, derives, words_of


def follows(claim: str, value: str, *sources: str, counts=(2.0, 3.0)) -> bool:
    """Whether the value of a claim follows from the values of sources, each a scope of its own."""
    operands = [Operand(v, frozenset({"x"}), number) for number, text in enumerate(sources) for v in read(text).values]
    reading = read(claim)
    target = next(each for each in reading.values if each.text == value)
    return derives(target, words_of(reading.tokens), operands, counts)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("claim", "value", "wrong", "sources"),
    [
        ("that is €79.80 for two", "€79.80", "€89.80", ["€39.90"]),
        ("an increase of $68 million", "$68 million", "$78 million", ["$412 million", "$480 million"]),
        ("growth of about 16.5%", "16.5%", "18.5%", ["$412 million", "$480 million"]),
        ("a total of 46 kg", "46 kg", "47 kg", ["12 kg", "34 kg"]),
        ("on average 20 km", "20 km", "21 km", ["10 km", "20 km", "30 km"]),
        ("a share of 25%", "25%", "35%", ["20 boats of 80 boats"]),
        ("the trip takes 90 minutes", "90 minutes", "95 minutes", ["from 10:15 to 11:45"]),
        ("it lasts 25 days", "25 days", "27 days", ["from 5 March 2024 to 30 March 2024"]),
        ("it expires in May 2026", "May 2026", "June 2026", ["May 2024", "24 months"]),
        ("it runs until 2027", "2027", "2028", ["2024", "3 years"]),
        ("$120 a year", "$120", "$130", ["$10"]),
        ("€30 each", "€30", "€31", ["€60"]),
    ],
)
def test_a_right_value_follows_and_a_wrong_one_does_not(claim, value, wrong, sources):
    """The same claim with another figure is not derived."""
    assert follows(claim, value, *sources)
    assert not follows(claim.replace(value, wrong), wrong, *sources)


@pytest.mark.req("ATT-5")
def test_an_operation_needs_its_word():
    """A fee that happens to be a sum of two others is none."""
    assert not follows("the fee of the port is €46", "€46", "€12", "€34")


@pytest.mark.req("ATT-5")
def test_another_unit_of_time_is_no_product():
    """Four hours times 24 are four days, and no claim means that."""
    assert not follows("fire was traded for four days", "four days", "four hours")


@pytest.mark.req("ATT-5")
def test_years_give_a_change_its_direction():
    """What rose did not fall, though the difference is the same."""
    values = read("$412 million and $480 million").values
    operands = [Operand(values[0], frozenset({"x"}), 0, 2023), Operand(values[1], frozenset({"x"}), 1, 2024)]
    for claim, right in (("an increase of $68 million", True), ("a decrease of $68 million", False)):
        reading = read(claim)
        assert derives(reading.values[-1], words_of(reading.tokens), operands) is right


@pytest.mark.req("ATT-5")
def test_values_of_other_attributes_are_not_subtracted():
    """Revenue less staff is nothing."""
    one, other = read("500 boats").values[0], read("440 boats").values[0]
    reading = read("60 boats more")
    alike = [Operand(one, frozenset({"built"}), 0), Operand(other, frozenset({"built"}), 1)]
    unlike = [Operand(one, frozenset({"built"}), 0), Operand(other, frozenset({"sold"}), 1)]
    assert derives(reading.values[0], words_of(reading.tokens), alike)
    assert not derives(reading.values[0], words_of(reading.tokens), unlike)


@pytest.mark.req("ATT-5")
@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("half an hour", 1800),
        ("a quarter of an hour", 900),
        ("an hour and a half", 5400),
        ("a year and a half", 47336400),
    ],
)
def test_times_in_words_are_values(text, seconds):
    """They equal the same time in figures."""
    assert [value.amount for value in read(text).values] == [seconds]

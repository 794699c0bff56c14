"""Money at its edges: nothing charged, debts, sums without noughts at the end, and what a refusal says."""

from __future__ import annotations

import pytest

from interlock.domain.budget import Micros, as_decimal, as_fixed, charge, micros
from interlock.domain.errors import Refused


@pytest.mark.req("BUD-4")
@pytest.mark.parametrize(("amount", "left"), [(0, 500_000), (1, 499_999), (500_000, 0), (500_001, 0)])
def test_a_charge_of_nothing_and_of_one_millionth(amount, left):
    """Nothing costs nothing, a millionth costs a millionth, and below 0 there is nothing."""
    assert charge(Micros(500_000), Micros(amount)) == left


@pytest.mark.req("BUD-4")
def test_a_refund_is_a_defect_that_says_so():
    """A negative charge never comes from outside: it is an error of ours, and names its rule."""
    with pytest.raises(ValueError, match=r"^a charge is never negative: a budget does not rise \(BUD-4\)$"):
        charge(Micros(500_000), Micros(-1))


def test_what_is_no_money_is_refused_in_words():
    """The reason is for programs, the message for people."""
    with pytest.raises(Refused) as refused:
        micros("0.0000001")

    assert (refused.value.reason, refused.value.message) == (
        "NOT_MICROS",
        "not a finite decimal with at most six places",
    )


@pytest.mark.parametrize(
    ("amount", "fixed", "decimal"),
    [
        (-1, "-0.000001", "-0.000001"), (-1_500_000, "-1.500000", "-1.50"), (0, "0.000000", "0.00"),
        (123_400, "0.123400", "0.1234"), (100_000, "0.100000", "0.10"), (1_000_001, "1.000001", "1.000001"),
    ],
)  # fmt: skip
def test_amounts_are_written_with_their_sign_and_without_noughts_too_many(amount, fixed, decimal):
    """A debt is shown as one, and two places are the fewest."""
    assert (as_fixed(Micros(amount)), as_decimal(Micros(amount))) == (fixed, decimal)

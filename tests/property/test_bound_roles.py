"""Laws of the binding comparer: two parties that trade places show, and another order of the same does not."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.unit.dpe.comparison.bindings.reading import found

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

PARTIES = (
    "the bank",
    "the regulator",
    "the council",
    "the airline",
    "the museum",
    "Maria Lindholm",
    "Peter Vogel",
    "Norway",
)
VERBS = (("sued", "was sued"), ("praised", "was praised"), ("invited", "was invited"), ("warned", "was warned"))
party, verb = st.sampled_from(PARTIES), st.sampled_from(VERBS)


def sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


@settings(deadline=None, max_examples=60)
@given(party, party, verb)
def test_a_swap_shows_in_the_active_and_in_the_passive(one, other, verb):
    """Whoever does it, and in whatever voice the answer says so."""
    assume(one != other)
    fact = sentence(f"{one} {verb[0]} {other}")

    assert found((fact,), sentence(f"{other} {verb[0]} {one}"))
    assert found((fact,), sentence(f"{one} {verb[1]} by {other}"))
    assert not found((fact,), sentence(f"{other} {verb[1]} by {one}"))


@settings(deadline=None, max_examples=60)
@given(party, party, party, verb)
def test_the_order_of_a_list_says_nothing(one, other, third, verb):
    """Two parties of one list trade places without a finding."""
    assume(len({one, other, third}) == 3)

    assert not found(
        (sentence(f"{one} and {other} {verb[0]} {third}"),), sentence(f"{other} and {one} {verb[0]} {third}")
    )
    assert not found(
        (sentence(f"{third} {verb[0]} {one} and {other}"),), sentence(f"{third} {verb[0]} {other} and {one}")
    )


@settings(deadline=None, max_examples=40)
@given(party, party, verb)
def test_what_no_one_says_is_no_finding(one, other, verb):
    """A pronoun in the source may be anybody."""
    assume(one != other)

    assert not found((sentence(f"it {verb[0]} {other}"),), sentence(f"{one} {verb[0]} {other}"))

"""Turned words are of one thing: not of another of which the thing is only a part (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.turned import turned_word
from tests.unit.dpe.comparison.bindings.reading import passages

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]


def _is_turned(source: str, claim: str) -> bool:
    return turned_word(passages(claim)[0], Evidence(passages(source, "f0"))) is not None


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        (
            "Trials show Corvex could contest the insulin pump market.",
            "It wants to file for approval of its insulin pump.",
        ),
        ("The school bus company refused the loan.", "The inspector accepted the school bus."),
    ],
)
def test_what_only_says_which_thing_is_meant_is_not_that_thing(source: str, claim: str) -> None:
    """The pump is not its market, nor the bus the company that runs it."""
    assert not _is_turned(source, claim)


@pytest.mark.parametrize(
    ("source", "claim"),
    [
        ("The reading circle criticised the late fee.", "The reading circle spoke out in favour of the late fee."),
        ("The council refused the school bus.", "The council accepted the school bus."),
        ("The price of season tickets rose in May.", "Season tickets fell in May."),
    ],
)
def test_the_thing_itself_and_what_is_measured_of_it_are_one(source: str, claim: str) -> None:
    """Who says that tickets fell says it of their price."""
    assert _is_turned(source, claim)

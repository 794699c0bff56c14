"""Limits that a summary drops (SPEC-005 §5.3, SPEC-004 §12.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.limits import keeps, lost

SOURCE = "The city approved the new tram line in March, conditionally, pending review by the county."


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The city approved the new tram line in March.", SOURCE),
        (
            "The new tram line was approved by the city.",
            "The city approved the new tram line, pending review by the county.",
        ),
        ("The minister took bribes from the firm.", "The minister allegedly took bribes from the firm."),
        ("The drug lowers blood pressure in adults.", "The drug may lower blood pressure in adults, and it is cheap."),
        ("The merger closes in May.", "The merger is expected to close in May."),
        ("Payment is made within thirty days.", "Payment is made within thirty days unless the goods are damaged."),
    ],
)
def test_a_limit_that_is_dropped(claim, source):
    """A condition, a possibility, hearsay."""
    assert lost(claim, source)


@pytest.mark.req("DAG-7")
@pytest.mark.parametrize(
    ("claim", "source"),
    [
        ("The city approved the tram line subject to review.", SOURCE),
        ("The county will review the matter.", SOURCE),
        ("The minister is accused of taking bribes.", "The minister allegedly took bribes from the firm."),
        ("The drug is cheap.", "The drug may lower blood pressure in adults, and it is cheap."),
        ("The merger closes in May.", "The merger closes in May, and the shares may rise afterwards."),
        ("The city approved the new tram line.", "The city approved the new tram line in March."),
    ],
)
def test_what_keeps_its_limit_or_tells_something_else(claim, source):
    """Other words for it, the unlimited part of a sentence, and a source without limits."""
    assert not lost(claim, source)


def test_which_sentences_keep_a_limit():
    """A word of doubt or of a condition anywhere."""
    assert keeps("It is still awaiting review.")
    assert not keeps("It is nine kilometres long.")

"""Rows of an answer held against the record that they name, and cells that two records are said to share (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from tests.support.dpe import ruled

pytestmark = pytest.mark.req("DPE-3")
PLANS = (
    "| Plan | Fee (€) | Support | Guests | Open since |\n|---|---|---|---|---|\n| Harbour | 12 | by phone | not included | 2008 |\n"
    "| Coast, shared | 19 | by mail | two | 2016 |\n| Open sea | 31 | by phone and mail | four | 2021 |"
)
GRADES = '{"pupil": "Ida", "tests": [{"code": "M1", "grade": 2.5}, {"code": "M2", "grade": null}]}'


@pytest.mark.parametrize(
    ("row", "slots"),
    [
        ("Harbour; Fee: €12; Support: by phone; Guests: none; Since: 2008", []),
        ("Coast; Fee: €19; Guests: two", []),
        ("Harbour; Fee: €19; Support: by phone", ["fee"]),
        ("Coast; Support: by phone and mail", ["support"]),
        ("Open sea; Guests: none", []),
        ("Harbour; Since: 2016", ["since"]),
    ],
)
def test_a_row_is_compared_column_by_column(row: str, slots: list[str]) -> None:
    """What another record has is found; what agrees, in other words too, is not."""
    assert [each.slot for each in ruled(row, PLANS)[0] if each.slot] == slots


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("M1; Grade: 2.5", False),
        ("M2; Grade: not graded yet", False),
        ("M2; Grade: 2.5", True),
        ("M1; Grade: not graded yet", True),
    ],
)
def test_what_has_no_value_is_not_given_one(row: str, found: bool) -> None:
    """``null`` is told as such, and not as the value of a sibling."""
    assert bool(ruled(row, GRADES)[0]) is found


def test_a_row_that_agrees_is_supported() -> None:
    """Every column says what the record says."""
    assert ruled("Harbour; Fee: €12; Support: by phone; Guests: none; Since: 2008", PLANS)[1].calculated


def test_two_records_share_only_what_both_have() -> None:
    """*X and Y are* needs the cell of both."""
    crew = '[{"name": "Ida", "port": "Oslo"}, {"name": "Tom", "port": "Oslo"}, {"name": "Eva", "port": "Bergen"}]'
    assert ruled("Ida and Tom sail from Oslo.", crew)[0] == []
    assert {each.slot for each in ruled("Ida and Eva sail from Oslo.", crew)[0]} == {"port"}

"""Which compensations wait for a person, of every audit log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.audit.store.stuck import StuckRow
from tests.contract.test_audit_log_held import do
from tests.support.audit.audit import session_id

pytestmark = pytest.mark.req("KRN-5")

FIRST = (-1, "", "")
ROW = StuckRow(session_id(), "step/1", "saga unbook book 5 9 7 stuck", 2_000, "")


def test_what_waits_is_listed_the_oldest_first_and_goes_when_it_is_decided(log):
    """What is left keeps its place; a page goes on after another; one that was dropped twice is gone."""
    later, other = (
        replace(ROW, execution="step 2", stuck_ms=3_000),
        replace(ROW, kernel_id=session_id(2), stuck_ms=2_500),
    )
    for row in (later, ROW, other):
        do(log, lambda w, row=row: w.set_stuck(row))
    left = replace(ROW, job="saga unbook book 5 9 8 stuck", stuck_ms=9_000, left_json='{"reviewer_id": "ann"}')
    do(log, lambda w: w.set_stuck(left))

    assert log.stuck(FIRST, 9) == [replace(left, stuck_ms=2_000), other, later]
    assert log.stuck((2_000, ROW.kernel_id, ROW.execution), 1) == [other]
    for _ in range(2):
        do(log, lambda w: w.drop_stuck(ROW.kernel_id, ROW.execution))
    assert log.stuck(FIRST, 9) == [other, later]

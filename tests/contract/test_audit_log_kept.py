"""Answers kept for what goes on from them, of every audit log."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.audit.store.kept import KeptRow
from tests.contract.test_audit_log_held import LATER, NOW, do
from tests.support.audit.audit import session_id, window_id
from tests.support.audit.records import a_window, adding

pytestmark = pytest.mark.req("API-1")

ROW = KeptRow(window_id(1), session_id(), "alice", "", b"sealed", LATER)


def test_a_row_is_read_as_it_was_added_and_only_once(log):
    """A second one of the same window is an error, whatever it holds."""
    do(log, adding(a_window(1)))
    do(log, lambda w: w.add_kept(ROW))
    with pytest.raises(Exception, match=r"kept|UNIQUE|unique"):
        do(log, lambda w: w.add_kept(replace(ROW, sealed=b"other")))

    assert log.kept(window_id(1)) == ROW
    assert do(log, lambda w: w.kept(window_id(1))) == ROW
    assert log.kept(window_id(2)) is None


def test_rows_are_deleted_one_by_one_and_by_their_time(log):
    """What is not due stays."""
    later = replace(ROW, window_id=window_id(2), expires_at="2027-01-01T00:00:00.000000Z")
    for row in (ROW, later, replace(ROW, window_id=window_id(3))):
        do(log, lambda w, row=row: w.add_kept(row))

    assert do(log, lambda w: w.drop_expired_kept(NOW)) == 0
    assert do(log, lambda w: w.drop_kept(window_id(3))) is True
    assert do(log, lambda w: w.drop_kept(window_id(3))) is False
    assert do(log, lambda w: w.drop_expired_kept(LATER)) == 1
    assert [log.kept(window_id(number)) for number in (1, 2, 3)] == [None, later, None]

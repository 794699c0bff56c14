"""kill -9 at each durable step of the audit log, on both databases: nothing acknowledged is lost, nothing is half done."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.audit.audit import session_id, verify_message, window_id
from tests.support.audit.audit_child import a_log
from tests.support.audit.audit_children import Child, check


@pytest.fixture(params=["sqlite", "postgres"])
def place(request: pytest.FixtureRequest) -> Iterator[Path | str]:
    """Where the children write."""
    sqlite = request.param == "sqlite"
    yield request.getfixturevalue("tmp_path") / "audit.db" if sqlite else request.getfixturevalue("postgres_url")


@pytest.mark.long
@pytest.mark.req("AUD-3", "AUD-6", "PRV-2")
@pytest.mark.parametrize("point", ["audit.before_commit", "audit.after_commit"])
def test_what_was_acknowledged_survives_a_kill_at_the_commit(place, point):
    """Before it nothing of that transaction is there, after it all is, told or not; the next life goes on (I4, I5)."""
    acknowledged: list[list[str]] = []
    for passed in (4, 7):
        with Child(place, "run", failpoints=f"{point}:kill@{passed}") as child:
            child.dies()
        acknowledged += child.acknowledged
        check(place, acknowledged)

    with contextlib.closing(a_log(place)) as log:
        size = log.log_size()
        assert [entry.position for entry in log.entries(0, size + 1)] == list(range(size))
        assert all(entry.event is not None for entry in log.entries(0, size))
    assert acknowledged


@pytest.mark.req("AUD-5", "AUD-3")
@pytest.mark.parametrize(
    ("point", "verdict"), [("audit.before_erase", "VALID"), ("audit.after_erase", "TRUNCATED")], ids=["before", "after"]
)
def test_a_session_is_erased_whole_or_not_at_all(place, point, verdict):
    """The mark and the deletion are one transaction: a kill between them leaves neither, a kill after them leaves both."""
    with Child(place, "erase", failpoints=f"{point}:kill") as child:
        child.dies()
    assert [words[0] for words in child.said] == ["W", "W"]

    with contextlib.closing(a_log(place)) as log:
        assert verify_message(log, session_id()) == (verdict, [])
        gone = verdict == "TRUNCATED"
        assert (log.contents(session_id(), ()).key is None) == gone
        assert (log.report(window_id=window_id(1)).body == b"") == gone

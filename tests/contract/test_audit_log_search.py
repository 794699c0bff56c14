"""Sessions by time, by what their first event says and by what became of them, and would-haves, of every audit log."""

from __future__ import annotations

import json

import pytest

from interlock.audit.store import search
from interlock.audit.store.search import LAST, SessionSearch
from tests.contract.test_audit_log_held import LATER, NOW, decide, do, hold
from tests.support.audit.audit import hash_of, session_id, window_id
from tests.support.audit.records import a_window, adding, an_event

pytestmark = pytest.mark.req("OBS-5")


def time(number: int) -> str:
    return f"2026-05-25T10:00:{number:02}.000000Z"


def begin(log, number: int, **data: str) -> None:
    """Begin session *number* in its second."""
    said = json.dumps({"scope": "x", **data}, separators=(",", ":"))
    created = an_event(
        1,
        number,
        event_type="SESSION_CREATED",
        window_id="",
        timestamp=time(number),
        data_json=said,
        hmac=hash_of(number),
    )
    do(log, adding(created))


def end(log, number: int, reason: str) -> None:
    do(log, adding(an_event(2, number, event_type="SESSION_TERMINATED", data_json=f'{{"reason":"{reason}"}}')))


def found(log, *, limit: int = 9, before=LAST, looked: int = 99, now: str = NOW, **wanted):
    rows, further = log.find_sessions(SessionSearch(now=now, **wanted), limit, before, looked)
    return [int(row.session_id[-4:], 16) for row in rows], further


@pytest.fixture
def searched(log):
    """Six sessions: one that runs, one halted, one held, one released, one that ended, one that used its budget up."""
    for number in range(1, 7):
        begin(log, number, agent_type="a" if number < 4 else "b", note='"scope":"y"')
    do(log, adding(a_window(1, 1), a_window(1, 2), a_window(2, 2, status="HALTED", risk_level=4)))
    hold(log, 1, 3)
    hold(log, 1, 4)
    decide(log, 1, session=4, approval="a4")
    do(log, lambda w: w.add_handout(window_id(1, 4), NOW))
    end(log, 5, "CLIENT")
    end(log, 6, "SAFETY_BUDGET_DEPLETED")
    return log


@pytest.mark.parametrize(
    ("outcome", "wanted"),
    [("RUNNING", [4, 3, 2, 1]), ("ENDED", [6, 5]), ("HALTED", [6, 2]), ("HELD", [3]), ("RELEASED", [4]), ("", [6, 5, 4, 3, 2, 1])],
)  # fmt: skip
def test_sessions_are_found_by_what_became_of_them(searched, outcome, wanted):
    """The latest first; what is held is so until it expires; a session tells all that became of it."""
    assert found(searched, outcome=outcome) == (wanted, None)
    assert found(searched, outcome="HELD", now=LATER) == ([], None)
    rows, _ = searched.find_sessions(SessionSearch(now=NOW), 9, LAST, 99)
    assert [row.outcomes for row in rows if row.session_id in {session_id(2), session_id(6)}] == [
        ("ENDED", "HALTED"), ("RUNNING", "HALTED"),
    ]  # fmt: skip


def test_sessions_are_found_by_time_caller_agent_and_last_risk(searched):
    """From a time on, before another; texts count as they stand in the data, not inside of a value."""
    assert found(searched, since=time(2), until=time(4)) == ([3, 2], None)
    assert found(searched, mentioning=('"agent_type":"a"', '"scope":"x"')) == ([3, 2, 1], None)
    assert found(searched, mentioning=('"scope":"y"',)) == ([], None)
    assert found(searched, last_risk=4) == ([2], None)
    assert found(searched, last_risk=3) == ([4, 3, 1], None)


def test_a_search_is_paged_and_looks_at_few(searched):
    """A full page goes on after its last session; a search that looked at enough says how far it came, even with nothing found."""
    assert found(searched, limit=2) == ([6, 5], (time(5), session_id(5)))
    assert found(searched, limit=2, before=(time(5), session_id(5))) == ([4, 3], (time(3), session_id(3)))
    assert found(searched, limit=2, before=(time(3), session_id(3))) == ([2, 1], None)
    assert found(searched, last_risk=4, looked=3) == ([], (time(4), session_id(4)))
    assert found(searched, last_risk=4, looked=3, before=(time(4), session_id(4))) == ([2], (time(1), session_id(1)))
    assert found(searched, last_risk=4, looked=3, before=(time(1), session_id(1))) == ([], None)
    assert found(searched, last_risk=4, looked=3, since=time(5)) == ([], None)


def test_would_haves_are_listed_the_latest_first_and_counted(log):
    """Over all sessions, of one reason, from a time on, before a place; the counts say from when on they count."""
    for sequence, (action, reason) in enumerate(
        [("halt", "SAFETY_HALT"), ("hold", "HELD"), ("halt", "SAFETY_HALT")], 1
    ):
        said = json.dumps({"action": action, "reason": reason}, separators=(",", ":"))
        do(log, adding(an_event(sequence, 1, event_type="WOULD_HAVE", timestamp=time(sequence), data_json=said)))
    do(log, adding(an_event(1, 2, event_type="SAFETY_HALT", timestamp=time(9), hmac=hash_of(9))))
    everything = (*LAST, 0)

    def listed(*, reason: str = "", since: str = "", limit: int = 9, before=everything) -> list[int]:
        return [row.sequence for row in log.would_haves(reason, since, limit, before)]

    assert listed() == [3, 2, 1]
    assert listed(reason='"reason":"SAFETY_HALT"', limit=1) == [3]
    assert listed(since=time(2)) == [3, 2]
    assert listed(before=(time(3), session_id(), 3)) == [2, 1]
    assert log.counted_would_haves("", 9) == ({("halt", "SAFETY_HALT"): 2, ("hold", "HELD"): 1}, "")
    assert log.counted_would_haves("", 2) == ({("halt", "SAFETY_HALT"): 1, ("hold", "HELD"): 1}, time(2))


@pytest.mark.parametrize("outcome", ["", "RUNNING", "ENDED", "HALTED", "HELD", "RELEASED"])
def test_sqlite_scans_no_table_for_a_search(tmp_path, outcome):
    """Every table and subquery of a search is read by an index, and nothing is sorted."""
    from interlock.audit.store.log_sql import SqliteLog

    log = SqliteLog(tmp_path / "audit.db")
    log.commit([])
    wanted = SessionSearch(now=NOW, outcome=outcome, last_risk=4)
    statement, names = search.sessions_statement(wanted, 9, LAST, ("", ""))
    would = (search.WOULD_HAVES, ["", *LAST, 0, "", 9])
    plans = []
    for text, values in ((statement, names), (search.FLOOR, [*LAST, 9]), would, (search.COUNTED, ["", 9])):
        with log._reading() as connection:
            plans += [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {text}", values)]
    log.close()

    assert [one for one in plans if one.startswith("SCAN") or "TEMP B-TREE" in one] == []
    assert any("events_session_began" in one for one in plans)

"""Held responses, receivers' cursors, and what may be deleted after which event, of every audit log."""

from __future__ import annotations

import threading

import pytest

from interlock.audit.store import reading
from interlock.audit.store.log import DeadLetter, Decided, Erased, HandedOut, HeldRow
from interlock.domain.merkle.entries import LOG_SESSION
from tests.support.audit.audit import hash_of, session_id, window_id
from tests.support.audit.records import REPORT, a_window, adding, an_event

NOW, LATER = "2026-05-25T11:00:00.000000Z", "2026-05-25T12:00:00.000000Z"


def do(log, work):
    """Commit one work and return its value, or raise its error."""
    [outcome] = log.commit([work])
    if outcome.error is not None:
        raise outcome.error
    return outcome.value


def hold(log, number: int, session: int = 1, *, expires_at: str = LATER, sealed: bytes = b"sealed") -> None:
    window = a_window(number, session, timestamp=f"2026-05-25T10:00:0{number}.000000Z", status="HELD")
    do(log, adding(window))
    do(log, lambda w: w.add_held(window.window_id, window.session_id, sealed, expires_at=expires_at, policy_hash="p"))


def decide(log, number: int, *, approved: bool = True, approval: str = "", session: int = 1, until: str = LATER):
    return do(
        log,
        lambda w: w.add_decision(
            window_id(number, session), approved=approved, reviewer_id="r@x", approval_id=approval or f"a{number}",
            token="t", decided_at=NOW, expires_at=until,
        ),
    )  # fmt: skip


def statuses(log, status: str | None = None, *, session: str = "", after: str = "", limit: int = 9, now: str = NOW):
    found = log.held_list(status, session, after, limit, now)
    return [(row.window_id[-1], row.status(now)) for row in found]


# --- held responses


@pytest.mark.req("OVR-1")
def test_a_held_response_is_read_back_whole(log):
    """With its bytes, from the time of its seal; decision and hand-out follow."""
    hold(log, 1)
    assert log.held(window_id(1)) == HeldRow(
        window_id(1), session_id(), b"sealed", "2026-05-25T10:00:01.000000Z", LATER, "p"
    )

    decide(log, 1)
    do(log, lambda w: w.add_handout(window_id(1), NOW))

    assert log.held(window_id(1)) == HeldRow(
        window_id(1), session_id(), b"sealed", "2026-05-25T10:00:01.000000Z", LATER, "p", True, "r@x", "a1", "t", NOW,
        LATER, NOW,
    )  # fmt: skip
    assert log.held(window_id(2)) is None


def test_a_response_is_held_once_and_with_its_window(log):
    """Neither for a window that was never sealed, nor of another session, nor twice."""
    hold(log, 1)

    for window, session in ((window_id(9), session_id()), (window_id(1), session_id(2)), (window_id(1), session_id())):
        with pytest.raises(Exception, match=r"once|with its window|UNIQUE|duplicate key"):
            do(log, lambda w, at=(window, session): w.add_held(*at, b"x", expires_at=LATER, policy_hash="p"))

    assert log.held(window_id(1)).sealed == b"sealed"


@pytest.mark.req("OVR-2")
def test_a_response_is_decided_once(log):
    """The second decision is refused, whatever it says, and so is an approval that decided already (I12)."""
    hold(log, 1)
    hold(log, 2)
    decide(log, 1, approved=False)

    with pytest.raises(Decided):
        decide(log, 1, approval="other")
    with pytest.raises(Decided):
        decide(log, 2, approval="a1")

    assert log.held(window_id(1)).approved is False
    assert log.held(window_id(2)).approved is None


@pytest.mark.req("OVR-2")
def test_of_two_decisions_in_one_transaction_the_first_wins(log):
    """Each sees what the one before it wrote."""
    hold(log, 1)

    def deciding(reviewer: str):
        return lambda w: w.add_decision(
            window_id(1), approved=True, reviewer_id=reviewer, approval_id=reviewer, token="t", decided_at=NOW,
            expires_at=LATER,
        )  # fmt: skip

    first, second = log.commit([deciding("one"), deciding("two")])

    assert (first.error, type(second.error)) == (None, Decided)
    assert log.held(window_id(1)).reviewer_id == "one"


@pytest.mark.req("OVR-3")
def test_a_response_leaves_once(log):
    """The second hand-out is refused."""
    hold(log, 1)
    do(log, lambda w: w.add_handout(window_id(1), NOW))

    with pytest.raises(HandedOut):
        do(log, lambda w: w.add_handout(window_id(1), LATER))

    assert log.held(window_id(1)).handed_out_at == NOW


def test_the_bytes_of_a_held_response_can_be_dropped(log):
    """The row stays, and says that they are gone."""
    hold(log, 1)

    assert do(log, lambda w: (w.drop_held(window_id(1)), w.drop_held(window_id(1)), w.held(window_id(1)).sealed)) == (
        True, False, b"",
    )  # fmt: skip
    assert log.held(window_id(1)).sealed == b""


def test_held_responses_are_listed_by_state_the_oldest_first(log):
    """Pending, approved, rejected, expired by the hold's time or the approval's, released: one rule, in rows and in SQL."""
    for number in range(1, 7):
        hold(log, number, expires_at=NOW if number == 4 else LATER)
    decide(log, 2)
    decide(log, 3, approved=False)
    decide(log, 5)
    do(log, lambda w: w.add_handout(window_id(5), NOW))
    decide(log, 6, until=NOW)

    states = [
        ("1", "PENDING"),
        ("2", "APPROVED"),
        ("3", "REJECTED"),
        ("4", "EXPIRED"),
        ("5", "RELEASED"),
        ("6", "EXPIRED"),
    ]
    assert statuses(log) == states
    for name in {state for _, state in states}:
        assert statuses(log, name) == [one for one in states if one[1] == name]
    assert all(row.sealed == b"" for row in log.held_list(None, "", "", 9, NOW))


def test_held_responses_come_in_pages_and_by_session(log):
    """After a window, up to a limit; nothing after one that was never held."""
    for number in (1, 2, 3):
        hold(log, number)
    hold(log, 4, session=2)

    assert [name for name, _ in statuses(log, limit=2)] == ["1", "2"]
    assert [name for name, _ in statuses(log, after=window_id(2))] == ["3", "4"]
    assert [name for name, _ in statuses(log, session=session_id(2))] == ["4"]
    assert statuses(log, after=window_id(9)) == []


def test_what_is_done_and_still_has_its_bytes_is_found(log):
    """Expired, rejected and released, until the bytes are dropped; what still waits is not."""
    for number in range(1, 5):
        hold(log, number, expires_at=NOW if number == 1 else LATER)
    decide(log, 2, approved=False)
    decide(log, 3)

    found = log.expired_unmarked(NOW, 9)
    do(log, lambda w: w.drop_held(window_id(1)))

    assert [row.window_id[-1] for row in found] == ["1", "2"]
    assert [row.window_id[-1] for row in log.expired_unmarked(NOW, 9)] == ["2"]
    assert [row.window_id[-1] for row in log.expired_unmarked(LATER, 9)] == ["2", "3", "4"]
    assert len(log.expired_unmarked(LATER, 1)) == 1


# --- receivers


@pytest.mark.req("AUD-4")
def test_a_cursor_moves_and_each_receiver_has_its_own(log):
    """From 0; what it says last is what counts."""
    for position in (3, 9, 5):
        do(log, lambda w, position=position: w.set_cursor("siem", position))

    assert (log.cursor("siem"), log.cursor("other")) == (5, 0)


@pytest.mark.req("AUD-4")
def test_dead_letters_are_kept_until_they_are_dropped(log):
    """In order of position; the same ones again say the newer reason."""
    for first, reason in ((7, "HTTP_400"), (2, "HTTP_410"), (7, "HTTP_413")):
        do(log, lambda w, first=first, reason=reason: w.add_dead_letter("siem", first, first + 1, reason, NOW))

    assert log.dead_letters("siem") == [
        DeadLetter("siem", 2, 3, "HTTP_410", NOW), DeadLetter("siem", 7, 8, "HTTP_413", NOW),
    ]  # fmt: skip
    assert do(log, lambda w: (w.drop_dead_letter("siem", 2), w.drop_dead_letter("siem", 2))) == (True, False)
    assert [one.first for one in log.dead_letters("siem")] == [7]


# --- what may be deleted


def keep(log, session: int = 1) -> None:
    """A session with two events, two windows, contents and a data key."""
    do(log, adding(an_event(1, session), a_window(1, session), a_window(2, session), an_event(2, session)))
    name = session_id(session)
    do(log, lambda w: w.add_content_key(name, 1, b"wrapped"))
    do(log, lambda w: [w.add_content(name, window_id(n, session), b"sealed") for n in (1, 2)])


def mark(event_type: str, sequence: int = 3, session: int = 1):
    return adding(an_event(sequence, session, event_type=event_type, hmac=hash_of(sequence)))


@pytest.mark.req("AUD-5")
def test_a_data_key_goes_after_its_event_only(log):
    """Without CONTENT_ERASED the store itself refuses, and everything is as before."""
    keep(log)
    with pytest.raises(Exception, match="CONTENT_ERASED"):
        do(log, lambda w: w.destroy_key(session_id()))
    assert log.contents(session_id(), ()).key == (1, b"wrapped")
    assert len(log.contents(session_id(), [window_id(1), window_id(2)]).sealed) == 2

    do(log, mark("CONTENT_ERASED"))
    erased = do(log, lambda w: w.destroy_key(session_id()))

    assert erased == Erased(keys=1, contents=2, reports=2, held=0)
    assert (
        log.contents(session_id(), ()).key,
        dict(log.contents(session_id(), [window_id(1), window_id(2)]).sealed),
    ) == (None, {})
    assert log.report(window_id=window_id(1)).body == b""
    assert [window.stored_report_hash for window in log.chain(session_id()).windows] == ["", ""]
    assert not do(log, lambda w: w.destroy_key(session_id()))


@pytest.mark.req("AUD-5")
def test_the_event_of_another_session_erases_nothing_here(log):
    """A mark counts for its own session."""
    keep(log)
    keep(log, 2)
    do(log, mark("CONTENT_ERASED", session=2))

    with pytest.raises(Exception, match="CONTENT_ERASED"):
        do(log, lambda w: w.destroy_key(session_id()))

    assert log.report(window_id=window_id(1)).body == REPORT


@pytest.mark.req("AUD-5")
def test_events_go_after_a_later_mark_only(log):
    """Without TRUNCATED the store refuses; with it the events before it go, and their leaves stay."""
    keep(log)
    hold(log, 3)
    decide(log, 3)
    with pytest.raises(Exception, match=r"append-only|TRUNCATED|CONTENT_ERASED"):
        do(log, lambda w: w.truncate(session_id(), 2))
    assert len(log.chain(session_id()).events) == 2
    before = log.leaf_hashes(0, 9)

    do(log, mark("TRUNCATED"))
    assert do(log, lambda w: w.truncate(session_id(), 2)) == 2

    chain = log.chain(session_id())
    assert ([event.sequence for event in chain.events], chain.windows, chain.head) == ([3], (), (3, hash_of(3)))
    assert log.leaf_hashes(0, 9)[:2] == before
    assert [entry.event is None for entry in log.entries(0, 9)] == [True, True, False]
    assert log.positions(session_id()) == {1: 0, 2: 1, 3: 2}
    assert (log.held(window_id(3)), log.contents(session_id(), ()).key) == (None, None)


@pytest.mark.req("AUD-5")
def test_a_mark_does_not_reach_beyond_itself(log):
    """The mark itself, and what comes after it, stays."""
    keep(log)
    do(log, mark("TRUNCATED"))

    with pytest.raises(Exception, match=r"append-only|TRUNCATED"):
        do(log, lambda w: w.truncate(session_id(), 3))

    assert [event.sequence for event in log.chain(session_id()).events] == [1, 2, 3]


def test_a_truncated_session_goes_on_after_its_mark(log):
    """Its next event has the next sequence, and sequences that are gone are not given again."""
    keep(log)
    do(log, mark("TRUNCATED"))
    do(log, lambda w: w.truncate(session_id(), 2))

    [refused, kept] = log.commit([adding(an_event(1)), adding(an_event(4))])

    assert refused.error is not None
    assert kept.error is None


def test_a_content_is_dropped_after_its_event(log):
    """The one that was dropped, and no other."""
    keep(log)
    do(log, adding(an_event(3, event_type="CONTENT_DROPPED", window_id=window_id(1))))

    gone = do(log, lambda w: (w.has_content(session_id(), window_id(1)), w.drop_content(session_id(), window_id(1))))

    assert gone == (True, True)
    assert list(log.contents(session_id(), [window_id(1), window_id(2)]).sealed) == [window_id(2)]


# --- what retention asks


@pytest.mark.req("AUD-5")
def test_sessions_are_found_by_their_last_event(log, monkeypatch):
    """Those that are older, in pages; neither those that are marked already, nor the log's own session."""
    for session in range(1, 7):
        late = "2026-06-01T00:00:00.000000Z" if session == 3 else "2026-05-01T00:00:00.000000Z"
        do(
            log,
            adding(an_event(1, session, timestamp="2026-04-01T00:00:00.000000Z"), an_event(2, session, timestamp=late)),
        )
    do(log, adding(an_event(1, session_id=LOG_SESSION, timestamp="2026-04-01T00:00:00.000000Z")))
    do(log, adding(an_event(3, 4, event_type="CONTENT_ERASED", timestamp="2026-05-02T00:00:00.000000Z")))
    do(log, adding(an_event(3, 5, event_type="TRUNCATED", timestamp="2026-05-02T00:00:00.000000Z")))

    def found(erasable: bool, limit: int = 9, after: str = "") -> list[str]:
        names = log.session_ids("2026-05-15T00:00:00.000000Z", limit, after=after, erasable=erasable)
        return [name[-1] for name in names]

    assert found(erasable=True) == ["1", "2", "6"]
    assert found(erasable=False) == ["1", "2", "4", "6"]
    assert found(erasable=False, limit=2) == ["1", "2"]
    assert found(erasable=False, limit=2, after=session_id(2)) == ["4", "6"]
    monkeypatch.setattr(reading, "SESSIONS_AT_ONCE", 1)  # a statement looks at so many, whoever is due
    assert found(erasable=True) == ["1", "2", "6"]
    assert found(erasable=False, limit=2, after=session_id(2)) == ["4", "6"]


def test_a_task_is_led_by_the_log_of_one_process(log):
    """Asked again, from any thread, the leader stays the leader."""
    answers = [log.leads("retention")]
    thread = threading.Thread(target=lambda: answers.append(log.leads("retention")))
    thread.start()
    thread.join()

    assert answers == [True, True]

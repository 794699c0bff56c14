"""What every audit log promises, over SQLite and a real PostgreSQL."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from tests.support.audit.audit import hash_of, session_id, window_id
from tests.support.audit.records import REPORT, a_window, adding, an_event


def test_what_was_committed_is_read_back_whole(log):
    """Every field of every record comes back as it was given, in order."""
    events = [an_event(1), an_event(2, window_id="")]
    [outcome] = log.commit([adding(events[0], a_window(1), a_window(2), events[1])])

    chain = log.chain(session_id())

    assert (outcome.value, outcome.error) == (4, None)
    assert (chain.windows, chain.events) == ((a_window(1), a_window(2)), tuple(events))
    assert chain.head == (2, hash_of(2))


def test_an_unknown_session_is_empty(log):
    """Nothing is there, and nothing fails."""
    chain = log.chain(session_id(7))

    assert (chain.windows, chain.events, chain.head) == ((), (), (0, ""))
    assert log.events(session_id(7), after=0, limit=5) == []
    assert log.report(window_id=window_id(7)) is None
    assert log.report(trail_id="crp_trail_" + "0" * 32) is None


def test_sessions_are_apart(log):
    """One session's records are not another's (A-37)."""
    log.commit([adding(an_event(1), a_window(1)), adding(an_event(1, 2), a_window(1, 2))])

    assert log.chain(session_id(1)).events == (an_event(1),)
    assert log.chain(session_id(2)).windows == (a_window(1, 2),)


def test_events_come_in_pages(log):
    """After a sequence, up to a limit."""
    log.commit([adding(*(an_event(n) for n in range(1, 8)))])

    assert [e.sequence for e in log.events(session_id(), after=0, limit=3)] == [1, 2, 3]
    assert [e.sequence for e in log.events(session_id(), after=3, limit=9)] == [4, 5, 6, 7]


def test_a_report_is_found_by_either_name(log):
    """By window id and by trail id, with the seal."""
    log.commit([adding(a_window(1), a_window(2))])

    by_window = log.report(window_id=window_id(2))
    by_trail = log.report(trail_id=a_window(2).trail_id)

    assert by_window == by_trail
    assert (by_window.window.window_number, by_window.body) == (2, REPORT)


@pytest.mark.req("AUD-3")
def test_a_failing_request_is_undone_alone(log):
    """What it had already written is gone; the requests before and after it are kept."""

    def half(writing):
        writing.add_events([an_event(2)])
        writing.add_window(a_window(1), REPORT)
        raise ValueError("no")

    outcomes = log.commit([adding(an_event(1)), half, adding(an_event(2, event_type="SAFETY_HALT"))])

    assert [type(outcome.error) for outcome in outcomes] == [type(None), ValueError, type(None)]
    chain = log.chain(session_id())
    assert [e.event_type for e in chain.events] == ["DPE_COMPLETED", "SAFETY_HALT"]
    assert chain.windows == ()


def test_a_request_sees_what_the_ones_before_it_wrote(log):
    """Inside one transaction too, so two seals of one window cannot both be first."""
    seen = []

    def look(writing):
        seen.append((writing.head(session_id()), writing.root_id(session_id())))
        seen.append((writing.window(window_id(1)), writing.holds(session_id(), "DPE_COMPLETED")))
        seen.append([writing.is_continued(a_window(number)) for number in (1, 2)])
        seen.append(writing.chain(session_id()).head)

    log.commit([look, adding(an_event(1), a_window(1), a_window(2)), look])

    unread = {"stored_report_hash": ""}
    assert seen[:4] == [((0, ""), ""), (None, False), [False, False], (0, "")]
    assert seen[4:] == [
        ((1, hash_of(1)), window_id(1)),
        (a_window(1, **unread), True),
        [True, False],
        (1, hash_of(1)),
    ]


@pytest.mark.req("AUD-2")
@pytest.mark.parametrize(
    "records",
    [
        [an_event(1)],
        [an_event(3)],
        [a_window(1)],
        [a_window(1, session=2, window_id=window_id(1))],
        [a_window(2, trail_id=a_window(1).trail_id)],
    ],
    ids=["event again", "event after a gap", "window again", "window of another session", "trail id again"],
)
def test_nothing_is_written_twice_or_after_a_gap(log, records):
    """The log itself refuses it, whoever asks, and the rest of the transaction is kept."""
    log.commit([adding(an_event(1), a_window(1))])

    refused, kept = log.commit([adding(*records), adding(an_event(2))])

    assert refused.error is not None
    assert kept.error is None
    assert [e.sequence for e in log.chain(session_id()).events] == [1, 2]
    assert log.chain(session_id()).windows == (a_window(1),)


def test_touching_changes_nothing(log):
    """A probe of writing leaves no record."""
    log.commit([adding(an_event(1))])
    before = log.chain(session_id())

    [outcome] = log.commit([lambda writing: writing.touch()])

    assert outcome.error is None
    assert log.chain(session_id()) == before


def test_a_closed_log_opens_again(log):
    """Closing lets go of files and nothing else."""
    log.commit([adding(an_event(1))])
    log.close()

    log.ping()
    log.commit([adding(an_event(2))])

    assert len(log.chain(session_id()).events) == 2


def sealed(sequence: int, number: int):
    return an_event(sequence, event_type="WINDOW_SEALED", window_id=window_id(number))


@pytest.mark.req("ATT-4")
def test_what_came_since_an_event_is_read_alone(log):
    """The event itself, those behind it, the windows that they seal, and how many windows there are; not another session's."""
    first = [a_window(1), an_event(1), sealed(2, 1)]
    later = [a_window(2), an_event(3, window_id=""), sealed(4, 2)]
    log.commit([adding(*first, *later, a_window(1, 2), an_event(1, 2))])

    since = log.since(session_id(), 2)
    with_more = log.since(session_id(), 4, again=(1, 3))

    assert (since.events, since.sealed, since.windows) == ((sealed(2, 1), later[1], sealed(4, 2)), (a_window(2),), 2)
    assert (since.again.events, since.again.windows) == ((), ())
    assert (with_more.events, with_more.sealed) == ((sealed(4, 2),), ())
    assert (with_more.again.events, with_more.again.windows) == (
        tuple(map(astuple, (first[1], sealed(2, 1), later[1]))),
        (a_window(1),),
    )
    assert log.since(session_id(), 9).events == ()


@pytest.mark.req("ATT-4")
def test_every_reading_says_what_serves_the_database(log):
    """A transaction and a reader are served by the same, and a chain names it too."""
    log.commit([adding(an_event(1))])
    [inside] = log.commit([lambda writing: writing.since(session_id(), 1)])

    assert inside.value.events == (an_event(1),)
    assert inside.value.server == log.since(session_id(), 1).server == log.chain(session_id()).server != ""


@pytest.mark.req("ATT-4")
def test_contents_are_read_by_window(log):
    """Those that are named, and no other session's."""

    def keep(writing):
        for session in (1, 2):
            writing.add_window(a_window(1, session), REPORT)
            writing.add_window(a_window(2, session), REPORT)
            for number in (1, 2):
                writing.add_content(session_id(session), window_id(number, session), b"x%d" % number)

    log.commit([keep])

    named = [window_id(2), window_id(2, 2), window_id(9)]
    assert dict(log.contents(session_id(), named).sealed) == {window_id(2): b"x2"}
    assert dict(log.contents(session_id(), ()).sealed) == {}

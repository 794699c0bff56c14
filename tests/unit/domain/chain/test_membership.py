"""A record of another session is a fault of the chain it is handed in with, whatever its HMAC says (SPEC-011 §3)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from interlock.domain.chain.chain import Fault, Integrity, chained, verify_chain, window_hmac
from interlock.domain.chain.keyless import KEYLESS
from interlock.domain.chain.prefix import Prefix, continues
from tests.support.audit.audit import keys, session_id
from tests.unit.domain.chain.test_chain import a_chain

pytestmark = [pytest.mark.finding("F-18"), pytest.mark.req("PRV-2")]

OTHER = session_id(2)


def check(windows, events, key_of=None, named: str = ""):
    return verify_chain(windows, events, key_of or keys(session_id()), named)


def resigned(window, key, parents):
    """The window under the other session's id, its HMAC over that id: what a holder of the key could hand in."""
    return replace(
        window,
        session_id=OTHER,
        hmac=window_hmac(
            key, session_id=OTHER, window_number=window.window_number, timestamp=window.timestamp,
            response_hash=window.response_hash, report_hash=window.report_hash, parent_hmacs=parents,
        ),
    )  # fmt: skip


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("with_keys", [True, False], ids=["with keys", "keyless"])
def test_a_window_of_another_session_is_one_fault_at_its_place(place, with_keys):
    """Its id is all that differs: with keys and for an auditor without any, one fault names it."""
    chain = a_chain()
    windows = list(chain.windows)
    windows[place] = replace(windows[place], session_id=OTHER)

    found = check(windows, chain.events, None if with_keys else KEYLESS)

    assert found.integrity is Integrity.BROKEN
    assert found.faults == (Fault("window", place + 1, "FOREIGN_SESSION"),)
    assert found.faults[0].window_id == windows[place].window_id


def test_an_hmac_over_the_other_session_does_not_help():
    """Where the HMAC was made for the foreign id, its own check would hold."""
    chain = a_chain(1)
    foreign = resigned(chain.windows[0], keys(session_id())(1), [])

    assert "FOREIGN_SESSION" in [fault.reason for fault in check([foreign], chain.events).faults]


@pytest.mark.parametrize("place", [0, 4, 8])
def test_an_event_of_another_session_is_a_fault(place):
    """Keyless, and with keys where its HMAC was made over the foreign id."""
    chain = a_chain()
    events = list(chain.events)
    events[place] = replace(events[place], session_id=OTHER)
    key, before = keys(session_id())(1), events[place - 1].hmac if place else ""
    signed = [*events[:place], *chained(key, events[place:], before)]

    assert check(chain.windows, events, KEYLESS).faults == (Fault("event", place + 1, "FOREIGN_SESSION"),)
    assert Fault("event", place + 1, "FOREIGN_SESSION") in check(chain.windows, signed).faults


@pytest.mark.parametrize("key_of", [None, KEYLESS], ids=["with keys", "keyless"])
def test_a_whole_session_is_none_of_the_one_that_was_asked_for(key_of):
    """A sound chain that is shown as another session's verifies for its own alone."""
    chain = a_chain()

    assert not check(chain.windows, chain.events, key_of, session_id()).faults
    shown = check(chain.windows, chain.events, key_of, OTHER)
    assert shown.integrity is Integrity.BROKEN
    assert len([fault for fault in shown.faults if fault.reason == "FOREIGN_SESSION"]) == 3 + 9


def test_a_session_is_not_continued_by_windows_of_another():
    """What continues a verified prefix is of one session; anything else is verified whole."""
    chain = a_chain(1)
    key_of = keys(session_id())
    foreign = resigned(chain.windows[0], key_of(1), [])

    assert continues(Prefix(), chain.windows, chain.events, key_of, rows=1)
    assert not continues(Prefix(), [foreign], chain.events, key_of, rows=1)


def test_windows_alone_are_compared_with_one_another():
    """Without events most windows say which session it is."""
    chain = a_chain()
    windows = [*chain.windows[:2], replace(chain.windows[2], session_id=OTHER)]

    assert Fault("window", 3, "FOREIGN_SESSION") in check(windows, []).faults

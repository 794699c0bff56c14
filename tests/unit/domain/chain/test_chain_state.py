"""What a session's audit chain says of it, so that a store that was set back is found out."""

from __future__ import annotations

import json

import pytest

from interlock.domain.budget import FULL
from interlock.domain.chain.chain import EventRecord
from interlock.domain.chain.chain_state import WHOLE, ChainState, cascaded_budget


def event(kind: str, window: str = "", **data: object) -> EventRecord:
    return EventRecord("crp_sess_1", 1, window, kind, 2, "", json.dumps(data), 1, "")


@pytest.mark.req("BUD-4")
def test_the_standing_is_the_lowest_cascade_and_every_other_window_that_was_sealed():
    """Cascades of sessions side by side are recorded in any order; a window that is sealed again is not its own rival."""
    events = [
        event("WINDOW_SEALED", "a"), event("SAFETY_BUDGET_CASCADED", after="0.60"), event("WINDOW_SEALED", "b"),
        event("SAFETY_BUDGET_CASCADED", after="0.953217"), event("WINDOW_FAILED", "c"), event("BREAKER_TRANSITION", after="0.10"),
    ]  # fmt: skip

    assert ChainState.from_events(events, excluding="b") == ChainState(600_000, 1)
    assert ChainState.from_events(events) == ChainState(600_000, 2)
    assert ChainState.from_events([]) == WHOLE == ChainState(1_000_000, 0)


@pytest.mark.req("BUD-9")
def test_the_first_stream_without_an_end_tells_until_when_it_has_to_have_one():
    """A seal or a failure ends one; the window that is about to be sealed is not asked for. What tells no time is due at once."""
    begun = [event("STREAM_BEGUN", name, until_ms=until) for name, until in (("a", 500), ("b", 300), ("c", 400))]

    def until(*events: EventRecord, excluding: str = "") -> int:
        return ChainState.from_events(events, excluding=excluding).streams_until_ms

    assert until() == until(event("WINDOW_SEALED", "a")) == 0
    assert until(*begun) == 300
    assert until(*begun, excluding="b") == 400
    assert until(*begun, event("STREAM_PART", "b"), event("WINDOW_SEALED", "b"), event("WINDOW_FAILED", "c")) == 500
    assert until(*begun, event("STREAM_BEGUN", "d")) == until(*begun, event("STREAM_BEGUN", "d", until_ms="soon")) == 1


@pytest.mark.req("BUD-4")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        ('{"after":"0.953217"}', 953_217),
        ('{"after":"0.00"}', 0),
        ("{}", FULL),
        ('{"after":0.5}', FULL),
        ('{"after":"-0.10"}', FULL),
        ('{"after":"2.00"}', FULL),
        ('{"after":"much"}', FULL),
        ('{"after":"0.0000001"}', FULL),
        ("[", FULL),
        ("[" * 100_000, FULL),
    ],
)
def test_a_cascade_that_tells_no_budget_lowers_nothing(data, told):
    """It cannot be our own: what is no exact budget of a session is not compared with."""
    assert cascaded_budget(data) == told

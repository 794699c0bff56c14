"""Reading earlier answers while a window is opened: only what the opened window wants is used."""

from __future__ import annotations

import asyncio

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused, unavailable
from interlock.runtime.rpc.deadline import Deadline
from interlock.sidecar.call import ahead
from interlock.sidecar.call.ahead import ReadAhead

pytestmark = pytest.mark.req("ATT-4")

SESSION = "crp_sess_" + "1" * 32
SETTLED = session_pb2.OpenedWindow(session_id=SESSION, window_id="w3", lineage=["w1", "w2"])


class Log:
    """An audit service that gives what it is asked for, or fails."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, ...]] = []
        self.failure: Refused | None = None
        self.gate = asyncio.Event()
        self.gate.set()

    async def get_contents(self, _session_id, window_ids, _deadline):
        self.asked.append(tuple(window_ids))
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return [audit_pb2.Content(window_id=one, text=f"said in {one}") for one in window_ids]


async def test_what_follows_a_token_is_read_before_its_window_is_opened():
    """The settled window and those before it, as many as are compared."""
    reading = ReadAhead(log := Log(), latest=2)
    reading.expect("caller", "token", SETTLED)
    begun = reading.begin("caller", "token", Deadline(5))
    await asyncio.sleep(0)

    assert begun is not None
    assert log.asked == [("w2", "w3")]
    assert [one.window_id for one in await begun.task] == ["w2", "w3"]


async def test_it_fits_those_windows_of_that_session_in_that_order_alone():
    """A branch, another session and a shorter path are read anew."""
    reading = ReadAhead(Log(), latest=2)
    reading.expect("caller", "token", SETTLED)
    begun = reading.begin("caller", "token", Deadline(5))

    assert begun is not None
    assert begun.fits(SESSION, ["w2", "w3"])
    assert not any(begun.fits(SESSION, one) for one in (["w3"], ["w3", "w2"], ["w1", "w2"], []))
    assert not begun.fits("crp_sess_" + "2" * 32, ["w2", "w3"])
    begun.drop()


async def test_only_the_caller_that_a_token_was_given_to_has_it_read_and_once():
    """Another caller's, an unknown and a repeated token cost no reading."""
    reading = ReadAhead(log := Log(), latest=8)
    reading.expect("caller", "token", SETTLED)
    assert reading.begin("other", "token", Deadline(5)) is None
    assert reading.begin("caller", "another", Deadline(5)) is None
    begun = reading.begin("caller", "token", Deadline(5))
    assert reading.begin("caller", "token", Deadline(5)) is None
    await asyncio.sleep(0)

    assert begun is not None
    assert log.asked == [("w1", "w2", "w3")]


async def test_a_failure_is_that_of_the_call_where_it_is_used_and_nobody_s_otherwise(caplog):
    """A chain that does not verify refuses the call as if it had been read later."""
    reading = ReadAhead(log := Log(), latest=8)
    log.failure = unavailable("AUDIT_UNAVAILABLE", "down")
    for token in ("used", "dropped"):
        reading.expect("caller", token, SETTLED)
    used, dropped = (reading.begin("caller", token, Deadline(5)) for token in ("used", "dropped"))
    assert used is not None
    assert dropped is not None
    with pytest.raises(Refused, match="AUDIT_UNAVAILABLE"):
        await used.task
    dropped.drop()
    await asyncio.sleep(0)
    del dropped

    assert not caplog.records


async def test_a_dropped_reading_ends():
    """Nothing is left running behind a call that was refused."""
    reading = ReadAhead(log := Log(), latest=8)
    log.gate.clear()
    reading.expect("caller", "token", SETTLED)
    begun = reading.begin("caller", "token", Deadline(5))
    await asyncio.sleep(0)
    assert begun is not None
    begun.drop()
    await asyncio.wait([begun.task])

    assert begun.task.cancelled()


async def test_tokens_that_nobody_presents_do_not_fill_the_memory(monkeypatch):
    """The oldest goes first."""
    monkeypatch.setattr(ahead, "MOST_REMEMBERED", 2)
    reading = ReadAhead(Log(), latest=8)
    for token in ("first", "second", "third"):
        reading.expect("caller", token, SETTLED)
    begun = [reading.begin("caller", token, Deadline(5)) for token in ("first", "second", "third")]

    assert [one is not None for one in begun] == [False, True, True]
    for one in begun[1:]:
        one.drop()

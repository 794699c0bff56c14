"""Reading the log in threads: each reading ends for whoever asked, and none outlives the service (SVC-4)."""

from __future__ import annotations

import asyncio
import threading

import pytest

from interlock.audit.sealing.readers import READERS, Readers
from interlock.audit.store.log import StoreFailed
from interlock.domain.errors import Refused

pytestmark = pytest.mark.req("SVC-4")


class Appender:
    """Counts how often the log was tried again."""

    probed = 0

    async def probe(self) -> None:
        self.probed += 1


@pytest.fixture
async def appender():
    return Appender()


@pytest.fixture
async def readers(appender):
    made = Readers(appender)
    async with asyncio.timeout(10):
        yield made
        await made.close()


async def test_readings_run_beside_the_event_loop_and_beside_one_another(readers):
    """As many at once as there are threads: each waits for the other here."""
    meeting = threading.Barrier(READERS, timeout=5)

    def meet() -> str:
        meeting.wait()
        return threading.current_thread().name

    names = await asyncio.gather(*(readers.run(meet) for _ in range(READERS)))

    assert len(set(names)) == READERS
    assert threading.current_thread().name not in names
    assert readers.running == 0


async def test_what_a_reading_raises_is_raised_to_whoever_asked(readers, appender):
    """The thread goes on. Where the store failed, it is tried again first."""

    def fails() -> None:
        raise LookupError("not there")

    def store_fails() -> None:
        raise StoreFailed("AUDIT_STORE_FAILED", "no", hint="none", cause="TEST")

    for _ in range(2 * READERS):
        with pytest.raises(LookupError):
            await readers.run(fails)
    assert appender.probed == 0
    with pytest.raises(StoreFailed):
        await readers.run(store_fails)

    assert appender.probed == 1
    assert await readers.run(lambda: "goes on") == "goes on"


async def test_a_reading_whose_caller_has_left_is_not_begun(readers):
    """It waits for a thread no longer; those behind it are read."""
    held, begun = threading.Event(), []
    busy = [asyncio.create_task(readers.run(held.wait)) for _ in range(READERS)]
    left = asyncio.create_task(readers.run(lambda: begun.append("left")))
    behind = asyncio.create_task(readers.run(lambda: begun.append("behind")))
    await asyncio.sleep(0)
    left.cancel()
    await asyncio.sleep(0)
    held.set()
    await asyncio.gather(*busy, behind)

    assert begun == ["behind"]
    assert readers.running == 0


async def test_closing_ends_what_runs_and_begins_nothing(appender):
    """A reading that waits is still answered; one that comes later is refused instead of left waiting."""
    readers = Readers(appender)
    running = [asyncio.create_task(readers.run(lambda: "read")) for _ in range(3 * READERS)]
    await asyncio.sleep(0)
    await readers.close()

    assert await asyncio.gather(*running) == ["read"] * 3 * READERS
    with pytest.raises(Refused, match="AUDIT_CLOSING"):
        async with asyncio.timeout(5):
            await readers.run(lambda: "late")

"""The script that puts signals and the domain's rule let the same signals go, on a real Valkey (DEC-2)."""

from __future__ import annotations

import asyncio
import uuid

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.decision.bus.streams import MemoryStreams, StreamEntry
from interlock.decision.bus.streams_redis import RedisStreams

pytestmark = pytest.mark.req("DEC-2")

SENT = st.lists(st.tuples(st.sampled_from(["a", "a.b", "a-b", "b", "*"]), st.integers(0, 12)), max_size=60)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(sent=SENT, most=st.integers(1, 12), size=st.integers(1, 9))
def test_the_store_lets_go_what_the_rule_says(valkey, sent, most, size):
    """Numbers, duplicates, what is dropped and what is held are equal after every put; nobody holds fewer than a fair part loses."""
    entries = [StreamEntry(f"sig_{share}_{number}", share, "t", 0, "{}") for share, number in sent]

    async def both() -> None:
        experiment, memory = uuid.uuid4().hex, MemoryStreams()
        real = RedisStreams(valkey.url, timeout_s=5)
        try:
            for at in range(0, len(entries), size):
                part = entries[at : at + size]
                ours, theirs = await memory.put(experiment, most, part), await real.put(experiment, most, part)
                assert (ours.dropped, list(ours.places)) == (theirs.dropped, list(theirs.places))
                held = [(await one.page(experiment, 0, 100)).rows for one in (memory, real)]
                assert list(held[0]) == list(held[1])
                assert len(held[0]) <= most
        finally:
            await real.close()

    asyncio.run(both())

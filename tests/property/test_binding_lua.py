"""The index of bindings in Redis and its twin are one rule: the same random commands, the same answers (ATT-1)."""

from __future__ import annotations

import asyncio
from itertools import count

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.domain.binding.index import Index, IndexBounds, IndexNote
from interlock.domain.binding.places import Place, packed, raw_of
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis_bindings import RedisBindings, generations_of
from tests.support.session.sessions import session_id, window_id

pytestmark = pytest.mark.req("ATT-1", "ATT-3")

SCOPES = count(1)
DAY_MS = 86_400_000

DIGESTS = st.integers(0, 11).map(lambda n: bytes([n]) * 16)
PLACES = st.builds(
    Place,
    st.integers(1, 3).map(session_id),
    st.integers(1, 3).map(session_id),
    st.none() | st.integers(1, 6).map(window_id),
)
NOTES = st.builds(
    IndexNote,
    DIGESTS,
    PLACES.map(packed),
    turn=st.booleans(),
    over=st.just(b"") | st.integers(1, 3).map(lambda n: raw_of(session_id(n))),
)
SPOILT = st.sampled_from(
    [b"\x00" * 16, b"\x04" + b"a" * 32, b"\xff", b"\x02" + b"b" * 33, b"garbage", b"\x03" + b"c" * 48]
)
STEPS = st.one_of(
    st.tuples(st.just("find"), st.lists(DIGESTS, min_size=1, max_size=6, unique=True)),
    st.tuples(st.just("note"), st.lists(NOTES, min_size=1, max_size=4)),
    st.tuples(st.just("note"), st.lists(NOTES, min_size=1, max_size=4)),
    st.tuples(st.just("age"), st.sampled_from([DAY_MS * 41 // 100, DAY_MS * 107 // 100, DAY_MS * 21 // 10])),
    st.tuples(st.just("spoil"), st.tuples(DIGESTS, SPOILT)),
)


class Pair:
    """The index in Redis and its twin, asked alike. Time that passes is taken off what the keys have left."""

    def __init__(self, redis_url: str, most: int) -> None:
        self.bounds = IndexBounds(most, DAY_MS)
        self.batcher = Batcher(parse(redis_url))
        self.redis, self.twin = RedisBindings(self.batcher), Index()
        self.scope, self.now_ms = f"scope {next(SCOPES)}", 1_748_160_000_000

    async def find(self, digests):
        assert await self.redis.find(self.scope, digests, self.bounds) == self.twin.find(
            digests, self.bounds, now_ms=self.now_ms
        )[0]  # fmt: skip

    async def note(self, notes):
        assert await self.redis.note(self.scope, notes, self.bounds) == self.twin.note(
            notes, self.bounds, now_ms=self.now_ms
        )[0]  # fmt: skip

    async def age(self, ms):
        self.now_ms += ms
        for key in generations_of(self.scope):
            left = await self.batcher.command("PTTL", key)
            if left > 0:
                await self.batcher.command("PEXPIRE", key, max(left - ms, -1))

    async def spoil(self, what):
        """Write what our scripts never would, where an entry of the current generation is."""
        digest, value = what
        if digest in self.twin._current and self.twin._current_ends > self.now_ms:
            self.twin._current[digest] = value
            await self.batcher.command("HSET", generations_of(self.scope)[0], digest, value)

    async def same(self):
        stored = []
        for key in generations_of(self.scope):
            flat = await self.batcher.command("HGETALL", key)
            stored.append(dict(zip(flat[::2], flat[1::2], strict=True)))
        twin, now = self.twin, self.now_ms
        assert stored == [
            twin._current if twin._current_ends > now else {},
            twin._previous if twin._previous_ends > now else {},
        ]


@settings(max_examples=120)
@given(steps=st.lists(STEPS, max_size=14), most=st.integers(1, 6))
def test_the_script_and_its_twin_do_the_same(valkey, steps, most):
    """Every answer and every stored entry agree, over full and old generations and spoilt entries."""

    async def run():
        pair = Pair(valkey.url, most)
        for kind, what in steps:
            await getattr(pair, kind)(what)
            await pair.same()
        await pair.batcher.close()

    asyncio.run(run())

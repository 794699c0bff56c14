"""Every index of bindings: what is kept of a caller, how much, and what is forgotten first (ATT-1)."""

from __future__ import annotations

import pytest

from interlock.domain.binding.index import CANDIDATES, IndexBounds, IndexNote
from interlock.domain.binding.places import Place, packed, raw_of, unpacked
from interlock.session.store.batcher import Batcher
from interlock.session.store.bindings import FORGOTTEN, BindingIndex, MemoryBindings
from interlock.session.store.connection import parse
from interlock.session.store.redis_bindings import RedisBindings, generations_of
from tests.support.session.sessions import session_id, window_id

pytestmark = pytest.mark.req("ATT-1")

SCOPE, OTHER = "key a", "key b"
ROOMY = IndexBounds(20_000, 86_400_000)
MOST_BYTES_OF_A_WINDOW = 200


@pytest.fixture(params=["memory", "redis"])
async def index(request):
    if request.param == "memory":
        yield MemoryBindings()
        return
    batcher = Batcher(parse(request.getfixturevalue("redis_url")))
    yield RedisBindings(batcher)
    await batcher.close()


def digest(n: int) -> bytes:
    return n.to_bytes(16, "big")


def place(n: int, *, root: int | None = None, window: bool = True) -> Place:
    return Place(session_id(n), session_id(root or n), window_id(n) if window else None)


def named(at: int, n: int, *, over: int = 0) -> IndexNote:
    return IndexNote(digest(at), packed(place(n)), over=raw_of(session_id(over)) if over else b"")


def turned(at: int, n: int) -> IndexNote:
    return IndexNote(digest(at), packed(place(n)), turn=True)


async def places(index: BindingIndex, *digests: int, scope: str = SCOPE, bounds: IndexBounds = ROOMY):
    values = await index.find(scope, [digest(n) for n in digests], bounds)
    return [[each.session_id for each in unpacked(value)] for value in values]


@pytest.mark.parametrize("kept", [place(1), place(1, root=2), place(1, window=False), place(1, root=2, window=False)])
async def test_a_place_comes_back_as_it_was_kept(index, kept):
    """With and without a root of its own, with and without a window."""
    await index.note(SCOPE, [IndexNote(digest(1), packed(kept))], ROOMY)

    values = await index.find(SCOPE, [digest(1), digest(2)], ROOMY)
    assert [unpacked(value) for value in values] == [(kept,), ()]


async def test_a_name_stays_with_the_first_session_that_has_it(index):
    """Unless it may be taken from that one; the answer says whose it is."""
    stands = await index.note(SCOPE, [named(1, 1), named(1, 2), named(1, 3, over=2), named(1, 4, over=1)], ROOMY)

    assert [unpacked(value)[0].session_id for value in stands] == [session_id(n) for n in (1, 1, 1, 4)]
    assert await places(index, 1) == [[session_id(4)]]


async def test_a_turn_stands_for_the_latest_windows_that_had_it(index):
    """Each once, the latest first, and no more than a few."""
    await index.note(SCOPE, [turned(1, n) for n in (1, 2, 3, 2, 4, 5, 6)], ROOMY)

    assert await places(index, 1) == [[session_id(n) for n in (6, 5, 4, 2)]]
    assert CANDIDATES == 4


async def test_callers_have_nothing_in_common(index):
    """The same digest of another caller is unknown."""
    await index.note(SCOPE, [named(1, 1)], ROOMY)

    assert await places(index, 1, scope=OTHER) == [[]]


async def test_what_is_in_use_outlives_what_is_not(index):
    """Two generations: what is found in the older one is carried over, the rest is forgotten with it and counted."""
    tight, before = IndexBounds(10, 86_400_000), FORGOTTEN._value.get()
    for n in range(100):
        await index.note(SCOPE, [named(n, n)], tight)
        assert await places(index, 0, bounds=tight) == [[session_id(0)]]

    known = [n for n, found in enumerate(await places(index, *range(100), bounds=tight)) if found]
    assert known[0] == 0
    assert known[1:] == list(range(100 - len(known) + 1, 100))
    assert 10 <= len(known) <= 20
    assert FORGOTTEN._value.get() - before >= 80


@pytest.mark.req("ATT-3")
async def test_ten_thousand_conversations_of_one_caller_take_little(redis_url):
    """Per window with its answer and its response's id; and no more than two generations however many there are."""
    batcher = Batcher(parse(redis_url))
    index = RedisBindings(batcher)

    async def memory() -> int:
        return sum([await batcher.command("MEMORY", "USAGE", key) or 0 for key in generations_of(SCOPE)])

    for start in range(0, 10_000, 500):
        numbers = range(start, start + 500)
        # As random as ids and digests are: nothing compresses.
        notes = [
            IndexNote(digest(n * 0x9E3779B97F4A7C15F39CC0605CEDC835 % 2**128), packed(place(n)), turn=bool(n % 2))
            for n in (each * 2 + kind for each in numbers for kind in (0, 1))
        ]
        await index.note(SCOPE, notes, ROOMY)
    of_a_window = await memory() / 10_000
    print(f"{of_a_window:.0f} bytes a window")
    assert await batcher.command("HLEN", generations_of(SCOPE)[0]) == 20_000
    assert of_a_window <= MOST_BYTES_OF_A_WINDOW

    tight = IndexBounds(2000, 86_400_000)
    for start in range(0, 10_000, 500):
        await index.note(OTHER, [named(n, n) for n in range(start, start + 500)], tight)
    assert sum([await batcher.command("HLEN", key) for key in generations_of(OTHER)]) <= 4000
    assert await places(index, 1, 9999, scope=OTHER, bounds=tight) == [[], [session_id(9999)]]
    await batcher.close()


async def test_a_generation_has_an_end_whatever_the_clock_says(redis_url):
    """The keys run out by the server's own time, twice the lifetime after their first entry; no later entry puts it off."""
    batcher = Batcher(parse(redis_url))
    index = RedisBindings(batcher)
    bounds = IndexBounds(10, 60_000)
    await index.note(SCOPE, [named(1, 1)], bounds)
    await batcher.command("PEXPIRE", generations_of(SCOPE)[0], 90_000)
    await index.note(SCOPE, [named(2, 2)], bounds)

    assert 60_000 < await batcher.command("PTTL", generations_of(SCOPE)[0]) <= 90_000
    await batcher.command("PEXPIRE", generations_of(SCOPE)[0], 59_000)
    assert await places(index, 1, bounds=bounds) == [[session_id(1)]]
    assert 60_000 < await batcher.command("PTTL", generations_of(SCOPE)[0]) <= 120_000
    assert 0 < await batcher.command("PTTL", generations_of(SCOPE)[1]) <= 59_000
    await batcher.close()

"""Sessions on a real Valkey Cluster of three servers: trees stay whole, sessions spread, and moves are followed."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from interlock.domain.budget import Micros
from interlock.domain.dag.dag import violations
from interlock.domain.errors import Refused
from interlock.session.store.batcher import Batcher
from interlock.session.store.cluster import slot_of
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore, key_of
from tests.support.servers.valkey_cluster import cluster, wait_until_whole
from tests.support.session.sessions import child_of, delegated, first_ask, new_state, next_ask, session_id, settle


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    with cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.fixture
async def store(servers):
    for server in servers:
        server.flush()
    made = RedisStore(Batcher(parse(servers[0].url)), token_lifetime_s=3600)
    yield made
    await made.close()


async def live(store: RedisStore, n: int) -> int:
    """Start a tree of a root, a child and a grandchild; the grandchild costs 0.15, the root 0.05. Return what is left."""
    root = new_state(n)
    child = child_of(root, n + 1)
    grandchild = child_of(child, n + 2)
    await store.start(root)
    await store.start_child(child, delegated(root, n))
    await store.start_child(grandchild, delegated(child, n))
    ask = first_ask(n, session=n + 2, root_session_id=root.terms.session_id)
    await store.commit(settle(n, await store.open(ask), charge=Micros(150_000)))
    done = await store.commit(settle(n, await store.open(first_ask(n, session=n)), charge=Micros(50_000)))
    await store.open(next_ask(n + 1, done, session=n))
    return done.outcome.session_budget


@pytest.mark.req("BUD-8", "BUD-7")
async def test_trees_spread_over_the_servers_and_none_crosses_slots(store, servers):
    """Sixty trees of three agents at once: each cascade exact, every key of a tree on one server, all servers used."""
    left = await asyncio.gather(*(live(store, 100 * n) for n in range(1, 61)))
    where = {}
    for place, server in enumerate(servers):
        with server.client() as client:
            where.update(dict.fromkeys((key.decode() for key in client.keys("il:*:s:*")), place))
    roots = Counter(where[key_of(session_id(100 * n), session_id(100 * n))] for n in range(1, 61))

    assert set(left) == {800_000}
    assert len(where) == 180
    for n in range(1, 61):
        root = session_id(100 * n)
        assert len({where[key_of(root, session_id(100 * n + k))] for k in range(3)}) == 1
        assert violations((await store.read(root, root)).nodes) == ()
    assert min(roots[place] for place in range(3)) >= 5


@pytest.mark.req("BUD-8")
async def test_a_slot_that_moves_takes_its_session_along(store, servers):
    """While a slot is on its way (ASK) and after it has arrived (MOVED), every call finds the session, verified once, and charges once."""
    session = session_id(7)
    key, slot = key_of(session, session), slot_of(key_of(session, session))
    await store.start(new_state(7))
    first = await store.commit(settle(1, await store.open(first_ask(1, session=7)), charge=Micros(50_000)))
    source = next(server for server in servers if _holds(server, key))
    target = next(server for server in servers if server is not source)
    ids = {server: _run(server, "CLUSTER", "MYID") for server in servers}
    _run(target, "CLUSTER", "SETSLOT", slot, "IMPORTING", ids[source])
    _run(source, "CLUSTER", "SETSLOT", slot, "MIGRATING", ids[target])
    _run(source, "MIGRATE", "127.0.0.1", target.port, key, 0, 5000)
    # On its way it is asked for on the other server: it is verified there before its next use, and again on no other one.
    with pytest.raises(Refused) as no:
        await store.open(next_ask(2, first, session=7))
    state = await store.read(session, session, verified=False)
    await store.restore(state)
    second = await store.commit(settle(2, await store.open(next_ask(2, first, session=7)), charge=Micros(50_000)))
    for server in (target, source, *servers):
        _run(server, "CLUSTER", "SETSLOT", slot, "NODE", ids[target])
    third = await store.commit(settle(3, await store.open(next_ask(3, second, session=7)), charge=Micros(50_000)))

    assert no.value.reason == "SESSION_STATE_UNVERIFIED"
    assert (second.outcome.session_budget, third.outcome.session_budget) == (900_000, 850_000)
    assert _holds(target, key)


def _run(server, *command):
    with server.client() as client:
        told = client.execute_command(*command)
        return told.decode() if isinstance(told, bytes) else told


def _holds(server, key: str) -> bool:
    slot = slot_of(key)
    return _run(server, "CLUSTER", "COUNTKEYSINSLOT", slot) > 0


async def test_a_redirection_to_nowhere_is_refused(store, servers):
    """A server that is gone is UNAVAILABLE for its sessions within the time limit; those of the others go on."""
    session = session_id(8)
    await store.start(new_state(8))
    key = key_of(session, session)
    lost = next(server for server in servers if _holds(server, key))
    other = next(n for n in range(100, 200) if _owner(servers, key_of(session_id(n), session_id(n))) is not lost)
    await store.start(new_state(other))
    lost.kill()
    try:
        with pytest.raises(Refused) as no:
            await store.open(first_ask(1, session=8))
        opened = await store.open(first_ask(2, session=other))
    finally:
        lost.start()
        wait_until_whole(servers)

    assert no.value.reason == "SESSION_STORE_UNAVAILABLE"
    assert opened.number == 1


def _owner(servers, key: str):
    place = slot_of(key) * len(servers) // 16_384
    return servers[min(place, len(servers) - 1)]


@pytest.mark.parametrize(
    ("key", "slot"),
    [
        ("foo", 12182),
        ("{foo}bar", 12182),
        ("a{foo}b{c}", 12182),
        ("foo{}bar", slot_of("foo{}bar")),
        ("123456789", 0x31C3),
    ],
)
def test_the_slot_is_that_of_the_hash_tag(key, slot):
    """CRC-16 as the Cluster specification has it; 123456789 gives 0x31C3."""
    assert slot_of(key) == slot % 16_384

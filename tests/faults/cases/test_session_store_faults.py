"""The session store is killed, hung, emptied, filled and cut off: nothing is refilled, nothing is charged twice, all recovers."""

from __future__ import annotations

import asyncio
import signal

import pytest

from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused
from interlock.runtime.settings.model import Settings
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import BEYOND_TOKEN_S, RedisStore, key_of
from interlock.session.wiring import open_service
from tests.support.servers.tcp import Proxy, listening
from tests.support.servers.valkey import Valkey
from tests.support.session.sessions import (
    HIGH,
    MEDIUM,
    first_ask,
    new_state,
    next_ask,
    session_id,
    settle,
    window_id,
)

SESSION = session_id(1)
KEY = key_of(SESSION, SESSION)


@pytest.fixture
def server(tmp_path):
    """A server of this test's own, which it may break: AOF on every write, as the embedded one has it."""
    with Valkey(tmp_path) as started:
        yield started


@pytest.fixture
async def store(server):
    made = store_at(server.url)
    yield made
    await made.close()


def store_at(url: str, **options) -> RedisStore:
    return RedisStore(Batcher(parse(url), **options), token_lifetime_s=3600)


async def reason(call) -> str:
    with pytest.raises(Refused) as caught:
        await call
    assert caught.value.kind in {Kind.UNAVAILABLE, Kind.CONFLICT}
    return caught.value.reason


async def budget(store) -> int:
    return (await store.read(SESSION, SESSION)).budget


# Killed


@pytest.mark.req("BUD-8", "BUD-4", "TOK-5")
async def test_a_store_killed_between_opening_and_settling_loses_nothing(server, store):
    """kill -9, start again: session and lease are there, verified once, and the retried commit settles exactly once."""
    await store.start(new_state())
    opened = await store.open(first_ask(1))
    server.kill()
    assert await reason(store.commit(settle(1, opened, charge=HIGH))) == "SESSION_STORE_UNAVAILABLE"
    server.start()
    assert await reason(store.commit(settle(1, opened, charge=HIGH))) == "SESSION_STATE_UNVERIFIED"
    await store.restore(new_state())
    settled = await store.commit(settle(1, opened, charge=HIGH))
    again = await store.commit(settle(1, opened, charge=HIGH))

    assert (settled.duplicate, again.duplicate) == (False, True)
    assert (await budget(store), (await store.read(SESSION, SESSION)).lease) == (850_000, None)


@pytest.mark.req("BUD-8", "BUD-4")
async def test_commits_in_flight_at_the_kill_are_each_charged_once_after_a_retry(server, store):
    """Forty sessions settle while the store dies; every commit is sent again, and each session has paid exactly once."""
    for n in range(1, 41):
        await store.start(new_state(n))
    asks = [settle(1, session=n, charge=Micros(n * 1000)) for n in range(1, 41)]
    calls = [asyncio.create_task(store.commit(ask)) for ask in asks]
    await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
    server.kill()
    await asyncio.wait(calls)
    acknowledged = {n for n, call in enumerate(calls, 1) if not call.exception()}
    server.start()
    before = {n for n in range(1, 41) if (await store.read(session_id(n), session_id(n), verified=False)).nodes}
    for n in range(1, 41):
        await store.restore(new_state(n))
    again = await asyncio.gather(*(store.commit(ask) for ask in asks))
    left = [(await store.read(session_id(n), session_id(n))).budget for n in range(1, 41)]

    assert acknowledged <= before
    assert {n for n, each in enumerate(again, 1) if each.duplicate} == before
    assert left == [1_000_000 - n * 1000 for n in range(1, 41)]


async def test_a_store_that_is_down_is_said_and_one_that_is_back_is_used(server, store):
    """UNAVAILABLE with a stable reason while it is gone; no restart of ours when it returns."""
    await store.start(new_state())
    server.kill()
    calls = (store.open(first_ask(1)), store.commit(settle(1)), store.read(SESSION, SESSION), store.start(new_state(2)))
    assert [await reason(call) for call in calls] == ["SESSION_STORE_UNAVAILABLE"] * 4
    assert "INTERLOCK_REDIS_URL" in (await store.unready_dependencies())["redis"]
    server.start()
    await store.restore(new_state())

    assert (await store.open(first_ask(1))).session_budget == 1_000_000
    assert await store.unready_dependencies() == {}


@pytest.mark.req("BUD-4")
async def test_a_service_starts_before_its_store_and_serves_when_the_store_is_there(server, tmp_path):
    """Not ready and refusing at first, ready by itself later: no order of starting is needed, and nothing is kept aside."""
    server.kill()
    service = await open_service(Settings(redis_url=server.url, state_dir=tmp_path))
    request = service_request()
    refused = await service.servicer.StartSession(request, None)
    missing = await service.unready_dependencies()
    server.start()
    started = await service.servicer.StartSession(request, None)
    ready = await service.unready_dependencies()
    await service.close()

    assert (refused.refusal.reason, list(missing)) == ("SESSION_STORE_UNAVAILABLE", ["redis"])
    assert (started.HasField("refusal"), started.session.safety_budget_micros, ready) == (False, 1_000_000, {})


def service_request():
    from interlock.api.session.v1 import session_pb2

    return session_pb2.StartSessionRequest(scope="key_0123456789abcdef01234567")


# Hung and cut off


async def test_a_store_that_hangs_is_given_up_within_the_time_limit(server):
    """SIGSTOP: refused, not waited for; after SIGCONT the same client continues."""
    store = store_at(server.url, timeout_s=1.0)
    await store.start(new_state())
    server.signal(signal.SIGSTOP)
    try:
        assert await reason(store.commit(settle(1))) == "SESSION_STORE_UNAVAILABLE"
    finally:
        server.signal(signal.SIGCONT)
    await store.commit(settle(1))
    await store.close()

    assert await budget_at(server) == 950_000


async def budget_at(server: Valkey) -> int:
    store = store_at(server.url)
    left = await budget(store)
    await store.close()
    return left


async def used(store) -> None:
    """Run each script once, so that the server knows it and the next call is carried out at once."""
    await store.start(new_state(99))
    await store.open(first_ask(1, session=99))
    await store.commit(settle(1, session=99))


@pytest.mark.req("BUD-8")
async def test_a_commit_whose_answer_was_lost_is_answered_when_it_is_sent_again(server):
    """The script ran, the line broke: refused for now, and the retry gets the outcome, charged once."""
    proxy = Proxy(server.port)
    async with listening(proxy.handle) as port:
        store = store_at(f"redis://127.0.0.1:{port}")
        await used(store)
        await store.start(new_state())
        proxy.swallow_answer = True
        assert await reason(store.commit(settle(1, charge=HIGH))) == "SESSION_STORE_UNAVAILABLE"
        settled = await store.commit(settle(1, charge=HIGH))
        await store.close()

    assert (settled.duplicate, settled.outcome.session_budget) == (True, 850_000)


async def test_an_opening_whose_answer_was_lost_still_gets_its_lease(server):
    """Otherwise a lease that no caller knows of would block the session until it runs out."""
    proxy = Proxy(server.port)
    async with listening(proxy.handle) as port:
        store = store_at(f"redis://127.0.0.1:{port}")
        await used(store)
        await store.start(new_state())
        proxy.swallow_answer = True
        opened = await store.open(first_ask(1))
        await store.close()

    assert (opened.path_budget, opened.unsettled, proxy.connections) == (1_000_000, None, 2)


# Emptied, evicted, tampered with, full


@pytest.mark.req("BUD-4", "BUD-9")
@pytest.mark.parametrize("loss", ["flushall", "delete", "expire"])
async def test_a_lost_session_is_refused_and_never_refilled(server, store, loss):
    """FLUSHALL, eviction, expiry: the token is good, the state is gone, and no full budget takes its place."""
    await store.start(new_state())
    settled = await store.commit(settle(1, charge=HIGH))
    opened = await store.open(next_ask(2, settled))
    with server.client() as client:
        {"flushall": client.flushall, "delete": lambda: client.delete(KEY), "expire": lambda: client.pexpire(KEY, 0)}[
            loss
        ]()

    assert await reason(store.open(next_ask(3, settled))) == "SESSION_STATE_LOST"
    assert await reason(store.open(first_ask(3))) == "SESSION_STATE_LOST"
    assert await reason(store.commit(settle(2, opened))) == "SESSION_STATE_LOST"
    assert await reason(store.terminate(SESSION, SESSION)) == "SESSION_STATE_LOST"
    with server.client() as client:
        assert client.dbsize() == 0


@pytest.mark.req("BUD-4", "BUD-9", "TOK-3")
async def test_a_store_that_was_rolled_back_serves_no_newer_token(server, store):
    """An old copy of the session is restored: its budget is higher, and the signed token shows that it is old."""
    await store.start(new_state())
    first = await store.commit(settle(1, charge=MEDIUM))
    with server.client() as client:
        old = client.dump(KEY)
        second = await store.commit(settle(2, await store.open(next_ask(2, first)), charge=HIGH))
        client.restore(KEY, 0, old, replace=True)

    assert await budget(store) == 950_000
    assert await reason(store.open(next_ask(3, second))) == "SESSION_STATE_LOST"


@pytest.mark.req("BUD-4")
@pytest.mark.parametrize(
    "fields",
    [
        {"top": "x"},
        {"budget": ""},
        {"max_windows": "many"},
        {"nodes": "-"},
        {"nodes": "7"},
        {"dag": "crp_win_1"},
        {"terms": "{"},
        {"terms": "{}"},
        {"cap": "nan?"},
    ],
)
async def test_a_session_that_cannot_be_read_is_refused(server, store, fields):
    """Fields that our scripts do not write are not guessed at: no answer that could release anything."""
    await store.start(new_state())
    settled = await store.commit(settle(1))
    with server.client() as client:
        client.hset(KEY, mapping=fields)

    assert await reason(store.open(next_ask(2, settled))) == "SESSION_STATE_CORRUPT"


@pytest.mark.parametrize(
    "fields", [{"budget": ""}, {"nodes": "7"}, {"terms": "{}"}, {"status": "9"}, {"lease": b"\xff"}]
)
async def test_a_session_that_cannot_be_shown_is_refused(server, store, fields):
    """Reading it is refused by name too, not answered with a defect."""
    await store.start(new_state())
    with server.client() as client:
        client.hset(KEY, mapping=fields)

    assert await reason(store.read(SESSION, SESSION)) == "SESSION_STATE_CORRUPT"


async def test_a_key_of_another_type_is_refused(server, store):
    """Someone else's key under our name is not overwritten."""
    with server.client() as client:
        client.set(KEY, "theirs")
        assert await reason(store.open(first_ask(1))) == "SESSION_STATE_CORRUPT"
        assert await reason(store.start(new_state())) == "SESSION_EXISTS"
        assert client.get(KEY) == b"theirs"


@pytest.mark.req("BUD-4")
async def test_a_full_store_refuses_and_evicts_nobody(server, store):
    """maxmemory under noeviction: no session is dropped, the commit is refused, and goes through when there is room."""
    await store.start(new_state())
    with server.client() as client:
        client.config_set("maxmemory", "1")
        with pytest.raises(Refused) as no:
            await store.commit(settle(1))
        client.config_set("maxmemory", "0")

    assert (no.value.reason, no.value.metadata["error"]) == ("SESSION_STORE_UNAVAILABLE", "OOM")
    assert (await store.commit(settle(1))).duplicate is False


@pytest.mark.req("BUD-4")
async def test_a_session_outlives_its_last_token_by_a_day(server, store):
    """A token never meets a state that has merely expired; each write starts the time anew."""
    await store.start(new_state())
    with server.client() as client:
        for write in (
            lambda: store.open(first_ask(1)),
            lambda: store.abandon(SESSION, SESSION, window_id(1)),
            lambda: store.commit(settle(1)),
            lambda: store.terminate(SESSION, SESSION),
        ):
            client.expire(KEY, 10)
            await write()
            assert 3600 + BEYOND_TOKEN_S - 5 <= client.ttl(KEY) <= 3600 + BEYOND_TOKEN_S


async def test_every_key_of_a_session_lies_in_the_slot_of_its_root(server, store):
    """One key, with the root's id as hash tag: one slot, whatever is added to the tree later (design.md)."""
    await store.start(new_state())
    await store.commit(settle(1))
    with server.client() as client:
        keys = client.keys("*")

    assert keys == [f"il:{{{SESSION}}}:s:{SESSION}".encode()]


@pytest.mark.req("BUD-4", "BUD-8")
async def test_a_settlement_that_too_few_replicas_hold_is_refused_and_its_charge_stays(server, store):
    """WAIT counts no replica: the call fails closed, and the retry without the demand finds the window settled."""
    await store.start(new_state())
    opened = await store.open(first_ask(1))
    demanding = store_at(server.url, timeout_s=0.4, wait_replicas=1)
    with pytest.raises(Refused) as no:
        await demanding.commit(settle(1, opened, charge=HIGH))
    await demanding.close()
    again = await store.commit(settle(1, opened, charge=HIGH))

    assert (no.value.reason, no.value.metadata["error"]) == ("SESSION_STORE_UNAVAILABLE", "REPLICAS_SHORT")
    assert (again.duplicate, again.outcome.session_budget) == (True, 850_000)

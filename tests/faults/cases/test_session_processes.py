"""One store, many processes: one lease and one charge per window, no matter which process asks."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from interlock.domain.dag.dag import violations
from interlock.domain.errors import Kind, Refused
from interlock.domain.session.state import Status
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore, key_of
from tests.support.paths import ROOT
from tests.support.servers.valkey import Valkey
from tests.support.session.sessions import (
    NOW_MS,
    first_ask,
    new_state,
    session_id,
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


WORKER = """
import asyncio, json, sys
from interlock.domain.errors import Refused
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from tests.support.paths import ROOT
from tests.support.session.sessions import HIGH, first_ask, settle

async def main(url, me):
    store, told = RedisStore(Batcher(parse(url)), token_lifetime_s=3600), []
    print("ready", flush=True)
    sys.stdin.readline()
    for session in range(1, 21):
        try:
            opened = await store.open(first_ask(me, session=session))
            told.append((session, "leased"))
        except Refused as refused:
            told.append((session, refused.reason))
    print("asked", flush=True)
    sys.stdin.readline()
    for session in range(1, 21):
        try:
            done = await store.commit(settle(100 + me, session=session, charge=HIGH))
            told.append((session, "settled"))
            again = await store.commit(settle(100 + me, session=session, charge=HIGH))
            assert again.duplicate
        except Refused as refused:
            told.append((session, refused.reason))
    await store.close()
    print(json.dumps(told))

asyncio.run(main(sys.argv[1], int(sys.argv[2])))
"""


@pytest.mark.req("BUD-8", "TOK-5")
async def test_of_four_processes_with_one_token_one_gets_the_lease_and_one_settles(server, store):
    """Twenty sessions, four processes each: exactly one lease and exactly one charge per session."""
    for n in range(1, 21):
        await store.start(new_state(n))
    told = await asyncio.to_thread(run_workers, server.url)
    leased = [session for each in told for session, what in each[:20] if what == "leased"]
    settled = [session for each in told for session, what in each[20:] if what == "settled"]
    left = [await store.read(session_id(n), session_id(n)) for n in range(1, 21)]

    assert sorted(leased) == sorted(settled) == list(range(1, 21))
    assert {what for each in told for _, what in each[:20]} <= {"leased", "WINDOW_IN_FLIGHT"}
    assert {what for each in told for _, what in each[20:]} <= {"settled", "PARENT_NOT_TIP"}
    assert [(state.budget, state.status, violations(state.nodes)) for state in left] == [
        (850_000, Status.ACTIVE, ())
    ] * 20


def run_workers(url: str) -> list[list[tuple[int, str]]]:
    """Start four processes, let them loose together twice, and return what each was told."""
    root = ROOT
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", WORKER, url, str(me)],
            cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for me in range(1, 5)
    ]  # fmt: skip
    try:
        for worker in workers:
            assert worker.stdout.readline() == "ready\n"
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        for worker in workers:  # on a busy machine one may have settled before another has asked
            assert worker.stdout.readline() == "asked\n"
        for worker in workers:
            worker.stdin.write("go\n")
            worker.stdin.flush()
        return [json.loads(worker.communicate(timeout=60)[0]) for worker in workers]
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()


@pytest.mark.req("BUD-8")
async def test_a_lease_holds_for_all_processes_by_the_time_that_they_pass(server, store):
    """Two clients, one clock reading each: the later one waits exactly for what is left."""
    other = store_at(server.url)
    await store.start(new_state())
    await store.open(first_ask(1, lease_ms=5000))
    with pytest.raises(Refused) as no:
        await other.open(first_ask(2, now_ms=NOW_MS + 1234))
    await other.close()

    assert no.value.retry_after_ms == 3766

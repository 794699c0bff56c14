"""A-02: nothing that the session store loses refills a budget, and no user's session is lost with it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil

import pytest

from interlock.api.session.v1 import session_pb2
from interlock.session.store.redis import key_of
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import (
    Merger,
    budget,
    dag,
    delegated,
    fan_in,
    fan_out,
    onward,
    result_of,
    window_of,
)
from tests.support.valkey import Valkey

running, provider = answering.running, answering.provider

HIGH = "It is HIGH."


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with Valkey(tmp_path_factory.mktemp("own")) as started:
        yield started


@pytest.fixture
async def sidecar(tmp_path, running, provider, server):
    del provider
    server.flush()
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), redis_url=server.url) as one:
        yield one


def key(response) -> str:
    session = response.headers["crp-context-session-id"]
    return key_of(session, session)


def flush(server: Valkey, _key: str) -> None:
    server.flush()


def delete(server: Valkey, name: str) -> None:
    with server.client() as client:
        client.delete(name)


def expire(server: Valkey, name: str) -> None:
    with server.client() as client:
        client.pexpire(name, 0)


def evict(server: Valkey, name: str) -> None:
    """Fill the server under a policy that evicts, until the session has gone; then set it right again."""
    with server.client() as client:
        client.config_set("maxmemory-policy", "allkeys-lru")
        client.config_set("maxmemory", str(client.info("memory")["used_memory"] + 200_000))
        number = 0
        while client.exists(name):
            client.set(f"filler:{number}", "x" * 10_000)
            number += 1
        client.config_set("maxmemory", "0")
        client.config_set("maxmemory-policy", "noeviction")


def restart(server: Valkey, _key: str) -> None:
    server.kill()
    server.start()


def forget_the_file(server: Valkey, _key: str) -> None:
    """Start again without the append-only file: a disk that was lost."""
    server.kill()
    shutil.rmtree(server.folder / "appendonlydir")
    server.start()


LOSSES = {each.__name__: each for each in (flush, delete, expire, evict, restart, forget_the_file)}


@pytest.mark.req("BUD-4", "BUD-9")
@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)
async def test_a02_a_lost_session_is_rebuilt_at_the_budget_that_it_had(sidecar, provider, server, loss):
    """FLUSHALL, DEL, TTL, LRU eviction, restart, a lost disk: the token goes on, and what was spent is spent."""
    provider.by_question = {"A?": HIGH, "B?": HIGH}
    first = await sidecar.chat("A?")
    second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
    await asyncio.to_thread(loss, server, key(second))
    third = await sidecar.chat("C?", token=token_of(second), headers=onward(second))
    again = await sidecar.chat("D?", token=token_of(second), headers=onward(second))

    assert third.status_code == 200, third.text
    assert third.headers["crp-agent-safety-budget"] == "0.70"
    assert await budget(sidecar, third) == 700_000
    assert third.headers["crp-context-window"] == "3/200"
    assert (again.status_code, reason_of(again)) == (409, "TOKEN_REPLAYED")


@pytest.mark.req("BUD-4", "BUD-9", "BRK-3")
async def test_a02_a_halted_session_stays_halted_when_its_store_is_emptied(sidecar, provider, server):
    """The breaker is open after two CRITICAL answers and more; an empty store does not close it."""
    provider.by_question = {"A?": "It is CRITICAL.", "B?": "It is CRITICAL.", "C?": "It is CRITICAL."}
    first = await sidecar.chat("A?")
    second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
    third = await sidecar.chat("C?", token=token_of(second), headers=onward(second))
    server.flush()
    fourth = await sidecar.chat("D?", token=token_of(third))

    assert (third.status_code, fourth.status_code) == (451, 451)
    assert reason_of(fourth) == "BUDGET_DEPLETED"


@pytest.mark.req("BUD-4", "BUD-9", "BUD-6", "AGT-2")
async def test_a02_a_tree_is_rebuilt_whole(sidecar, provider, server):
    """Root, sub-agent, fan-out: budgets, grants, results and pointers are as they were before the store was emptied."""
    provider.by_question = {"B?": HIGH, "Sub?": HIGH}
    root = await sidecar.chat("All?")
    a, b = await fan_out(sidecar, root, "A?", "B?")
    child = await delegated(sidecar, root, "Sub?")
    before = {**await dag(sidecar, root), **await dag(sidecar, child)}
    budgets = await budget(sidecar, root), await budget(sidecar, child)
    server.flush()
    more = await sidecar.chat("Sub two?", token=token_of(child), headers=onward(child))
    merged = await fan_in(sidecar, [a, b], interlock={"sub_agent_results": [result_of(child)]})
    after = {**await dag(sidecar, root), **await dag(sidecar, more)}

    assert (more.status_code, merged.status_code) == (200, 200), (more.text, merged.text)
    assert {name: after[name].safety_budget_micros for name in before} == {
        name: one.safety_budget_micros for name, one in before.items()
    }
    assert {name: after[name].continuation_id for name in before} == {
        name: one.continuation_id for name, one in before.items()
    }
    assert budgets == (700_000, 700_000)
    assert await budget(sidecar, root) == 700_000


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a02_an_old_copy_of_a_session_is_brought_up_to_the_chain(sidecar, provider, server):
    """One key is set back by DUMP and RESTORE: the token is newer, the chain knows why, and nothing is refilled."""
    provider.by_question = {"B?": HIGH}
    first = await sidecar.chat("A?")
    with server.client() as client:
        old = client.dump(key(first))
    second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
    with server.client() as client:
        client.restore(key(first), 0, old, replace=True)
    third = await sidecar.chat("C?", token=token_of(second), headers=onward(second))

    assert third.status_code == 200, third.text
    assert await budget(sidecar, third) == 850_000


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a02_an_old_copy_that_an_old_token_matches_is_noticed_by_the_seal(sidecar, provider, server):
    """Set back in place, the store lets an older token in; its seal is refused, the session catches up, and nothing is released."""
    provider.by_question = {"B?": HIGH}
    first = await sidecar.chat("A?")
    with server.client() as client:
        old = client.dump(key(first))
    second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
    with server.client() as client:
        client.restore(key(first), 0, old, replace=True)
    replayed = await sidecar.chat("Again?", token=token_of(first), headers=onward(first))
    left = await budget(sidecar, first)
    told = await sidecar.chat("Again?", token=token_of(first), headers=onward(first))
    third = await sidecar.chat("C?", token=token_of(second), headers=onward(second))

    assert (replayed.status_code, reason_of(replayed), left) == (409, "CHAIN_CONFLICT", 850_000)
    assert (told.status_code, reason_of(told)) == (409, "WINDOW_ALREADY_SETTLED")
    assert third.status_code == 200, third.text


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a02_an_old_append_only_file_is_noticed_by_the_run_id(sidecar, provider, server, tmp_path):
    """A backup is put back and the server started on it: even the parent's own old token finds no old budget."""
    provider.by_question = {"B?": HIGH, "C?": HIGH}
    first = await sidecar.chat("A?")
    backup = tmp_path / "backup"
    shutil.copytree(server.folder / "appendonlydir", backup)
    b, c = await fan_out(sidecar, first, "B?", "C?")
    server.kill()
    shutil.rmtree(server.folder / "appendonlydir")
    shutil.copytree(backup, server.folder / "appendonlydir")
    server.start()
    d, *_ = await fan_out(sidecar, first, "D?")

    assert (b.status_code, c.status_code, d.status_code) == (200, 200, 200), d.text
    assert await budget(sidecar, d) == 850_000
    assert {window_of(each) for each in (first, b, c, d)} == set(await dag(sidecar, d))


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a02_a_session_whose_chain_was_tampered_with_is_not_rebuilt(sidecar, provider, server, tmp_path):
    """The record of the charge is edited and the store emptied: refused, never rebuilt from it."""
    import sqlite3

    provider.by_question = {"A?": HIGH}
    first = await sidecar.chat("A?")
    with contextlib.closing(sqlite3.connect(tmp_path / "state" / "audit.db")) as database:
        for (trigger,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {trigger}")
        database.execute("UPDATE windows SET charge_micros = 0, settle_json = replace(settle_json, '150000', '0')")
        database.commit()
    server.flush()
    second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))

    assert (second.status_code, reason_of(second)) == (409, "CHAIN_BROKEN")
    with server.client() as client:
        assert client.keys("il:*") == []


@pytest.mark.req("BUD-4", "SVC-9")
async def test_a02_without_the_audit_log_nothing_is_rebuilt(tmp_path, running, provider, server):
    """The store is empty and the log cannot be read: 503, and the session is there again when the log is."""
    from interlock.domain.errors import unavailable
    from tests.support.sidecar.sidecar import Hooked

    away = True

    async def unreadable(_request):
        if away:
            raise unavailable("AUDIT_UNAVAILABLE", "x")

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], GetTreeRecord=unreadable)}

    server.flush()
    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Merger(), wrap=wrap, redis_url=server.url
    ) as sidecar:
        first = await sidecar.chat("A?")
        server.flush()
        refused = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
        away = False
        second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))

    assert (refused.status_code, reason_of(refused)) == (503, "SESSION_STATE_UNVERIFIED")
    assert second.status_code == 200, second.text


@pytest.mark.req("BUD-4", "BUD-8")
async def test_a02_concurrent_calls_after_a_loss_share_one_rebuild(sidecar, provider, server):
    """Eight parts of a fan-out ask at once for the session that was lost: all are served, each is charged, once."""
    provider.by_question = dict.fromkeys([f"P{n}?" for n in range(8)], "It is MEDIUM.")
    root = await sidecar.chat("All?", headers={})
    server.flush()
    parts = await fan_out(sidecar, root, *(f"P{n}?" for n in range(8)))

    assert [part.status_code for part in parts] == [200] * 8
    found = await sidecar.mesh.session.GetSession(
        session_pb2.GetSessionRequest(session_id=root.headers["crp-context-session-id"])
    )
    assert len(found.session.windows) == 9
    assert found.session.safety_budget_micros == 950_000

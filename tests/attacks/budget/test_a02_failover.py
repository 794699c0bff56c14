"""A-02 on a real Sentinel: a failover that loses acknowledged settlements refills nothing, and sessions go on."""

from __future__ import annotations

import asyncio
import time

import pytest
import redis

from interlock.session.store.redis import key_of
from tests.support.servers.valkey_sentinel import trio
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, fan_out, onward

running, provider = answering.running, answering.provider

HIGH = "It is HIGH."


def stored(server, response) -> int:
    session = response.headers["crp-context-session-id"]
    with server.client() as client:
        return int(client.hget(key_of(session, session), "budget"))


async def part(sidecar, root, question: str):
    return (await fan_out(sidecar, root, question))[0]


async def until_served(ask) -> object:
    """Ask until the store is back; while it is gone every call is refused by name."""
    deadline = time.monotonic() + 45
    while True:
        response = await ask()
        if response.status_code != 503 or time.monotonic() > deadline:
            return response
        assert reason_of(response) in {"SESSION_STORE_UNAVAILABLE", "SESSION_STATE_UNVERIFIED"}
        await asyncio.sleep(0.1)


@pytest.mark.long
@pytest.mark.req("BUD-4", "BUD-8", "BUD-9")
async def test_a02_a_failover_that_lost_settlements_refills_nothing(tmp_path, running, provider):
    """The link to the replica swallows the last settlement, the master dies: the new one holds an old budget, and no call does."""
    provider.by_question = dict.fromkeys(["A?", "B?", "D?"], HIGH)
    async with (
        trio(tmp_path) as servers,
        running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), redis_url=servers.url) as sidecar,
    ):
        first = await until_served(lambda: sidecar.chat("A?"))
        other = await until_served(lambda: sidecar.chat("O?"))
        await asyncio.to_thread(servers.replicated)
        servers.line.swallow_replication = True
        second = await sidecar.chat("B?", token=token_of(first), headers=onward(first))
        assert second.status_code == 200, second.text
        servers.master.kill()
        servers.line.cut()
        await asyncio.to_thread(servers.promoted)
        lost = stored(servers.replica, second)
        third = await until_served(lambda: sidecar.chat("C?", token=token_of(second), headers=onward(second)))
        beside = await until_served(lambda: part(sidecar, other, "D?"))

        assert servers.line.swallowed > 0
        assert (stored(servers.master, second) if servers.master.process else 700_000, lost) == (700_000, 850_000)
        assert third.status_code == 200, third.text
        assert await budget(sidecar, third) == stored(servers.replica, third) == 700_000
        assert (beside.status_code, await budget(sidecar, beside)) == (200, 850_000)


@pytest.mark.long
@pytest.mark.req("BUD-9")
async def test_a02_a_demoted_master_is_left(tmp_path, running, provider):
    """SENTINEL FAILOVER while everything lives: the old master is left although nothing demotes it; the next call is on the new one."""
    provider.by_question = {"A?": HIGH}
    async with (
        trio(tmp_path) as servers,
        running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), redis_url=servers.url) as sidecar,
    ):
        first = await until_served(lambda: sidecar.chat("A?"))
        await asyncio.to_thread(servers.replicated)
        servers.never_demoted()
        with redis.Redis(port=servers.ports[0]) as sentinel:
            sentinel.execute_command("SENTINEL", "FAILOVER", "crp")
        await asyncio.to_thread(servers.promoted)
        await asyncio.to_thread(servers.left)
        second = await until_served(lambda: sidecar.chat("B?", token=token_of(first), headers=onward(first)))

        assert second.status_code == 200, second.text
        assert stored(servers.replica, second) == 850_000
        with servers.replica.client() as client:
            session = second.headers["crp-context-session-id"]
            assert client.hget(key_of(session, session), "nodes") == b"2"

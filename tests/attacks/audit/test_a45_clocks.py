"""A-45: clocks that are wrong, or were made wrong, by two hours in either direction in each process."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace

import httpx
import libfaketime
import pytest

from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.domain.errors import unavailable
from interlock.domain.session import token as tokens
from interlock.domain.session.token import LEEWAY_S
from interlock.runtime.keys.derivation import SIGN, load_keyring
from interlock.runtime.rpc.channel import LocalChannel
from interlock.runtime.settings.model import Settings
from interlock.session.store.clock import StoreClock
from interlock.session.wiring import open_service
from tests.support.servers.processes import environment, run
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.session.session_client import Client, opening, payload
from tests.support.sidecar.pairs import Pairs, two_pairs
from tests.support.sidecar.sidecar import reason_of, token_of
from tests.support.texts.canary import MASTER_KEY

pytestmark = pytest.mark.req("TOK-2")

HOURS = 7_200
LIFETIME_S = 12
NAMES = ("session-0", "session-1", "sidecar-0", "sidecar-1", "policy", "audit")


def shifted(*by_hours: int) -> Mapping[str, Mapping[str, str]]:
    """Return the environments of the processes, each with its own clock; what runs out by itself is not shifted."""
    _, preload = libfaketime.get_reload_information()
    return {
        name: {**preload, "FAKETIME": f"{hours * 3600:+d}s"}
        for name, hours in zip(NAMES, by_hours, strict=True)
        if hours
    }


async def chat(http: str, token: str = "") -> httpx.Response:
    async with httpx.AsyncClient(base_url=http, trust_env=False, timeout=30) as client:
        ask = {"model": "m", "messages": [{"role": "user", "content": "Say: LOW"}]}
        headers = {"authorization": "Bearer sk", **({"crp-session-token": token} if token else {})}
        return await client.post("/v1/chat/completions", json=ask, headers=headers)


@pytest.fixture
def upstream():
    with RunningProvider(Provider()) as running:
        yield running.base_url


@pytest.mark.long
@pytest.mark.timeout(180)
@pytest.mark.parametrize("hours", [(2, -2, -2, 2, 2, -2), (-2, 2, 2, -2, -2, 2)], ids=["one way", "the other"])
async def test_a45_sessions_go_on_and_end_by_one_clock_whatever_the_processes_think(
    tmp_path, upstream, redis_url, hours
):
    """Six processes, four hours apart: a session hops between them, its chain is in order, and its tokens expire for all."""
    settings = {"master_key": MASTER_KEY, "token_lifetime_s": LIFETIME_S}
    async with two_pairs(tmp_path, upstream, redis_url, settings, shifted(*hours)) as pairs:
        answers = [await chat(pairs.http[0])]
        for number in range(1, 4):
            answers.append(await chat(pairs.http[number % 2], token_of(answers[-1])))
        last = payload(token_of(answers[-1]))
        await asyncio.sleep(LIFETIME_S + 1)
        late = [await chat(http, token_of(answers[-1])) for http in pairs.http]
        assert_shifted(pairs)
    env = environment(tmp_path / "state", settings)
    verified = run("audit", "verify", last["sid"], "-o", "json", env=env)
    exported = run("audit", "export", last["sid"], env=env)

    assert [answer.status_code for answer in answers] == [200] * 4
    assert abs(last["iat"] - time.time()) < 60
    assert [(one.status_code, reason_of(one)) for one in late] == [(401, "TOKEN_EXPIRED")] * 2
    assert json.loads(verified.stdout)["integrity"] == "VALID"
    sequences = [json.loads(line)["sequence"] for line in exported.stdout.splitlines() if '"sequence"' in line]
    assert sequences == list(range(1, len(sequences) + 1))
    assert len(sequences) > 8


def assert_shifted(pairs: Pairs) -> None:
    """The processes do live in other times: their own logs say so."""
    seen = {
        line[:200].split('"timestamp": "')[1][:13]
        for line in pairs.processes.everything().splitlines()
        if '"timestamp": "' in line[:200]
    }
    told = pairs.processes.everything()

    assert told.count("clock.skewed") == 2
    assert len(seen) != 1


@pytest.mark.parametrize(
    ("ahead_s", "reason"), [(LEEWAY_S - 5, ""), (LEEWAY_S + 5, "TOKEN_FROM_FUTURE"), (HOURS, "TOKEN_FROM_FUTURE")]
)
async def test_a45_a_token_from_the_future_is_refused_beyond_30_seconds(tmp_path, redis_url, ahead_s, reason):
    """A token with a good signature and an ``iat`` ahead of the store's time passes within the leeway and not beyond."""
    settings = Settings(redis_url=redis_url, state_dir=tmp_path, master_key=MASTER_KEY)
    keyring, service = load_keyring(settings), await open_service(settings)
    client = Client(SessionServiceStub(LocalChannel(SessionService=service.servicer)))
    held = tokens.verify(
        (await client.start()).token,
        lambda kv, sid: keyring.derive(kv, sid, SIGN),
        now_us=time.time_ns() // 1000,
        scope=None,
    )
    early = replace(held, issued_at=held.issued_at + ahead_s, expires_at=held.expires_at + ahead_s)
    made = tokens.mint(early, keyring.derive(1, held.session_id, SIGN))
    if reason:
        assert (await client.refused("OpenWindow", opening(made))).reason == reason
    else:
        assert (await client.open(made)).window_number == 1
    await service.close()


async def test_a45_the_clock_of_an_instance_is_the_stores():
    """Ahead or behind, an instance goes by what the store said, and by what it said last when it does not answer."""
    own, store, answers = [1_000_000_000_000], [1_000_000_000_000 - HOURS * 1_000_000], [True]

    async def ask() -> int:
        if not answers[0]:
            raise unavailable("SESSION_STORE_UNAVAILABLE", "gone")
        return store[0]

    clock = StoreClock(ask, own=lambda: own[0])
    assert clock() == own[0]
    await clock.follow()
    assert clock() == store[0]
    answers[0], own[0] = False, own[0] + 5_000_000
    await clock.follow()

    assert clock() == store[0] + 5_000_000


async def test_a45_an_answer_that_took_long_moves_no_clock():
    """A store that answers after ten seconds says nothing exact of now, so the measure before stays."""
    own = [1_000_000_000_000]

    async def ask() -> int:
        own[0] += 10_000_000
        return 5

    clock = StoreClock(ask, own=lambda: own[0])
    await clock.follow()

    assert clock() == own[0]

"""A-07: a token that is replayed, stale, or used twice at once: one winner, and a history that is one line."""

from __future__ import annotations

import asyncio

import pytest

from interlock.api.audit.v1 import audit_pb2
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.texts.canary import MASTER_KEY

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("TOK-3", "TOK-5")

AT_ONCE = 12
ROUNDS = 4


@pytest.fixture
async def two(tmp_path, upstream, redis_url):
    """Two sidecars over session services of their own, one Valkey and one audit log."""
    shared = {"upstream": upstream, "redis_url": redis_url, "max_windows": 50, "master_key": MASTER_KEY}
    async with running_sidecar(tmp_path, **shared) as one, running_sidecar(tmp_path, **shared) as other:
        yield one, other


async def history(sidecar, session: str) -> list[tuple[int, str, tuple[str, ...]]]:
    """Number, window and parents of each sealed window of a session, and that all of it verifies."""
    found = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session))
    assert (
        found.integrity
        == audit_pb2.VerifyResponse.DESCRIPTOR.fields_by_name["integrity"]
        .enum_type.values_by_name["CHAIN_INTEGRITY_VALID"]
        .number
    )
    sealed = [event for event in await sidecar.events(session) if event.event_type == "WINDOW_SEALED"]
    return [event.window_id for event in sealed]


async def test_a07_a_replayed_token_is_a_conflict_everywhere(two, provider):
    """The token of a window that went on is refused with 409 by every instance, before the provider is asked."""
    one, other = two
    token = token_of(await one.chat())
    assert (await one.chat(token=token)).status_code == 200
    asked = len(provider.received)
    replays = [await sidecar.chat(token=token) for sidecar in (one, other, one)]

    assert [(r.status_code, reason_of(r)) for r in replays] == [(409, "TOKEN_REPLAYED")] * 3
    assert len(provider.received) == asked


async def test_a07_every_token_of_the_past_is_stale(two):
    """After five windows each of the four earlier tokens is refused, and the last one alone goes on."""
    one, other = two
    tokens = [token_of(await one.chat())]
    for _ in range(4):
        tokens.append(token_of(await other.chat(token=tokens[-1])))
    stale = [reason_of(await one.chat(token=token)) for token in tokens[:-1]]

    assert stale == ["TOKEN_REPLAYED"] * 4
    assert (await one.chat(token=tokens[-1])).status_code == 200


async def test_a07_of_many_at_once_one_wins_and_the_history_is_a_line(two, provider):
    """Twelve calls with one token over two instances, four rounds: one answer each, and as many sealed windows."""
    first = await two[0].chat()
    session, token = first.headers["crp-context-session-id"], token_of(first)
    for _ in range(ROUNDS):
        answers = await asyncio.gather(*(two[number % 2].chat(token=token) for number in range(AT_ONCE)))
        won = [answer for answer in answers if answer.status_code == 200]
        lost = {(answer.status_code, reason_of(answer)) for answer in answers if answer.status_code != 200}
        assert len(won) == 1
        assert {code for code, _ in lost} == {409}, lost
        token = token_of(won[0])

    assert len(await history(two[1], session)) == 1 + ROUNDS
    assert len(provider.received) == 1 + ROUNDS

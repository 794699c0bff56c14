"""A stream whose process died and whose place is taken in the chain, since the store was set back: its hold is closed all the same."""

from __future__ import annotations

import asyncio
import json
import threading
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.session.caller import caller_id_of
from interlock.domain.session.state import SessionState
from interlock.session.store.redis import key_of
from interlock.session.store.store import Store
from tests.support.servers.streaming import spoken, streams
from tests.support.sidecar.sidecar import Hooked, RunningSidecar, reason_of, running_sidecar, token_of
from tests.wire.sidecar.test_streams_wire import FIRST, QUESTION, SECOND, Down

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [pytest.mark.req("BUD-8", "BUD-9", "BUD-11")]

CALLER = caller_id_of("anonymous")
LIMITS = {
    "request_timeout_s": 2.0,
    "stream_timeout_s": 2.0,
    "rpc_timeout_s": 1.0,
    "caller_budget": 1.0,
    "caller_period_s": 86_400,
}


@dataclass
class World:
    """A sidecar over a real Valkey that can be set back, a provider, and an audit log that seals nothing while it is down."""

    valkey: Any
    provider: Any
    down: Down = field(default_factory=Down)
    sidecar: RunningSidecar = field(init=False)

    @property
    def store(self) -> Store:
        found: Store = self.sidecar.services["session"].servicer._ledger.store
        return found

    def key(self, first: httpx.Response) -> str:
        return key_of(*[first.headers["crp-context-session-id"]] * 2)

    def copy_of(self, first: httpx.Response) -> bytes:
        with self.valkey.client() as client:
            copied: bytes = client.dump(self.key(first))
        return copied

    def set_back(self, first: httpx.Response, copied: bytes) -> None:
        with self.valkey.client() as client:
            client.restore(self.key(first), 0, copied, replace=True)

    async def dying_stream(self, **headers: str) -> None:
        """Let the first part of an answer leave; then nobody seals its window."""
        heard, script = threading.Event(), spoken(FIRST, SECOND)
        streams(self.provider, [*script[:3], heard, *script[3:]])
        body = {"model": "m", "messages": QUESTION, "stream": True}
        sent = {"CRP-Stream-Final": "event", **headers}
        async with self.sidecar.client.stream("POST", "/v1/chat/completions", json=body, headers=sent) as answer:
            async for piece in answer.aiter_text():
                if "sky" in piece:
                    self.down.now = True
                    heard.set()
        self.down.now = False
        self.provider.answers("Fine.")

    async def refused_at_last(self, token: str) -> httpx.Response:
        """Go on from a window until a call is refused: a lease has to run out first."""
        async with asyncio.timeout(20):
            while (answer := await self.sidecar.chat(token=token)).status_code == 200:
                token = token_of(answer)
                await asyncio.sleep(0.2)
        return answer

    async def state(self, first: httpx.Response) -> SessionState:
        session: Any = first.headers["crp-context-session-id"]
        state = await self.store.read(session, session)
        assert state
        return state

    async def sealed(self, first: httpx.Response) -> dict[str, Any]:
        """The seal of the one window of which a part left, on a chain that verifies."""
        session = first.headers["crp-context-session-id"]
        found = await self.sidecar.events(session)
        (window_id,) = {one.window_id for one in found if one.event_type == "STREAM_PART"}
        (seal,) = [one for one in found if one.event_type == "WINDOW_SEALED" and one.window_id == window_id]
        assert not (await self.sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session))).faults
        state = await self.state(first)
        pattern = next(node.pattern for node in state.nodes if node.window_id == window_id)
        return {**json.loads(seal.data_json), "pattern": pattern}

    async def nothing_is_held(self, first: httpx.Response) -> bool:
        caller = await self.store.caller(CALLER)
        assert caller
        return (await self.state(first)).holds == () and caller.now.held == 0 and caller.now.left == 650_000


@pytest.fixture
async def world(tmp_path, provider, upstream, valkey, redis_url, request):
    made = World(valkey, provider)

    def wrap(services):
        return {**services, "audit": Hooked(services["audit"], Append=made.down)}

    limits = {**LIMITS, "redis_url": redis_url, **getattr(request, "param", {})}
    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, **limits) as sidecar:
        made.sidecar = sidecar
        yield made


async def closed(world: World, first: httpx.Response, refused: httpx.Response) -> None:
    """The call that was refused had the stream charged what it held, beside the window that has its place, and nothing is held."""
    seal = await world.sealed(first)

    assert reason_of(refused) == "WINDOW_ALREADY_SETTLED"
    assert (seal["status"], seal["charge_micros"], seal["pattern"]) == ("HALTED", 350_000, "BRANCH")
    assert await world.nothing_is_held(first)


@pytest.mark.parametrize("lost", ["the session is older", "the store is empty"])
async def test_a_rebuilt_session_keeps_the_hold_and_whoever_goes_on_closes_it(world, lost):
    """The chain says that another window has its place: it is closed beside that one once its lease has run out."""
    first = await world.sidecar.chat()
    before = world.copy_of(first)
    second = await world.sidecar.chat(token=token_of(first))
    world.set_back(first, before)
    await world.dying_stream(**{"CRP-Session-Token": token_of(first)})
    if lost == "the store is empty":
        world.valkey.flush()
    refused = await world.refused_at_last(token_of(second))

    await closed(world, first, refused)
    assert (await world.sidecar.chat(token=token_of(refused))).status_code == 200


async def test_a_window_that_is_settled_in_its_place_leaves_the_hold_to_the_next_call(world):
    """The chain brings the hold back while another window is in flight in its place, which is sealed and settled first."""
    first = await world.sidecar.chat()
    before = world.copy_of(first)
    await world.dying_stream(**{"CRP-Session-Token": token_of(first)})
    world.set_back(first, before)
    answers = threading.Event()
    world.provider.waits_for(answers)
    second = asyncio.create_task(world.sidecar.chat(token=token_of(first)))
    async with asyncio.timeout(20):
        while not (await world.state(first)).leases:
            await asyncio.sleep(0.02)
    with world.valkey.client() as client:
        client.hset(world.key(first), "epoch", "another")
    shown = f"/crp/v3/session/{first.headers['crp-context-session-id']}"
    await world.sidecar.client.get(shown, headers={"crp-session-token": token_of(first)})
    flying = await world.state(first)
    answers.set()
    settled = await second
    world.provider.answers("Fine.")
    refused = await world.refused_at_last(token_of(settled))

    assert (flying.held, len(flying.leases)) == (350_000, 2)
    await closed(world, first, refused)


async def test_the_first_window_of_a_session_is_closed_below_the_one_that_took_its_place(world):
    """Nothing stands beside the root of a session: the lost stream is charged as a branch from it."""
    world.provider.fails(500)
    first = await world.sidecar.chat()
    before = world.copy_of(first)
    world.provider.answers("Fine.")
    second = await world.sidecar.chat(token=token_of(first))
    world.set_back(first, before)
    await world.dying_stream(**{"CRP-Session-Token": token_of(first)})
    refused = await world.refused_at_last(token_of(second))

    await closed(world, first, refused)


@pytest.mark.parametrize("world", [{"max_dag_nodes": 2}], indirect=True)
async def test_a_full_session_takes_it_too(world):
    """No window opens any more; the call that is refused for that has the stream charged, and its caller's hold is freed. The
    record of such a session is whole.
    """
    first = await world.sidecar.chat()
    before = world.copy_of(first)
    second = await world.sidecar.chat(token=token_of(first))
    world.set_back(first, before)
    await world.dying_stream(**{"CRP-Session-Token": token_of(first)})
    async with asyncio.timeout(20):
        while reason_of(refused := await world.sidecar.chat(token=token_of(second))) == "MAX_DAG_NODES_EXCEEDED":
            await asyncio.sleep(0.2)

    await closed(world, first, refused)
    world.valkey.flush()
    shown = f"/crp/v3/session/{first.headers['crp-context-session-id']}"
    rebuilt = await world.sidecar.client.get(shown, headers={"crp-session-token": token_of(refused)})
    assert (rebuilt.status_code, rebuilt.json()["safety_budget_micros"]) == (200, 650_000)


@pytest.mark.req("BUD-4")
async def test_a_hold_that_went_back_with_its_store_comes_back_from_the_chain(world):
    """The copy is of before the stream: no hold, no lease, and nothing that was settled is missing in it."""
    first = await world.sidecar.chat()
    before = world.copy_of(first)
    await world.dying_stream(**{"CRP-Session-Token": token_of(first)})
    world.set_back(first, before)
    refused = await world.refused_at_last(token_of(first))

    await closed(world, first, refused)
    assert (await world.sidecar.chat(token=token_of(refused))).status_code == 200

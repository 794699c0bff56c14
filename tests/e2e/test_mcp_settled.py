"""What a call over HTTP is charged: a real kernel, and a tool server that answers as it likes (KRN-10)."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import httpx
import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import KernelCalls
from interlock.mcp import front, planning
from interlock.mcp.front import HttpProxy
from interlock.mcp.gate import CallGate
from interlock.mcp.mapping import read
from interlock.mcp.pins import Pins, Trust
from interlock.mcp.screen import Screen
from tests.support.kernels import UNIT
from tests.support.mcp_proxies import shop
from tests.support.sidecar.sidecar import running_sidecar

pytestmark = pytest.mark.req("KRN-10")

MAPPING = """
tools:
  - {tool: pay, costs: {usd: {argument: amount}}}
  - {tool: believed, costs: {usd: 5}}
  - {tool: doubted, costs: {usd: 7}, on_error: done}
"""


@pytest.fixture
async def sidecar(tmp_path):
    async with running_sidecar(tmp_path) as running:
        yield running


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}


class Deaf(KernelCalls):
    """A way to the kernel on which the answers to permits are lost."""

    def post(self, kernel: str, ask: str, body: Mapping[str, Any]) -> dict[str, Any]:
        told = super().post(kernel, ask, body)
        if ask == "permit":
            raise httpx.ReadTimeout("lost by the test")
        return told


@asynccontextmanager
async def proxied(sidecar, tmp_path, answer: Response, way: type[KernelCalls] = KernelCalls):
    """A client of the proxy before a server that gives *answer* to whatever it is asked."""

    async def said(_request):
        return answer

    calls = way(f"{sidecar.http}/v1", api_key="")
    screen = Screen(CallGate(calls, "shop"), read(MAPPING), Pins(tmp_path / "pins.json", Trust.ANY))
    server = httpx.ASGITransport(Starlette(routes=[Route("/mcp", said, methods=["POST"])]))
    async with httpx.AsyncClient(transport=server) as upstream:
        proxy = HttpProxy(screen, "http://tools/mcp", upstream, most=100_000)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(proxy), base_url="http://127.0.0.1") as agent:
            yield agent
    await screen.settled()
    calls.close()


async def test_a_server_that_is_not_believed_is_not_refunded_for_a_status(sidecar, tmp_path):
    """It says by its status that it did nothing: with ``on_error: done`` that is an error like any other."""
    kernel = await shop(sidecar)
    async with proxied(sidecar, tmp_path, JSONResponse({"error": "no"}, 400)) as agent:
        for tool in ("believed", "doubted"):
            assert (await agent.post("/mcp", json=call(tool))).status_code == 400
    assert await kernel.spent() == 7 * UNIT


async def test_two_amounts_whose_ids_meet_are_not_one_action(sidecar, tmp_path, monkeypatch):
    """An id has a short digest, for which an agent can look for two amounts: the dear one is not had at the price of the cheap one."""
    monkeypatch.setattr(planning, "_digest", lambda _: "0" * 12)
    kernel = await shop(sidecar)
    done = JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
    async with proxied(sidecar, tmp_path, done) as agent:
        assert "isError" not in (await agent.post("/mcp", json=call("pay", amount=1))).json()["result"]
        dear = (await agent.post("/mcp", json=call("pay", amount=90))).json()["result"]
        assert "isError" not in (await agent.post("/mcp", json=call("pay", amount=1))).json()["result"]
    assert dear["isError"] is True
    assert await kernel.spent() == 2 * UNIT


async def test_a_permit_whose_answer_was_lost_is_taken_back(sidecar, tmp_path):
    """The agent is told that nothing was done, and so nothing is charged."""
    kernel = await shop(sidecar)
    done = JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
    async with proxied(sidecar, tmp_path, done, Deaf) as agent:
        told = (await agent.post("/mcp", json=call("believed"))).json()["result"]
    assert told["_meta"] == {"interlock/reason": "MCP_KERNEL_UNAVAILABLE"}
    assert await kernel.spent() == 0


NOTE = b'id: 7\ndata: {"jsonrpc":"2.0","method":"notifications/message","params":{}}\n\n'


@pytest.mark.parametrize(
    "answer",
    [Response(status_code=202), *(Response(body, media_type="text/event-stream") for body in (b"", NOTE, b"data: {}"))],
    ids=["accepted", "no event", "another event", "half an event"],
)
async def test_a_server_that_ends_its_answer_before_it_came_is_said(sidecar, tmp_path, answer):
    """No agent waits for an answer that cannot come: it is told that the tool may have done its work, and the call counts."""
    kernel = await shop(sidecar)
    async with proxied(sidecar, tmp_path, answer) as agent:
        told = (await agent.post("/mcp", json=call("believed"))).text
    assert '"isError":true' in told
    assert "Whether the tool did its work is not known" in told
    assert await kernel.spent() == 5 * UNIT


async def test_a_stream_that_can_be_gone_on_with_is_no_answer_yet(sidecar, tmp_path):
    """A server may end the stream of a session behind an id, and answer on another one: the agent is told nothing of its own."""
    await shop(sidecar)
    async with proxied(sidecar, tmp_path, Response(NOTE, media_type="text/event-stream")) as agent:
        told = (await agent.post("/mcp", json=call("believed"), headers={"mcp-session-id": "one"})).text
    assert "isError" not in told


class Slow(KernelCalls):
    """A way to the kernel on which permits arrive after whoever asked has gone, and after what was asked then."""

    late: ClassVar[list[dict[str, Any]]] = []

    def post(self, kernel: str, ask: str, body: Mapping[str, Any]) -> dict[str, Any]:
        if ask == "permit":
            self.late.append(dict(body))
            raise httpx.ReadTimeout("late by the test")
        return super().post(kernel, ask, body)


async def test_a_permit_that_comes_after_its_call_was_given_up_reserves_nothing(sidecar, tmp_path):
    """The agent was told that nothing was done, and that was settled while the permit was still on its way."""
    kernel = await shop(sidecar)
    done = JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
    async with proxied(sidecar, tmp_path, done, Slow) as agent:
        await agent.post("/mcp", json=call("believed"))
    calls = KernelCalls(f"{sidecar.http}/v1", api_key="")
    with contextlib.closing(calls), pytest.raises(InterlockError) as refused:
        await asyncio.to_thread(calls.post, "shop", "permit", Slow.late.pop())
    assert refused.value.reason == "KERNEL_PERMIT_ABORTED"
    assert await kernel.spent() == 0


async def test_two_calls_of_one_id_at_the_same_time_get_one_permit(sidecar, tmp_path):
    """The second one is refused while the kernel still decides about the first: nothing is charged twice, no answer meets another call."""
    kernel = await shop(sidecar)
    done = JSONResponse({"jsonrpc": "2.0", "id": 1, "result": {"content": []}})
    headers = {"mcp-session-id": "one"}
    async with proxied(sidecar, tmp_path, done) as agent:
        told = await asyncio.gather(*(agent.post("/mcp", json=call("believed"), headers=headers) for _ in range(2)))
        after = await agent.post("/mcp", json=call("believed"), headers=headers)
    assert sorted(one.status_code for one in told) == [200, 400]
    assert "MCP_ID_IN_USE" in next(one.text for one in told if one.status_code == 400)
    assert after.status_code == 200, "an id that was answered is free again"
    assert await kernel.spent() == 10 * UNIT


async def test_a_message_that_does_not_arrive_in_time_is_refused(sidecar, tmp_path, monkeypatch):
    """A body that stalls holds nothing for good, and no call is made of it."""
    monkeypatch.setattr(front, "BODY_S", 0.05)
    kernel = await shop(sidecar)

    async def stalled():
        yield json.dumps(call("believed")).encode()[:20]
        await asyncio.sleep(30)

    async with proxied(sidecar, tmp_path, JSONResponse({})) as agent:
        told = await agent.post("/mcp", content=stalled())
    assert (told.status_code, "REQUEST_BODY_TIMEOUT" in told.text) == (400, True)
    assert await kernel.spent() == 0

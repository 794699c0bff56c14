"""What crosses from agent to agent and to the model provider, as a recording sub-agent and a recording provider saw it."""

from __future__ import annotations

import socket
import threading
from dataclasses import dataclass, field

import httpx
import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from interlock.domain.headers import headers, propagation
from interlock.domain.headers.propagation import CROSSING, NEVER, Direction, Trace
from tests.support.sidecar.sidecar import running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)

TRACE = Trace("00-" + "0a" * 16 + "-" + "0b" * 8 + "-01", "vendor=1", "tenant=7,crp-session-token=stolen")
POLICY = "halt-on CRITICAL; require-grounding 0.80"


@dataclass
class SubAgent:
    """An agent behind HTTP: it takes over what comes down, makes one governed call, and answers with what goes up."""

    sidecar: str
    received: list[list[tuple[str, str]]] = field(default_factory=list)
    answered: list[dict[str, str]] = field(default_factory=list)

    async def work(self, request: Request) -> Response:
        lines = [(name.decode(), value.decode()) for name, value in request.headers.raw]
        self.received.append(lines)
        down = propagation.from_http(lines, Direction.DOWNSTREAM)
        question = (await request.json())["question"]
        body = {"model": "m", "messages": [{"role": "user", "content": question}]}
        async with httpx.AsyncClient(base_url=self.sidecar, trust_env=False, timeout=30) as client:
            governed = await client.post(
                "/v1/chat/completions",
                json=body,
                headers=[*down.fields, *down.trace.values().items(), ("authorization", "Bearer sub-agent")],
            )
        # Everything that its own sidecar told it goes in; what may cross comes out.
        up = propagation.to_http(governed.headers.items(), Direction.UPSTREAM, down.trace)
        self.answered.append(dict(up))
        answer = governed.json()
        said = answer["choices"][0]["message"]["content"] if governed.status_code == 200 else None
        return JSONResponse({"said": said}, governed.status_code, dict(up))


class RunningSubAgent:
    """It on a free port, in a thread."""

    def __init__(self, agent: SubAgent) -> None:
        self.agent = agent
        self._socket = socket.create_server(("127.0.0.1", 0))
        app = Starlette(routes=[Route("/work", agent.work, methods=["POST"])])
        config = uvicorn.Config(app, log_config=None, access_log=False, lifespan="off", timeout_graceful_shutdown=1)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._socket.getsockname()[1]}/work"

    def __enter__(self) -> RunningSubAgent:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.should_exit = True
        self._thread.join(10)
        self._socket.close()


@pytest.fixture
async def eu_sidecar(tmp_path, upstream):
    """A sidecar in a jurisdiction."""
    async with running_sidecar(tmp_path, upstream=upstream, data_region="EU") as running:
        yield running


async def delegated(sidecar, first: httpx.Response) -> dict[str, str]:
    granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(first)})
    assert granted.status_code == 200, granted.text
    return granted.json()["headers"]


@pytest.mark.req("HDR-1", "HDR-2", "HDR-3", "HDR-5", "PRV-3")
async def test_two_hops_carry_the_two_lists_and_nothing_else(eu_sidecar, provider):
    """Down goes §3.1, up comes §3.2; tokens and envelope state stay where they are, and the provider sees nothing of ours."""
    demanded = {"crp-safety-policy": POLICY, "crp-safety-mode": "strict", "crp-compliance-data-residency": "EU"}
    provider.answers('{"issues": []}')
    first = await eu_sidecar.chat(headers=demanded)
    down = await delegated(eu_sidecar, first)
    # All that the orchestrator has is offered for the way down: its own token, its headers, the grant.
    offered = {**first.headers, "crp-session-token": token_of(first), **{name.lower(): v for name, v in down.items()}}
    sent = propagation.to_http(offered.items(), Direction.DOWNSTREAM, TRACE)
    provider.received.clear()
    with RunningSubAgent(SubAgent(eu_sidecar.http)) as running:
        async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
            response = await client.post(running.url, json={"question": "What is it?"}, headers=list(sent))
        received = dict(running.agent.received[0])
    up = propagation.from_http(response.headers.items(), Direction.UPSTREAM)

    allowed_down = {name.lower() for name in CROSSING[Direction.DOWNSTREAM]}
    allowed_up = {name.lower() for name in CROSSING[Direction.UPSTREAM]}
    came_down = {name for name in received if headers.is_ours(name)}
    came_up = {name for name in response.headers if headers.is_ours(name)}
    assert came_down == allowed_down
    assert came_up == allowed_up - {"crp-quality-score"}  # the stage that fills it did not run here
    assert up.dropped == ()
    assert (up.get("CRP-Agent-Safety-Budget"), up.get("CRP-Safety-Hallucination-Risk")) == ("1.00", "LOW")
    assert up.get("CRP-Context-Session-Id") != first.headers["crp-context-session-id"]
    assert not {name.lower() for name in NEVER} & (came_down | came_up)
    assert token_of(first) not in str(received.items())
    assert received["baggage"] == "tenant=7"
    assert received["traceparent"] == TRACE.traceparent
    for call in provider.received:
        assert {name for name, _ in call.headers if "crp" in name.lower()} == set()
        assert {name for name, _ in call.headers} & {"baggage", "tracestate", "cookie"} == set()
        assert "crp" not in str(call.body).lower()
        assert POLICY not in str(call.headers)


@pytest.mark.req("HDR-1", "POL-5", "AGT-2")
async def test_what_came_down_holds_in_the_sub_agents_session(eu_sidecar, provider):
    """Parent, depth, policy, mode and residency of the child are the parent's, whatever carried them."""
    provider.answers('{"issues": []}')
    first = await eu_sidecar.chat(headers={"crp-safety-policy": POLICY, "crp-compliance-data-residency": "EU"})
    down = await delegated(eu_sidecar, first)
    for inject, extract in (
        (propagation.to_grpc, propagation.from_grpc),
        (propagation.to_mcp, propagation.from_mcp),
        (propagation.to_a2a, propagation.from_a2a),
    ):
        carried = extract(inject(down.items(), Direction.DOWNSTREAM), Direction.DOWNSTREAM)
        assert dict(carried.fields) == down
    child = await eu_sidecar.chat(headers=dict(carried.fields))

    assert child.status_code == 200
    assert child.headers["crp-agent-session-parent"] == first.headers["crp-context-session-id"]
    assert child.headers["crp-agent-loop-depth"] == "1"
    assert child.headers["crp-safety-policy-applied"] == POLICY
    assert child.headers["crp-compliance-data-residency"] == "EU"


@pytest.mark.req("HDR-3", "HDR-6")
@pytest.mark.parametrize("name", [*NEVER, "CRP-Provenance-HMAC", "CRP-Safety-Hallucination-Risk"])
async def test_what_must_not_cross_is_refused_when_it_is_sent_all_the_same(eu_sidecar, provider, name):
    """An agent that hands its whole response on is told: a foreign token is 401, a response header 400."""
    first = await eu_sidecar.chat()
    down = await delegated(eu_sidecar, first)
    value = token_of(first) if name == "CRP-Session-Token" else first.headers.get(name, "x")
    key = {"authorization": "Bearer sub-agent"}
    refused = await eu_sidecar.chat(headers={**down, **key, name: value})
    alone = {n: v for n, v in down.items() if n != "CRP-Agent-Delegation-Grant"}
    without = await eu_sidecar.chat(headers={**alone, **key, name: value})
    after = await eu_sidecar.chat(headers={**down, **key})

    assert refused.status_code in {400, 401}
    assert without.status_code in {400, 401}
    assert after.status_code == 200

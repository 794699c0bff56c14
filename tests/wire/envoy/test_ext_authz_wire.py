"""Requests to an upstream that is no model, behind the real Envoy: who may go on, and what the upstream is told (MSH-2)."""

from __future__ import annotations

import hashlib
from typing import Any

import httpx
import pytest

from tests.support.servers.envoy import needs_envoy
from tests.support.servers.ports import free_port
from tests.support.sidecar.behind_envoy import behind_envoy
from tests.support.sidecar.sidecar import reason_of, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = [needs_envoy, pytest.mark.req("MSH-2")]

KEY = "sk-agent"
TOOL = "/v1/models"
"""A path of the scripted server, which here is a tool server."""


@pytest.fixture
async def tools(tmp_path, upstream):
    keys = tmp_path / "keys.yaml"
    keys.write_text(f"agent: {hashlib.sha256(KEY.encode()).hexdigest()}\n", encoding="utf-8")
    async with behind_envoy(tmp_path, upstream, config="tools", upstream_base_url=upstream, api_keys_file=keys) as one:
        yield one


async def used(tools: Any, **headers: str) -> httpx.Response:
    """Ask the tool server, through Envoy."""
    async with httpx.AsyncClient(base_url=tools.envoy.url, trust_env=False, timeout=20) as client:
        return await client.get(TOOL, headers={"authorization": f"Bearer {KEY}", **headers})


async def begun(tools: Any) -> httpx.Response:
    """A session of the agent, with one answer in it."""
    return await tools.sidecar.chat(headers={"authorization": f"Bearer {KEY}"})


async def test_a_session_in_good_standing_goes_on(tools, provider):
    """The client is told what is left, the upstream whose session it is, and neither token nor key leaves."""
    first = await begun(tools)
    told = {"x-interlock-session-id": "crp_sess_forged", "x-api-key": KEY}
    response = await used(tools, **{"crp-session-token": token_of(first), **told})

    received = provider.received[-1]
    assert response.status_code == 200
    assert response.headers["crp-agent-safety-budget"] == "1.00"
    assert received.header("x-interlock-session-id") == first.headers["crp-context-session-id"]
    assert not [
        name for name, _ in received.headers if name.startswith("crp-") or name in {"authorization", "x-api-key"}
    ]


@pytest.mark.parametrize(
    ("sent", "goes_on"),
    [
        ("crp_session=abc.def", None), ("theme=dark; crp_session=abc.def; lang=de", "theme=dark; lang=de"),
        ("crp_session=a; crp_session=b", None), ("crp_sessions=mine", "crp_sessions=mine"), ("theme=dark", "theme=dark"),
    ],
)  # fmt: skip
async def test_the_sessions_cookie_stays_here(tools, provider, sent, goes_on):
    """What names a session reaches no upstream; the client's own cookies go on."""
    first = await begun(tools)
    response = await used(tools, **{"crp-session-token": token_of(first), "cookie": sent})
    received = dict(provider.received[-1].headers)

    assert response.status_code == 200
    assert received.get("cookie") == goes_on


async def test_a_session_that_was_ended_goes_nowhere(tools, provider):
    """The reason is that of the session, as the HTTP front says it."""
    token = token_of(await begun(tools))
    sent = {"authorization": f"Bearer {KEY}", "crp-session-token": token}
    await tools.sidecar.chat(headers={**sent, "crp-session-action": "terminate"})
    asked = len(provider.received)
    response = await used(tools, **{"crp-session-token": token})

    assert (response.status_code, reason_of(response)) == (409, "SESSION_TERMINATED")
    assert len(provider.received) == asked


async def test_a_session_whose_budget_is_spent_goes_nowhere(tools, provider):
    """Three CRITICAL answers open the breaker; after them no tool is reached."""
    token = token_of(await begun(tools))
    provider.answers("This is CRITICAL.")
    for _ in range(3):
        answer = await tools.sidecar.chat(token=token, headers={"authorization": f"Bearer {KEY}"})
        token = token_of(answer)
    asked = len(provider.received)
    response = await used(tools, **{"crp-session-token": token})

    assert (response.status_code, reason_of(response)) == (451, "BUDGET_DEPLETED")
    assert len(provider.received) == asked


REFUSED = {
    "no session": ({}, 401, "SESSION_TOKEN_REQUIRED"),
    "a foreign key": ({"authorization": "Bearer sk-other"}, 401, "API_KEY_INVALID"),
    "a forged token": ({"crp-session-token": "eyJhbGciOiJub25lIn0.x"}, 401, ""),
    "a header that only answers have": ({"crp-safety-hallucination-risk": "LOW"}, 400, ""),
}


@pytest.mark.parametrize(("headers", "status", "reason"), REFUSED.values(), ids=REFUSED)
async def test_who_is_not_known_goes_nowhere(tools, provider, headers, status, reason):
    """Each with the status and the reason that the HTTP front would give."""
    response = await used(tools, **headers)

    assert response.status_code == status
    assert reason_of(response) == reason or not reason
    assert not provider.received


async def test_a_header_that_is_sent_twice_is_seen_twice(tools, provider):
    """Envoy sends the headers as they came, so that none hides behind another."""
    token = token_of(await begun(tools))
    asked = len(provider.received)
    async with httpx.AsyncClient(base_url=tools.envoy.url, trust_env=False) as client:
        lines = [("authorization", f"Bearer {KEY}"), ("crp-session-token", token), ("crp-session-token", token)]
        response = await client.get(TOOL, headers=lines)

    assert response.status_code == 400
    assert len(provider.received) == asked


async def test_without_interlock_nothing_goes_on(tmp_path, upstream, provider):
    """Where nothing answers Envoy, the client gets 503."""
    async with behind_envoy(tmp_path, upstream, config="tools", asked=free_port()) as tools:
        response = await used(tools)

    assert response.status_code == 503
    assert not provider.received

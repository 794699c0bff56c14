"""A spending limit through kill -9 and over processes: never overspent, nothing lost, nothing charged twice (KRN-9, KRN-12)."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.support.servers.processes import Process, Processes, run_here
from tests.support.servers.provider import Provider, RunningProvider, completion, message

pytestmark = [pytest.mark.models, pytest.mark.long, pytest.mark.timeout(600), pytest.mark.req("KRN-9", "KRN-12")]

PRICES = "as_of: 2026-01-01\nfallback: {input: 10, output: 100}\nmodels: []\n"
LIMIT = 40_000
"""Millionths of a dollar. A call reserves a little over 11,000: three at once, not four."""
FINE = "Paris is the capital of France."
BODY = {
    "model": "m", "max_tokens": 10,
    "messages": [{"role": "system", "content": FINE}, {"role": "user", "content": "What is the capital of France?"}],
}  # fmt: skip


def chat(mesh: Process, **sent: str) -> httpx.Response:
    headers = {"authorization": "Bearer agent-key", **{name.replace("_", "-"): value for name, value in sent.items()}}
    url = f"http://127.0.0.1:{mesh.ports['sidecar_http']}/v1/chat/completions"
    return httpx.post(url, json=BODY, headers=headers, timeout=60)


def token_of(answer: httpx.Response) -> str:
    return answer.headers["crp-set-session"].split(";")[0].removeprefix("token=")


def spending(mesh: Process, session_id: str) -> dict[str, Any]:
    shown = run_here("session", "show", session_id, "--output", "json", env=mesh.env)
    assert shown.returncode == 0, shown.stdout + shown.stderr
    found: dict[str, Any] = json.loads(shown.stdout)["spending"]
    return found


@pytest.fixture
def made(tmp_path, valkey):
    """What makes processes over one store, with a limit, and the provider that they ask."""
    valkey.flush()
    prices = tmp_path / "prices.yaml"
    prices.write_text(PRICES)
    provider = Provider()
    provider.completes({**completion(message(FINE)), "usage": None})
    with RunningProvider(provider) as upstream:
        settings = {
            "request_timeout_s": 8, "rpc_timeout_s": 3, "redis_url": valkey.url, "upstream_base_url": upstream.base_url,
            "prices_file": prices, "spending_limit_usd": LIMIT / 1_000_000,
        }  # fmt: skip
        with Processes(tmp_path, settings) as processes:
            yield processes, provider


@pytest.mark.parametrize("point", ["sidecar.after_reserve", "sidecar.after_dispatch", "sidecar.after_seal"])
def test_a_killed_sidecar_has_spent_what_it_reserved_or_sealed_once(made, valkey, point):
    """The process dies with a call under way; a new one finds it charged once, and so does a store that lost everything."""
    processes, _ = made
    mesh = processes.separate()
    first = chat(mesh)
    assert first.status_code == 200, first.text
    session, before = first.headers["crp-context-session-id"], spending(mesh, first.headers["crp-context-session-id"])
    one = before["usd_micros"]
    assert 11_000 < one < 13_000
    assert before["reserved_usd_micros"] == 0
    mesh.kill()
    mesh.env["INTERLOCK_FAILPOINTS"] = f"{point}:kill"
    mesh.restart()
    with pytest.raises(httpx.TransportError):
        chat(mesh, crp_session_token=token_of(first))
    mesh.kill()
    mesh.env.pop("INTERLOCK_FAILPOINTS")
    mesh.restart()
    told = spending(mesh, session)
    assert told["usd_micros"] + told["reserved_usd_micros"] == 2 * one

    valkey.flush()  # the store loses everything; the next call has the tree rebuilt from its chain
    ends = time.monotonic() + 40
    while (after := chat(mesh, crp_session_token=token_of(first))).status_code == 409 and time.monotonic() < ends:
        first = after if "crp-set-session" in after.headers else first
        time.sleep(0.3)
    assert after.status_code == 200, after.text
    told = spending(mesh, session)
    assert (told["usd_micros"] + told["reserved_usd_micros"], told["limit_usd_micros"]) == (3 * one, LIMIT)
    refused = chat(mesh, crp_session_token=token_of(after))
    assert (refused.status_code, refused.json()["reason"]) == (429, "SPENDING_LIMIT")


def test_two_sidecars_never_spend_more_than_the_limit(made):
    """Calls of one fan-out come in by two processes at once: what is charged stays below the limit, the rest is refused."""
    processes, _ = made
    one = processes.separate()
    services = {name: value for name, value in one.env.items() if name.endswith("_ADDRESS")}
    other = processes.process("sidecar", label="other")
    other.env |= services
    other.start().wait()
    first = chat(one)
    session = first.headers["crp-context-session-id"]
    cost = spending(one, session)["usd_micros"]
    fan = {
        "crp_session_token": token_of(first), "crp_agent_dispatch_strategy": "fan-out",
        "crp_context_continuation_id": first.headers["crp-context-continuation-id"],
    }  # fmt: skip
    with ThreadPoolExecutor(8) as pool:
        ended = list(pool.map(lambda number: chat((one, other)[number % 2], **fan), range(8)))
    codes = sorted(answer.status_code for answer in ended)
    told = spending(one, session)
    assert told["usd_micros"] + told["reserved_usd_micros"] == cost * (1 + codes.count(200)) <= LIMIT
    assert set(codes) == {200, 429}
    assert {answer.json()["reason"] for answer in ended if answer.status_code == 429} == {"SPENDING_LIMIT"}

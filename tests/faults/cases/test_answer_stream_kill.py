"""kill -9 in the middle of an answer that leaves in parts: nothing left that is not on record, and the hold is charged (BUD-11)."""

from __future__ import annotations

import hashlib
import json
import threading
import time
from typing import Any

import httpx
import pytest

from tests.support.servers.processes import Process, Processes
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.servers.streaming import spoken, streams

pytestmark = [pytest.mark.models, pytest.mark.timeout(240), pytest.mark.req("BUD-11", "API-4")]

FIRST, SECOND = "Paris is the capital of France.", " Paris lies on the Seine."
QUESTION = [
    {"role": "system", "content": FIRST + SECOND},
    {"role": "user", "content": "What is the capital of France, and where does it lie?"},
]
LIMITS = {"request_timeout_s": 6, "rpc_timeout_s": 2, "stream_release": "sentences"}
LEASE_S = 8
KILLS_ITSELF = {"INTERLOCK_FAILPOINTS": "sidecar.after_part:kill"}


def chat(http: str, **sent: Any) -> httpx.Response:
    headers = {"authorization": "Bearer agent-key", **{name.replace("_", "-"): value for name, value in sent.items()}}
    return httpx.post(
        f"{http}/v1/chat/completions", json={"model": "m", "messages": QUESTION}, headers=headers, timeout=30
    )


def token_of(answer: httpx.Response) -> str:
    return answer.headers["crp-set-session"].split(";")[0].removeprefix("token=")


def restarted_quietly(mesh: Process) -> None:
    """Kill the mesh if it still runs, and start it again on the same state and ports, with no failpoint."""
    mesh.kill()
    for name in KILLS_ITSELF:
        mesh.env.pop(name, None)
    mesh.restart()


def streamed(http: str, token: str, heard: threading.Event) -> str:
    """What a client got of a stream until it broke off."""
    headers = {
        "authorization": "Bearer agent-key", "crp-session-token": token, "crp-stream-final": "event",
    }  # fmt: skip
    body, said = {"model": "m", "messages": QUESTION, "stream": True}, ""
    try:
        with httpx.stream("POST", f"{http}/v1/chat/completions", json=body, headers=headers, timeout=30) as answer:
            for line in answer.iter_lines():
                if line.startswith("data: {"):
                    for choice in json.loads(line[6:]).get("choices", ()):
                        said += choice["delta"].get("content") or ""
                        heard.set() if said else None
    except httpx.TransportError:
        pass
    return said


@pytest.fixture(scope="module")
def provider():
    return Provider()


@pytest.fixture(scope="module")
def mesh(tmp_path_factory, valkey, provider):
    """A mesh that kills itself once a part of an answer is on record."""
    valkey.flush()
    with RunningProvider(provider) as upstream:
        settings = {**LIMITS, "redis_url": valkey.url, "upstream_base_url": upstream.base_url}
        with Processes(tmp_path_factory.mktemp("stream-kill"), settings) as processes:
            made = processes.process(None)
            made.env |= KILLS_ITSELF
            yield made.start().wait()


@pytest.mark.parametrize("point", ["on record", "the client has heard", "past its first lease"])
def test_a_killed_stream_is_charged_what_it_held(mesh, provider, point):
    """The process dies, starts again on the same state, and the next call has the window closed at CRITICAL.

    A stream that lives for longer than a lease is found within one, too.
    """
    heard, never = threading.Event(), threading.Event()
    if point != "on record" and mesh.env.keys() & KILLS_ITSELF.keys():  # the case before left it without
        restarted_quietly(mesh)
    http = f"http://127.0.0.1:{mesh.ports['sidecar_http']}"
    provider.answers(FIRST)
    first = chat(http)
    token, session = token_of(first), first.headers["crp-context-session-id"]
    script = spoken(FIRST, SECOND)
    streams(provider, [*script[:3], never, *script[3:]])
    got: list[str] = []
    client = threading.Thread(target=lambda: got.append(streamed(http, token, heard)))
    client.start()
    if point != "on record":
        assert heard.wait(30)
        if point == "past its first lease":
            time.sleep(LEASE_S + 1)
            assert chat(http, crp_session_token=token).json()["reason"] == "WINDOW_IN_FLIGHT"
        mesh.kill()
    client.join(40)
    never.set()
    restarted_quietly(mesh)
    provider.answers(FIRST)
    ends = time.monotonic() + LEASE_S + 10
    while (closed := chat(http, crp_session_token=token)).json().get("reason") == "WINDOW_IN_FLIGHT":
        assert time.monotonic() < ends
        time.sleep(0.3)
    after = chat(http, crp_session_token=token_of(closed))
    shown = httpx.get(
        f"{http}/crp/v3/session/{session}",
        headers={"authorization": "Bearer agent-key", "crp-session-token": token_of(after)},
    ).json()
    log = mesh.everything()
    said = got[0]

    assert closed.json()["reason"] == "WINDOW_ALREADY_SETTLED", log[-3000:]
    assert said == ("" if point == "on record" else FIRST)
    assert after.status_code == 200
    assert after.headers["crp-agent-safety-budget"] == "0.65"
    assert [window["charge_micros"] for window in shown["windows"]] == [0, 350_000, 0]
    lost = shown["windows"][1]
    assert lost["status"] == "HALTED"
    assert lost["response_hash"] == "sha256:" + hashlib.sha256(FIRST.encode()).hexdigest()

"""Bad input against the whole mesh: a stable reason each, nothing begun or lost, and the same session goes on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.servers.provider import Provider, RunningProvider, message, tool_call
from tests.support.servers.provider import completion as provided
from tests.support.sidecar.mesh import Front, start_front
from tests.support.sidecar.sidecar import token_of
from tests.support.valkey import Valkey

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]

QUESTION = [{"role": "system", "content": "The sky is blue."}, {"role": "user", "content": "What colour is the sky?"}]
GOOD: dict[str, Any] = {"model": "m", "messages": QUESTION}
ANSWER = "The sky is blue."


@pytest.fixture(scope="module")
def running_provider():
    with RunningProvider(Provider()) as running:
        yield running


@pytest.fixture
def provider(running_provider) -> Provider:
    running_provider.provider.reset()
    running_provider.provider.answers(ANSWER)
    return running_provider.provider


@pytest.fixture(scope="module")
def valkey_of_its_own(tmp_path_factory):
    """A Valkey that this module may kill."""
    with Valkey(tmp_path_factory.mktemp("valkey")) as server:
        yield server


@pytest.fixture(scope="module")
def front(tmp_path_factory, running_provider, valkey_of_its_own) -> Iterator[Front]:
    settings = {
        "upstream_base_url": running_provider.base_url, "redis_url": valkey_of_its_own.url, "upstream_timeout_s": 2,
        "max_body_bytes": 100_000, "max_text_bytes": 50_000, "max_windows": 1000, "max_dag_nodes": 1000,
        "request_timeout_s": 20, "rpc_timeout_s": 2, "remediation": "none",
    }  # fmt: skip
    started = start_front("local", tmp_path_factory.mktemp("bad"), settings)
    with started.processes:
        yield started


def post(front: Front, body: Any = None, headers: dict[str, Any] | None = None) -> httpx.Response:
    content = body if isinstance(body, bytes) else json.dumps(GOOD if body is None else body).encode()
    sent = {"content-type": "application/json", **(headers or {})}
    return httpx.post(f"{front.http}/v1/chat/completions", content=content, headers=sent, timeout=60, trust_env=False)


def get_ready(front: Front) -> httpx.Response:
    return httpx.get(f"{front.http}/readyz", timeout=30, trust_env=False)


def good(**more: Any) -> dict[str, Any]:
    return {**GOOD, **more}


def fact(**more: Any) -> dict[str, Any]:
    return good(interlock={"facts": [{"id": "a", "content": "b", **more}]})


BAD: dict[str, tuple[Any, dict[str, Any], int, str]] = {
    "no body": (b"", {}, 400, "INVALID_JSON"),
    "no JSON": (b"model=m", {}, 400, "INVALID_JSON"),
    "cut off": (json.dumps(GOOD).encode()[:-1], {}, 400, "INVALID_JSON"),
    "not UTF-8": (b'{"model": "\xe9"}', {}, 400, "INVALID_UTF8"),
    "half a surrogate pair": (b'{"model": "\\ud800"}', {}, 400, "INVALID_UTF8"),
    "a key twice": (b'{"model": "a", "model": "b"}', {}, 400, "DUPLICATE_KEY"),
    "a key in another case": (good(Messages=[]), {}, 400, "UNKNOWN_PARAMETER"),
    "NaN": (b'{"temperature": NaN}', {}, 400, "INVALID_JSON"),
    "deeply nested": (b"[" * 10_000, {}, 400, "JSON_TOO_DEEP"),
    "oversized": (b" " * 100_001, {}, 413, "REQUEST_TOO_LARGE"),
    "a long text": (good(messages=[{"role": "user", "content": "x" * 50_001}]), {}, 413, "TEXT_TOO_LARGE"),
    "compressed": (b"\x1f\x8b", {"content-encoding": "gzip"}, 415, "UNSUPPORTED_ENCODING"),
    "another type": (b"{}", {"content-type": "text/xml"}, 415, "UNSUPPORTED_MEDIA_TYPE"),
    "a list": ([], {}, 400, "INVALID_REQUEST"),
    "a wrong type": (good(n="two"), {}, 400, "INVALID_PARAMETER"),
    "out of range": (good(n=1000), {}, 400, "INVALID_PARAMETER"),
    "an unknown parameter": (good(verify=False), {}, 400, "UNKNOWN_PARAMETER"),
    "an image": (
        good(messages=[{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]), {}, 400,
        "UNSUPPORTED_CONTENT",
    ),
    "a fact out of range": (fact(importance=2), {}, 400, "INVALID_FACT"),
    "a fact with a separator": (fact(id="a\u241fb"), {}, 400, "INVALID_FACT"),
    "too many facts": (
        good(interlock={"facts": [{"id": str(i), "content": "x"} for i in range(513)]}), {}, 413, "TOO_MANY_FACTS",
    ),
    "an unknown directive": (None, {"crp-safety-policy": "halt-never"}, 400, "POLICY_UNKNOWN_DIRECTIVE"),
    "an unknown mode": (None, {"crp-safety-mode": "lax"}, 400, "INVALID_HEADER"),
    "an unknown header": (None, {"crp-make-safe": "1"}, 400, "UNKNOWN_CRP_HEADER"),
    "a response header": (None, {"crp-safety-hallucination-risk": "LOW"}, 400, "RESPONSE_HEADER_IN_REQUEST"),
    "a separator in a header": (None, {"crp-safety-policy": "block-pii\u241f".encode()}, 400,
                                "INVALID_HEADER"),
    "a budget that is no number": (None, {"crp-agent-safety-budget": "NaN"}, 400, "INVALID_HEADER"),
    "a negative budget": (None, {"crp-agent-safety-budget": "-1"}, 400, "INVALID_HEADER"),
    "a budget beyond a full one": (None, {"crp-agent-safety-budget": "1.5"}, 400, "INVALID_HEADER"),
    "a huge budget": (None, {"crp-agent-safety-budget": "1e308"}, 400, "INVALID_HEADER"),
    "a parent session": (None, {"crp-agent-session-parent": "crp_sess_" + "0" * 32}, 401,
                         "DELEGATION_GRANT_REQUIRED"),
    "an invented depth": (None, {"crp-agent-loop-depth": "3"}, 409, "LOOP_DEPTH_MISMATCH"),
    "a fan-out of nothing": (None, {"crp-context-strategy": "fan-out"}, 401, "SESSION_TOKEN_REQUIRED"),
    "an approval of nothing": (None, {"crp-oversight-token": "approved:sha256:eyJhIjoxfQ.c2ln"}, 400,
                               "HEADER_NOT_SUPPORTED"),
    "a residency": (None, {"crp-compliance-data-residency": "EU"}, 403, "DATA_RESIDENCY_VIOLATION"),
    "a forged token": (None, {"crp-session-token": "eyJ2IjoiMy4wLjAifQ." + "A" * 43}, 401, "TOKEN_MALFORMED"),
    "a continuation without a token": (None, {"crp-context-continuation-id": "crp_cont_" + "0" * 32}, 401,
                                       "SESSION_TOKEN_REQUIRED"),
    "another scheme": (None, {"authorization": "Basic YTpi"}, 401, "API_KEY_INVALID"),
}  # fmt: skip


@pytest.mark.req("SVC-3", "HDR-6")
def test_bad_requests_have_a_reason_each_and_change_nothing(front, provider):
    """Every row is refused by name before the model is called; the session before is the session after."""
    session = post(front)
    found = {}
    for name, (body, headers, _, _) in BAD.items():
        response = post(front, body, headers)
        found[name] = (response.status_code, response.json()["reason"])
    asked = len(provider.received)
    after = post(front, headers={"crp-session-token": token_of(session)})

    assert found == {name: (status, reason) for name, (_, _, status, reason) in BAD.items()}
    assert asked == 1
    assert (after.status_code, after.headers["crp-context-window"]) == (200, "2/1000")
    assert after.headers["crp-agent-safety-budget"] == session.headers["crp-agent-safety-budget"]


@pytest.mark.req("TOK-3", "TOK-5")
def test_tokens_that_do_not_hold_do_not_pass(front, provider):
    """Changed in any part, cut, of another caller or used twice: 401 and 409; the good one goes on."""
    session = post(front)
    token = token_of(session)
    payload, mac = token.split(".")
    bad = {
        "a changed payload": payload[:-1] + ("A" if payload[-1] != "A" else "B") + "." + mac,
        "a changed mac": payload + "." + ("A" if mac[0] != "A" else "B") + mac[1:],
        "no mac": payload,
        "a cut mac": token[:-10],
        "two dots": token + ".",
    }
    found = {name: post(front, headers={"crp-session-token": text}).status_code for name, text in bad.items()}
    foreign = post(front, headers={"crp-session-token": token, "authorization": "Bearer other"})
    second = post(front, headers={"crp-session-token": token})
    replayed = post(front, headers={"crp-session-token": token})

    assert found == dict.fromkeys(bad, 401)
    assert (foreign.status_code, foreign.json()["reason"]) == (401, "TOKEN_SCOPE_MISMATCH")
    assert second.status_code == 200
    assert (replayed.status_code, replayed.json()["reason"]) == (409, "TOKEN_REPLAYED")
    assert len(provider.received) == 2


@pytest.mark.req("DAG-4")
def test_a_continuation_of_another_session_is_unknown(front):
    """A pointer of session A with the token of session B is 404, like one that never was (A-10)."""
    one, other = post(front), post(front)
    headers = {"crp-session-token": token_of(other)}
    crossed = post(
        front, headers={**headers, "crp-context-continuation-id": one.headers["crp-context-continuation-id"]}
    )
    never = post(front, headers={**headers, "crp-context-continuation-id": "crp_cont_" + "0" * 32})
    own = post(front, headers={**headers, "crp-context-continuation-id": other.headers["crp-context-continuation-id"]})

    assert crossed.status_code == never.status_code == 404
    assert crossed.json()["reason"] == never.json()["reason"] == "CONTINUATION_NOT_FOUND"
    assert own.status_code == 200


@pytest.mark.req("SVC-9", "SVC-3")
@pytest.mark.parametrize(
    ("tell", "reason"),
    [
        (lambda p: p.fails(500), "UPSTREAM_ERROR"),
        (lambda p: p.hangs(), "UPSTREAM_TIMEOUT"),
        (lambda p: p.says(b"<html>"), "UPSTREAM_INVALID_RESPONSE"),
        (lambda p: p.completes(provided()), "UPSTREAM_INVALID_RESPONSE"),
        (lambda p: p.closes_mid_body(), "UPSTREAM_DISCONNECTED"),
    ],
)
def test_a_provider_that_fails_costs_nothing(front, provider, tell, reason):
    """Errors, silence, nonsense and emptiness: a reason, no charge, and the same token goes on."""
    session = post(front)
    tell(provider)
    refused = post(front, headers={"crp-session-token": token_of(session)})
    provider.answers(ANSWER)
    after = post(front, headers={"crp-session-token": token_of(session)})

    assert refused.json()["reason"] == reason
    assert (after.status_code, after.headers["crp-agent-safety-budget"]) == (
        200, session.headers["crp-agent-safety-budget"],
    )  # fmt: skip


@pytest.mark.req("SVC-2", "BUD-5")
def test_one_bad_choice_or_tool_call_is_enough(front, provider):
    """With n=2 and with tool calls the worst text decides, and the window is charged once."""
    policy = {"crp-safety-policy": "block-fabrication"}
    bad = "The sky was painted green by Otto Krause in 1953."
    provider.answers(ANSWER, bad)
    choices = post(front, good(n=2), policy)
    provider.completes(provided(message(ANSWER, tool_calls=[tool_call("tell", json.dumps({"text": bad}))])))
    called = post(front, None, policy)

    assert (choices.status_code, called.status_code) == (451, 451)
    assert "Krause" not in choices.text + called.text


@pytest.mark.req("SVC-9", "BUD-4", "BUD-9")
def test_a_store_that_dies_is_told_and_found_again(front, provider, valkey_of_its_own):
    """Valkey killed: 503, nothing dispatched, readiness names it; back on its data, the session goes on as it was."""
    provider.answers("The sky was painted green by Otto Krause in 1953.")
    session = post(front)
    asked = len(provider.received)
    valkey_of_its_own.kill()
    refused = post(front, headers={"crp-session-token": token_of(session)})
    fresh = post(front)
    deadline = time.monotonic() + 5
    while (ready := get_ready(front)).status_code == 200 and time.monotonic() < deadline:
        time.sleep(0.05)  # readiness is asked a few times a second, not for every request
    valkey_of_its_own.start()
    after = post(front, headers={"crp-session-token": token_of(session)})

    assert refused.status_code == fresh.status_code == 503
    assert refused.json()["reason"] == fresh.json()["reason"]
    assert (ready.status_code, len(ready.json()["missing"])) == (503, 1)
    assert asked == 1
    assert len(provider.received) == 2
    assert after.headers["crp-context-window"] == "2/1000"
    assert float(after.headers["crp-agent-safety-budget"]) < float(session.headers["crp-agent-safety-budget"]) < 1.0

"""A-20: requests that two parsers part differently, and targets and hosts that lead past what guards a path."""

from __future__ import annotations

import json

import pytest

from tests.support.sidecar.sidecar import running_sidecar
from tests.wire.sidecar.test_http_raw_wire import BODY, CHUNKED, LENGTH, LINES, SMUGGLING, START, said, whole

pytest_plugins = ("tests.support.sidecar.fronts",)

KEPT = START.replace(b"Connection: close\r\n", b"")
HIDDEN = whole(start=b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer stolen\r\n" + LINES)
CARRIERS = {
    # A front that counts and one that reads chunks end these bodies at different places: what follows is a second request.
    "length first": KEPT + b"Content-Length: " + LENGTH + b"\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + HIDDEN,
    "chunks first": KEPT + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + CHUNKED + HIDDEN,
    "two lengths": KEPT + b"Content-Length: 0\r\nContent-Length: " + LENGTH + b"\r\n\r\n" + BODY + HIDDEN,
    "an odd coding": KEPT + b"Transfer-Encoding: xchunked\r\nContent-Length: " + LENGTH + b"\r\n\r\n" + BODY + HIDDEN,
    "a bare line feed": KEPT + b"X: y\nContent-Length: 0\r\n\r\n" + HIDDEN,
    "a chunk extension with a line feed": KEPT
    + b"Transfer-Encoding: chunked\r\n\r\n2;\nxx\r\n{}\r\n0\r\n\r\n"
    + HIDDEN,
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("HDR-6")
@pytest.mark.parametrize("shape", [*SMUGGLING, *CARRIERS])
async def test_a20_a_request_of_two_meanings_is_one_refusal(shared_sidecar, provider, shape):
    """400 and the end of the connection; neither the request nor what hides behind it reaches the model."""
    answer = await said(shared_sidecar, {**SMUGGLING, **CARRIERS}[shape])

    assert answer.startswith(b"HTTP/1.1 400"), answer[:200]
    assert answer.count(b"HTTP/1.1") == 1
    assert provider.received == []


@pytest.mark.parametrize(
    "start",
    [
        b"POST http://x/v1/chat/completions HTTP/1.1\r\nHost: x\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x/healthz\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Original-URL: /healthz\r\nX-Rewrite-URL: /healthz\r\n",
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nX-Forwarded-Prefix: /healthz\r\nForwarded: host=healthz\r\n",
        b"POST /v1/chat/completions?/healthz HTTP/1.1\r\nHost: x\r\n",
        b"POST /v1/chat/completions HTTP/1.0\r\n",
    ],
)
@pytest.mark.req("SVC-2")
async def test_a20_the_raw_path_alone_decides_what_a_key_guards(tmp_path, upstream, provider, start):
    """With keys set, no spelling of target, Host or forwarding header gets a call through without one."""
    keys = tmp_path / "keys.yaml"
    keys.write_text("a: " + "f" * 64)
    async with running_sidecar(tmp_path, upstream=upstream, api_keys_file=keys) as sidecar:
        answer = await said(sidecar, whole(start=start + LINES))

    assert answer.split(b" ")[1] == b"401", answer[:200]
    assert provider.received == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-2")
@pytest.mark.parametrize("path", [
    b"/v1/chat/../chat/completions", b"/v1//chat/completions", b"/v1/chat/completions/", b"/V1/chat/completions",
    b"/v1/chat%2fcompletions", b"/v1/chat/completions%00", b"//v1/chat/completions", b"/healthz/../v1/chat/completions",
    b"/v1/chat/completions;a=b", b"\\v1\\chat\\completions",
])  # fmt: skip
async def test_a20_a_path_in_another_spelling_is_another_path(shared_sidecar, provider, path):
    """It is not found, not redirected and not the chat route: nothing is normalised between the guard and the router."""
    answer = await said(shared_sidecar, whole(start=b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + LINES))
    status = answer.split(b" ")[1]

    assert status in {b"400", b"404", b"405", b"501"}, answer[:200]
    assert b"\r\nlocation:" not in answer.lower()
    assert provider.received == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-2", "HDR-5")
async def test_a20_what_the_provider_sees_is_what_was_decided_upon(shared_sidecar, provider):
    """Host, target and odd headers of the caller are not in what the provider gets: it is a request of our own."""
    start = b"POST http://evil.example/v1/chat/completions HTTP/1.1\r\nHost: evil.example\r\nX-HTTP-Method-Override: GET\r\n"
    answer = await said(shared_sidecar, whole(start=start + LINES))
    (seen,) = provider.received

    assert answer.startswith(b"HTTP/1.1 200")
    assert seen.path == "/v1/chat/completions"
    assert "evil" not in json.dumps(seen.headers)
    assert seen.header("x-http-method-override") is None

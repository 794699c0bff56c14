"""Bytes that no client library sends: smuggling shapes, header tricks, bodies that lie about themselves (A-15, A-20, A-22)."""

from __future__ import annotations

import asyncio
import gzip
import json

import pytest

from tests.support.sidecar.sidecar import reason_of, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)

BODY = b'{"model": "m", "messages": [{"role": "user", "content": "Hello?"}]}'
LENGTH = str(len(BODY)).encode()
SIZE = f"{len(BODY):x}".encode()
CHUNKED = SIZE + b"\r\n" + BODY + b"\r\n0\r\n\r\n"
LINES = b"Content-Type: application/json\r\nConnection: close\r\n"
START = b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n" + LINES


def whole(*lines: bytes, start: bytes = START) -> bytes:
    return start + b"".join(line + b"\r\n" for line in lines) + b"Content-Length: " + LENGTH + b"\r\n\r\n" + BODY


async def said(sidecar, data: bytes) -> bytes:
    """Everything that the front answers to these bytes."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sidecar.http.rsplit(":", 1)[1]))
    writer.write(data)
    try:
        return await asyncio.wait_for(reader.read(), 10)
    finally:
        writer.close()
        await writer.wait_closed()


SMUGGLING = {
    "length and chunked": START + b"Content-Length: " + LENGTH + b"\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "chunked and length": START + b"Transfer-Encoding: chunked\r\nContent-Length: " + LENGTH + b"\r\n\r\n" + CHUNKED,
    "two lengths": whole(b"Content-Length: 5"),
    "the same length twice": whole(b"Content-Length: " + LENGTH),
    "a list of lengths": START + b"Content-Length: " + LENGTH + b", " + LENGTH + b"\r\n\r\n" + BODY,
    "a negative length": START + b"Content-Length: -1\r\n\r\n" + BODY,
    "a signed length": START + b"Content-Length: +" + LENGTH + b"\r\n\r\n" + BODY,
    "an unknown coding": START + b"Transfer-Encoding: xchunked\r\n\r\n" + CHUNKED,
    "chunked not last": START + b"Transfer-Encoding: chunked, identity\r\n\r\n" + CHUNKED,
    "a control before the coding": START + b"Transfer-Encoding: \x0bchunked\r\n\r\n" + CHUNKED,
    "a coding twice": START + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
    "a bad chunk size": START + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n" + BODY + b"\r\n0\r\n\r\n",
    "bare line feeds in chunks": START + b"Transfer-Encoding: chunked\r\n\r\n" + SIZE + b"\n" + BODY + b"\n0\n\n",
    "space before a colon": START + b"Content-Length : " + LENGTH + b"\r\n\r\n" + BODY,
    "a folded header": whole(b"X-A: b", b" c"),
    "a folded header of ours": whole(b"CRP-Safety-Mode:", b" strict"),
    "a null in a header": whole(b"X-A: b\x00c"),
    "a return in a header": whole(b"X-A: b\rCRP-Safety-Mode: strict"),
    "a line feed in a header": whole(b"X-A: b\nCRP-Safety-Mode: strict"),
    "line feeds alone": whole().replace(b"\r\n", b"\n"),
    "an unknown version": whole(start=START.replace(b"HTTP/1.1", b"HTTP/9.9")),
    "the preface of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
}


@pytest.mark.req("HDR-6")
async def test_smuggling_shapes_are_refused_by_the_parser(sidecar, provider):
    """Each is 400 and closes the connection; none reaches the model, and the next good call works."""
    answers = {name: await said(sidecar, data) for name, data in SMUGGLING.items()}

    assert {name: answer[:12] for name, answer in answers.items()} == dict.fromkeys(SMUGGLING, b"HTTP/1.1 400")
    assert all(answer.count(b"HTTP/1.1") == 1 for answer in answers.values())
    assert provider.received == []
    assert (await sidecar.chat()).status_code == 200


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("HDR-6")
@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"crp_safety_mode: strict", b"UNKNOWN_CRP_HEADER"),
        (b"CRP-Safety-Fabrications: 0", b"RESPONSE_HEADER_IN_REQUEST"),
        (b"CRP-Safety-Policy: halt-on\tHIGH", b"INVALID_HEADER"),
        (b"CRP-Safety-Policy: halt-on\xe2\x90\x9fHIGH", b"INVALID_HEADER"),
        (b"CRP-Safety-Policy: halt-on\xa0HIGH", b"INVALID_HEADER"),
        (b"CRP-Session-Token: " + b"a" * 8193, b"HEADER_TOO_LARGE"),
        (b"X-Padding: " + b"a" * 33_000, b"HEADER_TOO_LARGE"),
        (b"CRP-Safety-Mode: strict\r\ncrp-safety-mode: permissive", b"DUPLICATE_HEADER"),
        (b"Authorization: Bearer a\r\nAuthorization: Bearer b", b"API_KEY_INVALID"),
        (b"CRP-Agent-Safety-Budget: 1e308", b"INVALID_HEADER"),
    ],
)
async def test_header_tricks_are_refused_by_name(shared_sidecar, provider, line, reason):
    """Underscores, control characters, bytes beyond ASCII, doubles and giants (A-15)."""
    answer = await said(shared_sidecar, whole(line))

    assert answer.split(b" ")[1] in {b"400", b"401", b"431"}
    assert reason in answer
    assert provider.received == []


async def test_a_trailer_overrides_no_header(sidecar):
    """What follows a chunked body never replaces what the head says; the parser hands it over as one header more."""
    data = START + b"CRP-Safety-Mode: strict\r\nTransfer-Encoding: chunked\r\n\r\n"
    answer = await said(sidecar, data + CHUNKED[:-2] + b"CRP-Safety-Mode: permissive\r\n\r\n")

    assert b"DUPLICATE_HEADER" in answer or b"block-ungrounded" in answer


@pytest.mark.parametrize(
    ("start", "status"),
    [
        (b"POST http://evil.example/v1/chat/completions HTTP/1.1\r\nHost: x\r\n", b"200"),
        (b"POST /v1/chat/completions HTTP/1.1\r\nHost: x/healthz?\r\n", b"200"),
        (b"POST /healthz/../v1/chat/completions HTTP/1.1\r\nHost: x\r\n", b"404"),
        (b"POST http://evil/healthz/../v1/chat/completions HTTP/1.1\r\nHost: x\r\n", b"404"),
        (b"POST /v1/chat/completions%00 HTTP/1.1\r\nHost: x\r\n", b"501"),
    ],
)
async def test_the_path_alone_decides(tmp_path, upstream, start, status):
    """Neither Host nor an absolute target moves a request past the keys (Starlette CVE-2026-48710; A-20)."""
    keys = tmp_path / "keys.yaml"
    keys.write_text("a: " + "f" * 64)
    async with running_sidecar(tmp_path, upstream=upstream) as open_to_all:
        found = await said(open_to_all, whole(start=start + LINES))
    async with running_sidecar(tmp_path / "keys", upstream=upstream, api_keys_file=keys) as closed:
        without_key = await said(closed, whole(start=start + LINES))

    assert found.split(b" ")[1] == status
    assert without_key.split(b" ")[1] == (b"401" if status == b"200" else status)


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-3")
@pytest.mark.parametrize(
    ("headers", "content", "status", "reason"),
    [
        ({"content-type": "text/plain"}, BODY, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ({"content-type": "application/json; charset=latin-1"}, BODY, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ({}, BODY, 415, "UNSUPPORTED_MEDIA_TYPE"),
        ({"content-type": "application/json", "content-encoding": "gzip"}, gzip.compress(BODY, mtime=0), 415,
         "UNSUPPORTED_ENCODING"),
        ({"content-type": "application/json"}, b"", 400, "INVALID_JSON"),
        ({"content-type": "application/json"}, b"{", 400, "INVALID_JSON"),
        ({"content-type": "application/json"}, b"\xff\xfe", 400, "INVALID_UTF8"),
        ({"content-type": "application/json"}, b'{"model": "a", "model": "b"}', 400, "DUPLICATE_KEY"),
        ({"content-type": "application/json"}, b'{"temperature": NaN}', 400, "INVALID_JSON"),
        ({"content-type": "application/json"}, b'{"a": "\\ud800"}', 400, "INVALID_UTF8"),
        ({"content-type": "application/json"}, b"[" * 65, 400, "JSON_TOO_DEEP"),
        ({"content-type": "application/json"}, b'{"a":' * 4000, 400, "JSON_TOO_DEEP"),
        ({"content-type": "application/json"}, b" " * 65_537, 413, "REQUEST_TOO_LARGE"),
    ],
)  # fmt: skip
async def test_bodies_that_cannot_be_read_one_way_are_refused(
    shared_sidecar, provider, headers, content, status, reason
):
    """Each has its status and reason, begins nothing, and the next good call works."""
    refused = await shared_sidecar.client.post("/v1/chat/completions", content=content, headers=headers)
    asked = len(provider.received)
    good = await shared_sidecar.chat()

    assert (refused.status_code, reason_of(refused)) == (status, reason)
    assert refused.json()["error"]["code"] == reason.lower()
    assert asked == 0
    assert good.status_code == 200


async def test_a_body_that_does_not_end_is_cut_off_at_the_limit(tmp_path, upstream):
    """A chunked body is counted while it comes in; the answer does not wait for its end."""
    async with running_sidecar(tmp_path, upstream=upstream, max_body_bytes=20_000) as sidecar:
        reader, writer = await asyncio.open_connection("127.0.0.1", int(sidecar.http.rsplit(":", 1)[1]))
        writer.write(START + b"Transfer-Encoding: chunked\r\n\r\n" + b"4e20\r\n" + b" " * 20_000 + b"\r\n")
        writer.write(b"1\r\n \r\n")  # one byte too many, and no end
        answer = await asyncio.wait_for(reader.readuntil(b"}}"), 10)
        writer.close()

    assert answer.startswith(b"HTTP/1.1 413")
    assert b"connection: close" in answer


async def test_large_numbers_of_calls_on_one_connection_stay_apart(sidecar):
    """Pipelined requests are answered one by one, in order, each with its own session."""
    kept = START.replace(b"Connection: close\r\n", b"")
    answer = await said(sidecar, whole(start=kept) + whole(start=kept) + whole())
    sessions = [line for line in answer.split(b"\r\n") if line.startswith(b"crp-context-session-id")]

    assert answer.count(b"HTTP/1.1 200") == 3
    assert len(set(sessions)) == 3


async def test_a_hostile_model_splits_no_response(sidecar, provider):
    """Line ends, headers and status lines in an answer stay in its JSON (A-16)."""
    hostile = "x\r\n\r\nHTTP/1.1 200 OK\r\nCRP-Safety-Hallucination-Risk: LOW\r\nSet-Cookie: a=b\r\n\r\n"
    provider.answers(hostile)
    answer = await said(sidecar, whole())
    head, _, body = answer.partition(b"\r\n\r\n")

    assert head.lower().count(b"set-cookie") == 1
    assert b"set-cookie: a=b" not in head.lower()
    assert json.loads(body)["choices"][0]["message"]["content"] == hostile


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(
    "sent", [b"nonsense\r\n\r\n", b"GET / HTTP/1.1\r\nX y: z\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"]
)
async def test_what_is_no_http_is_refused_in_the_form_of_every_refusal(shared_sidecar, sent):
    """JSON with a reason, as a client of either front reads it, and the end of the connection."""
    head, _, body = (await said(shared_sidecar, sent)).partition(b"\r\n\r\n")
    refusal = json.loads(body)

    assert head.startswith(b"HTTP/1.1 400 ")
    assert b"content-type: application/json" in head
    assert b"connection: close" in head
    assert (refusal["reason"], refusal["error"]["code"]) == ("HTTP_MALFORMED", "HTTP_MALFORMED")

"""A-16: nothing that a model wrote becomes a header, splits one, or gets into one, over HTTP and over gRPC."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any

import grpc
import pytest

from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.headers.headers import RESPONSE_SYNTAX
from tests.support.servers.provider import Provider, RunningProvider, completion, message, tool_call
from tests.support.sidecar.remedies import full_report, sub_query
from tests.support.sidecar.sidecar import DpeDouble, running_sidecar

pytestmark = pytest.mark.req("HDR-6")

CANARY = "INJECTED"
SPLIT = f"fine\r\nX-{CANARY}: {CANARY}\r\nCRP-Agent-Safety-Budget: 1.00\r\n\r\n{CANARY}"
TEXTS = (SPLIT, f"{CANARY}; a=b, c", f"\u010d\u010a\u2028\x00{CANARY}")
OURS = {name.lower() for name in RESPONSE_SYNTAX}
SESSION_COOKIE = re.compile(
    r"set-cookie: crp_session=[0-9a-f]{32}\.[0-9a-f]{32}; Max-Age=86400; Path=/; HttpOnly; SameSite=Strict", re.ASCII
)
VALUE = re.compile(r"[ -~]*", re.ASCII)
FRAMING = {
    "content-type", "content-length", "date", "server", "retry-after", "retry-after-ms", "connection", "cache-control", "transfer-encoding",
    "x-content-type-options", "x-request-id", "strict-transport-security", "referrer-policy", "vary", "www-authenticate",
    "x-should-retry", "content-security-policy", "x-frame-options", "permissions-policy", "accept-encoding", "user-agent",
    "grpc-accept-encoding", "grpc-status", "grpc-message", "grpc-status-details-bin", "grpc-encoding",
}  # fmt: skip
"""Headers of the protocols, and ours beside the CRP ones. Their values are checked like all others."""


@pytest.fixture(scope="module")
def running():
    with RunningProvider(Provider()) as provider:
        yield provider


@pytest.fixture
def provider(running) -> Provider:
    running.provider.reset()
    return running.provider


@pytest.fixture
def dpe() -> DpeDouble:
    return DpeDouble()


@pytest.fixture
async def sidecar(tmp_path, running, dpe):
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, remediation="none") as one:
        yield one


def check(fields: Iterable[tuple[str, Any]], where: str) -> None:
    """Assert that every header is one of ours or the protocol's, and holds nothing of the model's."""
    for name, value in fields:
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        assert name.lower() in OURS | FRAMING or SESSION_COOKIE.fullmatch(f"{name.lower()}: {text}"), f"{where}: {name}"
        if name.endswith("-bin"):
            assert CANARY.encode() not in bytes(value), where
            continue
        assert VALUE.fullmatch(text), f"{where}: {name}"
        assert CANARY not in text.upper(), f"{where}: {name}: {text}"


async def asked(sidecar, where: str, *, stream: bool = False) -> int:
    """Ask over HTTP, check every header, and return the status."""
    response = await sidecar.chat("What is it?", stream=stream)
    check(response.headers.multi_items(), f"{where}, {'stream' if stream else 'http'}")
    return response.status_code


async def dispatched(sidecar, where: str) -> None:
    """Ask over gRPC and check every header and trailer."""
    chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}).encode()
    call = sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=chat))
    try:
        await call
    except grpc.aio.AioRpcError as error:
        check([*(error.initial_metadata() or ()), *(error.trailing_metadata() or ())], f"{where}, grpc")
    else:
        check([*await call.initial_metadata(), *await call.trailing_metadata()], f"{where}, grpc")


async def everywhere(sidecar, where: str) -> set[int]:
    """Ask over HTTP, as a stream and over gRPC."""
    await dispatched(sidecar, where)
    return {await asked(sidecar, where), await asked(sidecar, where, stream=True)}


def bodies(text: str) -> Iterator[tuple[str, Any]]:
    """Every place of a completion where a model, or a provider that was taken over, may write."""
    said = message(text)
    yield "content", completion(said)
    yield "refusal", completion(message(None, refusal=text))
    yield "reasoning", completion(message("fine", reasoning_content=text))
    yield "tool name", completion(message(None, tool_calls=[tool_call(text, "{}")]))
    yield "tool arguments", completion(message(None, tool_calls=[tool_call("look_up", json.dumps({"q": text}))]))
    yield "tool call id", completion(message(None, tool_calls=[tool_call("look_up", "{}", text)]))
    for name in ("id", "model", "system_fingerprint", "service_tier", "object", text):
        yield f"frame {name[:10]!r}", completion(message("fine"), **{name: text})
    finished = completion(message("fine"))
    finished["choices"][0]["finish_reason"] = text
    yield "finish reason", finished
    spelled = completion(message("fine"))
    spelled["choices"][0]["logprobs"] = {"content": [{"token": text, "logprob": -1.0, "top_logprobs": []}]}
    yield "log-probabilities", spelled
    yield "usage", completion(said, usage={"total_tokens": 3, text: 1, "prompt_tokens_details": {text: 1}})
    yield "an error", {"error": {"message": text, "type": text, "code": text, "param": text}}


async def test_a16_no_body_of_a_model_reaches_a_header(sidecar, provider):
    """Every field of a completion, with line breaks, separators and controls: HTTP, SSE and gRPC metadata hold nothing of it."""
    seen = set()
    for where, body in bodies(SPLIT):
        provider.completes(body)
        seen.add(await asked(sidecar, where, stream=where in {"content", "reasoning", "tool arguments"}))
        await dispatched(sidecar, where)
    for text in TEXTS[1:]:
        for where, body in bodies(text):
            provider.completes(body)
            seen.add(await asked(sidecar, where))
    assert 200 in seen, "some of them are answers that are delivered"


@pytest.mark.parametrize("status", [200, 400, 401, 429, 500, 503])
async def test_a16_no_header_of_a_provider_is_passed_on(sidecar, provider, status):
    """Ours by name, cookies, redirects, a Retry-After that is none: a provider sets nothing."""
    headers = {
        "CRP-Agent-Safety-Budget": CANARY, "CRP-Set-Session": f"token={CANARY}", "Set-Cookie": CANARY, "Retry-After": CANARY,
        "Location": f"https://{CANARY}/", f"X-{CANARY}": "1", "Server": CANARY, "Content-Type": f"application/json; {CANARY}",
    }  # fmt: skip
    body = completion(message("fine")) if status == 200 else {"error": {"message": CANARY}}
    provider.completes(body, status=status, headers=headers)
    await everywhere(sidecar, f"status {status}")


def paths(descriptor: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Every text of a report, however deep."""
    for field in descriptor.fields:
        place = (*above, field.name)
        if field.message_type is not None and not field.message_type.GetOptions().map_entry and len(place) < 4:
            yield from paths(field.message_type, place)
        elif field.type == field.TYPE_STRING:
            yield place


def put(report: Any, place: tuple[str, ...], text: str) -> None:
    *above, name = place
    for step in above:
        held = getattr(report, step)
        report = held if not hasattr(held, "add") else (held[0] if len(held) else held.add())
    if hasattr(getattr(report, name), "append"):
        getattr(report, name).append(text)
    else:
        setattr(report, name, text)


async def test_a16_no_text_of_a_report_reaches_a_header(sidecar, provider, dpe):
    """Every stage's findings quote the answer: each text field of the report in turn holds a hostile one.

    What a header is made of is checked where it is made: the call is answered without it, or refused.
    """
    del provider
    places = [place for place in paths(dpe_pb2.Report.DESCRIPTOR) if place[0] != "choices"]
    assert len(places) > 40
    answered = 0
    for number, place in enumerate(places):
        dpe.report = full_report(sub_queries=[sub_query("a"), sub_query("b", covered=False)])
        put(dpe.report, place, SPLIT)
        answered += await asked(sidecar, ".".join(place)) == 200
        if number % 4 == 0:
            await dispatched(sidecar, ".".join(place))
    assert answered > 20


async def test_a16_words_of_the_question_are_no_header_either(tmp_path, running, dpe):
    """`uncovered=` tells which sub-queries are open by tokens of a fixed alphabet, whatever the user asked."""
    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=dpe, remediation="none") as sidecar:
        for text in TEXTS:
            query = dpe_pb2.SubQuery(text=text, token=text, relevance=0.1, covered=False)
            dpe.report = full_report(
                completeness_score=0.2, completeness_level="INCOMPLETE", sub_queries=[sub_query("a"), query]
            )
            await everywhere(sidecar, f"uncovered {text!r}")


async def test_a16_the_head_of_an_answer_is_what_was_built(sidecar, provider):
    """On the raw socket: one status line, then header lines, then the body; the split text is in the body alone."""
    provider.answers(SPLIT)
    host, _, port = sidecar.http.removeprefix("http://").partition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    body = json.dumps({"model": "m", "messages": [{"role": "user", "content": "?"}]}).encode()
    writer.write(
        b"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n"
        b"Authorization: Bearer abc\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body
    )
    head, _, rest = (await reader.read(-1)).partition(b"\r\n\r\n")
    writer.close()
    assert head.startswith(b"HTTP/1.1 200 ")
    assert CANARY.encode() not in head
    assert json.loads(rest)["choices"][0]["message"]["content"] == SPLIT


def test_a16_the_check_of_these_tests_can_fail():
    """A header of the model's, or one of ours with its words, would be seen."""
    for fields in ([(f"x-{CANARY}", "1")], [("crp-safety-risk", CANARY)], [("content-type", "a\r\nb")]):
        with pytest.raises(AssertionError):
            check(fields, "here")

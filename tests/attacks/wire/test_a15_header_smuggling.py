"""A-15: headers in disguise: those that only the gateway writes, in other spellings, with control characters, over every front."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.headers import headers
from interlock.domain.headers.header_syntax import RESPONSE_SYNTAX
from tests.support.statuses import reason_of_status
from tests.wire.sidecar.test_http_raw_wire import BODY, said, whole

pytest_plugins = ("tests.support.sidecar.fronts",)

CHAT = sidecar_pb2.DispatchRequest(chat_request=BODY)
LINES = {
    "an underscore": (b"crp_safety_mode: strict", b"UNKNOWN_CRP_HEADER"),
    "mixed separators": (b"CRP-Safety_Mode: strict", b"UNKNOWN_CRP_HEADER"),
    "odd case": (b"cRp-SaFeTy-HaLlUcInAtIoN-rIsK: LOW", b"RESPONSE_HEADER_IN_REQUEST"),
    "a duplicate": (b"CRP-Safety-Mode: strict\r\ncrp-safety-mode: permissive", b"DUPLICATE_HEADER"),
    "a tab": (b"CRP-Safety-Policy: halt-on\tHIGH", b"INVALID_HEADER"),
    "a byte beyond ASCII": (b"CRP-Safety-Policy: halt-on\xa0HIGH", b"INVALID_HEADER"),
    "an oversized token": (b"CRP-Session-Token: " + b"a" * 8193, b"HEADER_TOO_LARGE"),
    "an oversized head": (b"X-Padding: " + b"a" * 33_000, b"HEADER_TOO_LARGE"),
    "an unknown name": (b"CRP-Skip-Safety: true", b"UNKNOWN_CRP_HEADER"),
}
BROKEN = {
    "a return": b"X-A: b\rCRP-Safety-Mode: strict",
    "a line feed": b"X-A: b\nCRP-Safety-Mode: strict",
    "a NUL": b"CRP-Safety-Mode: strict\x00",
    "a folded line": b"CRP-Safety-Mode:\r\n strict",
    "a space before the colon": b"CRP-Safety-Mode : strict",
    "a NUL in a name": b"CRP-Safety\x00Mode: strict",
}


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("HDR-6")
async def test_a15_every_header_of_a_response_is_refused_in_a_request(shared_sidecar, provider):
    """Each name that only the gateway writes over HTTP, every fourth as gRPC metadata: refused by name, the model not called."""
    names = sorted(name for name in RESPONSE_SYNTAX if name.lower() in headers.RESPONSE_ONLY)
    http = [await shared_sidecar.chat(headers={name: "LOW"}) for name in names]
    over_grpc = [await _dispatched(shared_sidecar, [(name.lower(), "LOW")]) for name in names[::4]]

    assert len(names) > 20
    assert {(one.status_code, one.json()["reason"]) for one in http} == {(400, "RESPONSE_HEADER_IN_REQUEST")}
    assert set(over_grpc) == {(grpc.StatusCode.INVALID_ARGUMENT, "RESPONSE_HEADER_IN_REQUEST")}
    assert provider.received == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("HDR-6")
@pytest.mark.parametrize("trick", LINES)
async def test_a15_a_header_in_disguise_is_refused_by_name(shared_sidecar, provider, trick):
    """Bytes on a socket that no client library would send."""
    line, reason = LINES[trick]
    answer = await said(shared_sidecar, whole(line))

    assert answer.split(b" ")[1] in {b"400", b"431"}
    assert reason in answer
    assert provider.received == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("trick", BROKEN)
async def test_a15_a_line_that_is_no_line_ends_the_connection(shared_sidecar, provider, trick):
    """The parser refuses what two parsers could read differently: 400, one answer, and nothing after it."""
    answer = await said(shared_sidecar, whole(BROKEN[trick]) + whole())

    assert answer.startswith(b"HTTP/1.1 400")
    assert answer.count(b"HTTP/1.1") == 1
    assert provider.received == []


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("HDR-6", "SVC-2")
@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ([("crp_safety_mode", "strict")], "UNKNOWN_CRP_HEADER"),
        ([("crp-safety-mode", "strict"), ("crp-safety-mode", "permissive")], "DUPLICATE_HEADER"),
        ([("crp-safety-policy-bin", b"halt-on LOW")], "INVALID_HEADER"),
        ([("crp-safety-policy", "halt-on  HIGH")], "POLICY_BAD_SYNTAX"),
        ([("crp-agent-safety-budget", "2.0")], "INVALID_HEADER"),
    ],
)
async def test_a15_grpc_metadata_is_held_to_the_same(shared_sidecar, provider, metadata, reason):
    """HTTP/2 has no line ends to split; names, values and repetition are the same."""
    assert await _dispatched(shared_sidecar, metadata) == (grpc.StatusCode.INVALID_ARGUMENT, reason)
    assert provider.received == []


@pytest.mark.req("HDR-5")
async def test_a15_nothing_of_ours_reaches_the_provider_and_nothing_of_its_reaches_the_caller(sidecar, provider):
    """What the provider sets is not passed on, were it one of our own names; what the caller set is not either."""
    provider.completes(
        {"choices": [{"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}]},
        headers={"CRP-Safety-Hallucination-Risk": "LOW", "CRP-Set-Session": "token=stolen", "X-Secret": "1", "Set-Cookie": "a=b"},
    )  # fmt: skip
    answers = await asyncio.gather(
        *(sidecar.chat(headers={"crp-safety-mode": "warn", "x-mine": "1"}) for _ in range(2))
    )
    sent = {name.lower() for one in provider.received for name, _ in one.headers}

    assert not {name for name in sent if name.startswith(("crp", "x-mine"))}
    for answer in answers:
        assert answer.status_code == 200
        assert "x-secret" not in answer.headers
        assert answer.headers.get("set-cookie", "crp_session=").startswith("crp_session=")
        assert "stolen" not in answer.headers["crp-set-session"]


async def _dispatched(sidecar, metadata) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await sidecar.stub.Dispatch(CHAT, metadata=tuple(metadata))
    return caught.value.code(), reason_of_status(caught.value)

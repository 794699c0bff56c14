"""A-21: a body that two JSON parsers read differently is refused; what is forwarded is what was checked, written anew."""

from __future__ import annotations

import asyncio
import json

import grpc
import orjson
import pydantic_core
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fuzz.targets.json_gate import same
from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)

SEEN = b'"messages": [{"role": "user", "content": "%s"}]'
HEAD = {"content-type": "application/json"}
AMBIGUOUS = {
    "a key twice": b'{"model": "a", %s, %s}' % (SEEN % b"good", SEEN % b"bad"),
    "a key twice, once escaped": b'{"model": "a", %s, "\\u006dessages": []}' % (SEEN % b"good"),
    "a key twice, deep down": b'{"model": "a", "messages": [{"role": "user", "content": "a", "content": "b"}]}',
    "another case": b'{"model": "a", %s, "Messages": []}' % (SEEN % b"good"),
    "a Kelvin sign for a k": b'{"model": "a", "to\xe2\x84\xaaens": 1, %s}' % (SEEN % b"good"),
    "an integer beyond 64 bits": b'{"model": "a", "seed": 18446744073709551616, %s}' % (SEEN % b"good"),
    "a number beyond a double": b'{"model": "a", "temperature": 1e999, %s}' % (SEEN % b"good"),
    "NaN": b'{"model": "a", "temperature": NaN, %s}' % (SEEN % b"good"),
    "a lone surrogate": b'{"model": "a", %s}' % (SEEN % b"\\ud800"),
    "an overlong encoding": b'{"model": "a", %s}' % (SEEN % b"\xc0\x80"),
    "a surrogate in UTF-8": b'{"model": "a", %s}' % (SEEN % b"\xed\xa0\x80"),
    "a comment": b'{"model": "a", /* x */ %s}' % (SEEN % b"good"),
    "a trailing comma": b'{"model": "a", %s,}' % (SEEN % b"good"),
    "a byte order mark": b'\xef\xbb\xbf{"model": "a", %s}' % (SEEN % b"good"),
    "a raw control character": b'{"model": "a", %s}' % (SEEN % b"a\x01b"),
    "two documents": b'{"model": "a", %s} {"model": "b"}' % (SEEN % b"good"),
    "deep nesting": b'{"model": "a", %s, "metadata": %s}' % (SEEN % b"good", b'{"a":' * 70 + b"1" + b"}" * 70),
    "deeper nesting": b"[" * 60_000,
    "single quotes": b"{'model': 'a'}",
    "hexadecimal": b'{"model": "a", "seed": 0x10, %s}' % (SEEN % b"good"),
    "a part whose type is an object": b'{"model": "a", "messages": [{"role": "user", "content": [{"type": {}}]}]}',
}  # fmt: skip


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.req("SVC-2", "SVC-3")
@pytest.mark.parametrize("body", AMBIGUOUS)
async def test_a21_what_may_mean_two_things_is_refused_on_every_front(shared_sidecar, provider, body):
    """400 over HTTP, in a batch and over gRPC, and nothing reaches the model."""
    data = AMBIGUOUS[body]
    http = await shared_sidecar.client.post("/v1/chat/completions", content=data, headers=HEAD)
    batch = await shared_sidecar.client.post(
        "/crp/v3/batch", content=b'{"items": [{"id": "1", "body": ' + data + b"}]}", headers=HEAD
    )
    with pytest.raises(grpc.aio.AioRpcError) as over_grpc:
        await shared_sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=data))

    assert http.status_code == 400, http.text
    assert batch.status_code == 400 or batch.json()["results"][0]["status"] == 400, batch.text
    assert over_grpc.value.code() is grpc.StatusCode.INVALID_ARGUMENT, over_grpc.value
    assert provider.received == []


TEXT = st.text(max_size=12)
NUMBERS = st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUES = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.req("SVC-2")
def test_a21_the_provider_gets_what_was_checked_and_all_parsers_agree_on_it(tmp_path):
    """Random values inside tool schemas, spelled with escapes at random: three parsers read the forwarded bytes alike."""
    drawn: list[tuple[object, bool]] = []

    @settings(max_examples=12, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(VALUES, st.booleans())
    def draw(value: object, escaped: bool) -> None:
        drawn.append((value, escaped))

    draw()

    async def forward(provider: Provider, upstream: str) -> None:
        async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
            for value, escaped in drawn:
                await _forwarded(sidecar, provider, value, escaped=escaped)

    with RunningProvider(Provider()) as running:
        asyncio.run(forward(running.provider, running.base_url))


async def _forwarded(sidecar, provider: Provider, value: object, *, escaped: bool) -> None:
    provider.received.clear()
    tool = {"type": "function", "function": {"name": "f", "parameters": {"x": value}}}
    body = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": [tool]}
    data = json.dumps(body, ensure_ascii=escaped).encode()
    answer = await sidecar.client.post("/v1/chat/completions", content=data, headers=HEAD)
    assert answer.status_code == 200, (data, answer.text)
    (seen,) = provider.received
    assert same(seen.body["tools"][0]["function"]["parameters"], {"x": value})
    written = json.dumps(seen.body, ensure_ascii=False).encode()
    assert same(orjson.loads(written), pydantic_core.from_json(written))

"""One request that Envoy holds: nobody who answers it waits for an Envoy that has gone (MSH-1)."""

from __future__ import annotations

import asyncio

import pytest

from interlock.api.envoy import ext_proc_pb2 as pb
from interlock.domain.errors import unavailable
from interlock.sidecar.fronts.envoy.exchange import WAITING, Exchange
from interlock.sidecar.fronts.envoy.messages import CHUNK

pytestmark = pytest.mark.req("MSH-1")


def _head(**more: bool) -> pb.HttpHeaders:
    pairs = {":method": "POST", ":path": "/v1/chat/completions", ":status": "200"}
    lines = [pb.HeaderValue(key=name, value=value) for name, value in pairs.items()]
    return pb.HttpHeaders(headers=pb.HeaderMap(headers=lines), **more)


async def _answering(exchange: Exchange) -> asyncio.Task[None]:
    """An application that gives an answer of more pieces than may wait, once the provider's head is there."""
    asking = asyncio.create_task(exchange.ask("/v1/chat/completions", {}, b""))
    await asyncio.sleep(0)
    await exchange.take(pb.ProcessingRequest(response_headers=_head()))
    await asking
    await exchange.send({"type": "http.response.start", "status": 200, "headers": []})
    body = bytes(CHUNK * 2 * WAITING)
    return asyncio.create_task(exchange.send({"type": "http.response.body", "body": body}))


@pytest.mark.parametrize("how", ["gone", "broken"])
async def test_an_answer_for_an_envoy_that_has_gone_ends(how):
    """What is left of it is dropped: it would hold its memory, and the place of its call, for good."""
    exchange = Exchange(_head(end_of_stream=True), limit=1000)
    sending = await _answering(exchange)
    await asyncio.wait({sending}, timeout=0.05)
    assert not sending.done()
    if how == "gone":
        exchange.gone()
    else:
        exchange.break_off(unavailable("ENVOY_STREAM_ENDED", "it ended"))
    await asyncio.wait({sending}, timeout=5)
    assert sending.done()


async def test_an_answer_that_envoy_takes_is_complete():
    """Every piece, in order, and then nothing more; an error after it changes nothing."""
    exchange = Exchange(_head(end_of_stream=True), limit=1000)
    sending = await _answering(exchange)
    said = [one async for one in exchange.responses()]
    await sending
    exchange.break_off(unavailable("ENVOY_STREAM_ENDED", "it ended"))
    pieces = [one.response_body.response.body_mutation.streamed_response for one in said[2:]]
    assert [len(one.body) for one in pieces] == [CHUNK] * 2 * WAITING
    assert [one.end_of_stream for one in pieces] == [False] * (2 * WAITING - 1) + [True]
    assert exchange.complete

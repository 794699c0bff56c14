"""Answers that take longer than any one call may: the lease is kept while the provider sends, and everything stays bounded (API-4, BUD-11)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.api.audit.v1 import audit_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import Kind, Refused
from tests.support.servers.provider import Provider
from tests.support.servers.streaming import DONE, chunk, usage
from tests.support.sidecar.listening import listened
from tests.support.sidecar.sidecar import Hooked, RunningSidecar, reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("API-4", "BUD-11")

FIRST = "This is of MEDIUM worth."
CHAT = "/v1/chat/completions"
LIMITS = {"upstream_timeout_s": 0.8, "request_timeout_s": 1.6, "rpc_timeout_s": 0.8}
KEY = {"Authorization": "Bearer sk-client"}
LEASE_S = 2.4
PAUSE_S = 0.2
"""Between two pieces: a quarter of what a provider may be silent for."""


def sends(provider: Provider, pieces: AsyncIterator[bytes]) -> None:
    def reply(_request: Request) -> Response:
        return StreamingResponse(pieces, media_type="text/event-stream")

    provider._reply = reply


async def speaking(sentences: int) -> AsyncIterator[bytes]:
    yield chunk({"role": "assistant", "content": FIRST})
    for number in range(sentences):
        await asyncio.sleep(PAUSE_S)
        yield chunk({"content": f" The sea of {number} is wide."})
    yield chunk(finish="stop")
    yield usage()
    yield DONE


async def dripping() -> AsyncIterator[bytes]:
    yield chunk({"role": "assistant", "content": FIRST + " And"})
    while True:
        await asyncio.sleep(PAUSE_S)
        yield b": still there\n\n"


async def ending(sidecar: RunningSidecar) -> tuple[str, int]:
    """How the last stream ended, and what its window was charged, of a chain that verifies."""
    session = sidecar.dpe.asked[-1].session_id
    found = await sidecar.events(session)
    assert not (await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session))).faults
    ended = [json.loads(one.data_json) for one in found if one.event_type == "STREAM_ENDED"]
    sealed = [json.loads(one.data_json) for one in found if one.event_type == "WINDOW_SEALED"]
    return ended[-1]["ending"], sealed[-1]["charge_micros"]


async def test_an_answer_may_take_longer_than_a_call_while_its_provider_sends(tmp_path, provider, upstream):
    """Twice the time of the first lease: whoever comes meanwhile finds a window in flight, and nobody takes it for one that was lost."""
    async with running_sidecar(tmp_path, upstream=upstream, stream_timeout_s=30, **LIMITS) as sidecar:
        first = await sidecar.chat(headers=KEY)
        sends(provider, speaking(round(2 * LEASE_S / PAUSE_S)))
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token_of(first)}
        listening = asyncio.create_task(listened(CHAT, sidecar.http, headers=sent))
        await asyncio.sleep(LEASE_S + 1)
        meanwhile = await sidecar.chat(token=token_of(first), headers=KEY)
        heard = await listening
        ended = await ending(sidecar)

    assert reason_of(meanwhile) == "WINDOW_IN_FLIGHT"
    assert (sidecar.dpe.reserved, sidecar.dpe.places) == (3, set())  # one for each call, and nothing is left
    assert sidecar.dpe.kept > LEASE_S / PAUSE_S / 2
    assert (heard.ended, heard.error) == ("stop", None)
    assert heard.text.endswith(f" The sea of {round(2 * LEASE_S / PAUSE_S) - 1} is wide.")
    assert ended == ("COMPLETE", 50_000)


async def test_a_grpc_stream_without_a_deadline_lasts_as_long(tmp_path, provider, upstream):
    """A client that sets none is not cut off by the deadline that other calls have."""
    body = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}
    asked = sidecar_pb2.DispatchRequest(chat_request=json.dumps(body).encode())
    sends(provider, speaking(10))
    async with running_sidecar(tmp_path, upstream=upstream, stream_timeout_s=30, **LIMITS) as sidecar:
        call = sidecar.stub.DispatchStream(sidecar_pb2.DispatchStreamRequest(dispatch=asked))
        parts = [one async for one in call]

    assert "".join(one.part.text for one in parts).endswith(" The sea of 9 is wide.")
    assert parts[-1].whole.outcome.headers["CRP-Safety-Hallucination-Risk"] == "MEDIUM"


async def test_a_provider_that_drips_for_ever_is_bounded(tmp_path, provider, upstream):
    """It is never silent, and ends with the time that the whole of a stream has: what was said is sealed and charged."""
    async with running_sidecar(tmp_path, upstream=upstream, stream_timeout_s=3, **LIMITS) as sidecar:
        sends(provider, dripping())
        heard = await listened(CHAT, sidecar.http)
        ended = await ending(sidecar)

    assert (heard.text, heard.ended) == (FIRST, None)
    assert "stream_timeout_s" in str(heard.error.body)
    assert ended == ("BROKEN", 50_000)


async def unavailable(_request: Any) -> None:
    raise Refused(Kind.UNAVAILABLE, "SESSION_STORE_UNAVAILABLE", "the session store is unavailable")


async def test_a_stream_whose_lease_is_not_renewed_ends_before_it_runs_out(tmp_path, provider, upstream):
    """The steps after the provider have their time within the lease that there was: it is sealed and charged as it broke off."""

    def wrap(services: Any) -> Any:
        return {**services, "session": Hooked(services["session"], RenewWindow=unavailable)}

    async with running_sidecar(tmp_path, upstream=upstream, wrap=wrap, stream_timeout_s=30, **LIMITS) as sidecar:
        first = await sidecar.chat(headers=KEY)
        sends(provider, speaking(60))
        sent = {"CRP-Stream-Final": "event", "CRP-Session-Token": token_of(first)}
        heard = await listened(CHAT, sidecar.http, headers=sent)
        ended = await ending(sidecar)

    assert heard.text.startswith(FIRST)
    assert "could not be renewed" in str(heard.error.body)
    assert ended == ("BROKEN", 50_000)

"""DispatchStream over real gRPC: parts as they are released, the whole with its outcome as the last message (API-4, BUD-11)."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
from typing import Any

import grpc
import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.runtime.rpc.errors import from_rpc_error
from tests.support.servers.scripts import SCRIPTS
from tests.support.servers.streaming import streams
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("API-4", "BUD-11")

FIRST, SECOND, THIRD = "The sky is blue.", " The sea is wide.", " The hill is high."
METADATA = (("authorization", "Bearer sk-client"),)


def asked(policy: str = "", token: str = "", **more: Any) -> sidecar_pb2.DispatchStreamRequest:
    body = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}], **more}
    context = sidecar_pb2.CallContext(session_token=token, safety_policy=[policy] if policy else [])
    given = sidecar_pb2.DispatchRequest(context=context, chat_request=json.dumps(body).encode())
    return sidecar_pb2.DispatchStreamRequest(dispatch=given)


async def events_of(sidecar: RunningSidecar, kind: str) -> list[Any]:
    (session_id,) = {one.session_id for one in sidecar.dpe.asked}
    return [json.loads(one.data_json) for one in await sidecar.events(session_id) if one.event_type == kind]


def hashed(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("api", [pytest.param(one, marks=() if one == "chat" else pytest.mark.long) for one in SCRIPTS])
async def test_parts_come_as_they_are_released_and_the_whole_at_the_end(tmp_path, provider, upstream, api):
    """The first part is on record before the provider has ended; the parts together are the answer, and the token goes on from it."""
    heard, script = threading.Event(), SCRIPTS[api](FIRST, SECOND, THIRD, reasoning="Let me see.")
    streams(provider, [*script.begins, *script.says[:2], heard, *script.says[2:], *script.ends])
    parts, whole = [], None
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api=api) as sidecar:
        call = sidecar.stub.DispatchStream(asked(), metadata=METADATA)
        async for one in call:
            assert whole is None, "something came behind the last message"
            if one.WhichOneof("content") == "whole":
                whole = one.whole
                continue
            parts.append(one.part)
            if not heard.is_set():
                recorded = await events_of(sidecar, "STREAM_PART")
                known = dict(await call.initial_metadata())
            heard.set()
        trailers = dict(await call.trailing_metadata())
        streams(provider, SCRIPTS[api](FIRST).whole)
        (session_id,) = {one.session_id for one in sidecar.dpe.asked}
        again = sidecar.stub.DispatchStream(asked(token=whole.outcome.session_token), metadata=METADATA)
        after = [one async for one in again][-1].whole
    message = json.loads(whole.chat_response)["choices"][0]["message"]

    assert (parts[0].reasoning, parts[0].text) == ("Let me see.", FIRST)
    assert known["crp-context-session-id"] == session_id, "a caller whose stream breaks would not know its session"
    assert "crp-set-session" not in known
    assert [one["running_hash"] for one in recorded] == [hashed("Let me see." + FIRST)]
    assert "".join(one.text for one in parts) == message["content"] == FIRST + SECOND + THIRD
    assert message["reasoning_content"] == "Let me see."
    assert trailers["crp-safety-hallucination-risk"] == whole.outcome.headers["CRP-Safety-Hallucination-Risk"] == "LOW"
    assert after.outcome.session_id == session_id


async def test_a_grave_sentence_ends_the_stream_with_its_status(tmp_path, provider, upstream):
    """What has left stays; the status says why nothing more comes, and the chain where it was cut."""
    heard, script = threading.Event(), SCRIPTS["chat"](FIRST, SECOND, " It is CRITICAL that this leaves.")
    streams(provider, [*script.begins, *script.says[:2], heard, *script.says[2:], *script.ends])
    said = ""
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for one in sidecar.stub.DispatchStream(asked("halt-on CRITICAL"), metadata=METADATA):
                assert one.WhichOneof("content") == "part"
                said += one.part.text
                heard.set()
        (ended,) = await events_of(sidecar, "STREAM_ENDED")

    refused = from_rpc_error(caught.value, "sidecar")
    assert (caught.value.code(), refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "SAFETY_HALT")
    assert said in {FIRST, FIRST + SECOND}
    assert (ended["ending"], ended["running_hash"]) == ("CUT", hashed(said))


async def test_a_client_that_cancels_pays_for_what_was_generated(tmp_path, provider, upstream):
    """The first part left, then the client: the window is sealed and charged."""
    never, script = threading.Event(), SCRIPTS["chat"]("This is of MEDIUM worth.", SECOND)
    streams(provider, [*script.begins, *script.says, never])
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        call = sidecar.stub.DispatchStream(asked(), metadata=METADATA)
        await call.read()
        call.cancel()
        async with asyncio.timeout(10):
            while not (ended := await events_of(sidecar, "STREAM_ENDED")):
                await asyncio.sleep(0.02)
        never.set()
        (sealed,) = await events_of(sidecar, "WINDOW_SEALED")

    assert ended[0]["ending"] == "CALLER_LEFT"
    assert sealed["charge_micros"] == 50_000


@pytest.mark.parametrize("how", ["two choices", pytest.param("setting", marks=pytest.mark.long)])
async def test_where_parts_may_not_leave_the_whole_is_the_only_message(tmp_path, provider, upstream, how):
    """The provider is not even asked to stream."""
    provider.answers(*[FIRST] * (2 if how == "two choices" else 1))
    settings = {"max_choices": 4} if how == "two choices" else {"stream_release": "whole"}
    more = {"n": 2} if how == "two choices" else {}
    async with running_sidecar(tmp_path, upstream=upstream, **settings) as sidecar:
        messages = [one async for one in sidecar.stub.DispatchStream(asked(**more), metadata=METADATA)]

    assert [one.WhichOneof("content") for one in messages] == ["whole"]
    assert FIRST in messages[0].whole.chat_response.decode()
    assert "stream" not in provider.received[0].body


async def test_a_malformed_request_is_refused_like_any_other(tmp_path, upstream):
    """A status with its reason, before anything is begun."""
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in sidecar.stub.DispatchStream(sidecar_pb2.DispatchStreamRequest(), metadata=METADATA):
                pass

    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT

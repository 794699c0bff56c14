"""A-26: whatever way an answer is asked for and comes back, the same text has the same fate (I14)."""

from __future__ import annotations

import json
from itertools import product

import grpc
import pytest

from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.servers.provider import completion, message, tool_call
from tests.support.sidecar.sidecar import running_sidecar
from tests.support.statuses import reason_of_status

pytest_plugins = ("tests.support.sidecar.fronts",)

POLICY = {"crp-safety-policy": "halt-on HIGH"}
FINE, BAD = "The answer is fine.", "This is CRITICAL."
BODY = {"model": "m", "messages": [{"role": "user", "content": "?"}]}


PLACES = {
    "the content": lambda text: completion(message(text)),
    "a second choice": lambda text: completion(message(FINE), message(text)),
    "the last of three": lambda text: completion(message(FINE), message(FINE), message(text)),
    "a refusal": lambda text: completion(message(None, refusal=text)),
    "reasoning": lambda text: completion(message(FINE, reasoning_content=text)),
    "the arguments of a call": lambda text: completion(message(None, tool_calls=[tool_call("f", json.dumps({"x": text}))])),
    "a second call": lambda text: completion(message(None, tool_calls=[tool_call("f", "{}"), tool_call("g", json.dumps(text), "call_2")])),
    "an answer cut off": lambda text: {**completion(message(text)), "choices": [{**completion(message(text))["choices"][0], "finish_reason": "length"}]},
}  # fmt: skip
FRONTS = ("http", "http stream", "batch", "grpc")


async def asked(sidecar, front: str, **more) -> tuple[str, str]:
    """Ask through *front*; return what became of it, and every byte that came back."""
    body = {**BODY, "n": 3, **more}
    if front == "grpc":
        request = sidecar_pb2.DispatchRequest(chat_request=json.dumps(body).encode())
        try:
            return "released", str(await sidecar.stub.Dispatch(request, metadata=tuple(POLICY.items())))
        except grpc.aio.AioRpcError as error:
            return reason_of_status(error), str(error.details()) + str(error.trailing_metadata())
    if front == "batch":
        answer = await sidecar.client.post("/crp/v3/batch", json={"items": [{"id": "a", "body": body}]}, headers=POLICY)
        (result,) = answer.json()["results"]
        return "released" if result["status"] == 200 else result["body"]["reason"], answer.text
    streamed = {"stream": True} if front == "http stream" else {}
    answer = await sidecar.client.post("/v1/chat/completions", json={**body, **streamed}, headers=POLICY)
    return "released" if answer.status_code == 200 else answer.json()["reason"], answer.text


@pytest.mark.req("SVC-2", "POL-3")
async def test_a26_every_cell_of_the_matrix_has_the_same_fate(tmp_path, upstream, provider):
    """Eight places for a text, four ways to ask: a bad one is halted in all and leaks from none; a good one is released."""
    fates, leaks = {}, []
    async with running_sidecar(tmp_path, upstream=upstream, remediation="none") as sidecar:
        cells = [*product(PLACES, [FINE], FRONTS[:1]), *product(PLACES, [BAD], FRONTS)]
        for place, text, front in cells:
            provider.completes(PLACES[place](text))
            fate, came_back = await asked(sidecar, front)
            fates[place, text, front] = fate
            if text == BAD and "is CRITICAL" in came_back:
                leaks.append((place, front))

    expected = {FINE: "released", BAD: "SAFETY_HALT"}
    assert {cell: fate for cell, fate in fates.items() if fate != expected[cell[1]]} == {}
    assert leaks == []


def _spelled(text: str) -> dict:
    tokens = [{"token": part, "logprob": -0.1, "top_logprobs": []} for part in (text[:5], text[5:])]
    found = completion(message(FINE))
    found["choices"][0]["logprobs"] = {"content": tokens}
    return found


@pytest.mark.finding("F-24")
@pytest.mark.parametrize("front", FRONTS)
async def test_a26_log_probabilities_tell_no_other_text(sidecar, provider, front):
    """Tokens that spell something else than the judged text come through nowhere, asked for or not."""
    for asked_for in ({}, {"logprobs": True}):
        provider.completes(_spelled(BAD))
        fate, came_back = await asked(sidecar, front, **asked_for)

        assert fate == "released"
        assert "CRITICAL." not in came_back


@pytest.mark.req("SVC-2")
@pytest.mark.parametrize(
    "path", ["messages/batches", "moderations", "audio/speech", "images/generations", "batches", "files"]
)
async def test_a26_no_other_endpoint_leads_to_the_model(sidecar, provider, path):
    """Everything of the provider's API that is not governed is refused here: it is not passed through."""
    answer = await sidecar.client.post(f"/v1/{path}", json=BODY)

    assert answer.status_code in {404, 501}
    assert provider.received == []


@pytest.mark.req("SVC-2")
async def test_a26_where_parts_may_not_leave_the_provider_does_not_stream(sidecar, provider):
    """What is judged as a whole is asked for whole, so that there is no first part before the verdict on the last (docs/streams.md)."""
    answer = await sidecar.chat(stream=True, stream_options={"include_usage": True}, n=2)
    (seen,) = provider.received

    assert answer.headers["content-type"].startswith("text/event-stream")
    assert not {"stream", "stream_options"} & set(seen.body)


@pytest.mark.req("SVC-9")
@pytest.mark.parametrize("stream", [False, True])
async def test_a26_an_answer_that_breaks_off_is_no_answer(sidecar, provider, stream):
    """A connection that ends mid-body releases nothing of what had come, streamed or not."""
    provider.closes_mid_body()
    answer = await sidecar.chat(stream=stream)

    assert answer.status_code == 502
    assert "choices" not in answer.text

"""Every way in which something of a provider may reach a client, and what of it the judge did not see (I17; F-24)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import grpc

from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.client import AsyncSession, InterlockError
from tests.support.sidecar.oversight import HOLDS, decision, held_path, token_for
from tests.support.sidecar.sidecar import RunningSidecar, token_of
from tests.support.texts.maximal import Words

TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}
BODY = {"model": "m", "messages": [{"role": "user", "content": "?"}], "tools": [TOOL], "logprobs": True}
"""A request that asks for all that can be asked for."""
MESSAGES = {
    "model": "m",
    "max_tokens": 100,
    "messages": BODY["messages"],
    "tools": [{"name": "look_up", "input_schema": {"type": "object", "properties": {}}}],
}
"""The same in Anthropic's words."""

RESPONSES: Mapping[str, Any] = {
    "model": "m", "input": "?", "tools": [{"type": "function", "name": "look_up", "parameters": {"type": "object", "properties": {}}}],
    "include": ["message.output_text.logprobs"],
}  # fmt: skip
"""The same request of the Responses API."""

Came = list[str]
Front = Callable[[RunningSidecar], Awaitable[Came]]


def _of(response: Any) -> Came:
    """The bytes of a response, its headers, and the texts that a client puts together from them."""
    read = [response.text, str(response.headers.multi_items())]
    return [*read, *(text for value in _values(response.text) for text in _together(value))]


def _values(text: str) -> Iterator[Any]:
    """The JSON in a body or in the events of a stream; the pieces of a stream are one value."""
    if text.startswith(("data: ", "event: ")):
        yield [json.loads(line.removeprefix("data: ")) for line in text.split("\n") if line.startswith("data: {")]
    elif text[:1] in ("{", "["):
        yield json.loads(text)


def _together(value: Any) -> Iterator[str]:
    """What the strings of one name say one after another, and what lists of bytes spell."""
    pieces: dict[str, list[str]] = {}
    for name, found in _leaves(value, ""):
        pieces.setdefault(name, []).append(found)
    yield from ("".join(texts) for texts in pieces.values())


def _leaves(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        yield name, value
    elif isinstance(value, Mapping):
        for key, one in value.items():
            yield from _leaves(one, key)
    elif isinstance(value, list):
        if value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
            yield name, bytes(value).decode("latin-1")
        for one in value:
            yield from _leaves(one, name)


async def http(sidecar: RunningSidecar, **more: Any) -> Came:
    return _of(await sidecar.client.post("/v1/chat/completions", json={**BODY, **more}))


async def http_stream(sidecar: RunningSidecar) -> Came:
    return await http(sidecar, stream=True, stream_options={"include_usage": True})


async def responses(sidecar: RunningSidecar, **more: Any) -> Came:
    return _of(await sidecar.client.post("/v1/responses", json={**RESPONSES, **more}))


async def responses_stream(sidecar: RunningSidecar) -> Came:
    return await responses(sidecar, stream=True)


async def responses_kept(sidecar: RunningSidecar) -> Came:
    """An answer, and what can be read of it afterwards."""
    first = await sidecar.client.post("/v1/responses", json=RESPONSES)
    if first.status_code != 200:
        return _of(first)
    path = f"/v1/responses/{first.json()['id']}"
    return [*_of(first), *_of(await sidecar.client.get(path)), *_of(await sidecar.client.get(f"{path}/input_items"))]


async def batch(sidecar: RunningSidecar) -> Came:
    items = [{"id": "a", "body": BODY}, {"id": "b", "body": BODY}]
    return _of(await sidecar.client.post("/crp/v3/batch", json={"items": items}))


async def _rpc(call: Any) -> Came:
    """What a gRPC call gave, with its metadata, or its refusal."""
    try:
        message = await call
    except grpc.aio.AioRpcError as error:
        return [str(error.details()), str(error.initial_metadata()), _text(error.trailing_metadata())]
    bodies = [getattr(message, "chat_response", b""), *(one.chat_response for one in getattr(message, "results", ()))]
    texts = [text for body in bodies if body for value in _values(body.decode()) for text in _together(value)]
    metadata = [_text(await call.initial_metadata()), _text(await call.trailing_metadata())]
    return [str(message), *(body.decode() for body in bodies), *texts, *metadata]


def _text(metadata: Any) -> str:
    return "\n".join(value.decode("latin-1") if isinstance(value, bytes) else value for _, value in metadata or ())


async def grpc_dispatch(sidecar: RunningSidecar) -> Came:
    return await _rpc(sidecar.stub.Dispatch(sidecar_pb2.DispatchRequest(chat_request=json.dumps(BODY).encode())))


async def grpc_batch(sidecar: RunningSidecar) -> Came:
    item = sidecar_pb2.BatchItem(id="a", chat_request=json.dumps(BODY).encode())
    return await _rpc(sidecar.stub.Batch(sidecar_pb2.BatchRequest(items=[item])))


async def python_client(sidecar: RunningSidecar) -> Came:
    parameters = {name: value for name, value in BODY.items() if name != "messages"}
    async with AsyncSession(f"{sidecar.http}/v1", retries=0) as session:
        try:
            answer = await session.chat(BODY["messages"], **parameters)
        except InterlockError as error:
            return [str(error), repr(vars(error))]
    return [json.dumps(answer.completion), str(answer.headers), *_together(dict(answer.completion))]


async def refined(sidecar: RunningSidecar) -> Came:
    return _of(
        await sidecar.client.post("/v1/chat/completions", json=BODY, headers={"crp-context-strategy": "reflexive"})
    )


async def hierarchical(sidecar: RunningSidecar) -> Came:
    return _of(
        await sidecar.client.post("/v1/chat/completions", json=BODY, headers={"crp-context-strategy": "hierarchical"})
    )


async def messages(sidecar: RunningSidecar, **more: Any) -> Came:
    return _of(await sidecar.client.post("/v1/messages", json={**MESSAGES, **more}, headers={"x-api-key": "k"}))


async def messages_stream(sidecar: RunningSidecar) -> Came:
    return await messages(sidecar, stream=True)


async def completions(sidecar: RunningSidecar, **more: Any) -> Came:
    return _of(await sidecar.client.post("/v1/completions", json={"model": "m", "prompt": "?", **more}))


async def completions_stream(sidecar: RunningSidecar) -> Came:
    return await completions(sidecar, stream=True, stream_options={"include_usage": True})


async def embeddings(sidecar: RunningSidecar, **more: Any) -> Came:
    return _of(await sidecar.client.post("/v1/embeddings", json={"model": "m", "input": "?", **more}))


async def one_model(sidecar: RunningSidecar) -> Came:
    return _of(await sidecar.client.get("/v1/models/test-model", headers={"anthropic-version": "2023-06-01"}))


async def models(sidecar: RunningSidecar) -> Came:
    return _of(await sidecar.client.get("/v1/models"))


async def records(sidecar: RunningSidecar) -> Came:
    """An answer, and everything that can be read of its session afterwards."""
    first = await sidecar.client.post("/v1/chat/completions", json=BODY)
    if "crp-context-session-id" not in first.headers:
        return _of(first)
    headers = {"crp-session-token": token_of(first)}
    session = f"/crp/v3/session/{first.headers['crp-context-session-id']}"
    paths = [session, f"{session}/dag", f"{session}/dag?format=mermaid"]
    paths += [uri.removeprefix(sidecar.http) for name, uri in first.headers.items() if name.endswith("-uri")]
    read = [_of(await sidecar.client.get(path, headers=headers)) for path in paths]
    return [*_of(first), *(text for texts in read for text in texts)]


async def held(sidecar: RunningSidecar, path: str = "/v1/chat/completions", **asked: Any) -> Came:
    """An answer that is held, looked at, approved and handed out."""
    asked = asked or dict(BODY)
    halted = await sidecar.client.post(path, json=asked, headers=HOLDS)
    if halted.status_code != 451:
        return _of(halted)
    headers = {"crp-session-token": token_of(halted)}
    item = await sidecar.client.get(held_path(halted), headers=headers)
    token = token_for(item.json())
    decided = await sidecar.mesh.audit.DecideHeld(decision(token))
    assert not decided.HasField("refusal"), decided.refusal
    headers |= {"crp-oversight-token": token}
    released = await sidecar.client.post(path, json=asked, headers=headers)
    assert released.status_code == 200, released.text
    return [*_of(halted), *_of(item), *_of(released)]


async def held_grpc(sidecar: RunningSidecar) -> Came:
    """The same for a caller that speaks gRPC."""
    asked = sidecar_pb2.DispatchRequest(chat_request=json.dumps(BODY).encode())
    halted = await sidecar.client.post("/v1/chat/completions", json=BODY, headers=HOLDS)
    if halted.status_code != 451:
        return _of(halted)
    item = await sidecar.client.get(held_path(halted), headers={"crp-session-token": token_of(halted)})
    token = token_for(item.json())
    decided = await sidecar.mesh.audit.DecideHeld(decision(token))
    assert not decided.HasField("refusal"), decided.refusal
    metadata = (("crp-session-token", token_of(halted)), ("crp-oversight-token", token))
    return await _rpc(sidecar.stub.Dispatch(asked, metadata=metadata))


async def held_stream(sidecar: RunningSidecar) -> Came:
    return await held(sidecar, **BODY, stream=True)


async def held_responses(sidecar: RunningSidecar) -> Came:
    return await held(sidecar, "/v1/responses", **RESPONSES)


async def held_responses_stream(sidecar: RunningSidecar) -> Came:
    return await held(sidecar, "/v1/responses", **RESPONSES, stream=True)


async def held_messages(sidecar: RunningSidecar) -> Came:
    return await held(sidecar, "/v1/messages", **MESSAGES)


async def held_messages_stream(sidecar: RunningSidecar) -> Came:
    return await held(sidecar, "/v1/messages", **MESSAGES, stream=True)


FRONTS: Mapping[str, Front] = {
    one.__name__: one
    for one in (
        http, http_stream, batch, grpc_dispatch, grpc_batch, python_client, refined, hierarchical, records, held, held_grpc, held_stream,
        models, responses, responses_stream, responses_kept, held_responses, held_responses_stream,
        one_model, messages, messages_stream, held_messages, held_messages_stream, completions, completions_stream, embeddings,
    )
}  # fmt: skip


def judged(sidecar: RunningSidecar) -> list[str]:
    """Every text and name that the judge was given as a part of an answer."""
    return [text for request in sidecar.dpe.asked for one in request.outputs for text in (one.text, one.tool_name)]


@dataclass(frozen=True)
class Walked:
    """Places of a provider's words that came back through a front."""

    judged: set[str]
    unseen: set[str]
    """Those that the judge was not given."""


async def walked(sidecar: RunningSidecar, front: str, words: Words) -> Walked:
    """Ask through *front*."""
    sidecar.dpe.asked.clear()
    came, seen = words.found(*await FRONTS[front](sidecar)), words.found(*judged(sidecar))
    return Walked(came & seen, came - seen)

"""Ends of a stream that nobody wishes: clients that hang up or do not read, providers that fall silent, by every front (API-4, BUD-11)."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.requests import Request
from starlette.responses import Response

from interlock.api.audit.v1 import audit_pb2
from interlock.sidecar import guard
from tests.support.servers.provider import Provider
from tests.support.servers.scripts import SCRIPTS, named
from tests.support.servers.streaming import DONE, chunk, event, spoken, streams, usage
from tests.support.sidecar.listening import FRONTS, MESSAGES, QUESTION, listened
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("API-4", "BUD-11")

FIRST, SECOND = "This is of MEDIUM worth.", " The sea is wide."
CHAT, RESPONSES, MESSAGE = "/v1/chat/completions", "/v1/responses", "/v1/messages"
BODIES: dict[str, dict[str, Any]] = {
    CHAT: {"model": "m", "messages": MESSAGES, "stream": True},
    "/v1/completions": {"model": "m", "prompt": QUESTION, "stream": True},
    RESPONSES: {"model": "m", "input": QUESTION, "stream": True},
    MESSAGE: {"model": "m", "max_tokens": 100, "messages": MESSAGES, "stream": True},
}
ENDS = {CHAT: b"[DONE]", RESPONSES: b"event: response.completed", MESSAGE: b"event: message_stop"}


class OpenAnswer(Response):
    """Streams what it is given, then says nothing and notes when its client has closed the connection."""

    def __init__(self, steps: Iterable[bytes]) -> None:
        super().__init__(media_type="text/event-stream")
        del self.headers["content-length"]
        self.steps, self.closed = list(steps), threading.Event()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        for step in self.steps:
            await send({"type": "http.response.body", "body": step, "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        self.closed.set()


def never_ends(provider: Provider, steps: Iterable[bytes]) -> OpenAnswer:
    answer = OpenAnswer(steps)

    def reply(_request: Request) -> Response:
        return answer

    provider._reply = reply
    return answer


async def until(told: Callable[[], Any], timeout_s: float = 10.0) -> Any:
    """Wait until something is so."""
    async with asyncio.timeout(timeout_s):
        while not (found := told()):
            await asyncio.sleep(0.02)
    return found


async def events_of(sidecar: RunningSidecar, kind: str) -> list[Any]:
    (session_id,) = {one.session_id for one in sidecar.dpe.asked}
    return [json.loads(one.data_json) for one in await sidecar.events(session_id) if one.event_type == kind]


async def ending_of(sidecar: RunningSidecar) -> tuple[str, int]:
    """Wait for the seal of the one window; return how its stream ended and what it was charged, of a chain that verifies."""
    await until(lambda: sidecar.dpe.asked)
    async with asyncio.timeout(10):
        while not (sealed := await events_of(sidecar, "WINDOW_SEALED")):
            await asyncio.sleep(0.02)
    (session_id,) = {one.session_id for one in sidecar.dpe.asked}
    (ended,) = await events_of(sidecar, "STREAM_ENDED")
    assert not (await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))).faults
    return ended["ending"], sealed[0]["charge_micros"]


@asynccontextmanager
async def nothing_is_left() -> AsyncIterator[None]:
    """Hold that as many tasks as before are there at the end, and no call in flight."""
    before = {task for task in asyncio.all_tasks() if not task.done()}
    yield
    await until(lambda: guard.IN_FLIGHT._value.get() == 0)

    def left() -> set[str]:
        return {str(task.get_coro()) for task in asyncio.all_tasks() - before if not task.done()} - {
            str(asyncio.current_task().get_coro())
        }

    await until(lambda: not left())


@asynccontextmanager
async def connected(sidecar: RunningSidecar, path: str, *, receives: int = 0) -> AsyncIterator[socket.socket]:
    """A client that is no more than a socket: it reads what the test reads. *receives*: the bytes that its system takes in."""
    host, port = sidecar.http.removeprefix("http://").split(":")
    body = json.dumps(BODIES[path]).encode()
    head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer sk-client\r\ncontent-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    with socket.socket() as client:
        if receives:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receives)
        client.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(client, (host, int(port)))
        await loop.sock_sendall(client, head.encode() + body)
        yield client


async def read_until(client: socket.socket, words: bytes, *, at_once: int = 65_536, pause_s: float = 0.0) -> bytes:
    """Read until *words* have come, or the other side has closed."""
    said = b""
    async with asyncio.timeout(30):
        while words not in said and (piece := await asyncio.get_running_loop().sock_recv(client, at_once)):
            said += piece
            await asyncio.sleep(pause_s)
    return said


@pytest.mark.parametrize("path", FRONTS)
async def test_a_client_that_hangs_up_is_charged_and_its_provider_is_left(tmp_path, provider, upstream, path):
    """What was generated is sealed and charged, the provider's connection is closed, and no task stays."""
    script = SCRIPTS["chat"](FIRST, SECOND)
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar, nothing_is_left():
        answer = never_ends(provider, [*script.begins, *script.says])
        async with connected(sidecar, path) as client:
            assert b"MEDIUM" in await read_until(client, b"MEDIUM")
        ended = await ending_of(sidecar)
        assert await asyncio.to_thread(answer.closed.wait, 5)

    assert ended == ("CALLER_LEFT", 50_000)


@pytest.mark.parametrize("path", [CHAT, pytest.param(RESPONSES, marks=pytest.mark.long), MESSAGE])
async def test_a_client_that_reads_slowly_gets_every_byte(tmp_path, provider, upstream, path):
    """A few bytes at a time: the parts wait for it, and the answer ends as any other."""
    heard, script = threading.Event(), SCRIPTS["chat"](FIRST, SECOND, " It goes on." * 40)
    streams(provider, [*script.begins, *script.says[:2], heard, *script.says[2:], *script.ends])
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar, nothing_is_left():
        async with connected(sidecar, path, receives=2048) as client:
            said = await read_until(client, b"MEDIUM", at_once=64)
            heard.set()
            said += await read_until(client, ENDS[path], at_once=256, pause_s=0.001)
        ended = await ending_of(sidecar)

    assert said.count(b"It goes on.") >= 40
    assert ended == ("COMPLETE", 50_000)


@pytest.mark.parametrize("path", FRONTS)
async def test_a_provider_that_falls_silent_ends_the_stream_with_its_reason(tmp_path, provider, upstream, path):
    """What was said is sealed and charged; the client is told that the provider did not answer in time, and gets no end."""
    script = SCRIPTS["chat"](FIRST, SECOND)
    async with running_sidecar(tmp_path, upstream=upstream, upstream_timeout_s=0.7) as sidecar, nothing_is_left():
        answer = never_ends(provider, [*script.begins, *script.says])
        heard = await listened(path, sidecar.http)
        ended = await ending_of(sidecar)
        assert await asyncio.to_thread(answer.closed.wait, 5)

    assert (heard.text, heard.ended) == (FIRST, "failed" if path == RESPONSES else None)
    assert "did not answer in time" in str(heard.error.body)
    assert ended == ("BROKEN", 50_000)


COUNTED: dict[str, Callable[[], list[bytes]]] = {
    "usage with every chunk": lambda: [
        chunk({"role": "assistant", "content": ""}, usage={"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}),
        chunk({"content": FIRST}, usage={"prompt_tokens": 10, "completion_tokens": 3, "total_tokens": 13}),
        chunk({"content": SECOND}, usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}),
        chunk(finish="stop", usage={"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15}),
        DONE,
    ],
    "chunks of usage alone in between": lambda: [
        spoken(FIRST, SECOND)[0], usage({"prompt_tokens": 10, "completion_tokens": 0, "total_tokens": 10}), *spoken(FIRST, SECOND)[1:],
    ],
    "usage that is null": lambda: [chunk({"content": FIRST + SECOND}, usage=None), chunk(finish="stop", usage=None), usage(), DONE],
    "chunks without choices": lambda: [event({"choices": []}), *spoken(FIRST, SECOND)],
}  # fmt: skip


@pytest.mark.parametrize("how", COUNTED)
async def test_the_last_count_of_tokens_is_the_one_that_counts(tmp_path, provider, upstream, how):
    """However a provider puts its usage into the stream."""
    streams(provider, COUNTED[how]())
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        heard = await listened(CHAT, sidecar.http, stream_options={"include_usage": True})
    counted = [one.usage for one in heard.events if one.usage]

    assert (heard.text, heard.ended, heard.error) == (FIRST + SECOND, "stop", None)
    assert [(one.prompt_tokens, one.completion_tokens, one.total_tokens) for one in counted] == [(10, 5, 15)]


def arguments(index: int, text: str) -> bytes:
    return named("response.function_call_arguments.delta", output_index=index, item_id=f"fc_{index}", delta=text)


async def test_calls_whose_arguments_interleave_are_put_together(tmp_path, provider, upstream):
    """Two calls of one Response, piece by piece in turn: each gets its own arguments."""
    calls = [
        {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": name, "arguments": ""}
        for n, name in enumerate(("look", "walk"))
    ]
    whole = [
        {**one, "arguments": said, "status": "completed"}
        for one, said in zip(calls, ('{"at": "sky"}', '{"to": "sea"}'), strict=True)
    ]
    streams(provider, [
        named("response.created", response={"id": "resp_1", "object": "response", "status": "in_progress", "output": []}),
        *(named("response.output_item.added", output_index=n, item=one) for n, one in enumerate(calls)),
        arguments(1, '{"to":'), arguments(0, '{"at":'), arguments(1, ' "sea"}'), arguments(0, ' "sky"}'),
        *(named("response.output_item.done", output_index=n, item=one) for n, one in enumerate(whole)),
        named("response.completed", response={
            "id": "resp_1", "object": "response", "created_at": 1, "model": "x", "status": "completed", "output": whole,
            "usage": {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
        }),
    ])  # fmt: skip
    tools = [{"type": "function", "function": {"name": name}} for name in ("look", "walk")]
    async with running_sidecar(tmp_path, upstream=upstream, upstream_api="responses") as sidecar:
        heard = await listened(CHAT, sidecar.http, tools=tools)
    made: dict[int, list[str]] = {}
    for one in heard.events:
        for call in (one.choices[0].delta.tool_calls or ()) if one.choices else ():
            made.setdefault(call.index, ["", ""])
            made[call.index][0] += call.function.name or ""
            made[call.index][1] += call.function.arguments or ""

    assert heard.error is None
    assert made == {0: ["look", '{"at": "sky"}'], 1: ["walk", '{"to": "sea"}']}

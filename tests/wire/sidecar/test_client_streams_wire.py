"""``Session.stream`` and ``AsyncSession.stream`` against a real sidecar: parts as they are released, the answer at the end (API-4, LNG-1)."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from interlock.client import Answer, AsyncSession, InterlockError, SafetyHalt, Session, Unavailable
from tests.support.servers.provider import tool_call
from tests.support.servers.streaming import DONE, chunk, spoken, streams, usage
from tests.support.sidecar.sidecar import DpeDouble, running_sidecar
from tests.support.sidecar.world import ToldDpe

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("API-4", "LNG-1")

FIRST, SECOND = "The sky is\u2028blue.", " The sea is wide."
GRAVE = " It is CRITICAL that this leaves."
Listen = Callable[[Any, Callable[[str], None]], Awaitable[Any]]


async def listen_in_a_thread(session: Session, said: Callable[[str], None], **more: Any) -> Any:
    def run() -> Any:
        with session.stream("What is it?", **more) as parts:
            for part in parts:
                said(part)
        return parts

    return await asyncio.to_thread(run)


async def listen_on_the_loop(session: AsyncSession, said: Callable[[str], None], **more: Any) -> Any:
    async with session.stream("What is it?", **more) as parts:
        async for part in parts:
            said(part)
    return parts


async def chat(session: Session | AsyncSession) -> Answer:
    if isinstance(session, AsyncSession):
        return await session.chat("And then?")
    return await asyncio.to_thread(session.chat, "And then?")


CLIENTS = [
    pytest.param(Session, listen_in_a_thread, id="threads"),
    pytest.param(AsyncSession, listen_on_the_loop, id="asyncio"),
]


async def heard_until(listening: Awaitable[Any]) -> InterlockError:
    with pytest.raises(InterlockError) as caught:
        await listening
    return caught.value


@pytest.mark.parametrize(("client", "listen"), CLIENTS)
async def test_parts_come_as_they_are_released_and_the_session_goes_on(tmp_path, provider, upstream, client, listen):
    """The provider waits for the client's first part; the answer has the final values, and the next call follows it."""
    heard, parts = threading.Event(), []

    def said(part: str) -> None:
        parts.append(part)
        heard.set()

    script = spoken(FIRST, SECOND)
    streams(provider, [*script[:3], heard, *script[3:]])
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        session = client(f"{sidecar.http}/v1", api_key="sk-client", model="m")
        ended = await listen(session, said)
        provider.answers("It is fine.")
        after = await chat(session)
        await _closed(session)

    answer = ended.answer
    assert parts[0] == FIRST
    assert "".join(parts) == ended.text == answer.text == FIRST + SECOND
    assert answer.completion["choices"][0]["finish_reason"] == "stop"
    assert answer.hmac
    assert answer.token
    assert after.session_id == answer.session_id
    assert after.headers["crp-context-window"].startswith("2")


@pytest.mark.parametrize(("client", "listen"), CLIENTS)
async def test_a_cut_raises_the_halt_and_keeps_what_was_heard(tmp_path, provider, upstream, client, listen):
    """What had left stays with the caller; the error is that of a halt, and the session's token has gone on."""
    heard, parts = threading.Event(), []

    def said(part: str) -> None:
        parts.append(part)
        heard.set()

    script = spoken(FIRST, GRAVE)
    streams(provider, [*script[:3], heard, *script[3:]])
    async with running_sidecar(tmp_path, upstream=upstream, dpe=ToldDpe()) as sidecar:
        session = client(f"{sidecar.http}/v1", api_key="sk-client", model="m", policy="halt-on CRITICAL")
        halt = await heard_until(listen(session, said))
        token = session.state.token
        await _closed(session)

    assert isinstance(halt, SafetyHalt)
    assert (halt.reason, "".join(parts)) == ("SAFETY_HALT", FIRST)
    assert token


@pytest.mark.parametrize(("client", "listen"), CLIENTS)
async def test_a_refusal_before_the_first_part_is_the_error_of_any_call(tmp_path, provider, upstream, client, listen):
    """Its status counts, as where nothing was streamed."""
    async with running_sidecar(tmp_path, upstream=upstream) as sidecar:
        session = client(f"{sidecar.http}/v1", api_key="sk-client", model="m", policy="halt-on SOMETIMES")
        refused = await heard_until(listen(session, lambda _part: None))
        await _closed(session)

    assert (refused.status, refused.reason) == (400, "POLICY_BAD_VALUE")


@pytest.mark.parametrize(("client", "listen"), CLIENTS)
async def test_a_tool_call_comes_whole(tmp_path, provider, upstream, client, listen):
    """It has no text; the answer has the call as the chat completion has it."""
    made = tool_call("look", '{"at": "sky"}')
    pieces = [
        chunk({"role": "assistant", "tool_calls": [{"index": 0, **made}]}),
        chunk(finish="tool_calls"),
        usage(),
        DONE,
    ]
    streams(provider, pieces)
    tools = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
    async with running_sidecar(tmp_path, upstream=upstream, dpe=DpeDouble()) as sidecar:
        session = client(f"{sidecar.http}/v1", api_key="sk-client", model="m")
        ended = await listen(session, lambda _part: None, tools=tools)
        await _closed(session)

    (call,) = ended.answer.completion["choices"][0]["message"]["tool_calls"]

    assert call["function"] == made["function"]
    assert call["id"].startswith("call_")
    assert ended.answer.completion["choices"][0]["finish_reason"] == "tool_calls"
    assert ended.text == ended.answer.text == ""


async def test_a_connection_that_breaks_is_no_answer():
    """A stream without its end is an error with a reason of the client's, and there is no answer to read."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n" + spoken(FIRST)[1]
        )
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with AsyncSession(f"http://127.0.0.1:{port}/v1", api_key="k", model="m") as session:
        parts = session.stream("What is it?")
        broken = await heard_until(_all(aiter(parts)))
        with pytest.raises(RuntimeError, match="iterate to the end"):
            _ = parts.answer
    server.close()

    assert isinstance(broken, Unavailable)
    assert (broken.reason, parts.text) == ("STREAM_BROKEN", FIRST)


async def _all(parts: AsyncIterator[str]) -> list[str]:
    return [part async for part in parts]


async def _closed(session: Session | AsyncSession) -> None:
    if isinstance(session, AsyncSession):
        await session.close()
    else:
        session.close()

"""The proxy over stdio: it starts the tool server and stands between its pipes and those of the agent."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from interlock.domain.errors import Refused, exhausted, unavailable
from interlock.mcp import protocol
from interlock.mcp.gate import GivenPermit
from interlock.mcp.lines import lines
from interlock.mcp.protocol import Message, MessageId
from interlock.mcp.screen import Screen

log = structlog.get_logger()

MOST_PENDING = 10_000
GRACE_S = 2.0
"""How long a server has to end after its input was closed, and again after it was asked to."""


@dataclass
class PendingRequest:
    """A request of the agent that the server has not answered."""

    method: str
    request_id: Any
    tool: str = ""
    permit: GivenPermit | None = None
    is_cancelled: bool = False
    timer: asyncio.TimerHandle | None = None


class StdioProxy:
    """Relays between an agent and one server until either ends."""

    def __init__(self, screen: Screen, *, most: int) -> None:
        self._screen, self._most = screen, most
        self._pending: dict[MessageId, PendingRequest] = {}
        self._calls: set[asyncio.Task[None]] = set()
        self._agent: asyncio.StreamWriter | None = None
        self._server: asyncio.subprocess.Process | None = None
        self._is_gone = False

    async def run(self, command: Sequence[str], environment: Mapping[str, str]) -> int:
        """Serve until the agent closes its end (0), or the server ends by itself (1). Refused with MCP_SERVER_NOT_STARTED."""
        try:
            self._server = await asyncio.create_subprocess_exec(
                *command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, env=dict(environment), start_new_session=True
            )  # fmt: skip
        except (OSError, ValueError) as error:
            raise unavailable(
                "MCP_SERVER_NOT_STARTED", f"{command[0]} cannot be started: {type(error).__name__}"
            ) from None
        reader, self._agent = await _own_pipes()
        from_agent = asyncio.create_task(self._from_agent(reader))
        from_server = asyncio.create_task(self._from_server())
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, from_agent.cancel)
        try:
            await asyncio.wait({from_agent, from_server}, return_when=asyncio.FIRST_COMPLETED)
            ended_itself = from_server.done()
        finally:
            from_agent.cancel()
            await self._end(from_server)
        return int(ended_itself)

    async def _from_agent(self, reader: asyncio.StreamReader) -> None:
        async for line in lines(reader, most=self._most):
            try:
                if line is None:
                    raise protocol.too_large(self._most)
                message = protocol.parsed(line, most=self._most)
            except Refused as refused:
                code = protocol.PARSE_ERROR if refused.reason == "MCP_MESSAGE_INVALID" else protocol.INVALID_REQUEST
                await self._answer(protocol.failure(None, refused, code))
                continue
            await self._take(message)

    async def _take(self, message: Message) -> None:
        method = message.get("method")
        if protocol.is_request(message):
            await self._take_request(message)
        elif method == protocol.CALL:
            log.warning("mcp.call_without_id")
        elif method != protocol.CANCELLED or self._cancel(message):
            await self._forward(message)

    async def _take_request(self, message: Message) -> None:
        key = protocol.id_of(message)
        if key in self._pending or len(self._pending) >= MOST_PENDING:
            refused = exhausted("MCP_ID_IN_USE", "this id waits for its answer, or too many do")
            await self._answer(protocol.failure(message["id"], refused))
            return
        one = self._pending[key] = PendingRequest(message["method"], message["id"])
        if one.method != protocol.CALL:
            await self._forward(message)
            return
        # A permit takes a moment: whatever else the agent says goes past it.
        task = asyncio.create_task(self._call(key, one, message))
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)

    async def _call(self, key: MessageId, one: PendingRequest, message: Message) -> None:
        try:
            permit = await self._screen.begin(message)
        except Refused as refused:
            if self._pending.pop(key, None) and not one.is_cancelled:
                await self._answer(protocol.tool_error(message["id"], _tool(message), refused, protocol.NO_CALL))
            return
        if one.is_cancelled or self._is_gone or key not in self._pending:
            self._screen.never_sent(permit)
            self._pending.pop(key, None)
            return
        one.permit, one.tool = permit, permit.plan.tool
        one.timer = asyncio.get_running_loop().call_later(permit.plan.timeout_s, self._late, key)
        await self._forward(message)

    def _cancel(self, message: Message) -> bool:
        """Note that nobody waits for a request any more; tell whether the server has to know."""
        params = message.get("params")
        try:
            key = protocol.id_of({"id": params.get("requestId") if isinstance(params, dict) else None})
        except Refused:
            return False
        one = self._pending.get(key)
        if one is None:
            return False
        if one.method != protocol.CALL:
            del self._pending[key]  # no answer comes that would end it
            return True
        one.is_cancelled = True
        return one.permit is not None

    def _late(self, key: MessageId) -> None:
        """Answer for a server that does not. The permit stays: nobody knows what was done."""
        one = self._pending.pop(key)
        log.warning("mcp.timeout", action=one.permit.plan.action if one.permit else "")
        refused = unavailable("MCP_TIMEOUT", "the tool did not answer in time")
        answers = (
            [] if one.is_cancelled else [protocol.tool_error(one.request_id, one.tool, refused, protocol.PERHAPS_DONE)]
        )
        for coroutine in (*map(self._answer, answers), self._forward(protocol.cancelled(one.request_id, "timeout"))):
            task = asyncio.create_task(coroutine)
            self._calls.add(task)
            task.add_done_callback(self._calls.discard)

    async def _from_server(self) -> None:
        assert self._server is not None
        assert self._server.stdout is not None
        async for line in lines(self._server.stdout, most=self._most):
            try:
                if line is None:
                    raise protocol.too_large(self._most)
                message = protocol.parsed(line, most=self._most)
                passed = message if "method" in message else self._response(message)
            except Refused as refused:
                log.warning("mcp.server_message_dropped", reason=refused.reason)
                await self._answer_only_call(refused)
                continue
            if passed is not None:
                await self._answer(passed)
        self._is_gone = True
        await self._answer_all()

    def _response(self, message: Message) -> Message | None:
        """Settle a response, and return what the agent gets of it: nothing, where nothing waits for it (any more)."""
        one = self._pending.pop(protocol.id_of(message), None)
        if one is None:
            log.warning("mcp.unasked_response_dropped")
            return None
        if one.timer:
            one.timer.cancel()
        if one.permit:
            return self._screen.finish(one.permit, message)
        return self._screen.listed(message) if one.method == protocol.LIST else message

    async def _answer_only_call(self, refused: Refused) -> None:
        """What cannot be read may be the answer to a call: where just one waits, it is that one's."""
        waiting = [(key, one) for key, one in self._pending.items() if one.permit and not one.is_cancelled]
        if len(waiting) == 1 and refused.reason == "MCP_MESSAGE_TOO_LARGE":
            key, one = waiting[0]
            del self._pending[key]
            if one.timer:
                one.timer.cancel()
            await self._answer(protocol.tool_error(one.request_id, one.tool, refused, protocol.PERHAPS_DONE))

    async def _answer_all(self) -> None:
        """Answer everything that waits for a server that is gone."""
        refused = unavailable("MCP_SERVER_GONE", "the tool server ended before it answered")
        waiting, self._pending = list(self._pending.values()), {}
        for one in waiting:
            if one.timer:
                one.timer.cancel()
            after = protocol.PERHAPS_DONE if one.permit else protocol.NO_CALL
            is_call = one.method == protocol.CALL
            await self._answer(
                protocol.tool_error(one.request_id, one.tool, refused, after)
                if is_call
                else protocol.failure(one.request_id, refused, protocol.SERVER_ERROR)
            )

    async def _answer(self, message: Message) -> None:
        assert self._agent is not None
        await _write(self._agent, message)

    async def _forward(self, message: Message) -> None:
        assert self._server is not None
        assert self._server.stdin is not None
        await _write(self._server.stdin, message)

    async def _end(self, from_server: asyncio.Task[None]) -> None:
        """Close the server's input, let it end, end it; then settle what it answered."""
        server = self._server
        assert server is not None
        assert server.stdin is not None
        server.stdin.close()
        for number in (None, signal.SIGTERM, signal.SIGKILL):
            if number is not None:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(server.pid, number)
            done, _ = await asyncio.wait({from_server}, timeout=GRACE_S)
            if done:
                break
        from_server.cancel()
        if self._calls:
            await asyncio.wait(set(self._calls), timeout=GRACE_S)
        await self._screen.settled()
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(server.pid, signal.SIGKILL)
        await server.wait()


async def _own_pipes() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    transport, flow = await loop.connect_write_pipe(asyncio.streams.FlowControlMixin, sys.stdout)
    return reader, asyncio.StreamWriter(transport, flow, None, loop)


async def _write(writer: asyncio.StreamWriter, message: Message) -> None:
    # Whoever has closed its end reads nothing more; that is seen where it is read from.
    with contextlib.suppress(ConnectionError, RuntimeError):
        writer.write(protocol.written(message) + b"\n")
        await writer.drain()


def _tool(message: Message) -> str:
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else ""
    return name if isinstance(name, str) else ""

"""The proxy over streamable HTTP: it stands before one endpoint of a tool server. Sessions, resumption and sign-in stay the server's."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import httpx
import structlog
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from interlock.domain.errors import Refused, exhausted, forbidden, invalid, not_found, unavailable
from interlock.mcp import protocol
from interlock.mcp.events import events
from interlock.mcp.gate import GivenPermit
from interlock.mcp.protocol import Message
from interlock.mcp.screen import Screen
from interlock.runtime.http.body import read_body

log = structlog.get_logger()

MOST_OPEN = 10_000
CONNECT_S = 10.0
BODY_S = 30.0
"""How long the whole of an agent's message may take to arrive."""
WHOLE_S = 60.0
"""How long a server has for what is no answer to a request."""
SESSION = "mcp-session-id"
_HOPS = frozenset({
    "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding", "upgrade", "host",
    "content-length", "content-encoding", "accept-encoding", "origin", "date", "server",
})  # fmt: skip
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_JSON = {"content-type": "application/json"}
_TEXT = {"content-type": "text/plain; charset=utf-8"}


@dataclass
class OpenRequest:
    """A request of an agent that the server has not answered."""

    method: str
    message: Message
    permit: GivenPermit | None
    deadline: float
    """By the monotonic clock; none waits for the answer of a call after it."""
    is_answered: bool = False

    def late(self, refused: Refused) -> Message:
        """Return the answer for a server that gave none."""
        if self.permit is None:
            return protocol.failure(self.message["id"], refused, protocol.SERVER_ERROR)
        return protocol.tool_error(self.message["id"], self.permit.plan.tool, refused, protocol.PERHAPS_DONE)


class HttpProxy:
    """One endpoint as an ASGI application."""

    def __init__(self, screen: Screen, upstream: str, client: httpx.AsyncClient, *, most: int) -> None:
        self._screen, self._upstream, self._client, self._most = screen, upstream, client, most
        self._path = urlsplit(upstream).path or "/"
        self._open: dict[tuple[str, protocol.MessageId], OpenRequest] = {}
        self._beginning: set[tuple[str, protocol.MessageId]] = set()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        try:
            response = await self._answered(request)
        except Refused as refused:
            response = _plain(refused)
        await response(scope, receive, send)

    async def _answered(self, request: Request) -> Response:
        _check_origin(request)
        path = request.url.path
        if path.startswith("/.well-known/") and request.method == "GET" and _is_below(path):
            return await self._passed(request, str(httpx.URL(self._upstream).join(path)))
        if path != self._path:
            raise not_found("MCP_PATH_UNKNOWN", f"tools are called at {self._path}")
        if request.method == "POST":
            return await self._post(request)
        if request.method in {"GET", "DELETE"}:
            return await self._passed(request, self._upstream)
        raise invalid("MCP_METHOD_UNKNOWN", "POST, GET and DELETE are taken")

    async def _post(self, request: Request) -> Response:
        message = await self._read(request)
        if not protocol.is_request(message):
            if message.get("method") == protocol.CALL:
                raise invalid("MCP_MESSAGE_INVALID", "a call has an id")
            return await self._passed(request, self._upstream, protocol.written(message))
        try:
            one = await self._begun(request, message)
        except Refused as refused:
            if message["method"] != protocol.CALL or refused.reason == "MCP_ID_IN_USE":
                raise
            tool = _named(message)
            return _json(protocol.tool_error(message["id"], tool, refused, protocol.NO_CALL))
        return await self._asked(request, one)

    async def _read(self, request: Request) -> Message:
        if request.headers.get("content-encoding", "identity") != "identity":
            raise invalid("MCP_MESSAGE_INVALID", "a message is sent as it is, not compressed")
        body = await read_body(request, self._most, timeout_s=BODY_S, too_large=protocol.too_large(self._most))
        message = protocol.parsed(body, most=self._most)
        # Where a server goes by these headers, they must not say something else than what was decided here.
        told = {
            "mcp-method": message.get("method"),
            "mcp-name": _named(message) if message.get("method") == protocol.CALL else None,
        }
        for name, value in told.items():
            if value and (given := request.headers.get(name)) is not None and given != value:
                raise invalid("MCP_MESSAGE_INVALID", f"the header {name} says something else than the message")
        return message

    async def _begun(self, request: Request, message: Message) -> OpenRequest:
        key = (request.headers.get(SESSION, ""), protocol.id_of(message))
        self._forget()
        taken = self._open.keys() | self._beginning
        if (key[0] and key in taken) or len(taken) >= MOST_OPEN:
            raise exhausted("MCP_ID_IN_USE", "this id waits for its answer, or too many do")
        named = {key} if key[0] else set()
        self._beginning |= named  # until its permit is there: a second one must not get one meanwhile
        try:
            permit = await self._screen.begin(message) if message["method"] == protocol.CALL else None
        finally:
            self._beginning -= named
        timeout_s = permit.plan.timeout_s if permit else 86_400.0
        one = OpenRequest(message["method"], message, permit, time.monotonic() + timeout_s)
        self._open |= dict.fromkeys(named, one)
        return one

    async def _asked(self, request: Request, one: OpenRequest) -> Response:
        """Pass a request on; its answer comes with this response, or later by the stream of its session."""
        try:
            response = await self._send(request, self._upstream, protocol.written(one.message), one.deadline)
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.UnsupportedProtocol):
            self._closed(request, one)
            refused = unavailable("MCP_SERVER_UNAVAILABLE", "the tool server cannot be reached")
            if one.permit is None:
                raise refused from None
            self._screen.never_sent(one.permit)
            return _json(protocol.tool_error(one.message["id"], one.permit.plan.tool, refused, protocol.NO_CALL))
        except (httpx.HTTPError, TimeoutError) as error:
            self._closed(request, one)
            return _json(one.late(_gone(error)))
        return await self._heard(request, response, one)

    async def _heard(self, request: Request, response: httpx.Response, one: OpenRequest) -> Response:
        """Return what the server answered, in whatever form."""
        if response.status_code >= 400:
            self._closed(request, one)
            if one.permit and response.status_code < 500:
                self._screen.turned_away(one.permit)
            return await self._whole(response)
        if _type(response) == "text/event-stream":
            return self._streamed(request, response, one)
        if response.status_code == 202 and request.headers.get(SESSION):  # its answer may come by the session's stream
            return await self._whole(response)
        if _type(response) != "application/json":
            # Some clients take `application/json2` for JSON: what is not read here reaches no agent as an answer.
            await response.aclose()
            self._closed(request, one)
            return _json(one.late(invalid("MCP_MESSAGE_INVALID", "the server answered in a form that is not taken")))
        return await self._told(request, response, one)

    async def _told(self, request: Request, response: httpx.Response, one: OpenRequest) -> Response:
        """Return the answer that came in one piece."""
        try:
            async with asyncio.timeout(max(0.0, one.deadline - time.monotonic())):
                told = self._from_server(request, protocol.parsed(await self._body(response), most=self._most), one)
        except (Refused, httpx.HTTPError, TimeoutError) as error:
            self._closed(request, one)
            return _json(one.late(error if isinstance(error, Refused) else _gone(error)))
        if told is None:
            told = one.late(invalid("MCP_MESSAGE_INVALID", "the server answered something else"))
        return Response(protocol.written(told), response.status_code, {**_headers(response), **_JSON})

    async def _passed(self, request: Request, url: str, body: bytes | None = None) -> Response:
        try:
            response = await self._send(request, url, body, time.monotonic() + 60.0)
        except (httpx.HTTPError, TimeoutError):
            raise unavailable("MCP_SERVER_UNAVAILABLE", "the tool server cannot be reached") from None
        if _type(response) == "text/event-stream" and response.status_code < 400:
            return self._streamed(request, response, None)
        return await self._whole(response)

    async def _send(self, request: Request, url: str, body: bytes | None, deadline: float) -> httpx.Response:
        headers = [(name, value) for name, value in request.headers.raw if name.decode("latin-1") not in _HOPS]
        sent = self._client.build_request(
            request.method, url, params=request.url.query.encode() or None, headers=[*headers, (b"accept-encoding", b"identity")],
            content=body,
        )  # fmt: skip
        async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
            response = await self._client.send(sent, stream=True)
        if response.is_redirect or response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx.RemoteProtocolError("a redirect, or an answer in a code that was not asked for")
        return response

    def _streamed(self, request: Request, response: httpx.Response, one: OpenRequest | None) -> Response:
        headers = {**_headers(response), "content-type": "text/event-stream"}  # and UTF-8, whatever the server says
        return StreamingResponse(self._stream(request, response, one), response.status_code, headers)

    async def _stream(
        self, request: Request, response: httpx.Response, one: OpenRequest | None
    ) -> AsyncIterator[bytes]:
        deadline = one.deadline if one else None
        failed, resumes = _gone(None), False
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic()) if deadline else None):
                async for event in events(response.aiter_raw(), most=self._most):
                    resumes = resumes or event.has_id
                    if not event.text:
                        yield event.written()
                    elif (told := self._event(request, event.text, one)) is not None:
                        yield event.written(protocol.written(told).decode())
        except Refused as refused:
            failed = refused
        except (httpx.HTTPError, TimeoutError) as error:
            failed = _gone(error)
        finally:
            await response.aclose()
        if one and not one.is_answered and not (resumes and _is_left_open(request, failed)):
            self._closed(request, one)
            yield b"event: message\ndata: " + protocol.written(one.late(failed)) + b"\n\n"

    def _event(self, request: Request, data: str, one: OpenRequest | None) -> Message | None:
        try:
            return self._from_server(request, protocol.parsed(data, most=self._most), one)
        except Refused as refused:
            log.warning("mcp.server_message_dropped", reason=refused.reason)
            return None

    def _from_server(self, request: Request, message: Message, one: OpenRequest | None) -> Message | None:
        """Settle a message of the server, and return what the agent gets of it: no second answer, and none that nobody waits for."""
        if "method" in message:
            return message
        key = protocol.id_of(message)
        if one is None or key != protocol.id_of(one.message):
            one = self._open.get((request.headers.get(SESSION, ""), key))
        if one is None or one.is_answered:
            log.warning("mcp.unasked_response_dropped")
            return None
        self._closed(request, one)
        if one.permit:
            return self._screen.finish(one.permit, message)
        return self._screen.listed(message) if one.method == protocol.LIST else message

    def _closed(self, request: Request, one: OpenRequest) -> None:
        one.is_answered = True
        key = (request.headers.get(SESSION, ""), protocol.id_of(one.message))
        if self._open.get(key) is one:  # not a later one of the same id
            del self._open[key]

    def _forget(self) -> None:
        """Forget what nobody waits for any more; the permits stay."""
        now = time.monotonic()
        for key in [key for key, one in self._open.items() if one.deadline < now]:
            del self._open[key]

    async def _whole(self, response: httpx.Response) -> Response:
        """Return what is no answer to a request: an error, a receipt, what is known of the sign-in. No agent reads a result from it."""
        try:
            async with asyncio.timeout(WHOLE_S):
                body = await self._body(response)
        except (httpx.HTTPError, TimeoutError):
            raise unavailable("MCP_SERVER_UNAVAILABLE", "the tool server broke off") from None
        kind = _JSON if _type(response) == "application/json" and not _has_result(body) else _TEXT
        return Response(body, response.status_code, {**_headers(response), **(kind if body else {})})

    async def _body(self, response: httpx.Response) -> bytes:
        body = bytearray()
        try:
            async for chunk in response.aiter_raw():
                body += chunk
                if len(body) > self._most:
                    raise protocol.too_large(self._most)
        finally:
            await response.aclose()
        return bytes(body)


def _check_origin(request: Request) -> None:
    """Refuse what a web page sends: a name that leads here and is not ours, or a foreign origin (DNS rebinding)."""
    hosts = [_host(f"//{request.headers.get('host', '')}")]
    if (origin := request.headers.get("origin")) is not None:
        hosts.append(_host(origin))
    if not all(host in _LOOPBACK for host in hosts):
        raise forbidden("MCP_ORIGIN_REFUSED", "only programs on this machine may call tools here")


def _host(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:
        return None


def _is_below(path: str) -> bool:
    """Tell whether a path stays in its folder."""
    return not {"..", "."} & set(path.split("/"))


def _has_result(body: bytes) -> bool:
    """Tell whether a reader might take a body for the result of a request."""
    try:
        read = json.loads(body)
    except (ValueError, RecursionError):
        return True
    return not isinstance(read, dict) or "result" in {name.casefold() for name in read}


def _is_left_open(request: Request, failed: Refused) -> bool:
    """Tell whether the answer may still come: by a stream of the session, unless it is too late or too large."""
    return bool(request.headers.get(SESSION)) and failed.reason == "MCP_SERVER_GONE"


def _gone(error: Exception | None) -> Refused:
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return unavailable("MCP_TIMEOUT", "the tool did not answer in time")
    return unavailable("MCP_SERVER_GONE", "the tool server broke off before it answered")


def _type(response: httpx.Response) -> str:
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower()


def _headers(response: httpx.Response) -> Mapping[str, str]:
    """Return the headers that go on, as the bytes they are: the server may write what is no ASCII."""
    kept: dict[str, str] = {}
    for name, value in ((one.decode("latin-1").lower(), two.decode("latin-1")) for one, two in response.headers.raw):
        if name not in _HOPS:
            kept[name] = f"{kept[name]}, {value}" if name in kept else value
    return kept


def _named(message: Message) -> str:
    params = message.get("params")
    name = params.get("name") if isinstance(params, dict) else ""
    return name if isinstance(name, str) else ""


def _json(message: Message) -> Response:
    return Response(protocol.written(message), 200, _JSON)


def _plain(refused: Refused) -> Response:
    status = {"MCP_PATH_UNKNOWN": 404, "MCP_METHOD_UNKNOWN": 405, "MCP_ORIGIN_REFUSED": 403, "MCP_MESSAGE_TOO_LARGE": 413,
              "MCP_SERVER_UNAVAILABLE": 502, "MCP_KERNEL_UNAVAILABLE": 503}.get(refused.reason, 400)  # fmt: skip
    return Response(json.dumps(protocol.failure(None, refused)), status, _JSON)

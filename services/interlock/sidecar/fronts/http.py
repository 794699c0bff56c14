"""The OpenAI HTTP front (SVC-2; ecosystem.md 3.1): routes, reading, answering. The guard makes every decision.

Paths are taken from the scope, never from a URL put together with the Host header (reliability.md A-20).
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial, wraps
from typing import Any, TypeVar

import structlog
from google.protobuf import json_format
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.api.session.v1 import session_pb2
from interlock.domain import held, ids
from interlock.domain.errors import Kind, Refused, invalid, not_found, unauthenticated, unavailable
from interlock.domain.headers import headers
from interlock.runtime import telemetry
from interlock.runtime.http.server import operations
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.admission.delegation import headers_of
from interlock.sidecar.call.binding import CallBinding
from interlock.sidecar.call.call import Call
from interlock.sidecar.call.identity import Caller
from interlock.sidecar.fronts import wellknown
from interlock.sidecar.fronts.batch import BatchItem, Item, govern_batch
from interlock.sidecar.fronts.front import DelegationRequest, Front, too_large
from interlock.sidecar.fronts.pictures import Form, picture_form
from interlock.sidecar.fronts.release import held_json, releasing
from interlock.sidecar.fronts.responses import (
    SAFE,
    headers_of_reply,
    json_response,
    refused_body,
    refused_response,
    status_of,
)
from interlock.sidecar.openai import chat, sse, strictjson
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

A = TypeVar("A")
Readiness = Callable[[], Awaitable[Mapping[str, str]]]
Endpoint = Callable[[Front, Request, ResponseHeaders], Coroutine[Any, Any, Response]]

MAX_HEADER_BYTES = 32_768
BODY_TIMEOUT_S = 30.0
CLIENT_GONE = 499
OK = 200

_JSON = re.compile(r'application/json(?:\s*;\s*charset="?utf-8"?)?\s*', re.IGNORECASE)


class _CallerGone(Exception):  # noqa: N818 - not an error: there is no one to answer
    """The client closed the connection."""


def make_app(front: Front, readiness: Readiness, base_url: str) -> Starlette:
    """Return the ASGI application."""
    described = wellknown.document(front.settings, base_url)

    async def well_known(_request: Request) -> Response:
        return json_response(described)

    def route(path: str, endpoint: Endpoint, *methods: str) -> Route:
        return Route(path, _answered(path, partial(endpoint, front)), methods=list(methods))

    app = Starlette(
        routes=[
            *operations(readiness, front.settings).routes,
            Route("/.well-known/crp-gateway.json", well_known),
            route(wellknown.CHAT, _chat, "POST"),
            route(wellknown.MODELS, _models, "GET"),
            route(wellknown.BATCH, _batch, "POST"),
            route(wellknown.DELEGATIONS, _delegations, "POST"),
            route("/crp/v3/session/{session_id}", _session, "GET", "DELETE"),
            route("/crp/v3/session/{session_id}/dag", _dag, "GET"),
            route("/crp/v3/session/{session_id}/held/{window_id}", _held, "GET"),
            route("/crp/v3/reports/{window_id}", _report, "GET"),
            route("/crp/v3/trails/{trail_id}", _trail, "GET"),
            Route("/v1/{rest:path}", _unsupported, methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ],
        exception_handlers={HTTPException: _http_exception},
    )
    app.router.redirect_slashes = False  # a redirect would be put together from the Host header
    return app


def _answered(
    path: str, endpoint: Callable[[Request, ResponseHeaders], Awaitable[Response]]
) -> Callable[[Request], Awaitable[Response]]:
    """Answer every end of *endpoint*: refusals with their reason, defects with constant text and a line in the log."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        reply = ResponseHeaders()
        trace = telemetry.extract([(name, value) for name, value in request.headers.items()])
        with telemetry.span(f"{request.method} {path}", kind=telemetry.SERVER, parent=trace):
            try:
                return await endpoint(request, reply)
            except Refused as refused:
                return refused_response(refused, reply)
            except (_CallerGone, ClientDisconnect):
                return Response(status_code=CLIENT_GONE)
            except (
                asyncio.CancelledError
            ):  # by the server, when its time to drain is over: the waiting caller gets an answer
                return refused_response(unavailable("SHUTTING_DOWN", "this sidecar is ending; try again"), reply)
            except Exception:
                log.exception("http.defect", route=path)
                return refused_response(internal(), reply)

    return answer


async def _chat(front: Front, request: Request, reply: ResponseHeaders) -> Response:
    caller, asked = _read_headers(front, request, delegating=True)
    if asked.terminate:
        return await _terminate(front, caller, asked.session_token)
    if releasing(asked):
        return await _released(front, request, caller, asked, reply)
    front.upstream.require()
    front.guard.require_room()
    given = front.read_chat(await _body(request, front.settings.max_body_bytes))
    binding = front.bindings.read(caller.scope, _lines(request), given, cookies=True)
    governed = await _while_connected(request, front.chat("http", caller, asked, given, reply, binding=binding))
    answer = governed.released()
    if not given.stream:
        return Response(answer.body, headers=headers_of_reply(reply), media_type="application/json")
    stream = sse.encode(answer.completion, include_usage=given.include_usage)
    return Response(stream, headers=headers_of_reply(reply), media_type="text/event-stream")


async def _released(
    front: Front, request: Request, caller: Caller, asked: headers.RequestHeaders, reply: ResponseHeaders
) -> Response:
    """Hand out the held response that the call's approval is for, instead of governing a call (SPEC-012 §6.2)."""
    given = front.read_chat(await _body(request, front.settings.max_body_bytes))
    form = held.STREAM if given.stream else held.CHAT
    release = await front.releases.release(caller, asked, reply, forms=[form])
    return Response(release.http_body, headers={**reply.headers, **SAFE}, media_type=release.media_type)


async def _held(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """Tell what became of a held response, and the oversight token once it was approved."""
    caller, asked = _read_headers(front, request)
    item = await front.releases.status(_token(asked.session_token), caller.scope, request.path_params["window_id"])
    if item.session_id != ids.check("crp_sess_", request.path_params["session_id"]):
        raise not_found("SESSION_NOT_FOUND", "the token is of another session")
    return json_response(held_json(item))


async def _batch(front: Front, request: Request, reply: ResponseHeaders) -> Response:
    """Govern several chat requests, each in a window of its own; one that is refused does not stop the others."""
    caller, asked = _read_headers(front, request, delegating=True)
    front.upstream.require()
    data = await _body(request, front.settings.max_body_bytes)
    given = strictjson.loads(data, max_depth=front.settings.max_json_depth)
    binding = front.bindings.read(caller.scope, _lines(request), cookies=True)
    items = [_item(front, caller, binding, f"items[{number}]", one) for number, one in enumerate(_items(given))]
    batched = await _while_connected(request, govern_batch(front, caller, asked, items, reply))
    return json_response({"results": [_result(one) for one in batched.results]}, reply)


def _items(given: Any) -> list[Any]:
    if not isinstance(given, dict) or given.keys() != {"items"} or not isinstance(given["items"], list):
        raise invalid("INVALID_BATCH", "the body must be an object of items, a list", param="items")
    return given["items"]


def _item(front: Front, caller: Caller, binding: CallBinding, place: str, given: Any) -> Item:
    """Return one item. Its chat request is read when its turn comes, so that a malformed one ends itself alone."""
    if not isinstance(given, dict) or given.keys() != {"id", "body"} or not isinstance(given["id"], str):
        raise invalid("INVALID_BATCH", "an item is an object of id, a text, and body, a chat request", param=place)

    def make(asked: headers.RequestHeaders, reply: ResponseHeaders) -> Call:
        return front.call("http", caller, asked, chat.read(given["body"], front.settings), reply, binding=binding)

    return Item(given["id"], make)


def _result(ended: BatchItem) -> dict[str, Any]:
    """Return one result as its own response would have been."""
    reply, refusal, governed = ended.reply, ended.refusal, ended.governed
    answer: dict[str, Any] = {"id": ended.item_id, "status": status_of(refusal) if refusal else OK}
    body: Mapping[str, Any]
    if refusal is None and governed is not None:
        body = governed.released().completion
    else:
        body = refused_body(refusal or internal(), reply)
    return {**answer, "headers": reply.headers, "body": body}


async def _models(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    caller, _ = _read_headers(front, request)
    return json_response(await front.upstream.models(key=caller.key))


async def _session(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """GET shows and DELETE ends a session; both need its token, and the id in the path must be the token's."""
    caller, asked = _read_headers(front, request)
    token = _token(asked.session_token)
    session = await front.sessions.of_token(token, caller.scope)
    if session.session_id != ids.check("crp_sess_", request.path_params["session_id"]):
        raise not_found("SESSION_NOT_FOUND", "the token is of another session")
    if request.method == "DELETE":
        return await _terminate(front, caller, token)
    return json_response(_shown(session))


async def _dag(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """Show the window DAG of the token's session, and of those below it with tree=true (SPEC-004 §3; DAG-12)."""
    caller, asked = _read_headers(front, request)
    form, tree = _dag_wanted(request)
    sessions = await front.sessions.dag(_token(asked.session_token), caller.scope, tree=tree)
    if sessions[0].session_id != ids.check("crp_sess_", request.path_params["session_id"]):
        raise not_found("SESSION_NOT_FOUND", "the token is of another session")
    return Response(form.draw(sessions), headers=SAFE, media_type=form.media_type)


def _dag_wanted(request: Request) -> tuple[Form, bool]:
    given = request.query_params.multi_items()
    wanted = dict(given)
    if len(wanted) < len(given) or wanted.keys() - {"format", "tree"}:
        raise invalid("UNKNOWN_PARAMETER", "the query holds format and tree, each once", param="query")
    form, tree = picture_form(wanted.get("format") or "json"), wanted.get("tree", "false")
    if form is None or tree not in {"true", "false"}:
        raise invalid("INVALID_PARAMETER", "tree must be true or false", param="tree")
    return form, tree == "true"


async def _delegations(front: Front, request: Request, reply: ResponseHeaders) -> Response:
    """Mint a grant, and say which headers the sub-agent's first call must carry (SPEC-012 §3.1)."""
    caller, asked = _read_headers(front, request, delegating=True)
    data = await _body(request, front.settings.max_body_bytes)
    wanted = strictjson.loads(data, max_depth=4) if data.strip() else {}
    granted = await front.delegate(caller, asked, _wanted(wanted), reply)
    given = granted.delegation
    answer = {
        "grant": granted.grant,
        "grant_id": given.grant_id,
        "agent_type": given.agent_type or None,
        "parent_session_id": given.parent_session_id,
        "loop_depth": given.loop_depth,
        "expires_at": given.expires_at,
        "headers": headers_of(granted),
    }
    return json_response(answer, reply)


def _wanted(given: Any) -> DelegationRequest:
    if not isinstance(given, dict) or given.keys() - {"agent_type", "lifetime_s"}:
        raise invalid("UNKNOWN_PARAMETER", "the body must be an object of agent_type and lifetime_s", param="body")
    agent_type, lifetime_s = given.get("agent_type"), given.get("lifetime_s")
    if agent_type is not None and not (isinstance(agent_type, str) and agent_type):
        raise invalid("INVALID_PARAMETER", "agent_type must be a name", param="agent_type")
    if lifetime_s is not None and (not isinstance(lifetime_s, int) or isinstance(lifetime_s, bool) or lifetime_s < 1):
        raise invalid("INVALID_PARAMETER", "lifetime_s must be a whole number of seconds", param="lifetime_s")
    return DelegationRequest(agent_type or "", lifetime_s or 0)


async def _terminate(front: Front, caller: Caller, token: str | None) -> Response:
    return json_response(_shown(await front.sessions.terminate(_token(token), caller.scope)))


def _token(token: str | None) -> str:
    if token is None:
        raise unauthenticated("SESSION_TOKEN_REQUIRED", "this needs CRP-Session-Token")
    return token


async def _report(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    caller, _ = _read_headers(front, request)
    window_id = ids.check("crp_win_", request.path_params["window_id"])
    found = await front.sessions.report(caller.scope, window_id=window_id)
    return Response(
        found.report_json, headers={**SAFE, "etag": f'"{found.report_hash}"'}, media_type="application/json"
    )


async def _trail(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """The record of a call: its ids and hashes around the report."""
    caller, _ = _read_headers(front, request)
    trail_id = ids.check("crp_trail_", request.path_params["trail_id"])
    found = await front.sessions.report(caller.scope, trail_id=trail_id)
    record = {
        "trail_id": trail_id,
        "session_id": found.session_id,
        "window_id": found.window_id,
        "window_hmac": found.hmac,
        "report_hash": found.report_hash,
        "report_json": found.report_json.decode(),
    }
    return json_response(record)


async def _unsupported(request: Request) -> Response:
    """Say plainly what is not there, instead of passing it on unscanned (ecosystem.md headline 3)."""
    path = request.scope["path"]
    if path in {wellknown.CHAT, wellknown.MODELS}:
        return _method_not_allowed()
    message = f"{path} is not supported; nothing is passed on unscanned. Supported: POST {wellknown.CHAT}, GET {wellknown.MODELS}"
    return refused_response(Refused(Kind.INVALID, "ENDPOINT_NOT_SUPPORTED", message), ResponseHeaders())


async def _http_exception(_request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        return _method_not_allowed()
    return refused_response(not_found("PATH_NOT_FOUND", "there is nothing here"), ResponseHeaders())


def _method_not_allowed() -> Response:
    return refused_response(invalid("METHOD_NOT_ALLOWED", "this method is not allowed here"), ResponseHeaders())


def _read_headers(front: Front, request: Request, *, delegating: bool = False) -> tuple[Caller, headers.RequestHeaders]:
    """Return who calls and what the CRP headers ask for, from the raw header lines."""
    raw = request.headers.raw
    if sum(len(name) + len(value) for name, value in raw) > MAX_HEADER_BYTES:
        raise invalid("HEADER_TOO_LARGE", f"the headers exceed {MAX_HEADER_BYTES} bytes in all")
    lines = _lines(request)
    caller = front.keys.caller([value for name, value in lines if name == "authorization"])
    return caller, headers.read(lines, delegating=delegating)


def _lines(request: Request) -> list[tuple[str, str]]:
    """Return the header lines as they came, names in lower case."""
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]


async def _body(request: Request, limit: int) -> bytes:
    """Return the body, counted while it comes in. Refused as 413, 415 or 408 without reading on."""
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise invalid("UNSUPPORTED_ENCODING", "the body must not be compressed")
    types = request.headers.getlist("content-type")
    if len(types) != 1 or not _JSON.fullmatch(types[0]):
        raise invalid("UNSUPPORTED_MEDIA_TYPE", "the body must be application/json in UTF-8")
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_TIMEOUT_S):
            async for chunk in request.stream():
                data += chunk
                if len(data) > limit:
                    raise too_large(limit)
    except TimeoutError:
        raise invalid("REQUEST_BODY_TIMEOUT", "the body did not arrive in time") from None
    return bytes(data)


async def _while_connected(request: Request, work: Coroutine[Any, Any, A]) -> A:
    """Return what *work* gives; when the client hangs up first, tell *work* by cancelling it."""
    task, gone = asyncio.create_task(work), asyncio.create_task(_hung_up(request))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return await task
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        raise _CallerGone
    finally:
        gone.cancel()
        task.cancel()


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _shown(session: session_pb2.Session) -> dict[str, Any]:
    """Return a session as JSON; millionths stay numbers."""
    shown: dict[str, Any] = _with_numbers(
        json_format.MessageToDict(session, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    )
    return shown


def _with_numbers(value: Any) -> Any:
    if isinstance(value, dict):
        return {k: int(v) if k.endswith("_micros") else _with_numbers(v) for k, v in value.items()}
    return [_with_numbers(item) for item in value] if isinstance(value, list) else value

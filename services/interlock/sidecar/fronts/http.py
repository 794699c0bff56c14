"""The OpenAI HTTP front (SVC-2; ecosystem.md 3.1): routes, reading, answering. The guard makes every decision.

Paths are taken from the scope, never from a URL put together with the Host header (reliability.md A-20).
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from functools import cache, partial, wraps
from typing import Any, TypeVar

import structlog
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from interlock.domain import ids
from interlock.domain.errors import Refused, invalid, not_found, unavailable
from interlock.domain.headers import headers
from interlock.runtime import telemetry
from interlock.runtime.http.outcomes import EXEMPLAR, REASON, TOLD, TRACE
from interlock.runtime.http.server import operations
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.admission.delegation import headers_of
from interlock.sidecar.apis.api import Api, KeepingApi
from interlock.sidecar.call.binding import CallBinding
from interlock.sidecar.call.call import Call
from interlock.sidecar.fronts import embeddings, generation, kernel_http, models, wellknown
from interlock.sidecar.fronts.batch import BatchItem, Item, govern_batch
from interlock.sidecar.fronts.front import DelegationRequest, Front
from interlock.sidecar.fronts.generation import required, terminate
from interlock.sidecar.fronts.litellm import contract
from interlock.sidecar.fronts.litellm.guardrail import Guardrail
from interlock.sidecar.fronts.pictures import Form, picture_form
from interlock.sidecar.fronts.reading import CallerGone, body_of, header_lines, read_headers, while_connected
from interlock.sidecar.fronts.release import held_json
from interlock.sidecar.fronts.responses import (
    SAFE,
    ErrorShape,
    as_it_is,
    json_response,
    refused_body,
    refused_response,
    session_json,
    status_of,
)
from interlock.sidecar.openai import chat, strictjson
from interlock.sidecar.trail import sealed_report
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

A = TypeVar("A")
Readiness = Callable[[], Awaitable[Mapping[str, str]]]
Endpoint = Callable[[Front, Request, ResponseHeaders], Coroutine[Any, Any, Response]]

CLIENT_GONE = 499
_NOT_ALLOWED = invalid("METHOD_NOT_ALLOWED", "this method is not allowed here")


def make_app(
    front: Front, readiness: Readiness | None, base_url: str, apis: Sequence[Api], guardrail: Guardrail | None = None
) -> Starlette:
    """Return the ASGI application. Without *readiness* it has no pages for operators, without *guardrail* none for LiteLLM."""
    described = cache(partial(wellknown.document, front.settings, base_url))

    async def well_known(_request: Request) -> Response:
        return json_response(described())

    def route(path: str, endpoint: Endpoint, *methods: str) -> Route:
        return Route(path, _answered(path, partial(endpoint, front)), methods=list(methods))

    app = Starlette(
        routes=[
            *(operations(readiness, front.settings).routes if readiness else ()),
            Route("/.well-known/crp-gateway.json", well_known),
            *(_api(front, api) for api in apis),
            *(route for api in apis if isinstance(api, KeepingApi) for route in _kept(front, api)),
            route(wellknown.MODELS, models.models, "GET"),
            route(wellknown.MODELS + "/{model:path}", models.models, "GET"),
            route(wellknown.EMBEDDINGS, embeddings.embeddings, "POST"),
            *(
                [Route(contract.PATH, _answered(contract.PATH, guardrail.answer), methods=["POST"])]
                if guardrail
                else ()
            ),
            route(wellknown.BATCH, _batch, "POST"),
            route(wellknown.DELEGATIONS, _delegations, "POST"),
            route("/crp/v3/session/{session_id}", _session, "GET", "DELETE"),
            route("/crp/v3/session/{session_id}/dag", _dag, "GET"),
            route("/crp/v3/session/{session_id}/held/{window_id}", _held, "GET"),
            route("/crp/v3/reports/{window_id}", _report, "GET"),
            route("/crp/v3/trails/{trail_id}", _trail, "GET"),
            *(
                Route(path, _answered(path, endpoint), methods=[method])
                for path, endpoint, method in kernel_http.endpoints(
                    front.kernels, partial(read_headers, front), partial(body_of, limit=kernel_http.LARGEST_BODY)
                )
            ),
            Route("/v1/{rest:path}", partial(_unsupported, apis), methods=["GET", "POST", "PUT", "PATCH", "DELETE"]),
        ],
        exception_handlers={HTTPException: _http_exception},
    )
    app.router.redirect_slashes = False  # a redirect would be put together from the Host header
    return app


def _api(front: Front, api: Api) -> Route:
    """Return the route of an API; its refusals have its own shape."""
    endpoint = partial(generation.generate, api, front)
    return Route(api.path, _answered(api.path, endpoint, lambda _request: api.error), methods=["POST"])


def _kept(front: Front, api: KeepingApi) -> list[Route]:
    """Return the routes of an API's kept answers."""
    one, items = f"{api.path}/{{answer_id}}", f"{api.path}/{{answer_id}}/input_items"
    endpoint = partial(generation.kept, api, front)
    return [
        Route(one, _answered(one, endpoint, lambda _request: api.error), methods=["GET", "DELETE"]),
        Route(items, _answered(items, partial(endpoint, inputs=True), lambda _request: api.error), methods=["GET"]),
    ]


def _answered(
    path: str,
    endpoint: Callable[[Request, ResponseHeaders], Awaitable[Response]],
    shape_of: Callable[[Request], ErrorShape] = models.shape_of,
) -> Callable[[Request], Awaitable[Response]]:
    """Answer every end of *endpoint*: refusals with their reason, defects with constant text and a line in the log."""

    @wraps(endpoint)
    async def answer(request: Request) -> Response:
        reply, shape = ResponseHeaders(), shape_of(request)
        trace = telemetry.extract([(name, value) for name, value in request.headers.items()])
        with telemetry.span(f"{request.method} {path}", kind=telemetry.SERVER, parent=trace):
            request.scope.update({TRACE: telemetry.trace_id(), EXEMPLAR: telemetry.exemplar()})
            try:
                return await endpoint(request, reply)
            except Refused as refused:
                request.scope[REASON] = refused.reason
                return refused_response(refused, reply, shape)
            except (CallerGone, ClientDisconnect):
                return Response(status_code=CLIENT_GONE)
            except (
                asyncio.CancelledError
            ):  # by the server, when its time to drain is over: the waiting caller gets an answer
                return refused_response(unavailable("SHUTTING_DOWN", "this sidecar is ending; try again"), reply, shape)
            except Exception:
                log.exception("http.defect", route=path)
                return refused_response(internal(), reply, shape)
            finally:
                request.scope[TOLD] = reply.told

    return answer


async def _held(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """Tell what became of a held response, and the oversight token once it was approved."""
    caller, asked = read_headers(front, request)
    item = await front.releases.status(required(asked.session_token), caller.scope, request.path_params["window_id"])
    if item.session_id != ids.check("crp_sess_", request.path_params["session_id"]):
        raise not_found("SESSION_NOT_FOUND", "the token is of another session")
    return json_response(held_json(item))


async def _batch(front: Front, request: Request, reply: ResponseHeaders) -> Response:
    """Govern several chat requests, each in a window of its own; one that is refused does not stop the others."""
    caller, asked = read_headers(front, request, delegating=True)
    front.upstream.require()
    front.guard.require_room(caller)
    data = await body_of(request, front.settings.max_body_bytes)
    given = strictjson.loads(data, max_depth=front.settings.max_json_depth)
    binding = front.bindings.read(caller.scope, header_lines(request), cookies=True)
    items = [_item(front, caller, binding, f"items[{number}]", one) for number, one in enumerate(_items(given))]
    batched = await while_connected(request, govern_batch(front, caller, asked, items, reply))
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
    answer: dict[str, Any] = {"id": ended.item_id, "status": status_of(refusal) if refusal else 200}
    body: Mapping[str, Any]
    if refusal is None and governed is not None:
        body = governed.released().completion
    else:
        body = refused_body(refusal or internal(), reply)
    return {**answer, "headers": reply.headers, "body": body}


async def _session(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """GET shows and DELETE ends a session; both need its token, and the id in the path must be the token's."""
    caller, asked = read_headers(front, request)
    token = required(asked.session_token)
    session = await front.sessions.of_token(token, caller.scope)
    if session.session_id != ids.check("crp_sess_", request.path_params["session_id"]):
        raise not_found("SESSION_NOT_FOUND", "the token is of another session")
    if request.method == "DELETE":
        return await terminate(front, caller, token)
    return json_response(session_json(session))


async def _dag(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """Show the window DAG of the token's session, and of those below it with tree=true (SPEC-004 §3; DAG-12)."""
    caller, asked = read_headers(front, request)
    form, tree = _dag_wanted(request)
    sessions = await front.sessions.dag(required(asked.session_token), caller.scope, tree=tree)
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
    caller, asked = read_headers(front, request, delegating=True)
    data = await body_of(request, front.settings.max_body_bytes)
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


async def _report(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    caller, _ = read_headers(front, request)
    window_id = ids.check("crp_win_", request.path_params["window_id"])
    form = request.query_params.get("form", "sealed")
    if form not in {"sealed", "full"} or request.query_params.keys() - {"form"}:
        raise invalid("INVALID_PARAMETER", "the query holds form=sealed or form=full", param="form")
    found = await front.sessions.report(caller.scope, window_id=window_id)
    shown = found.report_json if form == "sealed" else sealed_report.full(found)
    return Response(shown, headers={**SAFE, **sealed_report.headers_of(found)}, media_type="application/json")


async def _trail(front: Front, request: Request, _known: ResponseHeaders) -> Response:
    """The record of a call: its ids and hashes around the report."""
    caller, _ = read_headers(front, request)
    trail_id = ids.check("crp_trail_", request.path_params["trail_id"])
    found = await front.sessions.report(caller.scope, trail_id=trail_id)
    record = {
        "trail_id": trail_id,
        "session_id": found.session_id,
        "window_id": found.window_id,
        "window_hmac": found.hmac,
        "report_hash": found.report_hash,
        "report_json": found.report_json.decode(),
        "report": json.loads(sealed_report.full(found)),
    }
    return json_response(record)


async def _unsupported(apis: Sequence[Api], request: Request) -> Response:
    """Say plainly what is not there, instead of passing it on unscanned (ecosystem.md headline 3)."""
    path, shape = request.scope["path"], models.shape_of(request)
    known = path in {wellknown.MODELS, wellknown.EMBEDDINGS, *(api.path for api in apis)}
    return _said(request, _NOT_ALLOWED if known else models.unsupported(apis, path), shape)


async def _http_exception(request: Request, error: Exception) -> Response:
    if isinstance(error, HTTPException) and error.status_code == 405:
        return _said(request, _NOT_ALLOWED)
    return _said(request, not_found("PATH_NOT_FOUND", "there is nothing here"))


def _said(request: Request, refused: Refused, shape: ErrorShape = as_it_is) -> Response:
    """Return a refusal that no call led to."""
    request.scope[REASON] = refused.reason
    return refused_response(refused, ResponseHeaders(), shape)

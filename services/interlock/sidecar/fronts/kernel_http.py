"""Kernels as JSON over HTTP: the messages of KernelService in their JSON form, one path per method (docs/kernel.md)."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

from google.protobuf import json_format
from starlette.requests import Request
from starlette.responses import Response

from interlock.api.kernel.v1 import kernel_pb2
from interlock.domain.errors import invalid
from interlock.domain.headers.headers import RequestHeaders
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.sidecar.fronts.responses import json_response
from interlock.sidecar.openai import strictjson
from interlock.sidecar.trail.response_headers import ResponseHeaders

Reading = Callable[[Request], tuple[Caller, RequestHeaders]]
Body = Callable[[Request], Awaitable[bytes]]
Endpoint = Callable[[Request, ResponseHeaders], Awaitable[Response]]

LARGEST_BODY, DEEPEST = 262_144, 12
PATH = "/crp/v3/kernel/{kernel}"

_ASKS: dict[str, tuple[str, type[Any]]] = {
    "open": ("open", kernel_pb2.OpenRequest),
    "open-child": ("open_child", kernel_pb2.OpenChildRequest),
    "evaluate": ("evaluate", kernel_pb2.EvaluateRequest),
    "execute": ("execute", kernel_pb2.ExecuteRequest),
    "permit": ("permit", kernel_pb2.PermitRequest),
    "confirm": ("confirm", kernel_pb2.ConfirmRequest),
    "abort": ("abort", kernel_pb2.AbortRequest),
    "rollback": ("rollback", kernel_pb2.RollbackRequest),
    "begin-saga": ("begin_saga", kernel_pb2.BeginSagaRequest),
    "end-saga": ("end_saga", kernel_pb2.EndSagaRequest),
    "claim-compensation": ("claim", kernel_pb2.ClaimCompensationRequest),
    "settle-compensation": ("settle", kernel_pb2.SettleCompensationRequest),
    "ticket": ("ticket", kernel_pb2.TakeTicketRequest),
    "return-ticket": ("return_ticket", kernel_pb2.ReturnTicketRequest),
    "lease": ("lease", kernel_pb2.LeaseRequest),
    "return": ("give_back", kernel_pb2.ReturnRequest),
    "emergency": ("emergency", kernel_pb2.EmergencyRequest),
}
"""Last part of the path → what is asked, and the message of its body."""

_INTEGER = re.compile(r"-?(?:0|[1-9]\d{0,18})", re.ASCII)
_NUMBERS = frozenset({"version", "fence", "lifetime_ms", "micros"})
_CHOICES = frozenset({"type", "enforcement", "mode", "outcome"})
_CAPITAL = re.compile(r"[A-Z]", re.ASCII)


def endpoints(kernels: Kernels, reading: Reading, body: Body) -> Iterator[tuple[str, Endpoint, str]]:
    """Yield path, endpoint and method of each route."""

    async def describe(request: Request, reply: ResponseHeaders) -> Response:
        asked = kernel_pb2.DescribeRequest(kernel=request.path_params["kernel"])
        return await answer(request, reply, "describe", asked)

    def acting(what: str, kind: type[Any]) -> Endpoint:
        async def act(request: Request, reply: ResponseHeaders) -> Response:
            given = strictjson.loads(await body(request), max_depth=DEEPEST)
            return await answer(request, reply, what, _message(kind, given, request.path_params["kernel"]))

        return act

    async def answer(request: Request, reply: ResponseHeaders, what: str, asked: Any) -> Response:
        caller, headers = reading(request)
        found = await kernels.ask(caller.scope, headers.session_token or "", what, asked)
        kind = str(found.WhichOneof("answer"))
        told = _shown(getattr(found, kind))
        return json_response({"verdict": told} if kind == "verdict" else told, reply)

    async def trace(request: Request, reply: ResponseHeaders) -> Response:
        caller, headers = reading(request)
        after = request.query_params.get("after", "0")
        if request.query_params.multi_items() not in ([], [("after", after)]) or not _INTEGER.fullmatch(after):
            raise invalid("INVALID_PARAMETER", "the query holds after, the number of a record", param="after")
        name = request.path_params["kernel"]
        found = await kernels.trace(caller.scope, headers.session_token or "", name, int(after))
        return json_response({"records": [_shown(one) for one in found]}, reply)

    yield PATH, describe, "GET"
    yield PATH + "/trace", trace, "GET"
    for name, (what, kind) in _ASKS.items():
        yield f"{PATH}/{name}", acting(what, kind), "POST"


def _message(kind: type[Any], given: Any, kernel: str) -> Any:
    """Return the request in a body. Refused with KERNEL_REQUEST_INVALID or KERNEL_NUMBER_INVALID."""
    if not isinstance(given, dict) or given.get("kernel", kernel) != kernel:
        raise invalid("KERNEL_REQUEST_INVALID", "the body is an object, and of the kernel in the path")
    _check_fields(given)
    try:
        return json_format.ParseDict({**given, "kernel": kernel}, kind())
    except json_format.ParseError as error:
        message = f"the body is no {kind.DESCRIPTOR.name}: {str(error)[:200]}"
        raise invalid("KERNEL_REQUEST_INVALID", message) from None


def _check_fields(value: Any, name: str = "") -> None:
    """Refuse a field that stands twice, by its two names, and a number that is not whole or written in another way than the one."""
    if isinstance(value, dict):
        fields = [(_CAPITAL.sub(lambda found: f"_{found[0].lower()}", key), one) for key, one in value.items()]
        if len(dict(fields)) != len(fields):
            raise invalid("KERNEL_REQUEST_INVALID", "a field stands twice, as lifetime_ms and lifetimeMs")
        for key, one in fields:
            _check_fields(one, key)
    elif isinstance(value, list):
        for one in value:
            _check_fields(one)
    elif name in _NUMBERS or name.endswith("_micros"):
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole and not (isinstance(value, str) and _INTEGER.fullmatch(value)):
            raise invalid("KERNEL_NUMBER_INVALID", f"{name} is a whole number in decimal digits", param=name)
    elif name in _CHOICES and isinstance(value, bool | float):
        raise invalid("KERNEL_NUMBER_INVALID", f"{name} is one of its names, or its number", param=name)


def _shown(message: Any) -> Any:
    return json_format.MessageToDict(
        message, preserving_proto_field_name=True, always_print_fields_with_no_presence=True
    )

"""``ext_authz``: whether a request to an upstream that is no model may go on, by who calls and how its session stands (MSH-2).

Nothing is judged, charged or sealed: no model answers here. A tool server behind Envoy so gets nothing from an agent that was halted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.envoy import ext_authz_pb2 as pb
from interlock.api.envoy import ext_authz_pb2_grpc
from interlock.api.session.v1 import session_pb2
from interlock.domain.binding import cookie
from interlock.domain.errors import Refused
from interlock.domain.headers import headers
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import internal
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.generation import required
from interlock.sidecar.fronts.responses import refused_response
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

CHECKS = Counter("interlock_authorizations", "Requests that Envoy asked about, by outcome.", ["outcome"])

SESSION = "x-interlock-session-id"
AGENT = "x-interlock-agent-type"
"""What the upstream is told of an allowed request; what the client said in these names does not reach it."""

_CREDENTIALS = frozenset({"authorization", "x-api-key", SESSION, AGENT})
_PERMISSION_DENIED = 7
_OVERWRITE = pb.HeaderValueOption.OVERWRITE_IF_EXISTS_OR_ADD


class Authorizer(ext_authz_pb2_grpc.AuthorizationServicer):
    """Answers for ``envoy.service.auth.v3.Authorization``."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def Check(self, request: pb.CheckRequest, _context: Any) -> pb.CheckResponse:  # noqa: N802 - gRPC's name
        """Allow a request, with its session told to the upstream, or deny it with the refusal that the HTTP front would give."""
        lines, reply = _lines(request.attributes.request.http), ResponseHeaders()
        try:
            session = await self._standing(lines, reply)
        except Refused as refused:
            return _denied(refused, reply)
        except Exception:
            log.exception("envoy.authorization_defect")
            return _denied(internal(), reply)
        CHECKS.labels("allowed").inc()
        return _allowed(session, lines, reply)

    async def _standing(self, lines: list[tuple[str, str]], reply: ResponseHeaders) -> session_pb2.Session:
        front = self._front
        caller = front.keys.caller([value for name, value in lines if name == "authorization"])
        asked = headers.read(lines, delegating=True)
        named = front.bindings.read(caller.scope, lines).said.session_id
        deadline = Deadline(front.settings.rpc_timeout_s)
        session = await front.sessions.in_standing(caller, asked, named, reply, deadline)
        if session is None:
            required(asked.session_token)
        assert session is not None
        reply.set(response_headers.of_budget(session.safety_budget_micros))
        return session


def _lines(http: pb.AttributeContext.HttpRequest) -> list[tuple[str, str]]:
    """Return the headers as they came where the filter sends them so, else by name; names in lower case."""
    raw = http.header_map.headers
    if raw:
        return [(one.key.lower(), (one.raw_value or one.value.encode()).decode("latin-1")) for one in raw]
    return [(name.lower(), value) for name, value in http.headers.items()]


def _allowed(session: session_pb2.Session, lines: list[tuple[str, str]], reply: ResponseHeaders) -> pb.CheckResponse:
    told = {SESSION: session.session_id, **({AGENT: reply.agent_type} if reply.agent_type else {}), **_cookies(lines)}
    hidden = {
        name for name, _ in lines if headers.is_ours(name) or name in _CREDENTIALS or name == "cookie"
    } - told.keys()
    return pb.CheckResponse(
        status=pb.Status(code=0),
        ok_response=pb.OkHttpResponse(
            headers=_options(told), headers_to_remove=sorted(hidden), response_headers_to_add=_options(reply.headers)
        ),
    )


def _cookies(lines: list[tuple[str, str]]) -> dict[str, str]:
    """Return the cookies that the upstream gets: the client's, without the one that names a session here."""
    left = cookie.without(value for name, value in lines if name == "cookie")
    return {"cookie": left} if left else {}


def _denied(refused: Refused, reply: ResponseHeaders) -> pb.CheckResponse:
    CHECKS.labels("denied").inc()
    log.info("envoy.denied", session_id=reply.session_id, reason=refused.reason)
    response = refused_response(refused, reply)
    return pb.CheckResponse(
        status=pb.Status(code=_PERMISSION_DENIED, message=refused.reason),
        denied_response=pb.DeniedHttpResponse(
            status=pb.HttpStatus(code=response.status_code),
            headers=_options({name: value for name, value in response.headers.items() if name != "content-length"}),
            body=bytes(response.body).decode(),
        ),
    )


def _options(values: Mapping[str, str]) -> list[pb.HeaderValueOption]:
    return [
        # ext_authz reads value alone, ext_proc raw_value first.
        pb.HeaderValueOption(header=pb.HeaderValue(key=name.lower(), value=value), append_action=_OVERWRITE)
        for name, value in values.items()
    ]

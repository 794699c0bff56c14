"""The gRPC front: the same governed calls for agents that speak gRPC (SVC-2, SVC-3).

Every refusal is a status with ErrorInfo. What is known by then goes out as trailing metadata, with a refusal too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Any

from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.domain import headers
from interlock.domain.errors import Refused, invalid, unauthenticated
from interlock.domain.headers import Asked
from interlock.runtime.config import Settings
from interlock.sidecar.front import Front
from interlock.sidecar.guard import Governed
from interlock.sidecar.identity import Caller
from interlock.sidecar.propagation import Known
from interlock.sidecar.waiting import Deadline

Pairs = list[tuple[str, str]]

_SINGLE = {
    "session_token": "crp-session-token",
    "continuation_id": "crp-context-continuation-id",
    "safety_mode": "crp-safety-mode",
    "oversight_mode": "crp-safety-oversight-mode",
    "accept_risk": "crp-accept-risk",
}
_LINES = {"safety_policy": "crp-safety-policy", "report_only": "crp-safety-policy-report-only"}


class SidecarServicer(sidecar_pb2_grpc.SidecarServiceServicer):
    """Answers for ``interlock.api.sidecar.v1.SidecarService``."""

    def __init__(self, front: Front) -> None:
        self._front = front

    async def Dispatch(self, request: sidecar_pb2.DispatchRequest, context: Any) -> sidecar_pb2.DispatchResponse:  # noqa: N802 - gRPC's name
        """Govern a chat request; the answer is the buffered completion, whatever the request says about streaming."""
        async with _told(context) as known:
            caller, asked = self._caller(context), _asked(request.context, context)
            chat = self._front.read_chat(request.chat_request)
            governed = await self._front.chat(
                "grpc", caller, asked, chat, known, facts=request.facts, query=request.query
            )
            answer = governed.released()
            return sidecar_pb2.DispatchResponse(chat_response=answer.body, outcome=_outcome(governed, known))

    async def Check(self, request: sidecar_pb2.CheckRequest, context: Any) -> sidecar_pb2.CheckResponse:  # noqa: N802 - gRPC's name
        """Govern a text; a halt is an answer, because the caller holds the text already."""
        async with _told(context) as known:
            caller, asked = self._caller(context), _asked(request.context, context)
            governed = await self._front.text(
                caller, asked, known, text=request.text, facts=request.facts, query=request.query
            )
            return sidecar_pb2.CheckResponse(outcome=_outcome(governed, known))

    async def StartSession(  # noqa: N802 - gRPC's name
        self, request: sidecar_pb2.StartSessionRequest, context: Any
    ) -> sidecar_pb2.StartSessionResponse:
        """Start a session under the policy of the request."""
        async with _told(context) as known:
            caller, asked = self._caller(context), _asked(request.context, context)
            if asked.session_token is not None or asked.continuation_id is not None:
                raise invalid("SESSION_TOKEN_UNEXPECTED", "a session that starts has no token yet")
            deadline = Deadline(self._settings.request_timeout_s)
            started, _ = await self._front.admission.start(caller.scope, asked, known, deadline)
            return sidecar_pb2.StartSessionResponse(session=started.session, session_token=started.token)

    async def GetSession(  # noqa: N802 - gRPC's name
        self, request: sidecar_pb2.GetSessionRequest, context: Any
    ) -> sidecar_pb2.GetSessionResponse:
        """Read the session of a token."""
        caller = self._caller(context)
        session = await self._front.sessions.of_token(_token(request.session_token), caller.scope)
        return sidecar_pb2.GetSessionResponse(session=session)

    async def Terminate(self, request: sidecar_pb2.TerminateRequest, context: Any) -> sidecar_pb2.TerminateResponse:  # noqa: N802 - gRPC's name
        """End the session of a token."""
        caller = self._caller(context)
        session = await self._front.sessions.terminate(_token(request.session_token), caller.scope)
        return sidecar_pb2.TerminateResponse(session=session)

    @property
    def _settings(self) -> Settings:
        return self._front.settings

    def _caller(self, context: Any) -> Caller:
        return self._front.keys.caller([value for name, value in _metadata(context) if name == "authorization"])


@asynccontextmanager
async def _told(context: Any) -> AsyncIterator[Known]:
    """Send what is known by the end as trailing metadata, refused or not."""
    known = Known()
    try:
        yield known
    except Refused as refused:
        refused.metadata |= {"session_id": known.session_id} if known.session_id else {}
        raise
    finally:
        context.set_trailing_metadata(known.metadata())


def _metadata(context: Any) -> Pairs:
    return [(name, value) for name, value in context.invocation_metadata() or () if isinstance(value, str)]


def _asked(given: sidecar_pb2.CallContext, context: Any) -> Asked:
    """Join the message's headers and the metadata's. Refused with CONFLICTING_CONTEXT where they differ."""
    sent = [(name, value) for name, value in context.invocation_metadata() or () if headers.is_ours(name)]
    if any(not isinstance(value, str) for _, value in sent):
        raise invalid("INVALID_HEADER", "CRP metadata is text: names must not end in -bin")
    asked = headers.read([*_not_in(sent, fields := _fields(given)), *fields])
    if asked.terminate:
        raise invalid("HEADER_NOT_SUPPORTED", "use the Terminate method", header="crp-session-action")
    return asked


def _fields(given: sidecar_pb2.CallContext) -> Pairs:
    single = [(name, getattr(given, field)) for field, name in _SINGLE.items() if getattr(given, field)]
    return [*single, *((name, line) for field, name in _LINES.items() for line in getattr(given, field))]


def _not_in(sent: Sequence[tuple[str, Any]], fields: Iterable[tuple[str, str]]) -> Pairs:
    """Return the metadata that the message does not repeat."""
    by_name: dict[str, list[str]] = {}
    for name, value in fields:
        by_name.setdefault(name, []).append(value)
    for name, values in by_name.items():
        repeated = [value for sent_name, value in sent if sent_name == name]
        if repeated and repeated != values:
            raise invalid("CONFLICTING_CONTEXT", f"{name} differs between message and metadata", header=name)
    return [(name, value) for name, value in sent if name not in by_name]


def _token(token: str) -> str:
    if not token:
        raise unauthenticated("SESSION_TOKEN_REQUIRED", "session_token is empty")
    return token


def _outcome(governed: Governed, known: Known) -> sidecar_pb2.Outcome:
    settled = governed.settled
    return sidecar_pb2.Outcome(
        decision=governed.judged.decision,
        report=governed.judged.report,
        headers=known.headers,
        session_token=settled.token,
        session_id=known.session_id,
        window_id=known.window_id,
        safety_budget_micros=settled.session_budget_micros,
        breaker=settled.breaker,
        integrity=governed.integrity,
    )

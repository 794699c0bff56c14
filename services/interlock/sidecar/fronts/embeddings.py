"""Embeddings: passed on by allow-list, on record, not judged (API-3; SPEC-016 §2.1). A caller that is halted gets none.

A call that names its session, by its token or by ``CRP-Context-Session-Id``, is an event of that session's chain. One that names none
is counted and has a line in the log: it opens no window, so that nothing else would bind it, and no session begins for it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import structlog
from prometheus_client import Counter
from starlette.requests import Request
from starlette.responses import Response

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import OPEN_AT
from interlock.domain.errors import Refused
from interlock.domain.headers.awareness import aware
from interlock.domain.headers.headers import RequestHeaders
from interlock.domain.session.session_refusals import refusal
from interlock.runtime.keys.api_keys import UNVERIFIED, Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.sidecar.admission.explanation import tell_caller_halt
from interlock.sidecar.admission.start_session import check_residency
from interlock.sidecar.fronts.front import Front
from interlock.sidecar.fronts.reading import body_of, header_lines, read_headers, while_connected
from interlock.sidecar.fronts.responses import headers_of_reply
from interlock.sidecar.provider import figures
from interlock.sidecar.trail.events import INFO, event
from interlock.sidecar.trail.response_headers import ResponseHeaders

log = structlog.get_logger()

EMBEDDINGS = Counter(
    "interlock_embeddings",
    "Embeddings calls, by how they ended and whether a session was named.",
    ["outcome", "session"],
)


async def embeddings(front: Front, request: Request, reply: ResponseHeaders) -> Response:
    """Pass a request for embeddings on, and its vectors back."""
    session_id, outcome = "", "INTERNAL"
    try:
        caller, asked = read_headers(front, request, delegating=True)
        front.upstream.require()
        front.guard.require_room()
        deadline = Deadline(front.settings.request_timeout_s)
        session_id = await _admitted(front, caller, asked, request, reply=reply, deadline=deadline)
        data = await body_of(request, front.settings.max_body_bytes)
        body = await while_connected(request, _vectors(front, caller, data, session_id, deadline))
        outcome = "DELIVERED"
    except Refused as refused:
        outcome = refused.reason
        raise
    finally:
        known = "named" if session_id else "none"
        EMBEDDINGS.labels("delivered" if outcome == "DELIVERED" else "refused", known).inc()
        reply.told = True
        log.info("call.embeddings", outcome=outcome, session_id=session_id)
    return Response(body, headers=headers_of_reply(reply), media_type="application/json")


async def _vectors(front: Front, caller: Caller, data: bytes, session_id: str, deadline: Deadline) -> bytes:
    """Return the provider's vectors, once they are on record."""
    from interlock.sidecar.openai import embeddings, fields

    asked = embeddings.read(data, front.settings)
    provider, conventions = front.upstream.provider, front.settings.gen_ai_conventions
    with figures.ProviderCall("embeddings", provider, asked["model"], conventions=conventions) as measured:
        answered = await front.upstream.embeddings(asked, key=caller.key, timeout_s=deadline.left_s)
        vectors = embeddings.answer(answered, asked, max_depth=front.settings.max_json_depth)
        measured.answered({"prompt_tokens": vectors.tokens})
    fields.count(vectors.dropped)
    if session_id:
        told = {
            "tokens_used": vectors.tokens,
            "dropped_fields": list(vectors.dropped) or None,
            "dimensions": vectors.dimensions,
        }
        passed = _event(front.upstream.provider, asked, embeddings.inputs(asked), vectors.body, told)
        await front.sessions.peers.audit.record(session_id, "", [passed], deadline)
    return vectors.body


def _event(provider: str, asked: Mapping[str, Any], inputs: int, body: bytes, told: Mapping[str, Any]) -> Any:
    digest = "sha256:" + hashlib.sha256(body).hexdigest()
    return event(
        "EMBEDDINGS_PASSED", INFO, provider=provider, model=asked["model"], inputs=inputs, response_hash=digest, **told
    )


async def _admitted(
    front: Front, caller: Caller, asked: RequestHeaders, request: Request, *, reply: ResponseHeaders, deadline: Deadline
) -> str:
    """Return the session that the call names, empty for none. Refused where it, one above it or its caller is halted."""
    agent = await front.sessions.agents.of(caller, deadline)
    check_residency(asked.data_residency, front.settings.data_region)
    watched = front.settings.unaware_callers == "observe" and not aware(asked)
    if front.settings.caller_budget and not watched:
        scope = caller.scope if caller.verified or agent.agent_type else UNVERIFIED
        _require_caller(await front.sessions.peers.session.get_caller(scope), reply)
    session = await _named(front, caller, asked, request)
    if session is None:
        return ""
    reply.session_id = session.session_id
    reply.set({"CRP-Context-Session-Id": session.session_id})
    _require_going(session, reply)
    return session.session_id


async def _named(front: Front, caller: Caller, asked: RequestHeaders, request: Request) -> session_pb2.Session | None:
    if asked.session_token:
        return await front.sessions.of_token(asked.session_token, caller.scope)
    named = front.bindings.read(caller.scope, header_lines(request)).said.session_id
    if not named:
        return None
    wanted = session_pb2.GetSessionRequest(session_id=named, scope=caller.scope)
    return await front.sessions.peers.session.get(wanted)


def _require_caller(budget: session_pb2.CallerBudget | None, reply: ResponseHeaders) -> None:
    """Refuse a caller whose budget is spent for its period. One of whom the store knows nothing has spent nothing that it knows of."""
    if budget is None or budget.left_micros > OPEN_AT:
        return
    spent = refusal("CALLER_BUDGET_DEPLETED", budget.left_micros, budget.period)
    spent.metadata |= {"caller_id": budget.caller_id, "ends_at": str(budget.ends_at)}
    tell_caller_halt(spent, reply)
    raise spent


def _require_going(session: session_pb2.Session, reply: ResponseHeaders) -> None:
    """Refuse a session that has ended or has nothing left, and one below such a session."""
    reply.set({"CRP-Safety-Retry-After": "new-session-required"})
    above = session.ancestor_halt
    if above.reason:
        raise refusal(above.reason, above.session_id, above.safety_budget_micros)
    if session.safety_budget_micros <= OPEN_AT:
        raise refusal("BUDGET_DEPLETED", session.safety_budget_micros)
    if session.status == session_pb2.SESSION_STATUS_TERMINATED:
        raise refusal("SESSION_TERMINATED")
    reply.set({"CRP-Safety-Retry-After": None})

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
from interlock.domain.errors import Refused
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.sidecar.call.spending import ModelCall
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
    session, outcome = session_pb2.Session(), "INTERNAL"
    try:
        caller, asked = read_headers(front, request, delegating=True)
        front.upstream.require()
        front.guard.require_room(caller)
        deadline = Deadline(front.settings.request_timeout_s)
        named = front.bindings.read(caller.scope, header_lines(request)).said.session_id
        session = await front.sessions.in_standing(caller, asked, named, reply, deadline) or session
        data = await body_of(request, front.settings.max_body_bytes)
        body = await while_connected(request, _counted(front, caller, data, session, reply=reply, deadline=deadline))
        outcome = "DELIVERED"
    except Refused as refused:
        outcome = refused.reason
        raise
    finally:
        known = "named" if session.session_id else "none"
        EMBEDDINGS.labels("delivered" if outcome == "DELIVERED" else "refused", known).inc()
        reply.told = True
        log.info("call.embeddings", outcome=outcome, session_id=session.session_id)
    return Response(body, headers=headers_of_reply(reply), media_type="application/json")


async def _counted(
    front: Front,
    caller: Caller,
    data: bytes,
    session: session_pb2.Session,
    *,
    reply: ResponseHeaders,
    deadline: Deadline,
) -> bytes:
    """Return the provider's vectors, charged to the session that is named; without one the call is counted alone."""
    from interlock.sidecar.openai import embeddings

    asked = embeddings.read(data, front.settings)
    if not session.session_id:
        front.spending.prices.of(asked["model"])  # refused where its price is to be known
        return await _vectors(front, caller, asked, "", deadline=deadline)
    spending = front.spending.apart(session, reply)
    try:
        with await spending.embedding(asked, deadline) as call:
            return await _vectors(front, caller, asked, session.session_id, deadline=deadline, call=call)
    finally:
        await spending.close()


async def _vectors(
    front: Front,
    caller: Caller,
    asked: Mapping[str, Any],
    session_id: str,
    *,
    deadline: Deadline,
    call: ModelCall | None = None,
) -> bytes:
    """Return the provider's vectors, once they are on record."""
    from interlock.sidecar.openai import embeddings, fields

    provider, conventions = front.upstream.provider, front.settings.gen_ai_conventions
    with figures.ProviderCall("embeddings", provider, asked["model"], conventions=conventions) as measured:
        answered = await front.upstream.embeddings(asked, key=caller.key, timeout_s=deadline.left_s)
        vectors = embeddings.answer(answered, asked, max_depth=front.settings.max_json_depth)
        measured.answered({"prompt_tokens": vectors.tokens})
        if call is not None:
            call.embedded(vectors.tokens)
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

"""The gRPC front: the same governed calls for agents that speak gRPC (SVC-2, SVC-3).

Every refusal is a status with ErrorInfo. The response headers go out as trailing metadata, with a refusal too.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any

from interlock.api.sidecar.v1 import sidecar_pb2, sidecar_pb2_grpc
from interlock.domain import held
from interlock.domain.errors import Refused, invalid, unauthenticated
from interlock.domain.headers import headers
from interlock.domain.headers.headers import RequestHeaders
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import to_message
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission.delegation import headers_of
from interlock.sidecar.call.binding import CallBinding
from interlock.sidecar.call.call import Call
from interlock.sidecar.call.live import AnswerPart, Live
from interlock.sidecar.closing import Governed
from interlock.sidecar.fronts import streamed
from interlock.sidecar.fronts.batch import BatchItem, Item, govern_batch
from interlock.sidecar.fronts.front import DelegationRequest, Front, GroundingInput
from interlock.sidecar.fronts.pictures import picture_form
from interlock.sidecar.fronts.release import Release, releasing
from interlock.sidecar.openai.chat import Chat
from interlock.sidecar.trail import response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders, of_refusal

Pairs = list[tuple[str, str]]

GRANT = "crp-agent-delegation-grant"

_SINGLE = {
    "session_token": "crp-session-token",
    "continuation_id": "crp-context-continuation-id",
    "safety_mode": "crp-safety-mode",
    "oversight_mode": "crp-safety-oversight-mode",
    "accept_risk": "crp-accept-risk",
    "agent_session_parent": "crp-agent-session-parent",
    "delegation_grant": GRANT,
    "agent_loop_depth": "crp-agent-loop-depth",
    "strategy": "crp-context-strategy",
    "fan_in_policy": "crp-agent-fan-in-policy",
    "safety_budget": "crp-agent-safety-budget",
    "data_residency": "crp-compliance-data-residency",
    "oversight_token": headers.APPROVAL,
    "session_action": "crp-session-action",
    "if_match": "crp-context-if-match",
    "context_cache": "crp-context-cache",
    "grounding_mode": "crp-llm-grounding-mode",
}
_LINES = {"safety_policy": "crp-safety-policy", "report_only": "crp-safety-policy-report-only"}


@dataclass(frozen=True)
class _Dispatch:
    """A chat request that is to be governed."""

    caller: Caller
    asked: RequestHeaders
    chat: Chat
    binding: CallBinding


class SidecarServicer(sidecar_pb2_grpc.SidecarServiceServicer):
    """Answers for ``interlock.api.sidecar.v1.SidecarService``."""

    def __init__(self, front: Front) -> None:
        self.front = front

    async def Dispatch(self, request: sidecar_pb2.DispatchRequest, context: Any) -> sidecar_pb2.DispatchResponse:  # noqa: N802 - gRPC's name
        """Govern a chat request; the answer is the buffered completion, also where the request asks to stream."""
        async with _trailing(context) as reply:
            asked = await self._read(request, context, reply)
            if isinstance(asked, sidecar_pb2.DispatchResponse):
                return asked
            return _whole(await self._governed(asked, request, reply), reply)

    async def DispatchStream(  # noqa: N802 - gRPC's name
        self, request: sidecar_pb2.DispatchStreamRequest, context: Any
    ) -> AsyncIterator[sidecar_pb2.DispatchStreamResponse]:
        """Govern a chat request and hand its answer over as it is released; the last message has all of it."""
        async with _trailing(context) as reply:
            asked = await self._read(request.dispatch, context, reply)
            if isinstance(asked, sidecar_pb2.DispatchResponse):
                yield sidecar_pb2.DispatchStreamResponse(whole=asked)
                return
            live = self.front.live(asked.caller, asked.asked, asked.chat, told_at_end=True)
            governing = self._governed(asked, request.dispatch, reply, live)
            governed = await streamed.begun(governing, live) if live else await governing
            if isinstance(governed, streamed.StreamedAnswer):
                begun = governed
                await context.send_initial_metadata(_known(begun.live))
                async with aclosing(begun.parts()) as parts:
                    async for part in parts:
                        if part:
                            yield _part(part)
                governed = await begun.ended()
                if rest := begun.rest(governed.released()):
                    yield _part(rest)
            yield sidecar_pb2.DispatchStreamResponse(whole=_whole(governed, reply))

    async def _read(
        self, request: sidecar_pb2.DispatchRequest, context: Any, reply: ResponseHeaders
    ) -> _Dispatch | sidecar_pb2.DispatchResponse:
        """Return what is to be governed, or the answer where nothing is: a held one that is released, one that still stands."""
        caller, asked = self._caller(context), _asked(request.context, context, delegating=True)
        if releasing(asked):
            release, outcome = await self._released(caller, asked, reply, held.CHAT, held.STREAM)
            return sidecar_pb2.DispatchResponse(chat_response=release.held.body, outcome=outcome)
        self.front.guard.require_room(caller)
        chat = self.front.read_chat(request.chat_request)
        if await self.front.unmodified(caller, asked, chat, reply, given=_given(request)):
            held_already = sidecar_pb2.Outcome(
                headers=reply.headers, session_id=reply.session_id, window_id=reply.window_id
            )
            return sidecar_pb2.DispatchResponse(outcome=held_already, not_modified=True)
        return _Dispatch(caller, asked, chat, self.front.bindings.read(caller.scope, _metadata(context), chat))

    async def _governed(
        self, asked: _Dispatch, request: sidecar_pb2.DispatchRequest, reply: ResponseHeaders, live: Live | None = None
    ) -> Governed:
        return await self.front.chat(
            "grpc",
            asked.caller,
            asked.asked,
            asked.chat,
            reply,
            given=_given(request),
            binding=asked.binding,
            live=live,
        )

    async def Check(self, request: sidecar_pb2.CheckRequest, context: Any) -> sidecar_pb2.CheckResponse:  # noqa: N802 - gRPC's name
        """Govern a text; a halt is an answer, because the caller holds the text already."""
        async with _trailing(context) as reply:
            caller, asked = self._caller(context), _asked(request.context, context, delegating=True)
            if releasing(asked):
                _, outcome = await self._released(caller, asked, reply, held.TEXT)
                return sidecar_pb2.CheckResponse(outcome=outcome)
            self.front.guard.require_room(caller)
            binding = self.front.bindings.read(caller.scope, _metadata(context))
            governed = await self.front.text(
                caller, asked, reply, text=request.text, given=_given(request), binding=binding
            )
            return sidecar_pb2.CheckResponse(outcome=_outcome(governed, reply))

    async def _released(
        self, caller: Caller, asked: RequestHeaders, reply: ResponseHeaders, *forms: str
    ) -> tuple[Release, sidecar_pb2.Outcome]:
        """Hand out the held response that the call's approval is for, instead of governing a call (SPEC-012 §6.2)."""
        release = await self.front.releases.release(caller, asked, reply, forms=forms)
        return release, await self.front.releases.outcome(release, reply)

    async def GetHeld(self, request: sidecar_pb2.GetHeldRequest, context: Any) -> sidecar_pb2.GetHeldResponse:  # noqa: N802 - gRPC's name
        """Tell what became of a held response of a token's session."""
        caller = self._caller(context)
        token = _token(request.session_token)
        item = await self.front.releases.status(token, caller.scope, request.window_id)
        return sidecar_pb2.GetHeldResponse(item=item)

    async def StartSession(  # noqa: N802 - gRPC's name
        self, request: sidecar_pb2.StartSessionRequest, context: Any
    ) -> sidecar_pb2.StartSessionResponse:
        """Start a session under the policy of the request: a root, or a sub-agent's below the parent that is proved."""
        async with _trailing(context) as reply:
            proof = [(GRANT, request.parent.grant)] if request.parent.grant else []
            caller, asked = self._caller(context), _asked(request.context, context, proof, delegating=True)
            if asked.session_token is not None or asked.continuation_ids or asked.branch:
                raise invalid("SESSION_TOKEN_UNEXPECTED", "a session that starts has no token yet")
            if asked.grant and request.parent.session_token:
                raise invalid("CONFLICTING_CONTEXT", "a parent is proved by a grant or by its token, not by both")
            deadline = Deadline(self._settings.request_timeout_s)
            started = await self.front.sessions.start(
                caller, asked, reply, deadline, parent_token=request.parent.session_token
            )
            return sidecar_pb2.StartSessionResponse(session=started.session, session_token=started.token)

    async def Delegate(self, request: sidecar_pb2.DelegateRequest, context: Any) -> sidecar_pb2.DelegateResponse:  # noqa: N802 - gRPC's name
        """Mint a grant for one sub-agent."""
        async with _trailing(context) as reply:
            caller, asked = self._caller(context), _asked(request.context, context, delegating=True)
            wanted = DelegationRequest(request.agent_type, request.lifetime_s)
            granted = await self.front.delegate(caller, asked, wanted, reply)
            return sidecar_pb2.DelegateResponse(
                grant=granted.grant,
                headers=headers_of(granted),
                expires_at=granted.delegation.expires_at,
                loop_depth=granted.delegation.loop_depth,
            )

    async def Batch(self, request: sidecar_pb2.BatchRequest, context: Any) -> sidecar_pb2.BatchResponse:  # noqa: N802 - gRPC's name
        """Govern several chat requests, each in a window of its own."""
        async with _trailing(context) as reply:
            caller, asked = self._caller(context), _asked(request.context, context, delegating=True)
            self.front.upstream.require()
            self.front.guard.require_room(caller)
            binding = self.front.bindings.read(caller.scope, _metadata(context))
            items = [self._item(caller, binding, item) for item in request.items]
            batched = await govern_batch(self.front, caller, asked, items, reply)
            return sidecar_pb2.BatchResponse(
                results=[_result(one) for one in batched.results], headers=reply.headers, session_token=batched.token
            )

    def _item(self, caller: Caller, binding: CallBinding, item: sidecar_pb2.BatchItem) -> Item:
        """Return one item. Its chat request is read when its turn comes, so that a malformed one ends itself alone."""

        def make(asked: RequestHeaders, reply: ResponseHeaders) -> Call:
            given = GroundingInput(item.facts, item.query)
            chat = self.front.read_chat(item.chat_request)
            return self.front.call("grpc", caller, asked, chat, reply, given=given, binding=binding)

        return Item(item.id, make)

    async def GetDag(self, request: sidecar_pb2.GetDagRequest, context: Any) -> sidecar_pb2.GetDagResponse:  # noqa: N802 - gRPC's name
        """Read the window DAG of the session of a token, and draw it where a format is named."""
        caller, form = self._caller(context), picture_form(request.format)
        sessions = await self.front.sessions.dag(_token(request.session_token), caller.scope, tree=request.tree)
        return sidecar_pb2.GetDagResponse(sessions=sessions, picture=form.draw(sessions) if form else "")

    async def GetSession(  # noqa: N802 - gRPC's name
        self, request: sidecar_pb2.GetSessionRequest, context: Any
    ) -> sidecar_pb2.GetSessionResponse:
        """Read the session of a token."""
        caller = self._caller(context)
        session = await self.front.sessions.of_token(_token(request.session_token), caller.scope)
        return sidecar_pb2.GetSessionResponse(session=session)

    async def Terminate(self, request: sidecar_pb2.TerminateRequest, context: Any) -> sidecar_pb2.TerminateResponse:  # noqa: N802 - gRPC's name
        """End the session of a token."""
        caller = self._caller(context)
        session = await self.front.sessions.terminate(_token(request.session_token), caller.scope)
        return sidecar_pb2.TerminateResponse(session=session)

    @property
    def _settings(self) -> Settings:
        return self.front.settings

    def _caller(self, context: Any) -> Caller:
        return self.front.keys.caller([value for name, value in _metadata(context) if name == "authorization"])


@asynccontextmanager
async def _trailing(context: Any) -> AsyncIterator[ResponseHeaders]:
    """Send the response headers as trailing metadata, refused or not."""
    reply = ResponseHeaders()
    try:
        yield reply
    except Refused as refused:
        refused.metadata |= {"session_id": reply.session_id} if reply.session_id else {}
        reply.set(of_refusal(refused.reason))
        raise
    finally:
        context.set_trailing_metadata(reply.metadata())


def _metadata(context: Any) -> Pairs:
    return [(name, value) for name, value in context.invocation_metadata() or () if isinstance(value, str)]


def _asked(
    given: sidecar_pb2.CallContext, context: Any, more: Sequence[tuple[str, str]] = (), *, delegating: bool = False
) -> RequestHeaders:
    """Join the message's headers and the metadata's. Refused with CONFLICTING_CONTEXT where they differ."""
    sent = [(name, value) for name, value in context.invocation_metadata() or () if headers.is_ours(name)]
    if any(not isinstance(value, str) for _, value in sent):
        raise invalid("INVALID_HEADER", "CRP metadata is text: names must not end in -bin")
    fields = _fields(given)
    repeated = [pair for pair in more if pair not in fields]
    asked = headers.read([*_not_in(sent, [*fields, *repeated]), *fields, *repeated], delegating=delegating)
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


def _given(request: sidecar_pb2.DispatchRequest | sidecar_pb2.CheckRequest) -> GroundingInput:
    return GroundingInput(request.facts, request.query, request.sub_agent_results, request.sub_queries)


def _token(token: str) -> str:
    if not token:
        raise unauthenticated("SESSION_TOKEN_REQUIRED", "session_token is empty")
    return token


def _result(ended: BatchItem) -> sidecar_pb2.BatchResult:
    governed, refusal = ended.governed, ended.refusal
    released = governed is not None and refusal is None
    return sidecar_pb2.BatchResult(
        id=ended.item_id,
        chat_response=governed.released().body if governed is not None and released else b"",
        outcome=_outcome(governed, ended.reply) if governed is not None else None,
        refusal=to_message(refusal) if refusal else None,
    )


def _known(live: Live) -> tuple[tuple[str, str], ...]:
    """Return what is known when the first part leaves: a caller whose stream breaks has its session's id all the same."""
    known = {name: value for name, value in live.headers.items() if headers.is_ours(name.lower())}
    return ResponseHeaders(known).metadata()


def _part(part: AnswerPart) -> sidecar_pb2.DispatchStreamResponse:
    return sidecar_pb2.DispatchStreamResponse(part=sidecar_pb2.AnswerPart(reasoning=part.reasoning, text=part.text))


def _whole(governed: Governed, reply: ResponseHeaders) -> sidecar_pb2.DispatchResponse:
    answer = governed.released()
    return sidecar_pb2.DispatchResponse(chat_response=answer.body, outcome=_outcome(governed, reply))


def _outcome(governed: Governed, reply: ResponseHeaders) -> sidecar_pb2.Outcome:
    settled = governed.settled
    return sidecar_pb2.Outcome(
        decision=governed.decided.decision,
        report=governed.decided.report,
        headers=reply.headers,
        session_token=settled.token,
        session_id=reply.session_id,
        window_id=reply.window_id,
        safety_budget_micros=response_headers.left_of(settled),
        breaker=settled.breaker,
        integrity=governed.integrity,
    )

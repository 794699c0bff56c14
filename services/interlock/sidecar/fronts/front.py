"""What both fronts share: from a checked request to a governed call (I14)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import exhausted, invalid, unauthenticated
from interlock.domain.headers.awareness import aware
from interlock.domain.headers.headers import BATCH, RequestHeaders
from interlock.domain.held import CHAT, TEXT
from interlock.runtime.keys.api_keys import ApiKeys, Caller
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.kernels.kernels import Kernels
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call import envelope
from interlock.sidecar.call.binding import UNBOUND, BindingReader, CallBinding
from interlock.sidecar.call.call import Call
from interlock.sidecar.call.live import Live, Reader
from interlock.sidecar.call.spending import ModelSpending
from interlock.sidecar.closing import Governed
from interlock.sidecar.fronts import agentic, hierarchy
from interlock.sidecar.fronts.conditional import ConditionalCalls, request_text
from interlock.sidecar.fronts.release import Releases
from interlock.sidecar.fronts.sessions import Sessions
from interlock.sidecar.guard import Guard
from interlock.sidecar.openai import chat, media, strictjson
from interlock.sidecar.openai.chat import Chat
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider import grounding
from interlock.sidecar.provider.strategies import AGENTIC, HIERARCHICAL, PULL, PUSH
from interlock.sidecar.provider.upstream import Upstream
from interlock.sidecar.trail.events import Dispatch
from interlock.sidecar.trail.response_headers import ResponseHeaders

STRATEGY_HEADER = "crp-context-strategy"
LONGEST_GRANT_S = 86_400

_AGENT_TYPE = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


@dataclass(frozen=True)
class GroundingInput:
    """What a gRPC message gives next to the chat request. For empty fields the request's own interlock object applies."""

    facts: Sequence[common_pb2.Fact] = ()
    query: str = ""
    results: Sequence[sidecar_pb2.SubAgentResult] = ()
    sub_queries: Sequence[str] = ()


NOTHING_GIVEN = GroundingInput()


@dataclass(frozen=True)
class DelegationRequest:
    """What a delegation is to be for."""

    agent_type: str
    """Empty: an agent that is not registered."""
    lifetime_s: int
    """0: the deployment's."""


@dataclass(frozen=True)
class Front:
    """The sidecar's parts, as its HTTP and gRPC sides use them."""

    settings: Settings
    keys: ApiKeys
    guard: Guard
    sessions: Sessions
    upstream: Upstream
    releases: Releases
    bindings: BindingReader
    conditional: ConditionalCalls
    kernels: Kernels
    spending: ModelSpending

    def read_chat(self, data: bytes) -> chat.Chat:
        """Return the checked chat request in *data*. Refused before anything is begun."""
        if len(data) > self.settings.max_body_bytes:
            raise too_large(self.settings.max_body_bytes)
        return chat.read(strictjson.loads(data, max_depth=self.settings.max_json_depth), self.settings)

    def call(
        self,
        entry: str,
        caller: Caller,
        asked: RequestHeaders,
        asked_chat: chat.Chat,
        reply: ResponseHeaders,
        *,
        given: GroundingInput = NOTHING_GIVEN,
        binding: CallBinding = UNBOUND,
        form: str = CHAT,
    ) -> Call:
        """Return the call that governs a chat request, whose answer leaves as *form*. Refused before anything is begun."""
        self.upstream.require()
        evidence = envelope.of_chat(
            asked_chat, self.settings, facts=given.facts, query=given.query, results=given.results,
            sub_queries=given.sub_queries,
        )  # fmt: skip
        grounding.require_context(asked, evidence, reply)
        asked = grounding.forced(asked)
        mode = grounding.mode_of(asked.grounding_mode, evidence, self.settings)
        steered = grounding.extracting(asked, chat.steered(asked_chat, grounding_mode=mode, seed=asked.seed))
        body, evidence = grounding.told(steered, evidence, mode, self.settings)
        self.upstream.check(body)
        dispatch = Dispatch(
            provider=self.upstream.provider,
            model=body["model"],
            strategy=PUSH,
            temperature=body.get("temperature"),
            token_budget=body.get("max_completion_tokens") or body.get("max_tokens"),
            seed=body.get("seed"),
            choices=asked_chat.choices,
        )

        async def model(asked_body: Mapping[str, Any], timeout_s: float) -> Completion:
            return await self.upstream.complete(asked_body, key=caller.key, timeout_s=timeout_s, media=form == CHAT)

        return Call(
            entry, caller, asked, evidence, dispatch, body, model, reply, form=form,
            include_usage=asked_chat.include_usage, binding=binding, media=media.asked(asked_chat.messages),
        )  # fmt: skip

    def live(
        self, caller: Caller, asked: RequestHeaders, asked_chat: chat.Chat, *, told_at_end: bool = False
    ) -> Live | None:
        """Return the way out for parts of an answer; ``None`` where it leaves as a whole.

        A caller that knows of CRP needs the token at the end: its answer leaves in parts only where it asks for the final values, or
        where its front tells them at the end to everybody (*told_at_end*).
        """
        body = asked_chat.body
        text = body.get("response_format", {"type": "text"}).get("type") == "text"
        known = told_at_end or asked.stream_final or not aware(asked)
        if self.settings.stream_release != "sentences" or not known:
            return None
        if not text or asked_chat.choices != 1 or body.get("logprobs") or body.get("modalities", ["text"]) != ["text"]:
            return None

        async def ask(asked_body: Mapping[str, Any], timeout_s: float, into: Reader) -> None:
            await self.upstream.stream(asked_body, into, key=caller.key, timeout_s=timeout_s)

        return Live(ask, self.upstream.reader, final=asked.stream_final)

    async def unmodified(
        self,
        caller: Caller,
        asked: RequestHeaders,
        asked_chat: chat.Chat,
        reply: ResponseHeaders,
        *,
        given: GroundingInput = NOTHING_GIVEN,
    ) -> bool:
        """Tell whether the answer that a conditional call names still stands: then *reply* has its headers, and nothing is dispatched."""
        if asked.if_match is None:  # nearly every call: its request need not be digested to look for an answer
            return False
        return await self.conditional.holds(caller, asked, _request(asked_chat, given), reply)

    async def chat(
        self,
        entry: str,
        caller: Caller,
        asked: RequestHeaders,
        asked_chat: chat.Chat,
        reply: ResponseHeaders,
        *,
        given: GroundingInput = NOTHING_GIVEN,
        binding: CallBinding = UNBOUND,
        form: str = CHAT,
        live: Live | None = None,
    ) -> Governed:
        """Govern a chat request, whose answer leaves as *form*. *live*: where parts of it may leave before the whole is judged."""
        _check_shape(asked)
        call = self.call(entry, caller, asked, asked_chat, reply, given=given, binding=binding, form=form)
        if call.asked.strategy == HIERARCHICAL and call.body:
            governed = await hierarchy.govern(self.guard, call, self.settings)
        elif call.asked.strategy == AGENTIC:
            governed = await agentic.govern(self.guard, call, self.settings)
        else:
            governed = await self.guard.govern(replace(call, live=live))
        if governed.refusal is None:
            self.conditional.keep(caller, asked, _request(asked_chat, given), reply)
        return governed

    async def text(
        self,
        caller: Caller,
        asked: RequestHeaders,
        reply: ResponseHeaders,
        *,
        text: str,
        given: GroundingInput,
        binding: CallBinding = UNBOUND,
    ) -> Governed:
        """Govern a completion that the caller brings; it is charged and sealed as if it had been dispatched."""
        _check_brought(asked)
        if not text:
            raise invalid("INVALID_REQUEST", "text must not be empty", param="text")
        evidence = envelope.of_text(
            self.settings, facts=given.facts, query=given.query, results=given.results, sub_queries=given.sub_queries
        )
        grounding.require_context(asked, evidence, reply)
        brought = _brought(envelope.checked_text("text", text, self.settings))
        dispatch = Dispatch("caller", "brought-by-caller", PUSH, None, None, asked.seed, 1)
        return await self.guard.govern(
            Call(
                "check",
                caller,
                asked,
                evidence,
                dispatch,
                {},
                partial(_given, brought),
                reply,
                form=TEXT,
                binding=binding,
            )
        )

    async def brought(
        self,
        entry: str,
        caller: Caller,
        asked: RequestHeaders,
        asked_chat: Chat,
        *,
        answer: Completion,
        reply: ResponseHeaders,
        binding: CallBinding,
    ) -> Governed:
        """Govern the *answer* to a chat request that a gateway has asked a provider for: as one of ours, but never asked for again."""
        _check_brought(asked)
        evidence = envelope.of_chat(asked_chat, self.settings)
        grounding.require_context(asked, evidence, reply)
        dispatch = Dispatch(entry, asked_chat.body["model"], PUSH, None, None, asked.seed, len(answer.choices))
        model = partial(_given, answer)
        return await self.guard.govern(
            Call(
                entry,
                caller,
                asked,
                evidence,
                dispatch,
                {},
                model,
                reply,
                binding=binding,
                media=media.asked(asked_chat.messages),
            )
        )

    async def delegate(
        self, caller: Caller, asked: RequestHeaders, wanted: DelegationRequest, reply: ResponseHeaders
    ) -> session_pb2.DelegateResponse:
        """Mint a grant under the session of the call's token. A ceiling of the call is the sub-agent's."""
        if asked.session_token is None:
            raise unauthenticated("SESSION_TOKEN_REQUIRED", "only a session delegates; this needs CRP-Session-Token")
        if wanted.agent_type and not _AGENT_TYPE.fullmatch(wanted.agent_type):
            message = "agent_type must be 1 to 64 letters, digits, dots, hyphens or underscores"
            raise invalid("INVALID_PARAMETER", message, param="agent_type")
        if not 0 <= wanted.lifetime_s <= LONGEST_GRANT_S:
            message = f"lifetime_s must be from 1 to {LONGEST_GRANT_S}"
            raise invalid("INVALID_PARAMETER", message, param="lifetime_s")
        return await self.sessions.delegate(
            caller,
            asked,
            wanted.agent_type,
            reply,
            Deadline(self.settings.request_timeout_s),
            lifetime_s=wanted.lifetime_s,
        )


def _request(asked_chat: chat.Chat, given: GroundingInput) -> str:
    """Return the digest of everything that a request asks."""
    told = [one.SerializeToString(deterministic=True) for one in (*given.facts, *given.results)]
    texts = [one.encode("utf-8", "surrogatepass") for one in (given.query, *given.sub_queries)]
    return request_text(asked_chat.body, asked_chat.interlock, [*told, *texts])


def _check_shape(asked: RequestHeaders) -> None:
    if asked.strategy == BATCH:
        raise invalid("INVALID_HEADER", "a batch is sent to /crp/v3/batch", header=STRATEGY_HEADER)


def _check_brought(asked: RequestHeaders) -> None:
    _check_shape(asked)
    if asked.strategy in {HIERARCHICAL, AGENTIC, PULL} and not asked.preferred:
        raise invalid("INVALID_HEADER", "an answer that is there already is not asked for", header=STRATEGY_HEADER)


def too_large(limit: int) -> Exception:
    """Return the refusal of a request body."""
    return exhausted("REQUEST_TOO_LARGE", f"the request exceeds {limit} bytes", limit=str(limit))


def _brought(text: str) -> Completion:
    return Completion(text.encode(), {}, (dpe_pb2.Output(choice_index=0, text=text, kind="content"),), None)


async def _given(answer: Completion, _body: Mapping[str, Any], _timeout_s: float) -> Completion:
    return answer

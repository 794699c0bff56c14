"""The hierarchical strategy: a plan, its parts side by side, and one answer made from theirs (SPEC-008 §7).

Three steps, each in windows that are governed, charged and sealed as any other: the plan is the window that the parts fan
out from, and the synthesis fans them in. So one call takes three windows in a row: ``CRP-Context-Window: 3/5``.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused, forbidden
from interlock.domain.headers.headers import RequestHeaders
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.call import Call
from interlock.sidecar.call.results import LONGEST_SUB_QUERY
from interlock.sidecar.closing import Governed
from interlock.sidecar.context.packing import with_context
from interlock.sidecar.guard import Guard
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider import prompts
from interlock.sidecar.provider.strategies import FAN_IN, FAN_OUT, HIERARCHICAL, PUSH, review_request
from interlock.sidecar.trail.events import Dispatch
from interlock.sidecar.trail.response_headers import ResponseHeaders

LEVELS = 3
"""Windows in a row: the plan, a part of it, the synthesis."""

_LISTED = re.compile(r"\s*(?:[-*•]|\(?\d{1,3}[.):])\s+(?P<text>\S.*?)\s*")


@dataclass(frozen=True)
class _Part:
    """One sub-query, and the window that answered it, or why none did."""

    sub_query: str
    reply: ResponseHeaders
    governed: Governed | None
    failure: Refused | None


async def govern(guard: Guard, call: Call, settings: Settings) -> Governed:
    """Govern the windows that the hierarchical strategy makes of *call*.

    Refused with PLAN_UNUSABLE when the model's plan names no sub-query, and as any of its windows is. An agent that may not
    use the strategy but only prefers it gets its next preference.
    """
    try:
        return await _Hierarchy(guard, call, settings).governed()
    except Refused as refused:
        if refused.reason != "STRATEGY_NOT_ALLOWED" or not call.asked.preferred:
            raise
    return await guard.govern(_without_preference(call))


def _without_preference(call: Call) -> Call:
    """Return *call* for an agent that may not do what it prefers: a wish is not refused, the next one is tried.

    Nothing was dispatched, but a session may have begun: the call continues in it.
    """
    rest = tuple(name for name in call.asked.preferred if name != HIERARCHICAL)
    asked = replace(call.asked, strategy=next(iter(rest), None), preferred=rest)
    if token := token_in(call.reply):
        asked = replace(asked, session_token=token, grant=None, session_parent=None, loop_depth=None)
    return replace(call, asked=asked)


class _Hierarchy:
    """One call, decomposed and put together again within the time of one call."""

    def __init__(self, guard: Guard, call: Call, settings: Settings) -> None:
        self._guard, self._call, self._settings = guard, call, settings
        self._deadline = Deadline(settings.request_timeout_s)
        self._sub_query_of: Mapping[str, str] = {}
        self._place_id = ""

    async def governed(self) -> Governed:
        """Hold one place for all windows: once the plan is paid, no part of it is refused for lack of room."""
        self._guard.require_room(self._call.caller)
        async with self._guard.placed(self._call.caller, self._deadline) as self._place_id:
            return await self._windows()

    async def _windows(self) -> Governed:
        plan, sub_queries = await self._planned()
        parts = await self._answered(plan, sub_queries)
        return await self._synthesised(plan, parts)

    async def _planned(self) -> tuple[Governed, list[str]]:
        """Let the model decompose the task, or seal the caller's own plan, in a window that the parts can fan out from."""
        call, most = self._call, min(self._settings.max_fan_out, max(1, self._settings.max_dag_nodes - 2))
        given = call.envelope.wanted.sub_queries
        if len(given) > most:
            message = f"a window has at most {most} children"
            raise forbidden("MAX_FAN_OUT_EXCEEDED", message, limit=str(most), attempted=str(len(given)))
        wanted = replace(call.envelope.wanted, results=(), sub_queries=(), transfer=None)
        planning = replace(
            call, asked=replace(call.asked, fan_in_policy=None), envelope=replace(call.envelope, wanted=wanted),
            shape=HIERARCHICAL, windows=LEVELS, binding=call.binding.unasked(),
        )  # fmt: skip
        if given:
            planning = replace(planning, body={}, dispatch=brought(call), model=partial(as_given, numbered(given)))
        else:
            body = without_tools(review_request(call.body, call.body["messages"]))
            planning = replace(planning, body=with_context(body, prompts.plan(most)))
        plan = await self._guard.govern(planning, self._deadline, place_id=self._place_id)
        text = plan.released().said
        sub_queries = list(given) or listed(text, most)
        if not sub_queries:
            raise Refused(Kind.BAD_GATEWAY, "PLAN_UNUSABLE", "the model's plan names no sub-query")
        return plan, sub_queries

    async def _answered(self, plan: Governed, sub_queries: Sequence[str]) -> list[Governed]:
        """Answer all parts at once. One that fails ends no other; unless partial results will do, it ends the call."""
        parts = await asyncio.gather(*(self._part(plan, one) for one in sub_queries))
        answered = [part for part in parts if part.governed and not part.failure]
        failed = [(n, part.reply, failure) for n, part in enumerate(parts, 1) if (failure := part.failure)]
        if failed and (not answered or self._call.asked.fan_in_policy != "partial"):
            number, its, failure = failed[0]
            # The refused caller can still continue from a settled window, and read what became of this one.
            for reply in (*(part.reply for part in answered[:1]), its):
                learn(self._call.reply, reply)
            failure.metadata |= {"sub_query": str(number)}
            raise failure
        self._sub_query_of = {part.reply.window_id: part.sub_query for part in answered}
        return [part.governed for part in answered if part.governed]

    async def _part(self, plan: Governed, sub_query: str) -> _Part:
        call, reply = self._call, ResponseHeaders()
        asked = self._onward(plan.settled, strategy=FAN_OUT, continuation_ids=())
        body = without_tools(review_request(call.body, asking(call.body["messages"], sub_query)))
        wanted = replace(call.envelope.wanted, results=(), sub_queries=(), transfer="none")
        envelope = replace(call.envelope, query=sub_query, wanted=wanted)
        part = replace(
            call,
            asked=asked,
            body=body,
            envelope=envelope,
            reply=reply,
            shape=HIERARCHICAL,
            binding=call.binding.unasked(),
        )
        try:
            governed = await self._guard.govern(part, self._deadline, place_id=self._place_id)
        except Refused as refused:
            return _Part(sub_query, reply, None, refused)
        return _Part(sub_query, reply, governed, governed.refusal)

    async def _synthesised(self, plan: Governed, parts: Sequence[Governed]) -> Governed:
        """Make one answer of the parts. A single part needs no merging: the answer continues from it."""
        call, last = self._call, parts[-1].settled
        pointers = tuple(part.settled.continuation_id for part in parts)
        asked = self._onward(
            last, strategy=FAN_IN if len(parts) > 1 else None, continuation_ids=pointers if len(parts) > 1 else ()
        )
        wanted = call.envelope.wanted
        wanted = replace(wanted, sub_queries=tuple(self._sub_query_of.values()), transfer=wanted.transfer or "auto")
        whole = replace(
            call,
            asked=asked,
            envelope=replace(call.envelope, wanted=wanted),
            shape=HIERARCHICAL,
            sub_query_of=self._sub_query_of,
            spent=tuple(one.decided.answer.usage for one in (plan, *parts)),
        )
        return await self._guard.govern(whole, self._deadline, place_id=self._place_id)

    def _onward(
        self, settled: session_pb2.CommitWindowResponse, *, strategy: str | None, continuation_ids: tuple[str, ...]
    ) -> RequestHeaders:
        """Return what the call asks for, in the session that its first window began or went on in."""
        return onward(self._call.asked, settled, strategy=strategy, continuation_ids=continuation_ids)


def onward(
    asked: RequestHeaders,
    settled: session_pb2.CommitWindowResponse,
    *,
    strategy: str | None,
    continuation_ids: tuple[str, ...] = (),
) -> RequestHeaders:
    """Return what a call asks for in the next window of the session that a window of it is settled in."""
    return replace(
        asked, session_token=settled.token, strategy=strategy, preferred=(), continuation_id=None,
        continuation_ids=continuation_ids, nonce=None, branch=False, grant=None, session_parent=None,
        loop_depth=None, oversight_token=None, fan_in_policy=asked.fan_in_policy if strategy == FAN_IN else None,
    )  # fmt: skip


def learn(mine: ResponseHeaders, reply: ResponseHeaders) -> None:
    """Take over what the response to one window says."""
    mine.session_id, mine.window_id, mine.trail_uri = reply.session_id, reply.window_id, reply.trail_uri
    mine.set(reply.headers)


def listed(text: str, most: int) -> list[str]:
    """Return the sub-queries that a plan lists, each once, *most* of them; anything else in it is none."""
    found = [match["text"] for line in text.splitlines() if (match := _LISTED.fullmatch(line))]
    return [one for one in dict.fromkeys(found) if len(one) <= LONGEST_SUB_QUERY][:most]


def asking(messages: Sequence[Mapping[str, Any]], sub_query: str) -> list[Mapping[str, Any]]:
    """Return the caller's messages with *sub_query* in place of its question."""
    last = max((place for place, one in enumerate(messages) if one["role"] == "user"), default=len(messages))
    return [*messages[:last], {"role": "user", "content": sub_query}, *messages[last + 1 :]]


def numbered(sub_queries: Sequence[str]) -> str:
    """Return a plan as a text."""
    return "\n".join(f"{number}. {' '.join(one.split())}" for number, one in enumerate(sub_queries, 1))


def brought(call: Call) -> Dispatch:
    """Return the dispatch of a plan that the caller made."""
    return Dispatch("caller", "brought-by-caller", PUSH, None, None, call.asked.seed, 1)


async def as_given(text: str, _body: Mapping[str, Any], _timeout_s: float) -> Completion:
    """Return a text that the caller made as the answer of a window."""
    return Completion(text.encode(), {}, (dpe_pb2.Output(choice_index=0, text=text, kind="content"),), None)


def without_tools(body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request that offers no tool."""
    return {name: value for name, value in body.items() if name not in {"tools", "tool_choice"}}


def token_in(reply: ResponseHeaders) -> str:
    """Return the token that a response would carry; empty when there is none."""
    return reply.headers.get("CRP-Set-Session", "").partition(";")[0].removeprefix("token=")

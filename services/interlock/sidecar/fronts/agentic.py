"""The agentic strategy: plan a task, do it step by step, look what is missing, and put the results together (SPEC-008 §6).

Every step is a window of the session, one after the other: each is governed, charged and sealed, so a HIGH step costs what it costs
and a spent budget ends the loop. Results of steps reach the next ones as quoted context, never as evidence: what a model said bears
nothing out. A step that calls tools ends the loop for now: the agent runs them and asks again with their results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.call import Call
from interlock.sidecar.closing import Governed
from interlock.sidecar.context.packing import with_context
from interlock.sidecar.fronts.hierarchy import as_given, brought, learn, listed, numbered, onward, without_tools
from interlock.sidecar.guard import Guard
from interlock.sidecar.provider import prompts
from interlock.sidecar.provider.strategies import AGENTIC, review_request
from interlock.sidecar.trail.response_headers import ResponseHeaders

MOST_ITERATIONS = 8
"""Steps of one loop, those that fill gaps among them (§6.3)."""

MOST_TOOL_CALLS = 10
"""Results of tools in a conversation after which no tool is offered any more (§6.3)."""

COMPLETE_FROM = 0.85
"""Completeness of an answer that ends the loop (§6.3)."""

LEAST_WINDOWS = 2
"""Windows that a loop takes at least: the plan and the answer."""

_RESULT = "Result of an earlier step"


async def govern(guard: Guard, call: Call, settings: Settings) -> Governed:
    """Govern the windows that the agentic strategy makes of *call*, within the time of one call.

    Refused with PLAN_UNUSABLE when the model's plan names no step, and as any of its windows is.
    """
    return await _Loop(guard, call, settings).governed()


@dataclass(frozen=True)
class _Done:
    """One step that was done."""

    step: str
    governed: Governed

    @property
    def told(self) -> str:
        """Its result as context of the next one."""
        return prompts.entry(_RESULT, self.governed.released().said, self.step)


class _Loop:
    """One call while it goes through its steps."""

    def __init__(self, guard: Guard, call: Call, settings: Settings) -> None:
        self._guard, self._call = guard, call
        self._deadline, self._patience_s = Deadline(settings.request_timeout_s), settings.request_timeout_s / 4
        self._done: list[_Done] = []
        self._windows: list[Governed] = []

    async def governed(self) -> Governed:
        """Go through the phases until the answer is complete, a tool is called, or nothing more may be spent on it."""
        steps = await self._planned()
        for step in steps if len(steps) > 1 else ():
            if (called := await self._stepped(step, ("GENERATE",))) is not None:
                return called
        answer = await self._integrated(steps)
        while gaps := self._gaps(answer):
            if (called := await self._stepped("; ".join(gaps), ("EVALUATE", "CRITIQUE", "REFINE"))) is not None:
                return called
            answer = await self._integrated(steps)
        if answer.refusal is None:
            self._call.reply.set({"CRP-Agent-Phase": "COMPLETE"})
        return answer

    async def _planned(self) -> list[str]:
        """Let the model name the steps, or seal the caller's own."""
        call, given = self._call, self._call.envelope.wanted.sub_queries[:MOST_ITERATIONS]
        planning = self._window(("PLAN",) if given else ("ANALYZE", "PLAN"), windows=LEAST_WINDOWS)
        if given:
            planning = replace(planning, body={}, dispatch=brought(call), model=partial(as_given, numbered(given)))
        else:
            body = without_tools(review_request(call.body, call.body["messages"]))
            planning = replace(planning, body=with_context(body, prompts.steps(MOST_ITERATIONS)))
        plan = await self._made(planning)
        steps = list(given) or listed(plan.released().said, MOST_ITERATIONS)
        if not steps:
            learn(call.reply, planning.reply)
            raise Refused(Kind.BAD_GATEWAY, "PLAN_UNUSABLE", "the model's plan names no step")
        return steps

    async def _stepped(self, step: str, phases: tuple[str, ...]) -> Governed | None:
        """Do one step. Return its window where the answer calls tools: their results are the agent's to get."""
        body = self._step_body(step)
        window = self._window(phases)
        made = await self._made(replace(window, body=body, envelope=replace(window.envelope, query=step)))
        if any(choice["message"].get("tool_calls") for choice in made.released().choices):
            learn(self._call.reply, window.reply)
            return made
        self._done.append(_Done(step, made))
        return None

    def _step_body(self, step: str) -> Mapping[str, Any]:
        """Return the request of one step: the conversation, the results so far, and the tools while there are calls left."""
        body, messages = self._call.body, self._call.body["messages"]
        asked = {**review_request(body, messages)}
        if sum(one["role"] == "tool" for one in messages) >= MOST_TOOL_CALLS:
            asked = without_tools(asked)
        elif "tools" in asked:
            asked["tool_choice"] = body.get("tool_choice", "auto")
        return with_context(asked, prompts.step(step, [one.told for one in self._done]))

    async def _integrated(self, steps: Sequence[str]) -> Governed:
        """Make one answer of the results; of a task of one step it is that step, with the tools."""
        call = self._call
        body = call.body
        if self._done:
            body = with_context(without_tools(body), prompts.integration([one.told for one in self._done]))
        window = self._window(("EVALUATE", "INTEGRATE") if self._done else ("GENERATE",))
        wanted = replace(window.envelope.wanted, sub_queries=tuple(steps) if len(steps) > 1 else ())
        envelope = replace(window.envelope, wanted=wanted)
        # What it puts together it repeats: it is compared with what was said before the loop.
        apart = call.apart | {one.opened.window_id for one in self._windows}
        spent = (*call.spent, *(one.decided.answer.usage for one in self._windows))
        whole = replace(
            window, body=body, envelope=envelope, reply=call.reply, apart=apart, spent=spent, binding=call.binding
        )
        return await self._made(whole)

    def _gaps(self, answer: Governed) -> list[str]:
        """Return what the answer leaves open and another step may fill; empty where the loop ends."""
        report, opened = answer.decided.report, answer.opened
        if answer.refusal is not None or not report.HasField("completeness_score"):
            return []
        if report.completeness_score >= COMPLETE_FROM or len(self._done) >= MOST_ITERATIONS or not self._done:
            return []
        room = opened.window_number + LEAST_WINDOWS <= opened.max_windows and self._deadline.left_s > self._patience_s
        return [one.text for one in report.sub_queries if not one.covered] if room else []

    def _window(self, phases: tuple[str, ...], *, windows: int = 1) -> Call:
        """Return the next window of the loop, in the session that its first one began or went on in."""
        call, asked = self._call, self._call.asked
        if self._windows:
            asked = onward(asked, self._windows[-1].settled, strategy=AGENTIC)
        wanted = replace(call.envelope.wanted, results=(), sub_queries=(), transfer=None)
        return replace(
            call, asked=replace(asked, fan_in_policy=None), envelope=replace(call.envelope, wanted=wanted), shape=AGENTIC,
            windows=windows, phases=phases, iteration=len(self._windows) + 1, reply=ResponseHeaders(),
            binding=call.binding.unasked(),
        )  # fmt: skip

    async def _made(self, window: Call) -> Governed:
        """Govern one window. One that is refused or held back ends the loop, and the caller learns where it ended."""
        try:
            made = await self._guard.govern(window, self._deadline)
            self._windows.append(made)
            if window.reply is not self._call.reply:
                made.released()
        except Refused:
            if window.reply is not self._call.reply:
                learn(self._call.reply, window.reply)
            raise
        return made

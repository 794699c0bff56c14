"""The governed call: admit, (dispatch, analyse, decide) in rounds, seal, settle, release (docs/architecture.md).

Every front comes through here, so that nothing depends on the way in (I14). A step that cannot be done ends in a refusal,
and what is refused is not released. The order is the safety argument: an answer is analysed before it is decided, its charge
is durable before it is spent, and it is spent before anything is released (I3, I4).
"""

from __future__ import annotations

import asyncio
import time
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial

import structlog
from prometheus_client import Counter, Gauge, Histogram

from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain.errors import Kind, Refused
from interlock.domain.session.session_refusals import refusal as session_refusal
from interlock.runtime.keys import shares
from interlock.runtime.keys.api_keys import Caller
from interlock.runtime.pictures.recent import RECENT
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.runtime.telemetry import BoundedWords, annotate, current_span, exemplar, span
from interlock.sidecar.admission import bindings
from interlock.sidecar.admission.admission import Admission, Admitted
from interlock.sidecar.admission.agents import check_strategy
from interlock.sidecar.admission.places import Places
from interlock.sidecar.call.ahead import ReadAhead
from interlock.sidecar.call.call import Call, Run
from interlock.sidecar.call.spending import ModelSpending
from interlock.sidecar.closing import Closing, Governed
from interlock.sidecar.provider import strategies
from interlock.sidecar.requests import DecidedAnswer
from interlock.sidecar.rounds import Rounds
from interlock.sidecar.settlement.leases import Leases
from interlock.sidecar.settlement.tool_calls import ToolCalls
from interlock.sidecar.trail import trace_events
from interlock.sidecar.trail.response_headers import of_refusal, word

log = structlog.get_logger()

OVERHEAD = Histogram("interlock_overhead_seconds", "Time of a governed call without the model provider's, seconds.")
CALLS = Counter(
    "interlock_governed_calls", "Governed calls by way in, how they ended (DELIVERED or the reason), risk level and agent type.",
    ["entry", "outcome", "risk", "agent_type"],
)  # fmt: skip
IN_FLIGHT = Gauge(
    "interlock_calls_in_flight", "Governed calls that have begun and not ended, those of callers that left too."
)
AGENT_TYPES = BoundedWords(100)


_SPANNED = frozenset(
    {"action", "risk", "composite", "claims", "budget_micros", "breaker", "integrity", "strategy", "attempts"}
)
"""What the root span of a call has of its verdict."""


class Guard:
    """Governs calls."""

    def __init__(
        self,
        settings: Settings,
        peers: Peers,
        admission: Admission,
        leases: Leases,
        closing: Closing,
        *,
        tools: ToolCalls,
        spending: ModelSpending,
        ahead: ReadAhead | None = None,
    ) -> None:
        """*ahead* reads earlier answers while a window is opened, where that saves time."""
        self._settings, self._peers, self._spending = settings, peers, spending
        self._admission, self._leases, self._closing, self._tools = admission, leases, closing, tools
        self._running: set[asyncio.Task[Governed]] = set()
        self._in_flight: dict[str, int] = {}
        """Calls by who they are of."""
        self._places = Places(peers.dpe)
        self._ahead = ahead

    def placed(self, caller: Caller, deadline: Deadline) -> AbstractAsyncContextManager[str]:
        """Hold a place in the dpe for a whole of several windows. Refused with OVERLOADED while there is none."""
        return self._places.held(deadline, caller.sharing)

    async def govern(self, call: Call, deadline: Deadline | None = None, *, place_id: str = "") -> Governed:
        """Take *call* through every step and return how it ended, a halt too. It is one window, also where it is a part of a larger task.

        A caller that leaves after the model has answered changes nothing: the answer is analysed, charged and sealed.
        Otherwise a caller could avoid the charge by hanging up. Refused with OVERLOADED before anything is begun. *place_id*: a place
        that the whole holds already.
        """
        if not place_id:
            self.require_room(call.caller)
        run = Run(call, deadline or Deadline(self._settings.request_timeout_s), time.perf_counter(), place_id=place_id)
        task = asyncio.create_task(self._noted(run))
        self._running.add(task)
        self._in_flight[call.caller.sharing] = self._in_flight.get(call.caller.sharing, 0) + 1
        IN_FLIGHT.inc()
        task.add_done_callback(partial(self._ended, run))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            run.leave()
            raise

    def require_room(self, caller: Caller) -> None:
        """Refuse a caller with OVERLOADED while as many calls are in flight as may be, or while the dpe has just said that it has no place.

        Who has less in flight than another comes first (A-38). The fronts ask before they read a body: under too much load, what is
        refused must cost next to nothing.
        """
        who, most = caller.sharing, self._settings.max_in_flight
        if len(self._running) >= most and not shares.admits(who, self._in_flight, most):
            message = f"{most} calls are in flight; try again"
            raise Refused(Kind.EXHAUSTED, "OVERLOADED", message, retry_after_ms=1000)
        self._places.require(who)

    def _ended(self, run: Run, task: asyncio.Task[Governed]) -> None:
        """Let go of a call. When its caller has left, no one is there to raise to; a defect is logged."""
        self._running.discard(task)
        who = run.call.caller.sharing
        self._in_flight[who] -= 1
        if not self._in_flight[who]:
            del self._in_flight[who]
        IN_FLIGHT.dec()
        error = None if task.cancelled() else task.exception()
        if error is not None and run.caller_left and not isinstance(error, Refused):
            log.error("call.defect", session_id=run.call.reply.session_id, exc_info=error)

    async def drain(self) -> None:
        """Wait for the calls in flight, those of callers that have left too, for as long as ``drain_s``."""
        if self._running:
            await asyncio.wait(self._running, timeout=self._settings.drain_s)
        await self._places.drain()

    async def _steps(self, run: Run) -> Governed:
        """Take a call from its admission to its release. Every answer of every front comes this way.

        Its place in the dpe is taken before anything is begun, and given back once no answer is left to be judged.
        """
        if run.place_id:
            admitted, decided = await self._judged(run)
        elif run.place_for is not None:
            with self._places.taken_by_analysis(run.place_for):
                admitted, decided = await self._judged(run)
        else:
            async with self.placed(run.call.caller, run.deadline) as run.place_id:
                admitted, decided = await self._judged(run)
        sealed = await self._closing.seal(run, admitted, decided)
        settled = await self._closing.settle(run, admitted, sealed)
        if self._ahead is not None:
            self._ahead.expect(run.call.scope, settled.settlement.token, admitted.opened)
        return await self._closing.release(run, admitted, settled)

    async def _judged(self, run: Run) -> tuple[Admitted, DecidedAnswer]:
        """Admit a call and take it to the decision about its last answer."""
        with span("crp.admit"):
            call = run.call
            if self._ahead is not None and call.asked.session_token:
                run.ahead = self._ahead.begin(call.scope, call.asked.session_token, run.deadline)
            admitted = await self._admission.admit(call.caller, call.asked, call.reply, run.deadline, call.binding)
        if call.shape:  # only who knows of CRP asks for a whole of several windows: none of them is only watched
            admitted = replace(admitted, observed=False)
        if admitted.bound.apart:
            run.call = replace(call, apart=call.apart | admitted.bound.apart)
        run.spending = self._spending.of(admitted.opened, admitted.policy.policy_text, call.reply)
        token = call.asked.session_token
        trials = self._tools.of(
            call.caller.scope, admitted.opened, run.deadline, token=token, observed=admitted.observed
        )
        run.noted.extend(bindings.events(admitted.bound))
        run.noted.extend(trace_events.loop_iteration(one, call.iteration, admitted.budget) for one in call.phases)
        call.reply.set({"CRP-Agent-Phase": call.phases[-1] if call.phases else None})
        try:
            _require_room(run.call, admitted)
            run.call.reply.set({"CRP-Safety-Unjudged-Media": call.media.tell("request")})
            rounds = Rounds(self._settings, self._peers, run, admitted, trials)
            answer = await rounds.dispatch()
            report = await rounds.analyse(answer)
            last = await rounds.decide(answer, report)
            while rounds.has_remedy(last):
                last = await rounds.remedy(last)
            decided = rounds.decided(last)
            run.action_refused = trials.refusal(decided.decision, decided.report)
        except BaseException as failure:
            if run.begun:  # a part has left: it is charged at what it holds
                await self._closing.effects.close_lost(admitted.opened)
            else:
                await run.spending.close()
                await self._leases.fail(admitted.opened, failure, run.call.dispatch, dispatched=run.dispatched)
            raise
        return admitted, decided

    async def _noted(self, run: Run) -> Governed:
        """Run the steps and leave one line and the figures behind, however they end."""
        outcome, governed = "INTERNAL", None
        try:
            governed = await self._steps(run)
        except Refused as refused:
            outcome = refused.reason
            run.call.reply.set(of_refusal(outcome))
            raise
        else:
            outcome = governed.refusal.reason if governed.refusal else "DELIVERED"
            return governed
        finally:
            if run.ahead is not None:
                run.ahead.drop()
            took_s = time.perf_counter() - run.started
            OVERHEAD.observe(max(0.0, took_s - run.model_s), exemplar())
            _write_line(run, governed, outcome, took_s)


def _require_room(call: Call, admitted: Admitted) -> None:
    """Refuse, before anything is dispatched, a whole that the agent may not ask for or that the session has no room for."""
    for part in strategies.PARTS.get(call.shape, ()):
        check_strategy(part, admitted.allowed)
    opened = admitted.opened
    last = opened.window_number + call.windows - 1
    if last > opened.max_windows:
        raise session_refusal("MAX_WINDOWS_EXCEEDED", opened.max_windows, last)


def _write_line(run: Run, governed: Governed | None, outcome: str, took_s: float) -> None:
    """Write the access line: ids, numbers and words of fixed lists, nothing that anybody wrote (SVC-5)."""
    call, reply = run.call, run.call.reply
    reply.told = True
    decided: dict[str, object] = {}
    if governed is not None:
        report, decision = governed.decided.report, governed.decided.decision
        decided = {
            "strategy": governed.decided.strategy,
            "attempts": len(run.usages),
            "action": word(policy_pb2.Action, decision.action),
            "risk": word(common_pb2.RiskLevel, report.risk_level),
            "composite": round(report.composite_score, 3),
            "claims": report.claims_total,
            "choices": len(report.choices),
            "budget_micros": governed.settled.session_budget_micros,
            "breaker": word(common_pb2.BreakerState, governed.settled.breaker),
            "integrity": word(common_pb2.ChainIntegrity, governed.integrity),
            **({"would": [f"{one.action} {one.reason}" for one in run.would]} if run.would else {}),
            **({"shape": shape} if (shape := strategies.shape_of(call)) else {}),
        }
    risk, agent_type = str(decided.get("risk", "")), AGENT_TYPES.label(reply.agent_type)
    CALLS.labels(call.entry, outcome, risk, agent_type).inc()
    RECENT.called(risk, took_s)
    if (root := current_span()).is_recording():
        annotate(
            root, session_id=reply.session_id, window_id=reply.window_id, agent_type=agent_type, outcome=outcome,
            **{name: value for name, value in decided.items() if name in _SPANNED},
        )  # fmt: skip
    log.info(
        "call.governed", route=call.entry, scope=call.scope, session_id=reply.session_id, window_id=reply.window_id,
        binding=reply.headers.get("CRP-Session-Binding", ""), outcome=outcome, took_ms=round(took_s * 1000, 1), model_ms=round(run.model_s * 1000, 1), **decided,
    )  # fmt: skip

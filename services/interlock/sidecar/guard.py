"""The governed call: admit, (dispatch, analyse, decide) in rounds, seal, settle, release (design.md, One dispatch).

Every front comes through here, so that nothing depends on the way in (I14). Any step that cannot be done ends in a
refusal, and what is refused is not released. The order is the safety argument: an answer is analysed before it is decided
about, its charge is durable before it is spent, and it is spent before anything is released (I3, I4).
"""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, replace
from functools import partial

import structlog
from prometheus_client import Histogram

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import OPEN_AT
from interlock.domain.errors import Kind, Refused, conflict
from interlock.domain.session.session_refusals import refusal as session_refusal
from interlock.runtime import failpoints
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.settings.model import Settings
from interlock.runtime.telemetry import span
from interlock.sidecar import requests
from interlock.sidecar.admission.admission import Admission, Admitted
from interlock.sidecar.admission.agents import check_strategy
from interlock.sidecar.call.call import Call, Run
from interlock.sidecar.call.deadline import Deadline, retry_idempotent
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider import strategies
from interlock.sidecar.requests import DecidedAnswer
from interlock.sidecar.rounds import Rounds
from interlock.sidecar.trail import events, response_headers, trace_events
from interlock.sidecar.trail.response_headers import word
from interlock.sidecar.verdict import depleted, refusal_of

log = structlog.get_logger()

OVERHEAD = Histogram("interlock_overhead_seconds", "Time of a governed call without the model provider's, seconds.")

_IN_DOUBT = frozenset({"AUDIT_UNAVAILABLE", "DEADLINE_EXCEEDED", "INTERNAL", "FAILPOINT"})
"""Failures after which a seal may be in the log all the same: nobody said whether it is."""


@dataclass(frozen=True)
class Governed:
    """A call that was decided, sealed and settled. Only ``released`` gives its answer away."""

    opened: session_pb2.OpenedWindow
    judged: DecidedAnswer
    settled: session_pb2.CommitWindowResponse
    integrity: common_pb2.ChainIntegrity.ValueType
    refusal: Refused | None
    """Why the answer may not be released; ``None`` when it may."""

    def released(self) -> Completion:
        """Return the answer, or raise why it is not released."""
        if self.refusal is not None:
            raise self.refusal
        return self.judged.answer


class Guard:
    """Governs calls."""

    def __init__(self, settings: Settings, mesh: Mesh, admission: Admission, base_url: str) -> None:
        self._settings, self._mesh, self._admission, self._base_url = settings, mesh, admission, base_url
        self._running: set[asyncio.Task[Governed]] = set()

    async def govern(self, call: Call, deadline: Deadline | None = None) -> Governed:
        """Take *call* through every step and return how it ended, a halt too. It is one window, whatever it is a part of.

        A caller that leaves after the model has answered changes nothing: the answer is analysed, charged and sealed, or
        whoever hangs up in time would not be charged. Refused with OVERLOADED before anything is begun.
        """
        self.require_room()
        run = Run(call, deadline or Deadline(self._settings.request_timeout_s), time.perf_counter())
        task = asyncio.create_task(self._noted(run))
        self._running.add(task)
        task.add_done_callback(partial(self._ended, run))
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            run.leave()
            raise

    def require_room(self) -> None:
        """Refuse with OVERLOADED while as many calls are in flight as may be.

        The fronts ask before they read a body: under too much load, what is refused must cost next to nothing.
        """
        if len(self._running) >= self._settings.max_in_flight:
            message = f"{self._settings.max_in_flight} calls are in flight; try again"
            raise Refused(Kind.EXHAUSTED, "OVERLOADED", message, retry_after_ms=1000)

    def _ended(self, run: Run, task: asyncio.Task[Governed]) -> None:
        """Let go of a call. What became of one whose caller has left is nobody's to raise; a defect is logged."""
        self._running.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None and run.caller_left and not isinstance(error, Refused):
            log.error("call.defect", session_id=run.call.known.session_id, exc_info=error)

    async def drain(self) -> None:
        """Wait for the calls in flight, those of callers that have left too, for as long as ``drain_s``."""
        if self._running:
            await asyncio.wait(self._running, timeout=self._settings.drain_s)
        await self._admission.aftermath.drain()

    async def _steps(self, run: Run) -> Governed:
        admitted = await self._admit(run)
        try:
            _require_room(run.call, admitted)
            judged = await Rounds(self._settings, self._mesh, run, admitted).judged()
        except BaseException as failure:
            await self._fail(run, admitted, failure)
            raise
        commit = requests.to_settle(admitted, run.call, judged)
        await failpoints.reached("sidecar.before_seal")
        sealed = await self._seal(run, admitted, judged, commit)
        await failpoints.reached("sidecar.after_seal")
        commit.hmac, commit.timestamp = sealed.hmac, sealed.timestamp
        if sealed.HasField("standing"):  # an older audit service tells none
            commit.chain_budget_micros = sealed.standing.session_budget_micros
            commit.chain_windows = sealed.standing.sealed_windows
        settled = await self._settle(run, admitted, commit)
        to_be_given = judged.delivered
        judged = await self._outspent(run, judged, commit, settled)
        refusal = refusal_of(judged.decision, settled, sealed.integrity, run.call.known, self._base_url)
        if refusal is None and settled.duplicate and _before(settled) > admitted.breaker:
            refusal = conflict(
                "WINDOW_ALREADY_SETTLED",
                "the session was rebuilt meanwhile, and the answer decided upon as if its breaker were less open; go on with the "
                "token in CRP-Set-Session",
                window_id=commit.window_id,
            )
        if refusal is not None and to_be_given:
            await self._admission.forget(commit.session_id, commit.window_id)
        await failpoints.reached("sidecar.before_release")
        return Governed(admitted.opened, judged, settled, sealed.integrity, refusal)

    async def _admit(self, run: Run) -> Admitted:
        call = run.call
        with span("crp.admit"):
            return await self._admission.admit(call.caller, call.asked, call.known, run.deadline)

    async def _fail(self, run: Run, admitted: Admitted, failure: BaseException) -> None:
        """Give the lease back and write down what failed. Nothing was released, so that nothing is charged.

        A child of a fan-out that failed leaves a node behind, so that a fan-in knows of it (SPEC-004 §16.3).
        """
        opened = admitted.opened
        reason = failure.reason if isinstance(failure, Refused) else "INTERNAL"
        if not (opened.pattern == events.FAN_OUT and run.dispatched and await self._left_failed(opened, reason)):
            await self._admission.give_back(opened)
        failed = [events.dispatch_failed(reason, run.call.dispatch)]
        deadline = Deadline(self._settings.rpc_timeout_s)
        try:
            await self._admission.record(opened.session_id, opened.window_id, failed, deadline)
        except Refused as lost:
            log.warning(
                "audit.event_lost", session_id=opened.session_id, event_type="DISPATCH_FAILED", reason=lost.reason
            )

    async def _left_failed(self, opened: session_pb2.OpenedWindow, reason: str) -> bool:
        """Leave the window behind as FAILED; ``False`` when nobody could be told."""
        request = session_pb2.FailWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=opened.window_id,
            reason=reason, parent_ids=opened.parent_ids, pattern=opened.pattern,
        )  # fmt: skip
        try:
            await self._admission.aftermath.failed(request, Deadline(self._settings.rpc_timeout_s))
        except Refused as refused:
            if refused.reason == "WINDOW_SEALED":
                return True  # its lease stays, and whoever finds it run out settles it
            log.warning(
                "window.failure_lost", session_id=opened.session_id, window_id=opened.window_id, reason=refused.reason
            )
            return False
        return True

    async def _seal(
        self, run: Run, admitted: Admitted, judged: DecidedAnswer, commit: session_pb2.CommitWindowRequest
    ) -> audit_pb2.AppendResponse:
        """Make the window's record durable, its charge in it.

        When nobody can tell whether it is, the lease stays taken. The call that finds it run out looks the record up and
        settles it, so that no charge is lost between the two.
        """
        hold = requests.to_hold(admitted, run.call, judged, seconds=self._settings.hold_expires_s)
        record = requests.to_seal(admitted, judged, commit, self._events(run, admitted, judged, commit), hold)
        known, doubts = run.call.known, []

        async def attempt() -> audit_pb2.AppendResponse:
            try:
                return await call_service("audit", self._mesh.audit.Append(record, timeout=self._rpc(run)))
            except Refused as refused:
                doubts.append(refused.reason in _IN_DOUBT)
                raise

        try:
            with span("crp.seal"):
                sealed = await retry_idempotent(attempt)
        except Refused as refused:
            if refused.reason == "CHAIN_BROKEN":
                known.learn({"CRP-Provenance-Chain-Integrity": "BROKEN"})
            if not any(doubts):
                await self._fail(run, admitted, refused)
            if refused.reason == "CHAIN_CONFLICT":
                # The store let in what the chain had gone past: it was set back.
                await self._admission.recovering.catch_up(admitted.opened.root_session_id)
            raise
        known.trail_uri = response_headers.trail_uri(self._base_url, sealed.trail_id)
        known.learn(response_headers.of_seal(sealed, commit.window_id, self._base_url))
        return sealed

    def _events(
        self, run: Run, admitted: Admitted, judged: DecidedAnswer, commit: session_pb2.CommitWindowRequest
    ) -> list[audit_pb2.NewEvent]:
        facts = trace_events.facts_retrieved(judged.context.envelope.facts, judged.report)
        tools = trace_events.tool_calls(judged.answer, run.call.body)
        return events.of_window(
            opened=admitted.opened,
            continuation_id=run.call.asked.continuation_id,
            noted=[*facts, *run.noted, *tools],
            report=judged.report,
            decision=judged.decision,
            report_uri=response_headers.report_uri(self._base_url, commit.window_id),
            policy=admitted.policy,
        )

    async def _settle(
        self, run: Run, admitted: Admitted, commit: session_pb2.CommitWindowRequest
    ) -> session_pb2.CommitWindowResponse:
        """Charge the sealed window, once per window id, and write down what that moved. Only then may it be released."""
        with span("crp.settle"):
            settled = await retry_idempotent(
                lambda: call_service("session", self._mesh.session.CommitWindow(commit, timeout=self._rpc(run)))
            )
        run.call.known.learn(response_headers.of_settlement(settled, commit.window_number, admitted.opened.max_windows))
        await failpoints.reached("sidecar.after_settle")
        await self._admission.aftermath.told(settled, commit, run.deadline)
        return settled

    async def _outspent(
        self,
        run: Run,
        judged: DecidedAnswer,
        commit: session_pb2.CommitWindowRequest,
        settled: session_pb2.CommitWindowResponse,
    ) -> DecidedAnswer:
        """Stop an answer that the settled budget no longer covers, whatever was decided before it was settled (I2)."""
        if not judged.delivered or settled.session_budget_micros > OPEN_AT:
            return judged
        report_uri = response_headers.report_uri(self._base_url, commit.window_id)
        halt = events.safety_halt(judged.report, "SAFETY_BUDGET_DEPLETED", None, report_uri)
        await self._admission.record(commit.session_id, commit.window_id, [halt], run.deadline)
        return replace(judged, decision=depleted(judged.decision))

    def _rpc(self, run: Run) -> float:
        return run.deadline.within(self._settings.rpc_timeout_s)

    async def _noted(self, run: Run) -> Governed:
        """Run the steps and leave one line and the figures behind, however they end."""
        outcome, governed = "INTERNAL", None
        try:
            governed = await self._steps(run)
        except Refused as refused:
            outcome = refused.reason
            raise
        else:
            outcome = governed.refusal.reason if governed.refusal else "DELIVERED"
            return governed
        finally:
            took_s = time.perf_counter() - run.started
            OVERHEAD.observe(max(0.0, took_s - run.model_s))
            _write_line(run, governed, outcome, took_s)


def _before(settled: session_pb2.CommitWindowResponse) -> int:
    """Return the breaker under which a window was settled, before its own charge."""
    return settled.transitions[0].from_state if settled.transitions else settled.breaker


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
    call, known = run.call, run.call.known
    decided: dict[str, object] = {}
    if governed is not None:
        report, decision = governed.judged.report, governed.judged.decision
        decided = {
            "strategy": governed.judged.strategy,
            "attempts": len(run.usages),
            "action": word(policy_pb2.Action, decision.action),
            "risk": word(common_pb2.RiskLevel, report.risk_level),
            "composite": round(report.composite_score, 3),
            "claims": report.claims_total,
            "choices": len(report.choices),
            "budget_micros": governed.settled.session_budget_micros,
            "breaker": word(common_pb2.BreakerState, governed.settled.breaker),
            "integrity": word(common_pb2.ChainIntegrity, governed.integrity),
            **({"shape": shape} if (shape := strategies.shape_of(call)) else {}),
        }
    log.info(
        "call.governed", route=call.entry, scope=call.scope, session_id=known.session_id, window_id=known.window_id,
        outcome=outcome, took_ms=round(took_s * 1000, 1), model_ms=round(run.model_s * 1000, 1), **decided,
    )  # fmt: skip

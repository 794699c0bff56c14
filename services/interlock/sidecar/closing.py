"""How a decided answer is closed: sealed in the audit chain, settled in the budget, and only then released (I3, I4)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.binding.rank import Rank
from interlock.domain.errors import Refused, conflict
from interlock.domain.held import MAX_HALTED_BYTES
from interlock.runtime import failpoints
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peer import WriteFailedError
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.runtime.telemetry import span
from interlock.sidecar import requests
from interlock.sidecar.admission.admission import Admitted
from interlock.sidecar.call.call import Run
from interlock.sidecar.call.verdict import halt_of, halted_by, refusal_of
from interlock.sidecar.openai import media
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.requests import DecidedAnswer
from interlock.sidecar.settlement.effects import SettlementEffects
from interlock.sidecar.settlement.leases import Leases
from interlock.sidecar.settlement.recovery import Recovery, left_open
from interlock.sidecar.trail import events, response_headers, sealed_report, trace_events, would


@dataclass(frozen=True)
class Sealed:
    """A window whose record is durable, and the settlement that the record names."""

    decided: DecidedAnswer
    commit: session_pb2.CommitWindowRequest
    seal: audit_pb2.AppendResponse


@dataclass(frozen=True)
class Settled:
    """A window that was charged. *decided* is what its budget still covers."""

    sealed: Sealed
    decided: DecidedAnswer
    settlement: session_pb2.CommitWindowResponse


@dataclass(frozen=True)
class Governed:
    """A call that was decided, sealed and settled. Only ``released`` gives its answer away."""

    opened: session_pb2.OpenedWindow
    decided: DecidedAnswer
    settled: session_pb2.CommitWindowResponse
    integrity: common_pb2.ChainIntegrity.ValueType
    refusal: Refused | None
    """Why the answer may not be released; ``None`` when it may."""

    def released(self) -> Completion:
        """Return the answer, or raise why it is not released."""
        if self.refusal is not None:
            raise self.refusal
        return self.decided.answer


@dataclass(frozen=True)
class Closing:
    """Seals, settles and releases."""

    settings: Settings
    peers: Peers
    effects: SettlementEffects
    leases: Leases
    recovery: Recovery
    base_url: str

    async def seal(self, run: Run, admitted: Admitted, decided: DecidedAnswer) -> Sealed:
        """Make the window's record durable, its charge in it.

        While it is in doubt whether the record is durable, the lease stays taken. The call that finds it expired looks the
        record up and settles it, so that no charge is lost between the two.
        """
        decided = requests.with_identity(admitted, decided)
        commit = requests.to_settle(admitted, run.call, decided)
        spent = run.spending.total
        commit.spent_tokens, commit.spent_usd_micros = spent.tokens, spent.usd
        decided = replace(decided, report=requests.with_path_budget(decided.report, commit))
        hold = requests.to_hold(admitted, run.call, decided, seconds=self.settings.hold_expires_s)
        if decided.decision.releasable and requests.kept_bytes(hold, decided) > MAX_HALTED_BYTES:
            decided, hold = requests.without_release(decided), {}
        record = requests.to_seal(admitted, decided, commit, self._events(run, admitted, decided, commit), hold)
        await failpoints.reached("sidecar.before_seal")
        try:
            with span("crp.seal"):
                seal = await self.peers.audit.append(record, run.deadline)
        except WriteFailedError as failed:
            await self._not_sealed(run, admitted, failed)
            raise failed.refused from None
        reply = run.call.reply
        reply.trail_uri = response_headers.trail_uri(self.base_url, seal.trail_id)
        reply.set(response_headers.of_seal(seal, commit.window_id, self.base_url))
        await failpoints.reached("sidecar.after_seal")
        sealed = requests.with_seal(commit, seal)
        told = replace(decided, report=sealed_report.sealed(decided.report, seal))
        return Sealed(told, requests.with_names(sealed, admitted, run.call, decided), seal)

    async def _not_sealed(self, run: Run, admitted: Admitted, failed: WriteFailedError) -> None:
        reason = failed.refused.reason
        if not failed.in_doubt and run.begun:
            await self.effects.close_lost(admitted.opened)
        elif not failed.in_doubt:
            await run.spending.close()
            await self.leases.fail(admitted.opened, failed.refused, run.call.dispatch, dispatched=run.dispatched)
        if reason == "CHAIN_CONFLICT":
            # The store admitted what the chain is already past: it was set back.
            await self.recovery.catch_up(admitted.opened.root_session_id)

    def _events(
        self, run: Run, admitted: Admitted, decided: DecidedAnswer, commit: session_pb2.CommitWindowRequest
    ) -> list[audit_pb2.NewEvent]:
        facts = trace_events.facts_retrieved(decided.context.envelope.facts, decided.report)
        tools = trace_events.tool_calls(decided.answer, run.call.body)
        report_uri = response_headers.report_uri(self.base_url, commit.window_id)
        of_window = events.of_window(
            opened=admitted.opened,
            continuation_id=run.call.asked.continuation_id,
            noted=[
                *facts,
                *run.noted,
                *tools,
                *trace_events.refused_actions(decided.report),
                *trace_events.unjudged_media(decided.report),
            ],
            report=decided.report,
            decision=decided.decision,
            report_uri=report_uri,
            policy=admitted.policy,
        )
        return [*of_window, *would.events(run.would, decided.report, report_uri)]

    async def settle(self, run: Run, admitted: Admitted, sealed: Sealed) -> Settled:
        """Charge the sealed window, once per window id, and record what that moved. Only then may it be released."""
        commit = sealed.commit
        if left_open(sealed.seal.standing):
            # Its hold comes back before this window is charged, and the next opening closes it.
            await self.recovery.catch_up(admitted.opened.root_session_id)
        with span("crp.settle"):
            await self._with_chains_above(commit, run.deadline)
            settlement = await self.peers.session.commit_window(commit, run.deadline)
        run.call.reply.set(
            response_headers.of_settlement(settlement, commit.window_number, admitted.opened.max_windows)
        )
        run.spending.settled()
        if admitted.bound.rank is not Rank.TOKEN:
            run.call.reply.cookie = run.call.binding.cookie_for(commit.session_id)
        await failpoints.reached("sidecar.after_settle")
        await self.effects.record(settlement, commit, run.deadline)
        return Settled(sealed, await self._halt_if_depleted(run, admitted, sealed, settlement), settlement)

    async def _with_chains_above(self, commit: session_pb2.CommitWindowRequest, deadline: Deadline) -> None:
        """Add what the chains of the sessions above tell: a store that was set back may hold one as it was before it ended."""
        if not commit.ancestor_session_ids:
            return
        found = await asyncio.gather(
            *(self.peers.audit.get_chain_state(one, deadline) for one in commit.ancestor_session_ids)
        )
        requests.add_chains_above(commit, found)

    async def _halt_if_depleted(
        self, run: Run, admitted: Admitted, sealed: Sealed, settlement: session_pb2.CommitWindowResponse
    ) -> DecidedAnswer:
        """Halt an answer that the settled budget, its caller's or a session above it no longer covers, even if it was to be
        delivered (I2, I20).
        """
        decided, commit = sealed.decided, sealed.commit
        if not decided.delivered or (halt := halt_of(settlement, caller=bool(commit.caller_id))) is None:
            return decided
        report_uri = response_headers.report_uri(self.base_url, commit.window_id)
        if admitted.observed:
            if all(one.action != would.HALT for one in run.would):
                run.would.append(would.DEPLETED)
                run.call.reply.set(would.header(run.would))
                told = list(would.events([would.DEPLETED], decided.report, report_uri))
                await self.peers.audit.record(commit.session_id, commit.window_id, told, run.deadline)
            return decided
        decision = halted_by(halt, decided.decision)
        noted = events.safety_halt(decided.report, decision.halt_reason, None, report_uri)
        await self.peers.audit.record(commit.session_id, commit.window_id, [noted], run.deadline)
        return replace(decided, decision=decision)

    async def release(self, run: Run, admitted: Admitted, settled: Settled) -> Governed:
        """Return how the call ended. What is not released is not kept for later windows either."""
        commit, integrity = settled.sealed.commit, settled.sealed.seal.integrity
        refusal = refusal_of(
            settled.decided.decision, settled.settlement, integrity, run.call.reply, self.base_url
        ) or _decided_too_early(admitted, settled)
        if run.action_refused is not None and integrity != common_pb2.CHAIN_INTEGRITY_BROKEN:
            refusal = run.action_refused
        if refusal is not None and settled.sealed.decided.delivered:
            await self.leases.forget(commit.session_id, commit.window_id)
        if refusal is None:
            would.count(run.would)
            media.answered(settled.decided.answer.choices if settled.decided.answer.completion else ()).tell("answer")
        await failpoints.reached("sidecar.before_release")
        return Governed(admitted.opened, settled.decided, settled.settlement, integrity, refusal)


def _decided_too_early(admitted: Admitted, settled: Settled) -> Refused | None:
    """Refuse an answer whose session was rebuilt after the decision, which rested on a breaker that was less open."""
    settlement = settled.settlement
    before = settlement.transitions[0].from_state if settlement.transitions else settlement.breaker
    if not settlement.duplicate or before <= admitted.breaker or admitted.observed:
        return None
    return conflict(
        "WINDOW_ALREADY_SETTLED",
        "the session was rebuilt meanwhile, and the answer was decided as if its breaker were less open; continue with the "
        "token in CRP-Set-Session",
        window_id=settled.sealed.commit.window_id,
    )

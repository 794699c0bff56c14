"""An ``interlock serve`` with one defence switched off, to show that the suite notices: python -m tests.faults.weakened NAME serve PART

Each weakness replaces one function of the product in this process alone, before it serves. Nothing but the suite's own tests
starts it.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from typing import Any

WEAKNESSES: dict[str, Callable[[], None]] = {}


def weakness(make: Callable[[], None]) -> Callable[[], None]:
    """Register a weakness under its name with hyphens."""
    WEAKNESSES[make.__name__.replace("_", "-")] = make
    return make


@weakness
def settle_before_seal() -> None:
    """The charge is settled first and sealed afterwards, where the seal may still fail."""
    from interlock.sidecar import requests
    from interlock.sidecar.closing import Closing

    seal = Closing.seal

    async def swapped(self: Any, run: Any, admitted: Any, decided: Any) -> Any:
        import hashlib

        early = requests.to_settle(admitted, run.call, decided)
        early.hmac = "sha256:" + hashlib.sha256(early.window_id.encode()).hexdigest()
        early.timestamp = "2026-01-01T00:00:00.000000Z"
        await self.peers.session.commit_window(early, run.deadline)
        sealed = await seal(self, run, admitted, decided)
        sealed.commit.hmac, sealed.commit.timestamp = early.hmac, early.timestamp
        return sealed

    Closing.seal = swapped  # type: ignore[method-assign]


@weakness
def release_unsealed() -> None:
    """What the audit log cannot take is released all the same."""
    from interlock.api.audit.v1 import audit_pb2
    from interlock.api.common.v1 import common_pb2
    from interlock.runtime.rpc.peer import WriteFailedError
    from interlock.runtime.rpc.peers import AuditPeer

    append = AuditPeer.append

    async def lenient(self: Any, request: Any, deadline: Any) -> Any:
        import hashlib

        try:
            return await append(self, request, deadline)
        except WriteFailedError:
            made_up = "sha256:" + hashlib.sha256(request.window_id.encode()).hexdigest()
            return audit_pb2.AppendResponse(
                hmac=made_up, window_hmac=made_up, timestamp="2026-01-01T00:00:00.000000Z", report_hash=made_up,
                trail_id="crp_trail_" + request.window_id[-32:], integrity=common_pb2.CHAIN_INTEGRITY_VALID,
                root_window_id=request.window_id,
            )  # fmt: skip

    AuditPeer.append = lenient  # type: ignore[method-assign]


@weakness
def parts_before_their_record() -> None:
    """A part of a streamed answer leaves though the audit log has not taken it."""
    from interlock.runtime.rpc.peer import WriteFailedError
    from interlock.runtime.rpc.peers import AuditPeer
    from interlock.sidecar.trail.stream_events import PART

    record = AuditPeer.record_part

    async def lenient(self: Any, session_id: Any, window_id: Any, noted: Any, *more: Any, **named: Any) -> Any:
        try:
            return await record(self, session_id, window_id, noted, *more, **named)
        except WriteFailedError:
            if all(one.event_type != PART for one in noted):
                raise

    AuditPeer.record_part = lenient  # type: ignore[method-assign]


@weakness
def lost_streams_for_nothing() -> None:
    """A window whose sidecar died while it released parts is given up, and nobody pays for what has left."""
    from interlock.api.session.v1 import session_pb2
    from interlock.sidecar.settlement.effects import SettlementEffects

    async def given_up(self: Any, opened: Any, window_id: str, deadline: Any) -> None:
        request = session_pb2.AbandonWindowRequest(
            session_id=opened.session_id, root_session_id=opened.root_session_id, window_id=window_id,
            caller_id=opened.caller_budget.caller_id,
        )  # fmt: skip
        await self._session.abandon_window(request, deadline)

    SettlementEffects._lost_stream = given_up  # type: ignore[assignment]


@weakness
def kernels_told_unsealed() -> None:
    """What a kernel decided is told though the audit log has not taken it."""
    from interlock.runtime.rpc.kernels.sealing import Sealing

    sealed = Sealing._sealed

    async def lenient(self: Any, kernel_id: str, batch: Any, deadline: Any, **more: Any) -> None:
        await sealed(self, kernel_id, batch, deadline, **more)
        batch.refused = None

    def nothing(self: Any, *_: Any) -> None:
        """Forget no mark, and count no failure: what was not sealed is taken for sealed."""

    Sealing._sealed = lenient  # type: ignore[method-assign]
    Sealing._failed = nothing  # type: ignore[method-assign]


@weakness
def emergencies_forgotten() -> None:
    """An emergency action is answered as recorded, and nothing is written."""
    from interlock.runtime.rpc.kernels.spool import SpoolFile

    def lenient(self: Any, entry: Any, now_us: int) -> Any:
        return entry

    SpoolFile.record = lenient  # type: ignore[method-assign]


@weakness
def decisions_told_unsealed() -> None:
    """What the engine decided is told though the audit log has not taken it."""
    from interlock.decision.chain import CONFLICT, ExperimentChains
    from interlock.domain.errors import Refused

    seal = ExperimentChains.seal

    async def lenient(self: Any, experiment_id: Any, records: Any, deadline: Any) -> None:
        try:
            await seal(self, experiment_id, records, deadline)
        except Refused as refused:
            if refused.reason == CONFLICT:
                raise

    ExperimentChains.seal = lenient  # type: ignore[method-assign]


@weakness
def reservations_anew() -> None:
    """A cycle that is run again reserves again, under a key of its own."""
    import secrets

    from interlock.decision import reservations

    key = reservations.permit_key

    def another(experiment_id: str, cycle: int, action: str) -> str:
        return key(experiment_id, cycle, action)[:40] + secrets.token_hex(6)

    reservations.permit_key = another


@weakness
def unguarded_decisions() -> None:
    """What agents propose is accepted without a look at the guards."""
    from interlock.domain.decision.engine import _Cycle

    def lenient(_self: Any, found: Any) -> Any:
        return list(found)

    _Cycle._by_guards = lenient  # type: ignore[method-assign]


@weakness
def no_idempotency() -> None:
    """A settlement that is repeated is charged again, under a window id of its own."""
    from interlock.session.ledger import Ledger

    commit = Ledger.commit

    async def again(self: Any, ask: Any, *more: Any, **named: Any) -> Any:
        await commit(self, ask, *more, **named)
        twin = dataclasses.replace(ask, window_id="crp_win_" + ask.window_id[-32:][::-1])
        try:
            await commit(self, twin, *more, **named)
        except Exception:  # the twin may lose its place; then there is one charge, as there must be
            return await commit(self, ask, *more, **named)
        return await commit(self, ask, *more, **named)

    Ledger.commit = again  # type: ignore[method-assign]


@weakness
def silent_defaults() -> None:
    """An analysis that cannot be had counts as a mild one, and a place that cannot be had as one."""
    from interlock.domain.errors import Refused
    from interlock.runtime.rpc.peers import DpePeer

    analyze, reserve = DpePeer.analyze, DpePeer.reserve

    async def anywhere(self: Any, deadline: Any, place_id: str = "") -> str:
        try:
            return await reserve(self, deadline, place_id)
        except Refused:
            return ""

    async def mild(self: Any, request: Any, deadline: Any) -> Any:
        try:
            return await analyze(self, request, deadline)
        except Refused:
            from tests.support.sidecar.sidecar import a_report

            report = a_report("LOW")
            report.choices.add(choice_index=0, composite_score=report.composite_score, risk_level=report.risk_level)
            return report

    DpePeer.analyze, DpePeer.reserve = mild, anywhere  # type: ignore[method-assign]


@weakness
def forgotten_charges() -> None:
    """A session that the store has lost is rebuilt without what its windows cost."""
    from interlock.sidecar.settlement import recovery

    whole = recovery.restoring

    def lenient(record: Any) -> Any:
        request = whole(record)
        kept = [step for step in request.steps if not step.HasField("settled")]
        del request.steps[:]
        request.steps.extend(kept)
        return request

    recovery.restoring = lenient


@weakness
def refilled_sessions() -> None:
    """A session that the store has lost is rebuilt as if its windows had cost nothing."""
    from interlock.sidecar.settlement import recovery

    whole = recovery.settlement

    def free(sealed: Any) -> Any:
        commit = whole(sealed)
        commit.charge_micros = commit.parent_charge_micros = 0
        return commit

    recovery.settlement = free


@weakness
def reports_that_act() -> None:
    """A policy that is only to be reported is applied."""
    from interlock.policy import servicer

    decide = servicer.decide

    def strict(situation: Any, findings: Any) -> Any:
        if any(situation.report_only):
            situation = dataclasses.replace(situation, policy=situation.report_only)
        return decide(situation, findings)

    servicer.decide = strict  # type: ignore[attr-defined]


@weakness
def a_way_around() -> None:
    """Over gRPC what was held or halted is given away."""
    from interlock.sidecar.fronts.front import Front

    chat = Front.chat

    async def open_door(self: Any, way: str, *given: Any, **named: Any) -> Any:
        governed = await chat(self, way, *given, **named)
        return dataclasses.replace(governed, refusal=None) if way == "grpc" else governed

    Front.chat = open_door  # type: ignore[method-assign]


def main() -> None:
    """Switch one defence off and be the command line."""
    WEAKNESSES[sys.argv.pop(1)]()
    from interlock.cli.main import run

    run()


if __name__ == "__main__":
    main()

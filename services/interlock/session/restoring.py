"""The use case of rebuilding: the sessions of a tree are made again from its audit chain (BUD-4, BUD-9; docs/adr/0012)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

import structlog
from prometheus_client import Counter

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL, LARGEST_CHARGE, Micros
from interlock.domain.dag.dag import LINEAR
from interlock.domain.errors import Refused, invalid
from interlock.domain.ids import SessionId
from interlock.domain.session.hold import BudgetHold
from interlock.domain.session.restore import (
    Ended,
    Lowered,
    SpentApart,
    Step,
    StreamBegan,
    Unrecorded,
    ended,
    holds_all,
    replayed,
)
from interlock.domain.session.session_refusals import refusal
from interlock.domain.session.state import CommitWindow, Lease
from interlock.runtime import failpoints
from interlock.runtime.rpc.errors import to_message
from interlock.session.ledger import Ledger
from interlock.session.messages import requests, spending
from interlock.session.recording import created_from

MOST_STEPS = 200_000

MOST_TREES = 256
"""Trees of one call."""

AT_ONCE = 16
"""Trees of one call that are rebuilt at the same time; other callers come in between."""

RESTORED = Counter("interlock_sessions_restored_total", "Sessions by what a rebuild did: restored, verified.", ["how"])

log = structlog.get_logger()


class Restoring:
    """Replays records of trees into the store; sessions are the ledger's."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger

    async def restore(self, request: session_pb2.RestoreTreeRequest) -> tuple[int, int]:
        """Bring the sessions of a tree up to the chain and return how many were written, and how many were all there."""
        root = requests.session_of(request.root_session_id)
        if len(request.steps) > MOST_STEPS:
            raise invalid("RECORD_TOO_LONG", f"a record has at most {MOST_STEPS} steps", limit=str(MOST_STEPS))
        # What approval a grant used is in the record of the child that used the grant.
        steps = [self._step(step) for step in request.steps if step.WhichOneof("step") != "approval"]
        if any(isinstance(step, Unrecorded) for step in steps):
            return await self._verify(root, steps)
        states = replayed(root, steps)
        await failpoints.reached("session.before_restore")
        written = 0
        by_client = ended(steps)
        for session, state in states.items():
            written += await self._ledger.store.restore(state, ended=session in by_client)
        await failpoints.reached("session.after_restore")
        return self._counted(root, written, len(states) - written)

    async def restore_all(self, request: session_pb2.RestoreTreesRequest) -> session_pb2.RestoreTreesResponse:
        """Bring several trees up to the chain, so many at a time that the store is asked in pipelines; each has its own refusal."""
        if len(request.trees) > MOST_TREES:
            raise invalid("TOO_MANY_TREES", f"at most {MOST_TREES} trees at a time", limit=str(MOST_TREES))
        turn = asyncio.Semaphore(AT_ONCE)

        async def result(tree: session_pb2.RestoreTreeRequest) -> session_pb2.RestoreTreeResponse:
            async with turn:
                try:
                    restored, verified = await self.restore(tree)
                except Refused as refused:
                    return session_pb2.RestoreTreeResponse(refusal=to_message(refused))
                return session_pb2.RestoreTreeResponse(restored=restored, verified=verified)

        return session_pb2.RestoreTreesResponse(results=await asyncio.gather(*map(result, request.trees)))

    async def _verify(self, root: SessionId, steps: Sequence[Step]) -> tuple[int, int]:
        """Mark a tree of older code, whose terms are not on record, if the store holds every window that was sealed.

        Else refused with SESSION_STATE_LOST: there is no record of what the sessions were.
        """
        store, sessions = self._ledger.store, list(dict.fromkeys(step.session_id for step in steps))
        held = {session: await store.read(root, session, verified=False) for session in sessions}
        for session, state in held.items():
            sealed = [one.window_id for one in steps if isinstance(one, CommitWindow) and one.session_id == session]
            lowest = min(
                (one.budget for one in steps if isinstance(one, Lowered) and one.session_id == session), default=FULL
            )
            if not holds_all(state, sealed, lowest):
                raise refusal("SESSION_STATE_LOST")
        for state in held.values():
            if state:
                await store.restore(state)
        return self._counted(root, 0, len(held))

    def _counted(self, root: SessionId, written: int, verified: int) -> tuple[int, int]:
        RESTORED.labels("restored").inc(written)
        RESTORED.labels("verified").inc(verified)
        log.info("tree.restored", root_session_id=root, restored_count=written, verified_count=verified)
        return written, verified

    def _step(self, step: session_pb2.TreeStep) -> Step:
        session = requests.session_of(step.session_id)
        kind = step.WhichOneof("step") or ""
        if kind == "created_record_json":
            if not step.created_record_json:
                return Unrecorded(session)
            return created_from(session, step.created_record_json, self._ledger.keyring)
        if kind == "settled" and step.settled.session_id == session:
            return self._settled(session, step.settled)
        if kind == "failed" and step.failed.session_id == session:
            return requests.fail_of(step.failed)
        if kind in _MOVES:
            return _MOVES[kind](session, step)
        raise invalid("RECORD_INCOMPLETE", "a step says nothing, or speaks of another session", session_id=session)

    def _settled(self, session: SessionId, request: session_pb2.CommitWindowRequest) -> CommitWindow:
        try:
            window = requests.window_of(request.window_id)
            continuation = self._ledger.continuation_of(session, window, request.key_version)
            return requests.commit_of(request, continuation)
        except Refused as refused:
            raise invalid(
                "RECORD_INCOMPLETE", "a settlement in the record is not as it must be", session_id=session,
                cause=refused.reason,
            ) from None  # fmt: skip


def _lowered(session: SessionId, step: session_pb2.TreeStep) -> Lowered:
    return Lowered(session, Micros(requests.within("lowered_micros", step.lowered_micros, 0, FULL)))


def _began(session: SessionId, step: session_pb2.TreeStep) -> StreamBegan:
    began = step.stream_began
    window = requests.window_of(began.window_id)
    parents = tuple(sorted(requests.window_of(parent) for parent in began.parent_ids))
    amount = Micros(requests.within("hold_micros", began.hold_micros, 0, LARGEST_CHARGE))
    period = requests.within("caller_period", began.caller_period, 0, 2**31 - 1)
    until = requests.within("until_ms", began.until_ms, 0, 2**53)
    return StreamBegan(session, BudgetHold(window, amount, period), Lease(window, until, LINEAR, parents))


def _spent(session: SessionId, step: session_pb2.TreeStep) -> SpentApart:
    ask = spending.spend_of(step.spent)
    return SpentApart(session, ask.window_id, ask.amount, ask.limits, final=ask.final)


_MOVES: Mapping[str, Callable[[SessionId, session_pb2.TreeStep], Step]] = {
    "terminated": lambda session, _: Ended(session),
    "lowered_micros": _lowered,
    "stream_began": _began,
    "spent": _spent,
}

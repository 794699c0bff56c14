"""Decision runs for people: which experiments there are, what each decided, and a cycle with all that was said in it (DEC-6, OBS-5).

Everything is read from the experiment's chain, which verifies. Each trace is decided again here, so that a page says whether it replays.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain import ids
from interlock.domain.decision.experiment import DecidedCycle, DecisionRecord, cycle_of, trace_in
from interlock.domain.errors import not_found
from interlock.domain.policy.roles import Role
from interlock.oversight.runs.run import ShownCycle, ShownRun, shown_cycle
from interlock.oversight.views import View
from interlock.runtime.rpc.peers import Peers

PAGE = 30
"""Cycles of one page."""
MOST_PARTS = 128
"""Parts of traces that are read for one page; a page with long traces has fewer cycles."""
MOST_REMEMBERED = 128
"""Cycles that are kept as they are shown, for pages that follow what happens."""


@dataclass(frozen=True)
class RunView:
    """A page of a run."""

    experiment_id: str
    scope: str
    """Caller whose experiment it is; empty where its first record does not say, which no limited sight covers."""
    run: ShownRun
    earlier: int
    """Number of the first cycle of this page where there are earlier ones; 0: there are none."""


@dataclass(frozen=True)
class CycleView:
    """One cycle."""

    experiment_id: str
    name: str
    scope: str
    cycle: ShownCycle
    hidden: str
    """Why its content is not for this person; empty where it is."""


class ExperimentReader:
    """Reads what the pages show."""

    def __init__(self, peers: Peers) -> None:
        self._peers = peers
        self._shown: dict[tuple[str, int, str], ShownCycle] = {}

    async def page(self, before: audit_pb2.ListedExperiment | None, limit: int) -> audit_pb2.ListExperimentsResponse:
        """Return the experiments that began last."""
        return await self._peers.audit.list_experiments(audit_pb2.ListExperimentsRequest(before=before, limit=limit))

    async def run(self, experiment_id: str, before: int) -> RunView:
        """Return the last cycles, or those before one. Refused with DECISION_EXPERIMENT_NOT_FOUND."""
        told, found = await self._cycles(experiment_id, before, PAGE)
        heads = _within(list(map(_head, found.cycles)), MOST_PARTS)
        cycles = (await self._read(experiment_id, told["definition"], heads))[::-1]
        more = found.more or len(heads) < len(found.cycles)
        run = ShownRun(told["name"], cycles)
        return RunView(experiment_id, told.get("scope", ""), run, cycles[0].number if more and cycles else 0)

    async def cycle(self, view: View, experiment_id: str, number: int) -> CycleView:
        """Return one cycle. That the person looks at what was said in it is on record before this returns.

        Whoever may not see content gets its figures. Refused with DECISION_EXPERIMENT_NOT_FOUND or DECISION_CYCLE_NOT_FOUND.
        """
        told, found = await self._cycles(experiment_id, number + 1, 1)
        heads = [head for head in map(_head, found.cycles) if head.cycle == number]
        if not heads:
            raise not_found("DECISION_CYCLE_NOT_FOUND", "no cycle of this number was decided")
        scope = told.get("scope", "")
        hidden = _hidden(view, scope)
        [shown] = await self._read(experiment_id, told["definition"], heads, viewer="" if hidden else view.reviewer)
        return CycleView(experiment_id, told["name"], scope, shown, hidden)

    async def _cycles(
        self, experiment_id: str, before: int, limit: int
    ) -> tuple[dict[str, Any], audit_pb2.ListCyclesResponse]:
        request = audit_pb2.ListCyclesRequest(
            experiment_id=ids.check("crp_sess_", experiment_id), before=before, limit=limit
        )
        found = await self._peers.audit.list_cycles(request)
        if not found.HasField("opened"):
            raise not_found("DECISION_EXPERIMENT_NOT_FOUND", "the log has no experiment of this id")
        return json.loads(found.opened.data_json), found

    async def _read(
        self, experiment_id: str, definition: str, heads: Sequence[DecidedCycle], *, viewer: str = ""
    ) -> list[ShownCycle]:
        """Return cycles as they are shown. With a *viewer* they are read in any case, since the look is recorded so."""
        keys = [(experiment_id, one.cycle, one.trace_hash) for one in heads]
        held = {key: self._shown[key] for key in keys if key in self._shown and not viewer}
        wanted = [one for key, one in zip(keys, heads, strict=True) if key not in held]
        if wanted:
            records = await self._records(experiment_id, wanted[-1], wanted[0], viewer)
            shown = await asyncio.to_thread(_decided_again, definition, wanted, records)
            held |= zip((key for key in keys if key not in held), shown, strict=True)
        self._remember(held)
        return [held[key] for key in keys]

    async def _records(
        self, experiment_id: str, first: DecidedCycle, last: DecidedCycle, viewer: str
    ) -> list[DecisionRecord]:
        request = audit_pb2.GetDecisionRecordRequest(
            experiment_id=experiment_id, after=first.sequence, limit=last.sequence + last.parts - first.sequence,
            viewer=viewer,
        )  # fmt: skip
        return list(map(_record, await self._peers.audit.get_decision_record(request)))

    def _remember(self, shown: Mapping[tuple[str, int, str], ShownCycle]) -> None:
        self._shown |= shown
        while len(self._shown) > MOST_REMEMBERED:
            self._shown.pop(next(iter(self._shown)))


def _decided_again(
    definition: str, heads: Sequence[DecidedCycle], records: Sequence[DecisionRecord]
) -> list[ShownCycle]:
    """Return the cycles as they are shown. Refused with DECISION_RECORD_BROKEN where the parts are not the trace that was sealed."""
    return [shown_cycle(definition, trace_in(_parts(records, head), head)) for head in heads]


def _parts(records: Sequence[DecisionRecord], head: DecidedCycle) -> list[DecisionRecord]:
    return [one for one in records if head.sequence < one.sequence <= head.sequence + head.parts]


def _within(heads: Sequence[DecidedCycle], most: int) -> list[DecidedCycle]:
    """Return the first of *heads* that have so many parts together, one at least."""
    kept: list[DecidedCycle] = []
    for one in heads:
        most -= one.parts
        if kept and most < 0:
            break
        kept.append(one)
    return kept


def _head(record: session_pb2.KernelRecord) -> DecidedCycle:
    return cycle_of(_record(record))


def _record(one: session_pb2.KernelRecord) -> DecisionRecord:
    return DecisionRecord(one.sequence, one.previous, one.link, one.type, one.severity, one.data_json)


def _hidden(view: View, scope: str) -> str:
    if view.role is Role.VIEWER:
        return "ROLE_SEES_NO_CONTENT"
    return "" if view.sight.covers(scope, "") else "SESSION_NOT_COVERED"

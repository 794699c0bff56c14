"""Which kernels and experiments there are, and what an experiment decided: for people, from the log's events (OBS-5)."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.audit.kernel.records import message_of
from interlock.audit.sealing.chains import VerifiedChains
from interlock.audit.sealing.readers import Readers
from interlock.audit.store.log import AuditLog
from interlock.domain import ids
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import EventRecord
from interlock.domain.errors import invalid

LIMIT, MOST = 50, 200
LAST: tuple[str, str] = ("9999", "")
"""A place after everything: time and id."""
MOST_CYCLES = 2**53
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)", re.ASCII)


class Openings:
    """Lists them."""

    def __init__(self, audit_log: AuditLog, readers: Readers, chains: VerifiedChains) -> None:
        self._log, self._readers, self._chains = audit_log, readers, chains

    async def kernels(self, request: audit_pb2.ListKernelsRequest) -> audit_pb2.ListKernelsResponse:
        """Return a page of kernels, the latest first; of one caller or of one name where the request says so."""
        limit, last = _limit(request.limit), request.before
        before = _place(last.opened_at, last.kernel_id) if request.HasField("before") else LAST
        wanted = _naming("scope", request.scope), _naming("kernel", request.kernel)
        found = await self._readers.run(partial(self._log.opened_last, "KERNEL_OPENED", wanted, limit + 1, before))
        return audit_pb2.ListKernelsResponse(kernels=map(_kernel, found[:limit]), more=len(found) > limit)

    async def experiments(self, request: audit_pb2.ListExperimentsRequest) -> audit_pb2.ListExperimentsResponse:
        """Return a page of experiments, the latest first, each with its last cycle."""
        limit, last = _limit(request.limit), request.before
        before = _place(last.opened_at, last.experiment_id) if request.HasField("before") else LAST
        found = await self._readers.run(partial(self._experiments, limit + 1, before))
        return audit_pb2.ListExperimentsResponse(experiments=found[:limit], more=len(found) > limit)

    async def cycles(self, request: audit_pb2.ListCyclesRequest) -> audit_pb2.ListCyclesResponse:
        """Return a page of an experiment's cycles, the latest first, from a chain that verifies."""
        experiment_id, limit = ids.check("crp_sess_", request.experiment_id), _limit(request.limit)
        if not 0 <= request.before <= MOST_CYCLES:
            raise invalid("INVALID_FIELD", "before is 0 or the number of a cycle", field="before")
        async with self._chains.reporting(experiment_id):
            opened, found = await self._readers.run(partial(self._cycles, experiment_id, request.before, limit + 1))
        return audit_pb2.ListCyclesResponse(
            opened=message_of(opened) if opened else None,
            cycles=map(message_of, found[:limit]),
            more=len(found) > limit,
        )

    def _experiments(self, limit: int, before: tuple[str, str]) -> list[audit_pb2.ListedExperiment]:
        found = self._log.opened_last("DECISION_OPENED", ("", ""), limit, before)
        return [_experiment(one, self._log.cycles(one[0], 0, 1)) for one in found]

    def _cycles(self, experiment_id: str, before: int, limit: int) -> tuple[EventRecord | None, list[EventRecord]]:
        self._chains.verified(experiment_id, again="due")
        first = next(iter(self._log.events(experiment_id, after=0, limit=1)), None)
        if first is None or first.event_type != "DECISION_OPENED":
            return None, []
        return first, self._log.cycles(experiment_id, before, limit)


def _limit(asked: int) -> int:
    limit = asked or LIMIT
    if not 1 <= limit <= MOST:
        raise invalid("INVALID_FIELD", f"a page has 1 to {MOST}", field="limit")
    return limit


def _place(time: str, chain_id: str) -> tuple[str, str]:
    if not _TIME.fullmatch(time):
        raise invalid("INVALID_FIELD", "a page goes on after one of the page before", field="before")
    return time, ids.check("crp_sess_", chain_id)


def _naming(field: str, value: str) -> str:
    """Return what the data of a record of that value hold, as text. A quote inside of a value is escaped there, so no value can look so."""
    return f'"{field}":{canonical_json(value)}' if value else ""


def _kernel(found: tuple[str, str, str]) -> audit_pb2.ListedKernel:
    kernel_id, opened_at, data_json = found
    data: dict[str, Any] = json.loads(data_json)
    return audit_pb2.ListedKernel(
        kernel_id=kernel_id, kernel=str(data.get("kernel", "")), scope=str(data.get("scope", "")),
        root_session_id=str(data.get("root_session_id", "")), opened_at=opened_at,
    )  # fmt: skip


def _experiment(found: tuple[str, str, str], last: list[EventRecord]) -> audit_pb2.ListedExperiment:
    experiment_id, opened_at, data_json = found
    data: dict[str, Any] = json.loads(data_json)
    listed = audit_pb2.ListedExperiment(
        experiment_id=experiment_id, experiment=str(data["name"]), scope=str(data.get("scope", "")), opened_at=opened_at
    )
    if last:
        cycle: dict[str, Any] = json.loads(last[0].data_json)
        listed.cycles, listed.last_outcome, listed.last_at = int(cycle["cycle"]), cycle["outcome"], last[0].timestamp
    return listed

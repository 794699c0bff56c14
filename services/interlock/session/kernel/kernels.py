"""The use cases of kernels: open, decide, describe, restore. What they answer may be told once its records are sealed (docs/adr/0031)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.kernel.v1 import kernel_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused, invalid
from interlock.domain.ids import SessionId, check
from interlock.domain.kernel.definition import Definition, contract, kernel_id_of, opened, registered, require_same
from interlock.domain.kernel.expression import Declared
from interlock.domain.kernel.state import Stepped, refusal, replayed
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock
from interlock.runtime.rpc.errors import to_message
from interlock.session.kernel import cel_language, reading, telling
from interlock.session.kernel.cel_steps import CelSteps
from interlock.session.store.kernels.store import KernelStore

log = structlog.get_logger()

MOST_TOGETHER = 64
"""How many steps are taken in one call of the store: nothing else is answered by it meanwhile."""
LOST = frozenset({"KERNEL_NOT_FOUND", "KERNEL_STATE_UNVERIFIED"})
"""Statuses of a kernel as a whole: it has to be restored first."""

DECISIONS = Counter(
    "interlock_kernel_decisions",
    "What kernels decided, by what was asked and whether it was approved.",
    ["ask", "approved"],
)
RESTORED = Counter("interlock_kernels_restored", "Kernels that were restored from their sealed records.")


class KernelUseCases:
    """Kernels over one store; the time is the store's."""

    def __init__(self, store: KernelStore, clock: Clock, *, stuck_by_reviewers: bool = False) -> None:
        self._store, self._clock = store, clock
        self._steps = CelSteps(store, cel_language.LANGUAGE, self._now_ms)
        self._of_reviewers = {"of_reviewers": "1"} if stuck_by_reviewers else {}
        self._suggestions = lru_cache(maxsize=1_024)(_suggestions)

    async def step(self, request: session_pb2.StepKernelRequest) -> session_pb2.StepKernelResponse:
        """Answer what is asked of a kernel, with all that has to be sealed before the answer is given."""
        what = request.WhichOneof("ask")
        if what is None:
            raise invalid("KERNEL_ASK_MISSING", "nothing is asked")
        asked = getattr(request, what)
        kernel_id = kernel_id_of(request.scope, request.root_session_id, asked.kernel)
        if what == "open":
            owner = {"kernel": asked.kernel, "scope": request.scope, "root_session_id": request.root_session_id}
            return await self._open(kernel_id, asked, owner)
        if what == "describe":
            found = self._require(await self._store.read(kernel_id))
            told = telling.described_message(kernel_id, {k: str(v) for k, v in found.answer.items()})
            return _told(kernel_id, found, described=told)
        await failpoints.reached("kernel.before_step")
        ask = self._ask_of(what, asked) | _known(request) | reading.recorded_of(request)
        found = self._require(await self._steps.step(kernel_id, ask))
        await failpoints.reached("kernel.after_step")
        return await self._decided(what, kernel_id, found)

    async def steps(self, request: session_pb2.StepKernelsRequest) -> session_pb2.StepKernelsResponse:
        """Answer what several calls ask of one kernel, each by itself, with all that has to be sealed before."""
        kernel_id, asked = _together(request.steps)
        asks = [self._read(step, *one) for step, one in zip(request.steps, asked, strict=True)]
        await failpoints.reached("kernel.before_step")
        read = [one for one in asks if not isinstance(one, Refused)]
        if read:
            read[0] |= _known(request.steps[0])
        found = await self._steps.steps(kernel_id, read) if read else []
        await failpoints.reached("kernel.after_step")
        told = session_pb2.StepKernelsResponse(kernel_id=kernel_id)
        for one in found:
            if isinstance(one, Refused):
                continue
            if one.status in LOST:
                raise refusal(one.status)
            if one.unsealed and not told.unsealed:
                told.unsealed.extend(map(telling.record_message, one.unsealed))
        decided = iter(found)
        for step, ask in zip(request.steps, asks, strict=True):
            answer = ask if isinstance(ask, Refused) else _alone(next(decided))
            told.answers.append(await self._answered(step.WhichOneof("ask") or "", kernel_id, answer))
        return told

    def _ask_of(self, what: str, asked: Any) -> dict[str, Any]:
        return reading.ask_of(what, asked) | (self._of_reviewers if what == "settle" else {})

    def _read(self, step: session_pb2.StepKernelRequest, what: str, asked: Any) -> dict[str, Any] | Refused:
        try:
            return self._ask_of(what, asked) | reading.recorded_of(step)
        except Refused as refused:
            return refused

    async def _answered(
        self, what: str, kernel_id: SessionId, found: Stepped | Refused
    ) -> session_pb2.StepKernelResponse:
        """Return one answer of several, or its refusal."""
        try:
            if isinstance(found, Refused):
                raise found
            return await self._decided(what, kernel_id, self._require(found))
        except Refused as refused:
            return session_pb2.StepKernelResponse(kernel_id=kernel_id, refusal=to_message(refused))

    async def _decided(self, what: str, kernel_id: SessionId, found: Stepped) -> session_pb2.StepKernelResponse:
        if found.status == "FULL":
            return _told(kernel_id, found, full=True)
        DECISIONS.labels(what, found.answer.get("approved", "")).inc()
        return await self._answer(what, kernel_id, found)

    async def acknowledge(self, request: session_pb2.AcknowledgeKernelRequest) -> bool:
        """Note that the records of a kernel are sealed up to one."""
        kernel_id = SessionId(check("crp_sess_", request.kernel_id))
        return await self._store.sealed(kernel_id, request.sequence, request.link)

    async def restore(self, request: session_pb2.RestoreKernelRequest) -> bool:
        """Make a kernel what its sealed records say."""
        kernel_id = SessionId(check("crp_sess_", request.kernel_id))
        records = [telling.record_of(one) for one in request.records]
        if not records:
            raise refusal("KERNEL_NOT_FOUND")
        restored = await self._store.restore(kernel_id, replayed(records), len(records))
        if restored:
            RESTORED.inc()
            log.info("kernel.restored", kernel_id=kernel_id, records_count=len(records))
        return restored

    async def read(self, request: session_pb2.ReadKernelRequest) -> session_pb2.ReadKernelResponse:
        """Return a kernel by its id."""
        kernel_id = SessionId(check("crp_sess_", request.kernel_id))
        found = self._require(await self._store.read(kernel_id))
        return session_pb2.ReadKernelResponse(
            kernel_id=kernel_id, unsealed=map(telling.record_message, found.unsealed),
            described=telling.described_message(kernel_id, {k: str(v) for k, v in found.answer.items()}),
        )  # fmt: skip

    async def decide(self, request: session_pb2.DecideCompensationRequest) -> session_pb2.DecideCompensationResponse:
        """Note what a person decided about a compensation that is stuck."""
        kernel_id = SessionId(check("crp_sess_", request.kernel_id))
        ask = reading.decision_of(request)
        await failpoints.reached("kernel.before_step")
        found = self._require(await self._steps.step(kernel_id, ask))
        await failpoints.reached("kernel.after_step")
        told = session_pb2.DecideCompensationResponse(
            kernel_id=kernel_id, unsealed=map(telling.record_message, found.unsealed), full=found.status == "FULL"
        )
        if not told.full:
            DECISIONS.labels("decide", found.answer["approved"]).inc()
            told.verdict.CopyFrom(telling.verdict_message(found.answer, {}))
        return told

    async def _open(
        self, kernel_id: SessionId, asked: kernel_pb2.OpenRequest, owner: Mapping[str, str]
    ) -> session_pb2.StepKernelResponse:
        wanted = reading.definition_of(asked.definition)
        found, status = await self._store.read(kernel_id), "EXISTS"
        if found.status == "KERNEL_NOT_FOUND":
            fields, record = opened(wanted, kernel_id, self._now_ms(), owner=owner, cel=cel_language.LANGUAGE)
            status = await self._store.open(kernel_id, fields, record)
            found = await self._store.read(kernel_id)
        self._require(found)
        if status == "EXISTS":
            found = await self._join(kernel_id, wanted, found)
            if found.status == "FULL":
                return _told(kernel_id, found, full=True)
        version = int(found.answer.get("version", "1"))
        told = kernel_pb2.OpenResponse(kernel_id=kernel_id, created=status == "CREATED", version=version)
        return _told(kernel_id, found, opened=told)

    async def _join(self, kernel_id: SessionId, wanted: Definition, found: Stepped) -> Stepped:
        """Join a kernel: the same definition, and what it lacks is added. First values of a joiner are not looked at."""
        held = found.answer
        require_same(str(held["def"]), contract(wanted))
        # Actions speak of the variables that are named with them, and of those that are there.
        kinds = {name[2:]: str(value)[0] for name, value in held.items() if name.startswith("v:")}
        kinds |= {name: value[0] for name, value in wanted.variables.items()}
        ids = {name[2:] for name in held if name.startswith("a:")} | {one.id for one in wanted.actions}
        more = registered(
            wanted.variables, wanted.actions, Declared(kinds, frozenset(ids), frozenset(wanted.resources))
        )
        return await self._register(kernel_id, found, more)

    async def _register(self, kernel_id: SessionId, found: Stepped, more: Mapping[str, str]) -> Stepped:
        """Add what is new; what is there already is compared before the store is asked, which decides."""
        known = found.answer
        new = [
            [name, value] for name, value in more.items()
            if name not in known or (name[0] == "a" and known[name] != value) or str(known[name])[0] != value[0]
        ]  # fmt: skip
        if not new:
            return found
        ask = {"op": "register", "key": " ", "digest": "", "fields": new}
        return self._require(await self._store.step(kernel_id, ask, self._now_ms()))

    async def _answer(self, what: str, kernel_id: SessionId, found: Stepped) -> session_pb2.StepKernelResponse:
        answer = found.answer
        advice: Mapping[str, str] = {}
        if what == "claim":
            return _told(kernel_id, found, claimed=telling.claimed_message(answer))
        if answer["approved"] != "1":
            advice = self._suggestions(await self._store.contract(kernel_id))
        if what == "evaluate":
            return _told(kernel_id, found, evaluated=telling.evaluated_message(answer, advice))
        if what == "lease":
            return _told(kernel_id, found, leased=telling.leased_message(answer, advice))
        if what == "ticket":
            return _told(kernel_id, found, ticketed=telling.ticket_message(answer, advice))
        if what == "begin_saga":
            return _told(kernel_id, found, begun=telling.begun_message(answer, advice))
        return _told(kernel_id, found, verdict=telling.verdict_message(answer, advice))

    def _require(self, found: Stepped) -> Stepped:
        if found.status not in {"OK", "FULL"}:
            raise refusal(found.status, found.subject)
        return found

    def _now_ms(self) -> int:
        return self._clock() // 1000


def _known(request: session_pb2.StepKernelRequest) -> dict[str, str]:
    have = {"have": str(request.have), "have_link": request.have_link} if request.have else {}
    return have | ({"sealed": str(request.sealed), "sealed_link": request.sealed_link} if request.sealed else {})


def _together(steps: Sequence[session_pb2.StepKernelRequest]) -> tuple[SessionId, list[tuple[str, Any]]]:
    """Return the one kernel of steps, and what each asks of it. Refused with KERNEL_STEPS_INVALID."""
    whats = [one.WhichOneof("ask") for one in steps]
    if not 1 <= len(steps) <= MOST_TOGETHER or not all(one in reading.MUTATING for one in whats):
        raise invalid("KERNEL_STEPS_INVALID", f"1 to {MOST_TOGETHER} steps that change a kernel are asked together")
    asked = [getattr(one, str(what)) for one, what in zip(steps, whats, strict=True)]
    if len({(step.scope, step.root_session_id, one.kernel) for step, one in zip(steps, asked, strict=True)}) > 1:
        raise invalid("KERNEL_STEPS_INVALID", "steps that are asked together are of one kernel")
    kernel_id = kernel_id_of(steps[0].scope, steps[0].root_session_id, asked[0].kernel)
    return kernel_id, [(str(what), one) for what, one in zip(whats, asked, strict=True)]


def _alone(found: Stepped | Refused) -> Stepped | Refused:
    """Return one answer of several, without what all of them rest on."""
    return found if isinstance(found, Refused) else replace(found, unsealed=())


def _suggestions(agreed: str) -> Mapping[str, str]:
    return {one[0]: one[3] for one in json.loads(agreed or '{"invariants":[]}')["invariants"]}


def _told(kernel_id: str, found: Stepped, **answer: Any) -> session_pb2.StepKernelResponse:
    unsealed = [telling.record_message(one) for one in found.unsealed]
    return session_pb2.StepKernelResponse(kernel_id=kernel_id, unsealed=unsealed, **answer)

"""What owners do with experiments. The chain is the history, and the store a copy: each change is sealed, then kept (DEC-6)."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import WeakValueDictionary

import structlog

from interlock.decision import metrics
from interlock.decision.agents.desks import Desks
from interlock.decision.bus.signal_bus import SignalBus
from interlock.decision.chain import CONFLICT, ExperimentChains
from interlock.decision.cycle import CycleRound
from interlock.decision.doubts import DoubtfulReservations
from interlock.decision.reservations import Reservations
from interlock.decision.store.states import ExperimentStates
from interlock.domain.decision import experiment
from interlock.domain.decision.agents import described
from interlock.domain.decision.definition import ExperimentRules, defined
from interlock.domain.decision.engine import LARGEST_SNAPSHOT
from interlock.domain.decision.experiment import DecidedCycle, DecisionRecord, ExperimentState, experiment_id_of
from interlock.domain.decision.intake import MOST_GIVEN
from interlock.domain.decision.reading import canonical, is_line, json_object
from interlock.domain.decision.replay import Replayed, replayed
from interlock.domain.errors import Refused, conflict, exhausted, invalid, not_found
from interlock.runtime import failpoints
from interlock.runtime.clock import Clock
from interlock.runtime.rpc.deadline import Deadline

log = structlog.get_logger()

LARGEST_GIVEN, PAGE, MOST_LISTED = 262_144, 100, 500
MOST_CLEARED = 32
"""Cycles whose reservations are looked after at the end of one."""
MOST_CURRENT = 256
"""States that are held for the bus, whose calls come more often than changes."""

Change = Callable[[ExperimentState], tuple[ExperimentState, list[DecisionRecord]]]


@dataclass(frozen=True)
class Opened:
    """An experiment that was opened or joined."""

    experiment_id: str
    created: bool
    rules: ExperimentRules


@dataclass(frozen=True)
class SealedTrace:
    """A trace as it is in the chain."""

    cycle: DecidedCycle
    text: str
    definition: str
    replayed: bool = False
    """Whether the cycle had been decided before it was asked for."""


class Experiments:
    """The experiments of one mesh."""

    def __init__(  # noqa: PLR0917 - the parts of the service
        self, states: ExperimentStates, chains: ExperimentChains, desks: Desks, bus: SignalBus,
        reservations: Reservations, clock: Clock, timeout_s: float,
    ) -> None:  # fmt: skip
        self._states, self._chains, self._desks = states, chains, desks
        self._bus, self._reservations = bus, reservations
        self._current: dict[str, ExperimentState] = {}
        self._doubts = DoubtfulReservations()
        self._clock, self._timeout_s = clock, timeout_s
        self._locks: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def open(self, scope: str, name: str, definition: str) -> Opened:
        """Create an experiment, or join it. Refused with DECISION_DEFINITION_DIFFERS where it is there with another one."""
        experiment_id, rules = experiment_id_of(scope, name), defined(definition)
        async with self._lock(experiment_id):
            held = await self._found(experiment_id)
            if held is None:
                state, records = experiment.opened(name, rules.text, self._clock(), scope=scope)
                held = await self._sealed(experiment_id, state, records)
                created = held.link == state.link
            else:
                created = False
        if held.definition != rules.text:
            raise conflict("DECISION_DEFINITION_DIFFERS", "the experiment of this name has another definition")
        return Opened(experiment_id, created, rules)

    async def register(self, scope: str, name: str, agent: Mapping[str, object]) -> tuple[str, str]:
        """Add an agent; return the experiment's id and the agent's name."""
        experiment_id = experiment_id_of(scope, name)

        def change(state: ExperimentState) -> tuple[ExperimentState, list[DecisionRecord]]:
            return experiment.registered(state, described(agent, state.rules), self._clock())

        await self._changed(experiment_id, change)
        return experiment_id, str(agent["name"])

    async def add_type(self, scope: str, name: str, kind: str, schema_json: str) -> bool:
        """Add a type of signals; return whether it is new. Refused with the reasons of ``experiment.typed``."""
        added = False

        def change(state: ExperimentState) -> tuple[ExperimentState, list[DecisionRecord]]:
            nonlocal added
            after, records = experiment.typed(state, kind, schema_json, self._clock())
            added = bool(records)
            return after, records

        await self._changed(experiment_id_of(scope, name), change)
        return added

    async def settle(
        self, scope: str, name: str, cycle: int, *, done: bool, actual: Mapping[str, int]
    ) -> tuple[str, int, bool]:
        """Settle what a cycle reserved; return the permit's key, the kernel's record, and whether it was settled so before.

        Refused with DECISION_CYCLE_NOT_FOUND, DECISION_NOTHING_RESERVED, DECISION_SETTLEMENT_REFUSED, and the reasons of kernels.
        """
        experiment_id, found = await self.trace(scope, name, cycle)
        key = ((json.loads(found.text).get("reserved")) or {}).get("key", "")
        if not key:
            raise conflict("DECISION_NOTHING_RESERVED", "the cycle reserved nothing in a kernel")
        state = await self._state(experiment_id)
        place = state.rules.kernel
        assert place is not None, "a cycle that reserved has a kernel"
        verdict = await self._reservations.settle(scope, place, key, done=done, actual=actual)
        if not verdict.approved:
            failed = next((one.code for one in verdict.checks if not one.passed), "")
            raise conflict("DECISION_SETTLEMENT_REFUSED", "the kernel does not settle it so", check=failed)
        told = {"key": key, "outcome": "DONE" if done else "NOT_DONE", "kernel": str(verdict.sequence)}

        def change(held: ExperimentState) -> tuple[ExperimentState, list[DecisionRecord]]:
            if verdict.replayed and str(cycle) not in held.reserved:
                return held, []
            return experiment.settled(held, cycle, told, self._clock())

        await self._changed(experiment_id, change)
        return key, verdict.sequence, verdict.replayed

    async def current(self, experiment_id: str) -> ExperimentState:
        """Return the state; it is read again only after it changed. Refused with DECISION_EXPERIMENT_NOT_FOUND."""
        held, sequence = self._current.get(experiment_id), await self._states.sequence(experiment_id)
        if held is None or held.sequence != sequence:
            while len(self._current) >= MOST_CURRENT:
                self._current.pop(next(iter(self._current)))
            held = self._current[experiment_id] = await self._state(experiment_id)
        return held

    async def reinstate(self, scope: str, name: str, agent: str, reason: str) -> None:
        """Make an agent ACTIVE again. Refused with DECISION_REASON_MISSING without a reason."""
        if not is_line(reason) or not reason.strip():
            raise invalid("DECISION_REASON_MISSING", "a reason has 1 to 1,000 characters")
        await self._changed(
            experiment_id_of(scope, name), lambda state: experiment.reinstated(state, agent, reason, self._clock())
        )

    async def described(self, scope: str, name: str) -> tuple[str, ExperimentState]:
        """Return an experiment as its chain has it: a store may have been set back. Refused with DECISION_EXPERIMENT_NOT_FOUND."""
        experiment_id = experiment_id_of(scope, name)
        return experiment_id, await self._caught_up(experiment_id, await self._state(experiment_id))

    async def having(self, experiment_id: str, agent: str, types: Collection[str] = ()) -> ExperimentState:
        """Return the state with an agent, where one is named, and with types of signals. Refused with DECISION_AGENT_UNKNOWN.

        A store that lacks one of them may have been set back: then the chain is asked. Types that it lacks too are the caller's to refuse.
        """
        state = await self.current(experiment_id)
        if (agent and agent not in state.agents) or any(one not in state.rules.signals for one in types):
            state = await self._caught_up(experiment_id, state)
        if agent:
            state.known(agent)
        return state

    async def run(
        self, scope: str, name: str, cycle: int, snapshot: str, given: Sequence[Mapping[str, object]]
    ) -> SealedTrace:
        """Decide a cycle, or read it where it was decided before.

        Refused with DECISION_SNAPSHOT_INVALID, DECISION_SIGNALS_TOO_MANY or DECISION_CYCLE_UNEXPECTED; with
        DECISION_CHAIN_CONFLICT where another process decided at the same time: asked again, the cycle is read.
        """
        if json_object(snapshot, LARGEST_SNAPSHOT) is None:
            message = f"the snapshot is a JSON object of at most {LARGEST_SNAPSHOT} bytes"
            raise invalid("DECISION_SNAPSHOT_INVALID", message)
        if len(given) > MOST_GIVEN or len(canonical(list(given))) > LARGEST_GIVEN:
            message = f"at most {MOST_GIVEN} signals of {LARGEST_GIVEN} bytes in all"
            raise exhausted("DECISION_SIGNALS_TOO_MANY", message)
        experiment_id = experiment_id_of(scope, name)
        async with self._lock(experiment_id):
            state = await self._state(experiment_id, at_least=cycle - 1)
            if 1 <= cycle <= state.cycle:
                return await self._trace(experiment_id, cycle, state)
            if cycle != state.cycle + 1:
                raise conflict("DECISION_CYCLE_UNEXPECTED", "this is not the next cycle", expected=str(state.cycle + 1))
            doubtful = self._doubts.begun(experiment_id, state)
            trace = await self._decided(
                scope, experiment_id, state, snapshot=snapshot, given=given, doubtful=doubtful
            )  # fmt: skip
            after, records = experiment.concluded(state, trace, int(trace["inputs"]["at_us"]))
            if any(one["asked"] == "unknown" for one in trace["inputs"].get("permits", {}).values()):
                doubtful = min(doubtful, cycle)
            await self._concluded(scope, experiment_id, after, records, doubtful=doubtful)
            metrics.count(trace)
            await self._bus.publish(experiment_id, after, trace)
            return SealedTrace(experiment.cycle_of(records[0]), canonical(trace), state.definition)

    async def _decided(
        self, scope: str, experiment_id: str, state: ExperimentState, *, snapshot: str,
        given: Sequence[Mapping[str, object]], doubtful: int,
    ) -> dict[str, Any]:  # fmt: skip
        """Return the trace of the next cycle, with everything that it accepts permitted."""
        kernel = asyncio.create_task(self._reservations.figures(scope, state.rules))
        try:
            more: dict[str, Any] = {"types": dict(state.types)} if state.types else {}
            bus = await self._bus.collected(experiment_id, state)
            more |= {"bus": bus} if bus is not None else {}
            if state.rules.kernel is not None and doubtful <= state.cycle and state.cycle:
                more["doubtful_from"] = doubtful
            round_of = CycleRound(self._desks, experiment_id, state.rules, state, self._chains.model_window)
            trace = await round_of.decided(
                cycle=state.cycle + 1, at_us=self._clock(), snapshot=snapshot, given=given, more=more, kernel=kernel
            )
        finally:
            kernel.cancel()
        return await self._reservations.decided(scope, state.rules, trace)

    async def _concluded(
        self, scope: str, experiment_id: str, after: ExperimentState, records: Sequence[DecisionRecord], *,
        doubtful: int,
    ) -> None:  # fmt: skip
        """Seal a cycle, and take back what was reserved since the first doubtful cycle and is in no trace."""
        try:
            await self._sealed(experiment_id, after, records, refuse_others=True)
        except Refused as refused:
            if refused.reason == CONFLICT:  # another process decided: what it reserved stays
                held = await self._state(experiment_id)
                if held.cycle >= after.cycle:  # else it is still to come, and is run again
                    await self._cleared(scope, experiment_id, held, min(doubtful, after.cycle))
            raise
        await self._cleared(scope, experiment_id, after, doubtful)

    async def _cleared(self, scope: str, experiment_id: str, state: ExperimentState, first: int) -> None:
        """Take back what cycles from *first* on reserved and no trace has. Where the kernel is silent the next cycle goes on with it."""
        end = min(first + MOST_CLEARED, state.cycle + 1)
        for cycle in range(first, end):
            if not await self._released(scope, experiment_id, state, cycle):
                self._doubts.concluded(experiment_id, state.cycle, cycle)
                return
        self._doubts.concluded(experiment_id, state.cycle, end if end <= state.cycle else state.cycle + 2)

    async def _released(self, scope: str, experiment_id: str, state: ExperimentState, cycle: int) -> bool:
        if state.rules.kernel is None:
            return True
        keep = {state.reserved.get(str(cycle), "")}
        return await self._reservations.release(scope, state.rules, experiment_id, cycle, keep=keep)

    async def listed(self, scope: str, name: str, after: int, limit: int) -> list[DecidedCycle]:
        """Return decided cycles after one. Refused with DECISION_PLACE_INVALID."""
        if after < 0 or not 0 <= limit <= MOST_LISTED:
            raise invalid("DECISION_PLACE_INVALID", f"after is 0 or more, limit at most {MOST_LISTED}")
        experiment_id = experiment_id_of(scope, name)
        state = await self._state(experiment_id)
        numbers = range(after + 1, min(state.cycle, after + (limit or PAGE)) + 1)
        return await self._lines(experiment_id, numbers)

    async def trace(self, scope: str, name: str, cycle: int) -> tuple[str, SealedTrace]:
        """Return the sealed trace of a cycle. Refused with DECISION_CYCLE_NOT_FOUND."""
        experiment_id = experiment_id_of(scope, name)
        state = await self._state(experiment_id, at_least=cycle)
        if not 1 <= cycle <= state.cycle:
            raise not_found("DECISION_CYCLE_NOT_FOUND", "no cycle of this number was decided", last=str(state.cycle))
        return experiment_id, await self._trace(experiment_id, cycle, state)

    async def replay(self, scope: str, name: str, cycle: int) -> Replayed:
        """Decide a sealed cycle again."""
        _, found = await self.trace(scope, name, cycle)
        return await asyncio.to_thread(replayed, found.definition, found.text)

    async def _trace(self, experiment_id: str, cycle: int, state: ExperimentState) -> SealedTrace:
        [line] = await self._lines(experiment_id, [cycle])
        records = await self._chains.records(
            experiment_id, self._deadline(), after=line.sequence, limit=line.parts
        )  # fmt: skip
        return SealedTrace(line, experiment.trace_in(records, line), state.definition, replayed=True)

    async def _lines(self, experiment_id: str, numbers: Sequence[int]) -> list[DecidedCycle]:
        found = await self._states.cycles(experiment_id, numbers)
        if any(one is None for one in found):
            await self._restored(experiment_id)
            found = await self._states.cycles(experiment_id, numbers)
        return [one for one in found if one is not None]

    async def _changed(self, experiment_id: str, change: Change) -> None:
        async with self._lock(experiment_id):
            held = await self._state(experiment_id)
            try:
                state, records = change(held)
            except Refused:
                if (caught_up := await self._caught_up(experiment_id, held)) is held:
                    raise
                state, records = change(caught_up)
            if records:
                await self._sealed(experiment_id, state, records, refuse_others=True)

    async def _state(self, experiment_id: str, *, at_least: int = 0) -> ExperimentState:
        """Return the state. A store that knows less than the caller does may have lost something: then the chain is asked."""
        found = await self._found(experiment_id)
        if found is not None and found.cycle < at_least:
            found = await self._restored(experiment_id)
        if found is None:
            raise not_found("DECISION_EXPERIMENT_NOT_FOUND", "there is no experiment of this name for this caller")
        return found

    async def _caught_up(self, experiment_id: str, held: ExperimentState) -> ExperimentState:
        """Return what the chain says where it has gone on since a state; else the state itself."""
        if await self._chains.records(experiment_id, self._deadline(), after=held.sequence, limit=1):
            return await self._restored(experiment_id) or held
        return held

    async def _found(self, experiment_id: str) -> ExperimentState | None:
        return await self._states.state(experiment_id) or await self._restored(experiment_id)

    async def _sealed(
        self,
        experiment_id: str,
        state: ExperimentState,
        records: Sequence[DecisionRecord],
        *,
        refuse_others: bool = False,
    ) -> ExperimentState:
        """Seal records and keep the state after them. Where the chain went on without them, keep what it says."""
        try:
            await failpoints.reached("decision.before_seal")
            await self._chains.seal(experiment_id, records, self._deadline())
            await failpoints.reached("decision.after_seal")
        except Refused as refused:
            if refused.reason != CONFLICT:
                raise
            found = await self._restored(experiment_id)
            if refuse_others or found is None:
                raise
            return found
        cycles = [experiment.cycle_of(one) for one in records if one.type == "DECISION_CYCLE"]
        try:
            await self._states.put(experiment_id, state, cycles)
        except Refused as refused:  # it is sealed, and so it is done: the store will be made what the chain says
            log.warning("decision.not_kept", experiment_id=experiment_id, reason=refused.reason)
        return state

    async def _restored(self, experiment_id: str) -> ExperimentState | None:
        """Make the store what the chain says; ``None`` where the log does not know the experiment."""
        records = await self._chains.records(experiment_id, self._deadline())
        if not records:
            return None
        state, cycles = await asyncio.to_thread(experiment.folded, records)
        await self._states.put(experiment_id, state, cycles, anew=True)
        log.info("decision.restored", experiment_id=experiment_id, records_count=len(records))
        return state

    def _deadline(self) -> Deadline:
        return Deadline(self._timeout_s)

    def _lock(self, experiment_id: str) -> asyncio.Lock:
        return self._locks.setdefault(experiment_id, asyncio.Lock())

"""The peer's ``SafetyKernel`` over Interlock's: one budget, one state, one trace for any number of processes (KRN-8)."""

from __future__ import annotations

import contextlib
import math
import os
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from interlock.client.errors import InterlockError
from interlock.client.kernel.calls import (
    TYPES,
    KernelCalls,
    kind_of,
    micros,
    number,
    state_of,
    value_json,
)
from interlock.client.kernel.emergencies import emergency, recorded_at_ms
from interlock.client.kernel.lease import Lease
from interlock.client.kernel.model import (
    ActionSpec,
    CheckResult,
    Effect,
    Invariant,
    SafetyVerdict,
    State,
    TraceEntry,
    verdict_of,
)
from interlock.client.kernel.permits import Permits
from interlock.client.kernel.saga import Saga, compensate
from interlock.client.kernel.turns import Turns

RESOURCE = "budget"

_MODE_KINDS = {"increment": "n", "decrement": "n", "multiply": "n", "append": "l", "remove": "l"}

Precondition = Callable[[State, ActionSpec], tuple[bool, str]]


class Budget:
    """The budget as it stands in the kernel; every reading asks."""

    def __init__(self, read: Callable[[], Mapping[str, Any]]) -> None:
        self._read = read

    def _figure(self, name: str) -> float:
        return number(self._read()[f"{name}_micros"])

    @property
    def budget(self) -> float:
        """The limit."""
        return self._figure("limit")

    @property
    def spent_gross(self) -> float:
        """All that was ever charged."""
        return self._figure("gross")

    @property
    def spent_refunded(self) -> float:
        """All that was given back."""
        return self._figure("refunded")

    @property
    def spent_net(self) -> float:
        """What is spent."""
        told = self._read()
        return number(int(told["gross_micros"]) - int(told["refunded_micros"]))

    @property
    def remaining(self) -> float:
        """What can still be spent."""
        return self._figure("remaining")


class SafetyKernel:
    """Every action of an agent passes through here. Objects of one name share budget, state and trace, in whatever process.

    *name* comes from INTERLOCK_KERNEL where it is absent; without either the object has a kernel of its own. The sidecar is found
    as ``interlock.client`` finds it. The kernel is opened at its first use: the state of that call gives the first values.
    """

    def __init__(
        self,
        budget: float,
        invariants: Sequence[Invariant] = (),
        *,
        min_action_cost: float = 0.001,
        emergency_actions: set[str] | None = None,
        name: str = "",
        base_url: str = "",
        api_key: str = "",
        calls: KernelCalls | None = None,
    ) -> None:
        if not min_action_cost > 0:
            raise ValueError(f"min_action_cost must be > 0 for T2 (termination), got {min_action_cost}")
        if not (math.isfinite(budget) and budget >= 0):
            raise ValueError(f"Budget must be ≥ 0, got {budget}")
        self.invariants, self.min_action_cost = list(invariants), min_action_cost
        self.emergency_actions = set(emergency_actions or ())
        self.max_steps = micros(budget) // micros(min_action_cost)
        self.name = name or os.environ.get("INTERLOCK_KERNEL", "") or f"own-{uuid.uuid4().hex}"
        self.calls = calls or KernelCalls(base_url, api_key=api_key)
        self.budget = Budget(self._resource)
        self._limit = micros(budget)
        self._preconditions: list[Precondition] = []
        self._child = ""
        self._lock = threading.Lock()
        self._opened = False
        self._known: dict[str, ActionSpec] = {}
        self._kinds: dict[str, str] = {}
        self._executed: dict[str, list[str]] = {}
        self.permits = Permits(self.calls, self.name)

    def evaluate(self, state: State, action: ActionSpec) -> SafetyVerdict:
        """Check an action and commit nothing."""
        self.prepare(state, action)
        verdict = self._seen(action)[0]
        for fn in self._preconditions:
            held, why = fn(self.state(), action)
            verdict.checks.append(("Precondition", CheckResult.PASS if held else CheckResult.FAIL_PRECONDITION, why))
            verdict.approved = verdict.approved and held
        return verdict

    def execute(self, state: State, action: ActionSpec, reasoning_summary: str = "") -> tuple[State, TraceEntry]:
        """Check, charge and commit in one step. Raises ``RuntimeError`` with every reason of a rejection."""
        return self.evaluate_and_execute_atomic(state, action, reasoning_summary)

    def evaluate_and_execute_atomic(
        self, state: State, action: ActionSpec, reasoning_summary: str = ""
    ) -> tuple[State, TraceEntry]:
        """Check, charge and commit in one step, over all processes. Raises ``RuntimeError`` with every reason of a rejection."""
        return self.execute_in("", state, action, reasoning_summary)

    def execute_in(
        self, saga: str, state: State, action: ActionSpec, reasoning_summary: str = ""
    ) -> tuple[State, TraceEntry]:
        """Do the same as a step of a saga (``Saga``); empty: of none."""
        if action.id not in self.emergency_actions:
            self.prepare(state, action)
        told, _ = self.decide(action, saga=saga, state=state)
        verdict = verdict_of(told, action)
        if not verdict.approved:
            raise RuntimeError(
                f"SAFETY VIOLATION: atomic execution failed for {action.id}. Reasons: {verdict.rejection_reasons}"
            )
        recorded = recorded_at_ms(told)  # the kernel cannot be read then, and an emergency action changes nothing
        after = state if recorded else self.state()
        return after, TraceEntry(
            int(told["sequence"]), action.id, action.name, state.fingerprint, after.fingerprint, action.cost, time.time(),
            approved=True, reasoning_summary=reasoning_summary, recorded_at_ms=recorded,
        )  # fmt: skip

    def decide(
        self, action: ActionSpec, ask: str = "execute", *, saga: str = "", state: State | None = None
    ) -> tuple[Mapping[str, Any], str]:
        """Execute or permit an action that is registered; return the verdict, and the key that names it.

        A permit that is not answered is taken back: whoever is not told does not act.
        """
        if action.id in self.emergency_actions:
            return self._emergency(action, state or State({}))
        key = uuid.uuid4().hex
        asking = self.permits.asking(key) if ask == "permit" else contextlib.nullcontext()
        with asking, Turns(self.calls, self.name) as turns:
            told = self._tried(action, ask, key, saga, turns)
        if told["approved"]:
            self._executed.setdefault(action.id, []).append(key)
        return told, key

    def _tried(self, action: ActionSpec, ask: str, key: str, saga: str, turns: Turns) -> Mapping[str, Any]:
        """Ask until it is decided, and return the verdict."""
        while True:
            try:
                body = {"action": action.id, "key": key, "saga": saga, "child": self._child, "ticket": turns.ticket}
                told: Mapping[str, Any] = self.calls.post(self.name, ask, body | self._held(action))["verdict"]
            except InterlockError as refused:
                turns.refused(refused)
            else:
                return told

    def rollback(self, state_before: State, state_after: State, action: ActionSpec) -> State:
        """Undo the last execution of an action by this object, refund it, and return the state as it is then.

        Raises ``RuntimeError`` where others built on it in a way that cannot be undone apart.
        """
        del state_before, state_after
        with self._lock:
            if not self._executed.get(action.id):
                raise RuntimeError(f"{action.id} was not executed by this kernel object, or was rolled back")
            execution = self._executed[action.id].pop()
        body = {"executions": [execution], "key": uuid.uuid4().hex}
        told = self.calls.post(self.name, "rollback", body)["verdict"]
        if not told["approved"]:
            raise RuntimeError(
                f"{action.id} cannot be rolled back: {[one['words'] for one in told['checks'] if one['words']]}"
            )
        return self.state()

    def add_precondition(self, fn: Precondition) -> None:
        """Check something else here before each action, on the version that it is committed on."""
        self._preconditions.append(fn)

    def register_emergency_action(self, action_id: str) -> None:
        """Make an action an emergency action. Raises ``ValueError`` after its first use: what is registered never changes."""
        with self._lock:
            if action_id in self._known and action_id not in self.emergency_actions:
                raise ValueError(f"{action_id} was registered as an action that costs and has effects")
            self.emergency_actions.add(action_id)

    def lease(self, *, wanted: float = 0.0, lifetime_s: float = 30.0) -> Lease:
        """Return a slice of the budget to spend without a round trip (docs/kernel.md has when)."""
        self.prepare(State({}), None)
        return Lease(self.calls, self.name, RESOURCE, wanted=wanted, lifetime_s=lifetime_s, child=self._child)

    def child(self, name: str, budget: float) -> SafetyKernel:
        """Return a part of this kernel with a budget of its own: what it spends is spent here too, in one step (KRN-6).

        State, invariants, actions and trace are shared. A child of that name that is there must have the same budget and parent.
        """
        self.prepare(State({}), None)
        limits = [{"resource": RESOURCE, "micros": str(micros(budget))}]
        body = {"child": name, "parent": self._child, "limits": limits, "key": uuid.uuid4().hex}
        told = self.calls.post(self.name, "open-child", body)["verdict"]
        if not told["approved"]:
            raise RuntimeError(f"SAFETY VIOLATION: {name}. Reasons: {verdict_of(told, None).rejection_reasons}")
        made = SafetyKernel(
            number(self._limit), self.invariants, min_action_cost=self.min_action_cost,
            emergency_actions=self.emergency_actions, name=self.name, calls=self.calls,
        )  # fmt: skip
        made._child = name
        return made

    def stop(self, action: ActionSpec) -> None:
        """Do an emergency action, and permit nothing more here and below, for good; also while the kernel cannot be reached."""
        self._emergency(action, State({}), stop=True)

    def _emergency(self, action: ActionSpec, state: State, *, stop: bool = False) -> tuple[Mapping[str, Any], str]:
        def register() -> None:
            self.prepare(state, action)

        return emergency(self.calls, self.name, action.id, register, child=self._child, stop=stop)

    def saga(self, *, lifetime_s: float = 60.0) -> Saga:
        """Return steps that are undone together (docs/kernel.md has when)."""
        self.prepare(State({}), None)
        return Saga(self, lifetime_s=lifetime_s)

    def compensate(self, handlers: Mapping[str, Callable[[str], Any]], *, lifetime_s: float = 30.0) -> int:
        """Make up for the steps of sagas that were rolled back, as far as they are due; return for how many.

        *handlers* are by action; each gets the step's key, under which it has to be idempotent, and has *lifetime_s* for it. One that
        raises is tried again later, by whoever asks then.
        """
        self.prepare(State({}), None)
        return compensate(self.calls, self.name, handlers, lifetime_s=lifetime_s)

    def state(self) -> State:
        """Return the state as it is in the kernel."""
        return State(state_of(self.calls.describe(self.name)["state"]))

    @property
    def step_count(self) -> int:
        """Steps that all processes took."""
        return int(self.calls.describe(self.name)["steps"])

    def status(self) -> str:
        """Return the kernel in one line."""
        shown = self.calls.describe(self.name)
        told = self._resource()
        spent = number(int(told["gross_micros"]) - int(told["refunded_micros"]))
        return (
            f"SafetyKernel {self.name}: step={shown['steps']}/{self.max_steps} | spent {spent} of {self.budget.budget}"
        )

    def close(self) -> None:
        """Close the connections; the kernel stays."""
        self.calls.close()

    def _resource(self) -> Mapping[str, Any]:
        self.prepare(State({}), None)
        shown = self.calls.describe(self.name)
        parts = [shown, *(one for one in shown["children"] if self._child and one["name"] == self._child)]
        found: Mapping[str, Any] = parts[-1]["resources"][0]
        return found

    def _seen(self, action: ActionSpec) -> tuple[SafetyVerdict, int, list[dict[str, Any]]]:
        """Return the verdict with the predicates of this process, the version that it holds on, and what they said."""
        told = self.calls.post(self.name, "evaluate", {"action": action.id, "child": self._child})
        after, version = State(state_of(told["state_after"])), int(told["verdict"]["version"])
        verdict, said = verdict_of(told["verdict"], action, after), []
        for one in self.invariants:
            if not one.local:
                continue
            holds, why = one.check(after)
            said.append({"name": one.name, "hash": one.digest, "holds": holds})
            result = CheckResult.PASS if holds else CheckResult.FAIL_INVARIANT
            verdict.checks.append((f"Invariant:{one.name}", result, "holds" if holds else f"[{one.enforcement}] {why}"))
            verdict.approved = verdict.approved and (holds or one.enforcement != "blocking")
        return verdict, version, said

    def _held(self, action: ActionSpec) -> dict[str, Any]:
        """Return version and predicates where something is evaluated here."""
        if not any(one.local for one in self.invariants) and not self._preconditions:
            return {}
        shown = self.calls.describe(self.name) if self._preconditions else {}
        for fn in self._preconditions:
            held, why = fn(State(state_of(shown["state"])), action)
            if not held:
                raise RuntimeError(f"SAFETY VIOLATION: {action.id}. Reasons: {(why,)}")
        _, version, said = self._seen(action)
        if shown and int(shown["version"]) != version:
            version = int(shown["version"])  # of the earlier state: the kernel refuses it, and all is evaluated again
        return {"version": version, "predicates": said}

    def prepare(self, state: State, action: ActionSpec | None) -> None:
        """Open or join the kernel, and register what is new: variables of the state, and the action."""
        with self._lock:
            kinds = {name: kind for one in self.invariants for name, kind in one.variables.items()}
            kinds |= {name: kind_of(value) for name, value in state.to_dict().items() if value is not None}
            new_action = action if action is not None and self._known.get(action.id) != action else None
            if self._opened and not new_action and kinds.keys() <= self._kinds.keys():
                return
            wanted = dict(kinds)
            for effect in _effects(new_action):
                if effect.variable not in wanted and effect.variable not in self._kinds:
                    wanted[effect.variable] = _kind(effect)
            variables = self._kinds | wanted
            new = [one for one in (new_action, new_action and new_action.compensation) if one]
            body = self._definition(variables, state, new)
            self.calls.post(self.name, "open", {"definition": body})
            self._opened, self._kinds = True, variables
            if new_action:
                self._known[new_action.id] = new_action

    def _definition(self, kinds: Mapping[str, str], state: State, actions: Sequence[ActionSpec]) -> dict[str, Any]:
        least = micros(self.min_action_cost)
        return {
            "resources": [{"name": RESOURCE, "limit_micros": str(self._limit), "min_cost_micros": str(least)}],
            "variables": [
                {"name": name, "type": TYPES[kind], **({"initial": value_json(state.get(name))} if state.get(name) is not None else {})}
                for name, kind in kinds.items()
            ],
            "invariants": [_invariant(one) for one in self.invariants],
            "actions": [self._action(one) for one in actions],
            "open_registry": True,
        }  # fmt: skip

    def _action(self, action: ActionSpec) -> dict[str, Any]:
        if action.id in self.emergency_actions:
            return {"id": action.id, "name": action.name[:200], "emergency": True}
        return {
            "id": action.id,
            "name": action.name[:200],
            "effects": [_effect(one) for one in action.effects],
            "costs": [{"resource": RESOURCE, "micros": str(micros(action.cost))}] if action.cost else [],
            "irreversible": not action.reversible,
            **({"compensation": action.compensation.id} if action.compensation else {}),
        }


def _effects(action: ActionSpec | None) -> tuple[Effect, ...]:
    if action is None:
        return ()
    return action.effects + (action.compensation.effects if action.compensation else ())


def _kind(effect: Effect) -> str:
    if effect.mode == "set":
        return kind_of(effect.value)
    return _MODE_KINDS.get(effect.mode, "s")


def _effect(effect: Effect) -> dict[str, Any]:
    if effect.mode not in {"set", "delete", *_MODE_KINDS}:
        raise ValueError(f"Unknown effect mode: {effect.mode!r}")
    value = {} if effect.mode == "delete" else {"value": value_json(effect.value)}
    return {"variable": effect.variable, "mode": f"EFFECT_MODE_{effect.mode.upper()}", **value}


def _invariant(one: Invariant) -> dict[str, Any]:
    return {
        "name": one.name,
        "enforcement": f"ENFORCEMENT_{one.enforcement.upper()}",
        "suggestion": (one.suggestion or "")[:500],
        **(
            {"predicate_hash": one.digest}
            if one.local
            else {"cel": one.cel}
            if one.cel
            else {"expression": one.expression}
        ),
    }

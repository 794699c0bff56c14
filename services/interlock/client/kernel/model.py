"""The peer's words: states, effects, actions, invariants, verdicts. The names and signatures are those of ``clampai.formal``."""

from __future__ import annotations

import copy
import hashlib
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum, auto
from types import CodeType, MappingProxyType
from typing import Any


class State:
    """An immutable state: what a caller hands in is a hint, what it gets back is the kernel's own."""

    __slots__ = ("_json", "_vars")

    def __init__(self, variables: Mapping[str, Any]) -> None:
        held = {name: copy.deepcopy(variables[name]) for name in sorted(variables)}
        object.__setattr__(self, "_vars", MappingProxyType(held))
        object.__setattr__(self, "_json", json.dumps(held, sort_keys=True, default=_plain))

    def __setattr__(self, *_: object) -> None:
        raise AttributeError("State is immutable")

    def __delattr__(self, *_: object) -> None:
        raise AttributeError("State is immutable")

    def get(self, key: str, default: Any = None) -> Any:
        """Return a copy of a variable's value."""
        return copy.deepcopy(self._held.get(key, default))

    def keys(self) -> list[str]:
        """Return the names of the variables."""
        return list(self._held)

    def to_dict(self) -> dict[str, Any]:
        """Return a copy of all variables."""
        return copy.deepcopy(dict(self._held))

    def has(self, key: str) -> bool:
        """Tell whether there is a variable of that name."""
        return key in self._held

    def with_updates(self, updates: Mapping[str, Any]) -> State:
        """Return a state with some variables changed."""
        return State({**self.to_dict(), **updates})

    def without_keys(self, keys: set[str]) -> State:
        """Return a state without some variables."""
        return State({name: value for name, value in self._held.items() if name not in keys})

    def diff(self, other: State) -> dict[str, tuple[Any, Any]]:
        """Return what differs: name to the two values."""
        names = set(self._held) | set(other.keys())
        return {name: (self.get(name), other.get(name)) for name in names if self.get(name) != other.get(name)}

    def describe(self, max_keys: int = 20) -> str:
        """Return the state in words."""
        lines = [f"  {name} = {value!r:.80}" for name, value in list(self._held.items())[:max_keys]]
        more = [f"  ... and {len(self._held) - max_keys} more"] if len(self._held) > max_keys else []
        return "\n".join(["State:", *lines, *more])

    @property
    def json(self) -> str:
        """The state as canonical JSON."""
        return str(object.__getattribute__(self, "_json"))

    @property
    def fingerprint(self) -> str:
        """The first 16 hex digits of the state's SHA-256."""
        return hashlib.sha256(self.json.encode()).hexdigest()[:16]

    @property
    def _held(self) -> Mapping[str, Any]:
        held: Mapping[str, Any] = object.__getattribute__(self, "_vars")
        return held

    def __hash__(self) -> int:
        return hash(self.json)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self.json == other.json

    def __repr__(self) -> str:
        return f"State({dict(self._held)})"


def _plain(value: Any) -> Any:
    return sorted(value, key=repr) if isinstance(value, set | frozenset) else str(value)


@dataclass(frozen=True)
class Effect:
    """A change of one variable: set, increment, decrement, multiply, append, remove or delete."""

    variable: str
    mode: str
    value: Any = None


@dataclass(frozen=True)
class ActionSpec:
    """What an agent may do, as data. It is registered with the kernel at its first use, and never changes after.

    *compensation* makes up for it in the world when its saga is rolled back; it costs nothing. The peer does not have it.
    """

    id: str
    name: str
    description: str = ""
    effects: tuple[Effect, ...] = ()
    cost: float = 0.0
    category: str = "general"
    risk_level: str = "low"
    reversible: bool = True
    preconditions_text: str = ""
    postconditions_text: str = ""
    estimated_duration_s: float = 0.0
    tags: tuple[str, ...] = ()
    compensation: ActionSpec | None = None

    def __post_init__(self) -> None:
        if not self.id:
            raise ValueError("Action must have a non-empty ID")
        if not self.cost >= 0:
            raise ValueError(f"Action cost must be ≥ 0, got {self.cost}")
        if self.compensation is not None and (self.compensation.cost or self.compensation.compensation):
            raise ValueError("A compensation costs nothing, and has none of its own")

    def affected_variables(self) -> set[str]:
        """Return the names of the variables that it changes."""
        return {one.variable for one in self.effects}

    def to_llm_text(self) -> str:
        """Return the action for a model's prompt."""
        effects = ", ".join(f"{one.variable}←{one.mode}({one.value})" for one in self.effects)
        cost = f"cost=${self.cost:.2f}  risk={self.risk_level}  reversible={self.reversible}"
        more = (("requires: ", self.preconditions_text), ("ensures:  ", self.postconditions_text))
        told = [f"{name}{text}" for name, text in more if text]
        return "\n  ".join([f"[{self.id}] {self.name}", self.description, cost, *told, f"effects:  [{effects}]"])

    def to_compact_text(self) -> str:
        """Return the action in one line."""
        return f"[{self.id}] {self.name} (${self.cost:.2f}, {self.risk_level})"


class Invariant:
    """A condition on every state: a predicate of the caller's process, or an *expression* or condition in *cel* that the kernel evaluates.

    A predicate that raises, or takes longer than *max_eval_ms*, does not hold. An expression needs no second round trip and cannot be
    raced; CEL says more, and is evaluated in the session service (docs/kernel.md). A predicate next to either serves ``check`` alone.
    *variables* are the types (n, s, b, l or u) of what the expression speaks of, for a kernel whose first state lacks it.
    """

    def __init__(
        self,
        name: str,
        predicate: Callable[[State], bool] | None = None,
        description: str = "",
        *,
        severity: str = "critical",
        enforcement: str | None = None,
        suggestion: str | None = None,
        expression: str = "",
        variables: Mapping[str, str] | None = None,
        max_eval_ms: float | None = None,
        cel: str = "",
    ) -> None:
        if (predicate is None and not expression and not cel) or (expression and cel):
            raise ValueError("an invariant has a predicate, an expression or a condition in CEL")
        if enforcement not in {None, "blocking", "monitoring"}:
            raise ValueError(f"Invariant enforcement must be 'blocking' or 'monitoring', got {enforcement!r}")
        self.name, self.predicate, self.expression, self.cel = name, predicate, expression, cel
        self.description, self.suggestion, self.severity = description or name, suggestion, severity
        self.enforcement = enforcement or ("blocking" if severity == "critical" else "monitoring")
        self.variables, self.max_eval_ms = dict(variables or {}) if expression or cel else {}, max_eval_ms
        self.violation_count = 0

    @property
    def local(self) -> bool:
        """Whether this process evaluates it, not the kernel."""
        return not self.expression and not self.cel

    def check(self, state: State) -> tuple[bool, str]:
        """Evaluate the predicate here; (holds, why not)."""
        if self.predicate is None:
            raise ValueError("the kernel evaluates this one")
        predicate = self.predicate
        try:
            holds = bool(within(lambda: predicate(state), self.max_eval_ms))
            why = "" if holds else f"Invariant '{self.name}' VIOLATED"
        except TimeoutError:
            holds, why = False, f"Invariant '{self.name}' timed out after {self.max_eval_ms} ms"
        except Exception as error:  # noqa: BLE001 - a predicate that raises does not hold
            holds, why = False, f"Invariant '{self.name}' raised exception: {error}"
        self.violation_count += not holds
        advice = f" — suggestion: {self.suggestion}" if why and self.suggestion else ""
        return holds, why + advice

    def to_llm_text(self) -> str:
        """Return the rule for a model's prompt."""
        advice = f"\n  SUGGESTION: {self.suggestion}" if self.suggestion else ""
        return f"SAFETY RULE [{self.enforcement}/{self.severity}]: {self.description}{advice}"

    @property
    def digest(self) -> str:
        """Hash of the predicate's code, by which processes know that they carry the same one; empty for an expression."""
        if not self.local:
            return ""
        return hashlib.sha256(repr(_code_of(self.predicate)).encode()).hexdigest()


def within(call: Callable[[], Any], most_ms: float | None) -> Any:
    """Return what *call* returns. Raises ``TimeoutError`` after *most_ms*; its thread is left behind, and ends with the process."""
    if most_ms is None:
        return call()
    ended: list[Any] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            ended.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again by who waits
            failed.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(most_ms / 1000)
    if failed:
        raise failed[0]
    if not ended:
        raise TimeoutError
    return ended[0]


def _code_of(function: Any) -> Any:
    """Return what a function does, as far as it can be told: its code and what it closes over."""
    code = getattr(function, "__code__", None)
    if code is None:
        kind = type(function)
        return (getattr(function, "__module__", kind.__module__), getattr(function, "__qualname__", kind.__qualname__))
    cells = [_told(cell.cell_contents) for cell in function.__closure__ or ()]
    return _steps_of(code), cells, [_told(one) for one in function.__defaults__ or ()]


def _told(value: Any) -> Any:
    if isinstance(value, set | frozenset):
        return sorted(map(repr, value))  # in an order that no process chooses
    if isinstance(value, dict):
        return [(repr(name), _told(held)) for name, held in value.items()]
    return _code_of(value) if callable(value) and not isinstance(value, type) else repr(value)


def _steps_of(code: CodeType) -> Any:
    constants = [_steps_of(one) if isinstance(one, CodeType) else _told(one) for one in code.co_consts]
    return code.co_code.hex(), constants, code.co_names, code.co_varnames


class CheckResult(Enum):
    """How a check ended."""

    PASS = auto()
    FAIL_BUDGET = auto()
    FAIL_INVARIANT = auto()
    FAIL_TERMINATION = auto()
    FAIL_PRECONDITION = auto()


_RESULTS = {
    "budget": CheckResult.FAIL_BUDGET,
    "min_cost": CheckResult.FAIL_TERMINATION,
    "steps": CheckResult.FAIL_TERMINATION,
    "invariant": CheckResult.FAIL_INVARIANT,
    "predicate": CheckResult.FAIL_INVARIANT,
}


@dataclass
class SafetyVerdict:
    """Every check of one action."""

    approved: bool
    checks: list[tuple[str, CheckResult, str]]
    simulated_next_state: State | None = None
    cost: float = 0.0
    for_model: str = ""

    @property
    def rejection_reasons(self) -> tuple[str, ...]:
        """What failed, in words."""
        return tuple(why for _, result, why in self.checks if result is not CheckResult.PASS)

    def summary(self) -> str:
        """Return the verdict in lines."""
        lines = [
            f"  [{'ok' if result is CheckResult.PASS else '--'}] {name}: {why}" for name, result, why in self.checks
        ]
        return "\n".join([f"Safety Verdict: {'APPROVED' if self.approved else 'REJECTED'}", *lines])


@dataclass(frozen=True)
class TraceEntry:
    """One record of the kernel's trace, as this process knows it; the chain itself is in the audit service."""

    step: int
    action_id: str
    action_name: str
    state_before_fp: str
    state_after_fp: str
    cost: float
    timestamp: float
    approved: bool
    rejection_reasons: tuple[str, ...] = ()
    reasoning_summary: str = field(default="", repr=False)
    recorded_at_ms: int = 0
    """Of an emergency action that the sidecar recorded while the kernel could not be reached: when; it is not sealed yet. 0: it is sealed."""


def verdict_of(told: Mapping[str, Any], action: ActionSpec | None, after: State | None = None) -> SafetyVerdict:
    """Return a kernel's verdict in the peer's form."""
    return SafetyVerdict(
        approved=told["approved"], checks=checks_of(told["checks"]), simulated_next_state=after, cost=action.cost if action else 0.0,
        for_model=told["for_model"],
    )  # fmt: skip


def checks_of(checks: Sequence[Mapping[str, Any]]) -> list[tuple[str, CheckResult, str]]:
    """Return checks in the peer's form."""
    return [(one["name"], _result(one), one["words"] or "holds") for one in checks]


def _result(check: Mapping[str, Any]) -> CheckResult:
    if check["passed"]:
        return CheckResult.PASS
    return _RESULTS.get(check["name"].partition(":")[0], CheckResult.FAIL_PRECONDITION)

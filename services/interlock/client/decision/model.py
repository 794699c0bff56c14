"""What an author of an agent handles: a snapshot to read, signals, proposals, and the agent itself (SEED-5 §2, §5, §6)."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol

from interlock.api.decision.v1 import decision_pb2
from interlock.domain.decision.agents import AgentDescriptor
from interlock.domain.decision.words import ActionRisk


@dataclass(frozen=True, kw_only=True)
class Signal:
    """An observation. Of a signal to emit, *source*, *timestamp* and *id* are filled in by the runner."""

    type: str
    payload: Mapping[str, Any]
    confidence: float
    """From 0 to 1."""
    source: str = ""
    timestamp: float = 0.0
    """Seconds since the epoch."""
    id: str = ""

    @classmethod
    def of(cls, message: decision_pb2.Signal) -> Signal:
        """Read a message."""
        return cls(
            type=message.type, payload=_frozen(json.loads(message.payload_json)), confidence=message.confidence,
            source=message.source, timestamp=message.timestamp, id=message.id,
        )  # fmt: skip

    def message(self, source: str) -> decision_pb2.Signal:
        """Return it as a message of *source*. Raises ``ValueError`` for a payload that is no JSON."""
        return decision_pb2.Signal(
            type=self.type, source=self.source or source, timestamp=self.timestamp or time.time(),
            payload_json=_json(self.payload), confidence=self.confidence,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class DecisionProposal:
    """What an agent wants done, and why. It decides nothing."""

    action_type: str
    target: str
    rationale: str
    """Why; mandatory, at most 1,000 characters."""
    confidence: float
    expected_effect: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    risk_level: ActionRisk = ActionRisk.LOW
    signals_used: Sequence[str] = ()
    """Ids of the signals that it rests on."""
    window_id: str = ""
    """The governed call that a model made it with; empty: no model was asked."""
    model_risk: str = ""
    """The risk that the guard found in that answer: LOW, MEDIUM, HIGH or CRITICAL."""
    id: str = ""

    def message(self, agent: str) -> decision_pb2.Proposal:
        """Return it as a message of *agent*. Raises ``ValueError`` for parameters that are no JSON."""
        return decision_pb2.Proposal(
            id=self.id, agent=agent, action_type=self.action_type, target=self.target, rationale=self.rationale,
            parameters_json=_json(self.parameters), expected_effect=self.expected_effect, confidence=self.confidence,
            risk_level=self.risk_level.name, signals_used=self.signals_used, window_id=self.window_id,
            model_risk=self.model_risk,
        )  # fmt: skip


class ExperimentSnapshot(Mapping[str, Any]):
    """The state of the experiment in one cycle, to be read: nothing in it can be set."""

    def __init__(self, state: Mapping[str, Any], *, cycle: int = 0, deadline: float = float("inf")) -> None:
        """*deadline*: by ``time.monotonic``."""
        self._state: Mapping[str, Any] = _frozen(state)
        self.cycle = cycle
        self._deadline = deadline

    @property
    def remaining_s(self) -> float:
        """Seconds until an answer counts for nothing; never below 0."""
        return max(0.0, self._deadline - time.monotonic())

    def __getitem__(self, name: str) -> Any:
        """Return a part of the state."""
        return self._state[name]

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names."""
        return iter(self._state)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._state)


Processed = tuple[Iterable[Signal], Iterable[DecisionProposal]]
"""What an agent makes of a cycle."""


class DecisionAgent(Protocol):
    """An agent: what it declares, and one method."""

    @property
    def descriptor(self) -> AgentDescriptor:
        """What it declares."""
        ...

    def process(
        self, state: ExperimentSnapshot, signals: Sequence[Signal], /
    ) -> Processed | Awaitable[Processed]:  # fmt: skip
        """Observe and propose. It is given the snapshot and the signals of the types that it declares; it may be a coroutine."""
        ...


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, allow_nan=False, default=_thawed)


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return dict(value)
    raise ValueError(f"{type(value).__name__} is no JSON")


def _frozen(value: Any) -> Any:
    """Return JSON as values that cannot be changed."""
    if isinstance(value, Mapping):
        return MappingProxyType({name: _frozen(one) for name, one in value.items()})
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value

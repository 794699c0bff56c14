"""The desks of this process: where an agent's task waits to be taken, and its answer to be read."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from interlock.domain.decision.words import Arrival
from interlock.domain.errors import conflict, unavailable

REMEMBERED = 32
"""Tasks of an agent whose late answers are told from answers to another cycle."""


@dataclass(frozen=True)
class AgentTask:
    """What an agent is asked in one cycle."""

    cycle: int
    snapshot: str
    snapshot_hash: str
    signals: tuple[Mapping[str, Any], ...]
    deadline_ms: int
    id: str = field(default_factory=lambda: secrets.token_hex(16))


@dataclass(frozen=True)
class DeskAnswer:
    """What an agent answered, as it came."""

    snapshot_hash: str
    signals: list[Any]
    proposals: list[Any]


class Desk:
    """The desk of one agent. One task lies on it at a time."""

    def __init__(self) -> None:
        self.faults: Counter[str] = Counter()
        """What came and counted for nothing, since the last cycle."""
        self._task: AgentTask | None = None
        self._taken = False
        self._answer: asyncio.Future[DeskAnswer] | None = None
        self._past: dict[str, str] = {}
        self._stream: object | None = None
        self._changed = asyncio.Event()
        self._leaving = False

    @property
    def is_connected(self) -> bool:
        """Whether the agent's stream is open."""
        return self._stream is not None

    async def asked(self, task: AgentTask) -> tuple[Arrival, DeskAnswer | None]:
        """Lay a task down, and return how its answer came until the deadline. Never raises for what the agent does."""
        self._task, self._taken = task, False
        self._answer = asyncio.get_running_loop().create_future()
        self._told()
        try:
            await asyncio.wait({self._answer}, timeout=task.deadline_ms / 1000)
            if self._answer.done():
                return Arrival.ANSWERED, self._answer.result()
            if not self._taken:
                return Arrival.ABSENT, None
            return (Arrival.LATE if self.is_connected else Arrival.LEFT), None
        finally:
            self._past[task.id] = "ANSWERED_TWICE" if self._answer.done() else "ANSWERED_LATE"
            self._past = dict([*self._past.items()][-REMEMBERED:])
            self._task = self._answer = None
            self._told()

    async def tasks(self) -> AsyncIterator[AgentTask]:
        """Yield the tasks of the agent.

        A newer stream ends this one with DECISION_AGENT_REPLACED, and the end of the process with DECISION_ENDING.
        """
        mine = self._stream = object()
        given = ""
        self._told()
        try:
            while True:
                changed = self._changed
                if self._stream is not mine:
                    raise conflict("DECISION_AGENT_REPLACED", "the agent opened another stream")
                if self._leaving and self._task is None:
                    raise unavailable("DECISION_ENDING", "this process ends; open the stream again")
                if self._task is not None and self._task.id != given:
                    given, self._taken = self._task.id, True
                    yield self._task
                    continue
                await changed.wait()
        finally:
            if self._stream is mine:
                self._stream = None

    def answer(self, task_id: str, answer: DeskAnswer) -> str:
        """Take an answer. Returns why it counts for nothing, which is counted; empty where it is taken."""
        open_task = self._task is not None and self._answer is not None and self._task.id == task_id
        if open_task and self._answer is not None and not self._answer.done():
            self._answer.set_result(answer)
            return ""
        fault = "ANSWERED_TWICE" if open_task else self._past.get(task_id, "ANSWERED_FOREIGN_CYCLE")
        self.faults[fault] += 1
        return fault

    def faults_since(self) -> dict[str, int]:
        """Return the faults since the last cycle, and begin anew."""
        found, self.faults = dict(sorted(self.faults.items())), Counter()
        return found

    def leave(self) -> None:
        """End the stream once no task is open."""
        self._leaving = True
        self._told()

    def _told(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class Desks:
    """The desks of all agents that this process knows."""

    def __init__(self) -> None:
        self._desks: dict[tuple[str, str], Desk] = {}
        self._leaving = False

    def desk(self, experiment_id: str, agent: str) -> Desk:
        """Return an agent's desk. Only for agents that are registered: desks are kept."""
        desk = self._desks.setdefault((experiment_id, agent), Desk())
        if self._leaving:
            desk.leave()
        return desk

    def leave(self) -> None:
        """End the streams of agents that have no open task, so that a stop need not wait for them."""
        self._leaving = True
        for desk in self._desks.values():
            desk.leave()

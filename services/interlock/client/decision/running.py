"""The run loop of an agent: it pulls its tasks over one stream, answers each before its deadline, and connects again.

What the agent itself does wrong stays here: an exception or a missed deadline is logged, nothing is answered, and the rules of its
role speak for it (SEED-5 §12).
"""

from __future__ import annotations

import asyncio
import inspect
import json
import logging
import os
import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import grpc

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.client.decision.model import DecisionAgent, ExperimentSnapshot, Processed, Signal
from interlock.client.decision.places import OPTIONS, TICKET, DecisionRefusedError, credentials, place, refusal

log = logging.getLogger("interlock.decision")

MARGIN = 0.1
"""Part of the deadline that is kept for the way back; 100 ms at most."""
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.05, 5.0
_LASTING = frozenset(
    {
        grpc.StatusCode.UNAUTHENTICATED,
        grpc.StatusCode.NOT_FOUND,
        grpc.StatusCode.PERMISSION_DENIED,
        grpc.StatusCode.INVALID_ARGUMENT,
        grpc.StatusCode.UNIMPLEMENTED,
    }
)
"""What another try does not mend."""


def run(agent: DecisionAgent, *, at: str = "", ticket: str = "", ca: Path | str | None = None) -> None:
    """Serve *agent* until the process ends. Raises ``DecisionRefusedError`` where no other try can help.

    *at* and *ticket* come from INTERLOCK_DECISION_AT and INTERLOCK_DECISION_TICKET where they are absent.
    """
    asyncio.run(arun(agent, at=at, ticket=ticket, ca=ca))


async def arun(agent: DecisionAgent, *, at: str = "", ticket: str = "", ca: Path | str | None = None) -> None:
    """Serve *agent* until it is cancelled; as ``run``."""
    held, pause = credentials(ca), FIRST_PAUSE_S
    ticket = ticket or os.environ.get(TICKET, "")
    channel = (
        grpc.aio.secure_channel(place(at), held, options=OPTIONS)
        if held
        else grpc.aio.insecure_channel(place(at), options=OPTIONS)
    )
    async with channel:
        desk = _Agent(agent, DecisionServiceStub(channel), ticket)
        while True:
            try:
                await desk.work()
            except grpc.aio.AioRpcError as error:
                refused = refusal(error)
                if error.code() in _LASTING or refused.reason == "DECISION_AGENT_REPLACED":
                    raise refused from None
                log.info("decision stream ended: %s", refused.reason)
            pause = FIRST_PAUSE_S if desk.has_worked else min(LONGEST_PAUSE_S, pause * 2)
            desk.has_worked = False
            await asyncio.sleep(pause * random.uniform(0.5, 1))  # noqa: S311 - spreads reconnects, keeps no secret


class _Agent:
    """One agent on one channel."""

    def __init__(self, agent: DecisionAgent, stub: Any, ticket: str) -> None:
        self._agent, self._stub, self._ticket = agent, stub, ticket
        self.has_worked = False

    async def work(self) -> None:
        """Answer tasks until the stream ends."""
        async for task in self._stub.Work(decision_pb2.WorkRequest(ticket=self._ticket), wait_for_ready=True):
            self.has_worked = True
            answer = await self._answered(task)
            if answer is not None:
                taken = await self._stub.Answer(answer, timeout=task.deadline_ms / 1000)
                if not taken.taken:
                    log.warning("answer to cycle %d counts for nothing: %s", task.cycle, taken.reason)

    async def _answered(self, task: decision_pb2.WorkResponse) -> decision_pb2.AnswerRequest | None:
        """Return the answer; ``None`` where the agent has none in time."""
        seconds = task.deadline_ms / 1000
        seconds -= min(0.1, seconds * MARGIN)
        try:
            state = ExperimentSnapshot(
                json.loads(task.snapshot_json), cycle=task.cycle, deadline=time.monotonic() + seconds
            )
            signals, proposals = await asyncio.wait_for(
                self._processed(state, [Signal.of(one) for one in task.signals]), seconds
            )
            name = self._agent.descriptor.name
            return decision_pb2.AnswerRequest(
                ticket=self._ticket, task_id=task.task_id, snapshot_hash=task.snapshot_hash,
                signals=[one.message(name) for one in signals], proposals=[one.message(name) for one in proposals],
            )  # fmt: skip
        except TimeoutError:
            log.warning("no answer to cycle %d within %.3f s", task.cycle, seconds)
        except Exception:
            log.exception("no answer to cycle %d", task.cycle)
        return None

    async def _processed(self, state: ExperimentSnapshot, signals: Sequence[Signal]) -> Processed:
        process = self._agent.process
        if inspect.iscoroutinefunction(process):
            found: Processed = await process(state, signals)
            return found
        # In a thread: a slow one must not keep the stream from the next task.
        result = await asyncio.to_thread(process, state, signals)
        return await result if inspect.isawaitable(result) else result


__all__ = ["DecisionRefusedError", "arun", "run"]

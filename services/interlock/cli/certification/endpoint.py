"""The decision endpoint of the kit: the desk and the streams of the real service, and a record of every call that no agent may make."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import grpc

from interlock.api.decision.v1 import decision_pb2, decision_pb2_grpc
from interlock.decision.agents.desks import AgentTask, Desk, DeskAnswer
from interlock.decision.messages import raw_proposal, raw_signal, signal_message
from interlock.domain.decision.words import Arrival
from interlock.domain.errors import Refused, unauthenticated
from interlock.runtime.rpc.errors import to_status

NEIGHBOUR = "neighbour"
_ALLOWED = frozenset({"Work", "Answer"})
_POLL_S = 0.02


class KitEndpoint(decision_pb2_grpc.DecisionServiceServicer):
    """Serves one agent. Use it as an async context manager: ``address`` is where it listens, on loopback alone."""

    def __init__(self) -> None:
        self.ticket, self.neighbours_ticket = secrets.token_hex(16), secrets.token_hex(16)
        self.trespasses: list[str] = []
        """What the agent did that no agent may do, in words."""
        self.faults: Counter[str] = Counter()
        """Answers that counted for nothing."""
        self._desk = Desk()
        self._server: grpc.aio.Server | None = None
        self.address = ""

    async def __aenter__(self) -> Self:
        """Listen."""
        self._server = grpc.aio.server(interceptors=[_Watch(self.trespasses)], options=[("grpc.so_reuseport", 0)])
        decision_pb2_grpc.add_DecisionServiceServicer_to_server(self, self._server)
        port = self._server.add_insecure_port("127.0.0.1:0")
        await self._server.start()
        self.address = f"127.0.0.1:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        """End every stream."""
        self._desk.leave()
        if self._server:
            await self._server.stop(0.2)

    async def asked(self, task: AgentTask) -> tuple[Arrival, DeskAnswer | None]:
        """Give the agent a task, and return how its answer came."""
        found = await self._desk.asked(task)
        self.faults.update(self._desk.faults_since())
        return found

    async def connected(self, timeout_s: float) -> bool:
        """Wait until the agent's stream is open."""
        try:
            async with asyncio.timeout(timeout_s):
                while not self._desk.is_connected:  # noqa: ASYNC110 - a desk tells nobody
                    await asyncio.sleep(_POLL_S)
        except TimeoutError:
            return False
        return True

    def drop(self) -> None:
        """End the agent's stream, as a service does that restarts."""
        self._desk.leave()
        self._desk = Desk()

    async def Work(self, request: decision_pb2.WorkRequest, context: Any) -> AsyncIterator[decision_pb2.WorkResponse]:  # noqa: N802
        """Stream the tasks of the agent."""
        try:
            async for task in self._own(request.ticket, "took the tasks of").tasks():
                yield decision_pb2.WorkResponse(
                    task_id=task.id, cycle=task.cycle, snapshot_json=task.snapshot, snapshot_hash=task.snapshot_hash,
                    signals=map(signal_message, task.signals), deadline_ms=task.deadline_ms,
                )  # fmt: skip
        except Refused as refused:
            await context.abort_with_status(to_status(refused))

    async def Answer(self, request: decision_pb2.AnswerRequest, context: Any) -> decision_pb2.AnswerResponse:  # noqa: N802
        """Take the answer to a task."""
        try:
            desk = self._own(request.ticket, "answered for")
        except Refused as refused:
            await context.abort_with_status(to_status(refused))
            raise
        answer = DeskAnswer(
            request.snapshot_hash, [raw_signal(one) for one in request.signals],
            [raw_proposal(one) for one in request.proposals],
        )  # fmt: skip
        reason = desk.answer(request.task_id, answer)
        return decision_pb2.AnswerResponse(taken=not reason, reason=reason)

    def _own(self, ticket: str, what: str) -> Desk:
        if secrets.compare_digest(ticket.encode(), self.ticket.encode()):
            return self._desk
        whose = "its neighbour" if ticket == self.neighbours_ticket else "nobody: the ticket is not its own"
        self.trespasses.append(f"it {what} {whose}")
        raise unauthenticated("DECISION_TICKET_INVALID", "this is no ticket of this agent")


class _Watch(grpc.aio.ServerInterceptor):
    """Writes down each call of a method that is not an agent's."""

    def __init__(self, trespasses: list[str]) -> None:
        self._trespasses = trespasses

    async def intercept_service(self, continuation: Any, details: Any) -> Any:
        method = details.method.rpartition("/")[2]
        if method not in _ALLOWED:
            self._trespasses.append(f"it called {method[:64]}")
        return await continuation(details)


def bait(endpoint: KitEndpoint) -> Mapping[str, str]:
    """Return what no agent may use: where a neighbour is, and its ticket."""
    return {"name": NEIGHBOUR, "address": endpoint.address, "ticket": endpoint.neighbours_ticket}

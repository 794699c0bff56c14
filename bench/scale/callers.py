"""Callers in a process of their own, since one Python process calls no faster than one sidecar answers: python -m bench.scale.callers

    {"ports": [...], "callers": 8, "seconds": 12.0, "asks": "dispatch"}        one turn: a line on standard input
    {"calls": 2031, "seconds": 12.01, "failed": 0, "errors": []}               what became of it: a line on standard output

Closed loop: each caller has one call in flight, in sessions of its own, that go on from turn to turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
import uvloop

from bench.sidecar import Agent
from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.sidecar.v1 import sidecar_pb2

TOLD = 5
"""Errors of a turn of which the text is told."""
SAID = "Revenue rose by 4 %."
CHAT = {"model": "m", "messages": [{"role": "user", "content": f"Revenue? SAY: {SAID}"}]}


Answer = TypeVar("Answer", sidecar_pb2.CheckResponse, sidecar_pb2.DispatchResponse)


class NotDelivered(Exception):
    """The answer was not handed out as it is."""


class Checking(Agent):
    """Has an answer checked that it already has."""

    async def check(self, token: str) -> sidecar_pb2.CheckResponse:
        return delivered(await super().check(token))


class Dispatching(Agent):
    """Has the provider asked by the sidecar."""

    async def check(self, token: str) -> sidecar_pb2.DispatchResponse:  # type: ignore[override]
        request = sidecar_pb2.DispatchRequest(
            context=sidecar_pb2.CallContext(session_token=token), chat_request=json.dumps(CHAT).encode(),
            facts=[common_pb2.Fact(id="f", content=SAID, importance=0.5)],
        )  # fmt: skip
        return delivered(await self.stub.Dispatch(request, timeout=10))


def delivered(answer: Answer) -> Answer:
    """Return *answer*, unless the policy did something else with it: such a call costs something else."""
    if (action := answer.outcome.decision.action) != policy_pb2.ACTION_DELIVER:
        raise NotDelivered(policy_pb2.Action.Name(action))
    return answer


ASKS = {"check": Checking, "dispatch": Dispatching}


@dataclass
class Turn:
    """What became of the calls of one process, or of all."""

    calls: int = 0
    seconds: float = 0.0
    failed: int = 0
    errors: list[str] = field(default_factory=list)


class Callers:
    """The callers of this process: as many for each sidecar as a turn asks for at most."""

    def __init__(self) -> None:
        self._agents: dict[tuple[int, str], list[Agent]] = {}

    async def turn(self, ports: Sequence[int], callers: int, seconds: float, asks: str) -> Turn:
        """Let *callers* call, spread over the sidecars at *ports*."""
        agents = list(itertools.islice(self._spread(ports, asks), callers))
        turn, began = Turn(), time.perf_counter()
        await asyncio.gather(*(self._call(one, turn, began + seconds) for one in agents))
        turn.seconds = time.perf_counter() - began
        return turn

    def _spread(self, ports: Sequence[int], asks: str) -> Iterator[Agent]:
        for number in itertools.count():
            for port in ports:
                known = self._agents.setdefault((port, asks), [])
                if len(known) <= number:
                    known.append(ASKS[asks](port))
                yield known[number]

    @staticmethod
    async def _call(agent: Agent, turn: Turn, end: float) -> None:
        while time.perf_counter() < end:
            try:
                await agent.call()
            except (grpc.aio.AioRpcError, NotDelivered) as error:
                agent.left, agent.token = 0, ""
                turn.failed += 1
                turn.errors = [*turn.errors, " ".join(f"{error}".split())][:TOLD]
            else:
                turn.calls += 1


class Client:
    """Such a process, seen from the one that started it."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "bench.scale.callers"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def begin(self, ports: Sequence[int], callers: int, seconds: float, asks: str) -> None:
        assert self.process.stdin
        asked = {"ports": ports, "callers": callers, "seconds": seconds, "asks": asks}
        print(json.dumps(asked), file=self.process.stdin, flush=True)

    def end(self) -> Turn:
        assert self.process.stdout
        return Turn(**json.loads(self.process.stdout.readline()))


@contextlib.contextmanager
def clients(count: int) -> Iterator[list[Client]]:
    """Give *count* client processes; they end with it."""
    started = [Client() for _ in range(count)]
    try:
        yield started
    finally:
        for one in started:
            one.process.kill()
            one.process.communicate()


async def serve() -> None:
    callers = Callers()
    while line := await asyncio.to_thread(sys.stdin.readline):
        print(json.dumps(vars(await callers.turn(**json.loads(line)))), flush=True)


if __name__ == "__main__":
    uvloop.run(serve())

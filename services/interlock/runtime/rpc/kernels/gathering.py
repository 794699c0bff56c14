"""Calls to one kernel that wait at the same time go out together, in the order in which they came."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextvars import Context, copy_context
from dataclasses import dataclass

from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.deadline import Deadline

MOST_TOGETHER = 32
"""The store answers nobody else while it decides a group: a few milliseconds."""

Answer = session_pb2.StepKernelResponse | Refused
Passing = Callable[[], None]
"""Lets the next group go out."""
Deciding = Callable[[str, Sequence[session_pb2.StepKernelRequest], Deadline, Passing], Awaitable[Sequence[Answer]]]


@dataclass(frozen=True)
class _Waiting:
    step: session_pb2.StepKernelRequest
    deadline: Deadline
    future: asyncio.Future[Answer]
    context: Context
    """Whose trace the group is part of, where this is the first one of it."""


class Gathering:
    """Has one group of steps of a kernel decided at a time; what comes meanwhile is the next one.

    A step that nobody waits for goes out alone and at once.
    """

    def __init__(self, decide: Deciding) -> None:
        self._decide = decide
        self._waiting: dict[str, list[_Waiting]] = {}
        """Kernels of which a group is out → who waits for it."""
        self._groups: set[asyncio.Task[None]] = set()

    async def step(
        self, kernel_id: str, step: session_pb2.StepKernelRequest, deadline: Deadline
    ) -> session_pb2.StepKernelResponse:
        """Return the answer to a step, all that it rests on sealed; or raise its refusal."""
        waiting = self._waiting.get(kernel_id)
        if waiting is None:
            self._waiting[kernel_id] = []
            [answer] = await self._decided(kernel_id, [step], deadline)
        else:
            one = _Waiting(step, deadline, asyncio.get_running_loop().create_future(), copy_context())
            waiting.append(one)
            answer = await one.future
        if isinstance(answer, Refused):
            raise answer
        return answer

    async def _decided(
        self, kernel_id: str, steps: Sequence[session_pb2.StepKernelRequest], deadline: Deadline
    ) -> Sequence[Answer]:
        passed = False

        def passing() -> None:
            nonlocal passed
            if not passed:
                passed = True
                self._next(kernel_id)

        try:
            return await self._decide(kernel_id, steps, deadline, passing)
        finally:
            passing()

    def _next(self, kernel_id: str) -> None:
        """Send the next group out. Who left, or whose time is over, is not in it: nothing was asked of the kernel yet."""
        waiting, group = self._waiting[kernel_id], list[_Waiting]()
        while waiting and len(group) < MOST_TOGETHER:
            one = waiting.pop(0)
            if not one.future.done() and one.deadline.left_s > 0:
                group.append(one)
            elif not one.future.done():
                one.future.set_result(Refused(Kind.TIMEOUT, "DEADLINE_EXCEEDED", "the deadline of the call has passed"))
        if not group:
            del self._waiting[kernel_id]
            return
        task = asyncio.create_task(self._group(kernel_id, group), context=group[0].context)
        self._groups.add(task)
        task.add_done_callback(self._groups.discard)

    async def _group(self, kernel_id: str, group: Sequence[_Waiting]) -> None:
        try:
            answers = await self._decided(kernel_id, [one.step for one in group], group[-1].deadline)
        except BaseException as failed:
            for one in group:
                if not one.future.done():
                    one.future.set_result(failed) if isinstance(failed, Refused) else one.future.set_exception(failed)
            if isinstance(failed, asyncio.CancelledError):
                raise
            return
        for one, answer in zip(group, answers, strict=True):
            if not one.future.done():
                one.future.set_result(answer)

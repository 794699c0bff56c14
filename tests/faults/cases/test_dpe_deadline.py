"""A stage that runs out of CPU time is refused, and delays no other analysis (reliability.md A-23)."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.language import MOST_LEFT_BEHIND, Language, Spent
from interlock.dpe.inference.port import ModelInfo

MODEL = ModelInfo("parser", "none", "", "embedded")


def language(stage_timeout_s: float = 0.2, grace_s: float = 0.3) -> Language:
    return Language(None, lambda _: iter(()), MODEL, stage_timeout_s=stage_timeout_s, grace_s=grace_s)


@pytest_asyncio.fixture
async def quick() -> AsyncIterator[Language]:
    """A text thread whose stages have little time."""
    opened = language()
    yield opened
    opened.close()


def spins(_left) -> None:
    """Work in Python that never asks whether it should end."""
    while True:
        pass


def asks(left) -> str:
    """Work that asks, and hands back what it has by then."""
    while not left():
        pass
    return "a part"


class Foreign:
    """Work that hangs where no exception reaches it, as foreign code does, until it is let go."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.began = threading.Event()

    def __call__(self, _left) -> str:
        self.began.set()
        while not self.gate.is_set():
            try:
                while not self.gate.is_set():
                    sum(range(1000))
            except BaseException:
                pass
        return "late"


async def refusal(language: Language, work, stage: str = "3a") -> Refused:
    with pytest.raises(Refused) as caught:
        await language.run(work, stage=stage)
    return caught.value


@pytest.mark.parametrize("work", [spins, asks])
async def test_running_out_of_cpu_time_is_a_refusal(quick, work):
    """Whether the work asks or not: a timeout by name, with the stage, and nothing of what was found by then."""
    refused = await refusal(quick, work)

    assert (refused.kind, refused.reason) == (Kind.TIMEOUT, "STAGE_DEADLINE_EXCEEDED")
    assert refused.metadata["stage"] == "3a"


@pytest.mark.parametrize("work", [spins, asks])
async def test_the_next_request_is_answered(quick, work):
    """The thread is free again, and the service stays ready."""
    await refusal(quick, work)

    assert await quick.run(lambda _: "answer") == "answer"
    assert quick.unready_dependencies() == {}


async def test_a_stage_in_parts_has_the_time_of_one(quick):
    """What the first part used is gone for the next: cutting work up brings no more of it."""
    spent = Spent()

    def most_of_it(_left) -> str:
        until = time.thread_time() + 0.15
        while time.thread_time() < until:
            pass
        return "done"

    assert await quick.run(most_of_it, stage="1", spent=spent) == "done"
    with pytest.raises(Refused, match="STAGE_DEADLINE_EXCEEDED"):
        await quick.run(most_of_it, stage="1", spent=spent)
    assert await quick.run(most_of_it, stage="1", spent=Spent()) == "done"


async def test_an_interrupt_does_not_reach_the_next_work(quick):
    """Eight times in a row: what is queued behind a stage that ran out is done as if nothing had been."""
    for number in range(8):
        late = asyncio.ensure_future(refusal(quick, spins if number % 2 else asks))
        done = await asyncio.gather(*(quick.run(lambda _, n=n: n) for n in range(5)))
        await late

        assert done == list(range(5))


async def test_work_that_cannot_be_interrupted_is_left_behind():
    """The service says that it is not ready, a new thread takes over, and then it is ready again."""
    opened = language()
    foreign = Foreign()
    refused = await refusal(opened, foreign, "1")
    queued = asyncio.ensure_future(opened.run(lambda _: "answer"))
    while_stuck = opened.unready_dependencies()

    assert refused.reason == "STAGE_DEADLINE_EXCEEDED"
    assert await asyncio.wait_for(queued, 20) == "answer"
    assert list(while_stuck) == ["text"]
    assert opened.unready_dependencies() == {}
    foreign.gate.set()
    opened.close()


async def test_threads_left_behind_are_told_to_who_runs_the_service():
    """One is borne; more take the processor away, and readiness says so for as long as they run."""
    opened = language()
    stuck = [Foreign() for _ in range(MOST_LEFT_BEHIND)]
    for each in stuck:
        await refusal(opened, each)
    await opened.run(lambda _: None)
    before = opened.unready_dependencies()
    for each in stuck:
        each.gate.set()
    while opened.unready_dependencies():
        await asyncio.sleep(0.01)

    assert list(before) == ["text"]
    opened.close()


async def test_waiting_is_not_counted():
    """CPU time counts, not the wall clock: no call is refused because of the queue or a slow machine."""
    opened = language(stage_timeout_s=0.3)
    slow = opened.run(lambda _: time.sleep(0.8))
    behind = opened.run(lambda _: "answer")

    assert (await asyncio.gather(slow, behind))[1] == "answer"
    opened.close()


async def test_errors_of_the_work_stay_what_they_are(quick):
    """A defect is no deadline."""
    with pytest.raises(ZeroDivisionError):
        await quick.run(lambda _: 1 // 0)


async def test_a_caller_that_leaves_ends_its_work(quick):
    """No caller waits: the work is told to stop, and the thread continues."""
    told = threading.Event()

    def waits(left) -> None:
        while not left():
            time.sleep(0.001)
        told.set()

    call = asyncio.ensure_future(quick.run(waits))
    await asyncio.sleep(0.05)
    call.cancel()
    await quick.run(lambda _: None)

    assert told.is_set()


async def test_closing_does_not_wait_for_what_hangs():
    """What is queued is dropped; a stuck thread does not keep the process."""
    opened = language(stage_timeout_s=60)
    call = asyncio.ensure_future(opened.run(spins))
    queued = asyncio.ensure_future(opened.run(lambda _: "never"))
    await asyncio.sleep(0.05)
    await asyncio.to_thread(opened.close)
    results = await asyncio.gather(call, queued, return_exceptions=True)

    assert isinstance(results[0], Refused)
    assert isinstance(results[1], asyncio.CancelledError)

"""Turns between analyses: an order, not a time."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.inference.fair_pool import FairPool
from interlock.dpe.inference.fairness import FRESH, LONG_AFTER, FairQueue, TurnTaker, analysing, paced, short_present
from interlock.dpe.inference.worker import SLICE_S, Worker

pytestmark = pytest.mark.finding("F-20")


def served(queue: FairQueue[str]) -> list[str]:
    return list(iter(queue.take, None))


@given(st.integers(1, 20), st.integers(1, 400))
def test_a_short_analysis_waits_for_one_slice_of_the_other_each_time(short, long):
    """However many slices the other has."""
    queue: FairQueue[str] = FairQueue()
    one, other = TurnTaker(), TurnTaker()
    for _ in range(long):
        queue.put(other, "long")
    for _ in range(short):
        queue.put(one, "short")
    order = served(queue)

    assert len(order) == short + long
    assert len(order) - order[::-1].index("short") <= 2 * short


@given(st.lists(st.integers(1, FRESH), min_size=1, max_size=8))
def test_everyone_that_has_just_begun_has_one_slice_in_a_round(sizes):
    """No analysis is ahead of another that waits by more than one slice."""
    queue: FairQueue[int] = FairQueue()
    for number, size in enumerate(sizes):
        of = TurnTaker()
        for _ in range(size):
            queue.put(of, number)
    order = list(iter(queue.take, None))
    done = [0] * len(sizes)
    for number in order:
        done[number] += 1
        behind = [done[other] for other in range(len(sizes)) if done[other] < sizes[other]]
        assert all(done[number] - each <= 1 for each in behind)

    assert done == sizes


@given(st.integers(2, 12), st.integers(FRESH + 20, LONG_AFTER))
def test_many_alike_end_one_after_the_other(count, slices):
    """Side by side all would end at the very end, and where the time is short all of them too late."""
    queue: FairQueue[int] = FairQueue()
    for number in range(count):
        of = TurnTaker()
        for _ in range(slices):
            queue.put(of, number)
    order = list(iter(queue.take, None))
    ends = [len(order) - order[::-1].index(number) for number in range(count)]

    assert len(order) == count * slices
    assert ends == sorted(ends)
    assert all(one <= (number + 1) * slices + count * FRESH for number, one in enumerate(ends))


@pytest.mark.parametrize("served", [0, FRESH, LONG_AFTER], ids=["just begun", "begun", "long"])
def test_one_answer_of_a_caller_does_not_wait_for_all_of_another(served):
    """Whatever both are: the one with a single answer has half, or comes behind the first of the other (A-38)."""
    queue: FairQueue[str] = FairQueue()
    with contextlib.ExitStack() as present:
        loud = [present.enter_context(analysing("loud")) for _ in range(20)]
        quiet = present.enter_context(analysing("quiet"))
        for of, name in [*((of, "loud") for of in loud), (quiet, "quiet")]:
            of.served = served
            for _ in range(20):
                queue.put(of, name)
        first = [queue.take() for _ in range(40)]

    assert first.count("quiet") == 20


def test_the_answers_of_one_caller_come_in_their_order():
    """Turns are counted from the one on whose turn it is: a caller who was away has none saved up, and none to make good."""
    with analysing("a") as first, analysing("a") as second, analysing("b") as other, analysing("a") as third:
        turns = [one.turn for one in (first, second, other, third)]
    with analysing("a") as again:
        pass

    assert turns == [0, 1, 0, 2]
    assert again.turn == 0


def test_one_that_has_just_begun_waits_for_one_slice_of_older_ones_each_time():
    """However many they are: a short call beside many streams is answered at once."""
    queue: FairQueue[str] = FairQueue()
    for _ in range(200):
        of = TurnTaker(served=FRESH)
        for _ in range(20):
            queue.put(of, "old")
    new = TurnTaker()
    for _ in range(FRESH):
        queue.put(new, "new")
    order = [queue.take() for _ in range(2 * FRESH)]

    assert order.count("new") == FRESH


@pytest.mark.parametrize(("shorts", "longs"), [(1, 9), (9, 1), (3, 3)])
def test_short_and_long_ones_have_half_each(shorts, longs):
    """Neither many long ones nor many short ones keep the others from ending."""
    queue: FairQueue[str] = FairQueue()
    for number in range(shorts + longs):
        of = TurnTaker(served=0 if number < shorts else LONG_AFTER)
        for _ in range(20):
            queue.put(of, "short" if number < shorts else "long")
    first = [queue.take() for _ in range(2 * 20 * min(shorts, longs))]

    assert first.count("short") == first.count("long")


def test_long_ones_can_be_held_back():
    """A thread that is kept for short ones takes no slice of a long one."""
    queue: FairQueue[str] = FairQueue()
    queue.put(TurnTaker(served=LONG_AFTER), "long")

    assert queue.take(hold_long=True) is None
    assert queue.take() == "long"


async def test_the_models_serve_a_short_call_before_the_end_of_a_long_one():
    """The long one came first, with a hundred items; the short one needs three turns."""
    pool = FairPool(1, "test")
    order: list[str] = []
    begun = threading.Event()

    def work(name: str) -> str:
        if not begun.is_set():
            begun.wait(5)
        order.append(name)
        return name.upper()

    async def call(name: str, items: int) -> list[str]:
        with analysing():
            return await pool.spread(work, [name] * items, key=len)

    long = asyncio.create_task(call("long", 100))
    await asyncio.sleep(0.01)
    short = asyncio.create_task(call("short", 3))
    await asyncio.sleep(0.01)
    begun.set()

    assert await short == ["SHORT"] * 3
    assert await long == ["LONG"] * 100
    assert order.index("short") <= 2
    assert [n for n, name in enumerate(order) if name == "short"][-1] <= 6
    pool.close()


async def test_one_thread_of_several_is_left_to_short_ones():
    """While one is under way. Alone, a long one has all."""
    pool = FairPool(2, "test")
    most, running = 0, 0
    lock = threading.Lock()

    def work(_item: int) -> None:
        nonlocal most, running
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.005)
        with lock:
            running -= 1

    with analysing() as long:
        long.served = LONG_AFTER
        await pool.spread(work, range(20), key=int)
        alone, most = most, 0
        with analysing():
            assert short_present()
            token = asyncio.create_task(asyncio.sleep(0))
            await token
            from interlock.dpe.inference import fairness

            fairness._flow.set(long)
            await pool.spread(work, range(20), key=int)

    assert (alone, most) == (2, 1)
    pool.close()


async def test_a_failure_of_one_item_is_raised_and_the_rest_is_skipped():
    """What a model raises reaches the caller, and the pool goes on."""
    pool = FairPool(1, "test")
    done: list[int] = []

    def work(item: int) -> None:
        if item == 1:
            raise ValueError
        done.append(item)

    with pytest.raises(ValueError):
        await pool.spread(work, range(50), key=int)
    assert await pool.spread(str, [7], key=int) == ["7"]
    assert done == [0]
    pool.close()


async def test_what_waits_at_the_end_is_cancelled():
    """Nobody waits for ever for a pool that was closed."""
    pool = FairPool(1, "test")
    gate = threading.Event()
    waiting = asyncio.create_task(pool.spread(lambda _: gate.wait(5), [1, 2], key=int))
    await asyncio.sleep(0.01)
    closing = asyncio.create_task(asyncio.to_thread(pool.close))
    await asyncio.sleep(0.01)
    gate.set()
    await closing

    with pytest.raises(asyncio.CancelledError):
        await waiting


def busy(left, slices: int, seen: list[str], name: str) -> str:
    """Use CPU time, and ask at its end whether to stop, so many times."""
    for _ in range(slices):
        ends = time.thread_time() + SLICE_S
        while time.thread_time() < ends:
            pass
        seen.append(name)
        left()
    return name


def test_text_jobs_take_turns_where_they_ask_whether_to_end():
    """The long job gives way to the short one and goes on with what it had."""
    worker, seen = Worker("test"), []
    gate = threading.Event()
    worker.submit(lambda _: gate.wait(5), 10.0, TurnTaker())
    long = worker.submit(lambda left: busy(left, 40, seen, "long"), 10.0, TurnTaker())
    short = worker.submit(lambda left: busy(left, 2, seen, "short"), 10.0, TurnTaker())
    gate.set()

    assert (short.answer.result(10), long.answer.result(10)) == ("short", "long")
    assert [n for n, name in enumerate(seen) if name == "short"][-1] <= 4
    assert seen.count("long") == 40
    worker.close()


def test_one_text_job_runs_at_a_time():
    """The parser is not safe for concurrent use."""
    worker, running, most = Worker("test"), 0, 0

    def work(left) -> None:
        nonlocal running, most
        for _ in range(20):
            running += 1
            most = max(most, running)
            ends = time.thread_time() + SLICE_S
            while time.thread_time() < ends:
                pass
            running -= 1
            left()

    jobs = [worker.submit(work, 10.0, TurnTaker()) for _ in range(4)]
    for job in jobs:
        job.answer.result(30)
    assert most == 1
    worker.close()


def test_the_time_of_others_does_not_count_as_a_jobs_own():
    """A job's limit is on its own CPU time, however many turns it waits."""
    worker = Worker("test")
    jobs = [worker.submit(lambda left: busy(left, 20, [], "x"), 20 * SLICE_S * 1.8, TurnTaker()) for _ in range(5)]

    assert [job.answer.result(30) for job in jobs] == ["x"] * 5
    worker.close()


def test_a_job_that_waits_for_its_turn_can_be_called_off():
    """It ends at its next turn; the others go on."""
    worker, seen = Worker("test"), []
    other = worker.submit(lambda left: busy(left, 30, seen, "other"), 10.0, TurnTaker())
    job = worker.submit(lambda left: busy(left, 3000, seen, "off"), 60.0, TurnTaker())
    while "off" not in seen:
        time.sleep(0.001)
    worker.interrupt(job)

    with pytest.raises(BaseException):
        job.answer.result(10)
    assert other.answer.result(10) == "other"
    assert worker.submit(lambda _: "next", 1.0).answer.result(10) == "next"
    worker.close()


async def test_long_work_on_the_event_loop_lets_others_run():
    """Another task has its turns between the items."""
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    ticking = asyncio.create_task(tick())
    assert await paced(time.sleep(0.002) or n for n in range(10)) == list(range(10))
    ticking.cancel()
    assert ticks >= 4

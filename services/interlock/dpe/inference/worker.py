"""Text work, one job at a time, that can be cancelled: asked to stop, then interrupted, then replaced.

Jobs that run long take turns (``fairness``): where a job asks whether it should end, those of other analyses may go first. A thread cannot be killed, and a pool of one thread that hangs blocks every later call. Work that outlives its time
therefore gets an exception at its next bytecode. A thread that stays in native code beyond a grace period is abandoned,
and a new one takes over the queue (reliability.md A-23).
"""

from __future__ import annotations

import contextlib
import ctypes
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from interlock.dpe.inference.fairness import FairQueue, TurnTaker

Left = Callable[[], bool]
SLICE_S = 0.003
"""CPU seconds after which a job lets others take their turns, where it asks whether it should end."""
_LEAST_WAIT_S = 0.001
_LANDS_WITHIN_S = 0.25
_JOIN_S = 5.0


class Expired(BaseException):
    """Raised in the thread from outside when the time is up.

    It is a BaseException, so ``except Exception`` lets it pass.
    """


class OutOfTime(Exception):  # noqa: N818 - named for what happened, not as an error
    """The work noticed that its time was up. Its result is partial and is discarded."""


class Job:
    """A unit of work with its answer, its CPU limit and the CPU time it used."""

    def __init__(self, work: Callable[[Left], Any], limit_s: float, of: TurnTaker | None = None) -> None:
        self.answer: Future[Any] = Future()
        self.limit_s = limit_s
        self.of = of or TurnTaker()
        self.expired = False
        self._work = work
        self._left = threading.Event()
        self._clock: Callable[[], float] | None = None
        self._began = self._turn_began = 0.0
        self._give_way: Callable[[Job], None] | None = None
        self.thread: _Thread | None = None
        self.resumed = threading.Event()
        self.calling_off = False
        self.interrupt_sent: bool | None = None
        self.sheltered = True
        """Whether it is not to be interrupted now: it has not begun, waits for its turn, or has ended."""

    def leave(self) -> None:
        """Tell the work that its caller no longer waits."""
        self._left.set()

    def used_s(self) -> float:
        """Return the CPU seconds used, 0.0 while queued. Wall seconds on platforms without thread clocks."""
        return self._clock() - self._began if self._clock else 0.0

    def run(self, give_way: Callable[[Job], None] | None = None) -> Any:
        """Run the work on the calling thread. After a slice of CPU time it lets others take their turns (*give_way*)."""
        clock = _thread_clock()
        self._began = self._turn_began = clock()
        self._clock, self._give_way = clock, give_way
        result = self._work(self._over)
        if self.expired:
            raise OutOfTime
        return result

    def _over(self) -> bool:
        """Whether the work should end: its caller has left, or its time is up."""
        if self._clock is not None:
            now = self._clock()  # a call of the system: once is enough
            if self._give_way is not None and now - self._turn_began >= SLICE_S:
                self._give_way(self)
                now = self._turn_began = self._clock()
            self.expired = self.expired or now - self._began > self.limit_s
        return self.expired or self._left.is_set()

    def shelter(self) -> None:
        """Take no interrupt from now on, and wait for one that is under way; it is raised here."""
        self.sheltered = True
        self._await_interrupt()

    def expose(self) -> None:
        """Take interrupts from now on. Raises ``Expired`` when one came meanwhile."""
        self.sheltered = False
        if self.calling_off:
            self._await_interrupt()
            raise Expired

    def _await_interrupt(self) -> None:
        ends = time.monotonic() + _LANDS_WITHIN_S
        while self.calling_off and self.interrupt_sent is not False and time.monotonic() < ends:
            time.sleep(_LEAST_WAIT_S)


class _Thread(threading.Thread):
    """A thread of a worker, and the jobs that it is to run."""

    def __init__(self, name: str, loop: Callable[[_Thread], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.jobs: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._loop = loop

    def run(self) -> None:
        self._loop(self)


class Worker:
    """Runs one job at a time. A job that runs long lets those of other analyses take their turns in between.

    A job that has given way keeps its thread, so that there are as many threads as jobs that were begun, and one of them runs.
    ``replace`` abandons a stuck thread; another goes on with the queue.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._queue: FairQueue[Job] = FairQueue()
        self._current: Job | None = None
        self._idle: list[_Thread] = []
        self._abandoned: list[threading.Thread] = []
        self._closed = False

    def submit(self, work: Callable[[Left], Any], limit_s: float, of: TurnTaker | None = None) -> Job:
        """Queue *work* of an analysis. The job's answer is a future."""
        job = Job(work, limit_s, of)
        with self._lock:
            if self._closed:
                job.answer.cancel()
                return job
            self._queue.put(job.of, job)
            if self._current is None:
                self._start(self._next())
        return job

    def interrupt(self, job: Job) -> None:
        """Raise ``Expired`` in the thread if it runs this job, at most once. A job that waits for its turn ends with it."""
        if job.calling_off:
            return
        job.expired = True
        job.leave()
        job.calling_off = True
        sent = self._current is job and not job.sheltered and job.thread is not None
        if sent and job.thread is not None:
            ident = ctypes.c_ulong(job.thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Expired))
        job.interrupt_sent = sent

    def is_at(self, job: Job) -> bool:
        """Whether this job is running."""
        return self._current is job

    def replace(self, job: Job) -> bool:
        """Abandon the thread if it still runs *job*, and return whether it did. Another one takes over the queue."""
        with self._lock:
            if self._current is not job:
                return False
            if job.thread is not None:
                self._abandoned.append(job.thread)
            self._current = None
            self._start(self._next())
        return True

    def left_behind(self) -> int:
        """Return the number of abandoned threads that are still alive."""
        self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
        return len(self._abandoned)

    def close(self) -> None:
        """Stop the threads and drop queued work. A thread that hangs is not awaited."""
        with self._lock:
            self._closed = True
            current, waiting = self._current, self._queue.clear()
            idle, self._idle = self._idle, []
        for job in waiting:
            self.interrupt(job)
            if job.thread is None:
                job.answer.cancel()
            job.resumed.set()
        if current is not None:
            self.interrupt(current)
        for thread in idle:
            thread.jobs.put(None)
        for thread in (
            *idle,
            *(job.thread for job in (*waiting, current) if job is not None and job.thread is not None),
        ):
            thread.join(_JOIN_S)

    def _next(self) -> Job | None:
        """Return the job whose turn it is, and make it the current one. Call it with the lock held."""
        while (job := self._queue.take()) is not None:
            if job.thread is not None or job.answer.set_running_or_notify_cancel():
                break
        self._current = job
        return job

    def _start(self, job: Job | None) -> None:
        """Let a job go on: on its own thread, or on one that has none. Call it with the lock held."""
        if job is None:
            return
        if job.thread is not None:
            job.resumed.set()
            return
        if self._idle:
            thread = self._idle.pop()
        else:
            thread = _Thread(self._name, self._loop)
            thread.start()
        job.thread = thread
        thread.jobs.put(job)

    def _loop(self, thread: _Thread) -> None:
        while (given := thread.jobs.get()) is not None:
            job: Job | None = given
            while job is not None:
                self._do(job)
                job = self._after(job, thread)

    def _after(self, job: Job, thread: _Thread) -> Job | None:
        """Hand the turn on after a job has ended. Return the next one where it has no thread yet: this one takes it."""
        with self._lock:
            following = self._next() if self._current is job else None
            if following is not None and following.thread is None:
                following.thread = thread
                return following
            self._start(following)
            if self._closed or thread in self._abandoned:
                thread.jobs.put(None)
            else:
                self._idle.append(thread)
        return None

    def _give_way(self, job: Job) -> None:
        """Let the jobs of other analyses have their turns, and return when this one's has come again."""
        job.shelter()
        with self._lock:
            if self._current is not job:
                raise Expired  # abandoned meanwhile
            job.resumed.clear()
            self._queue.put(job.of, job)
            following = self._next()
            if following is not job:
                self._start(following)
        if following is not job:
            job.resumed.wait()
        job.expose()

    def _do(self, job: Job) -> None:
        """Run one job. An interrupt is raised inside the outer ``try`` or awaited there, never in the next job."""
        result: Any = None
        error: BaseException | None = None
        try:
            job.expose()
            try:
                result = job.run(self._give_way)
            except Exception as failure:  # noqa: BLE001 - passed to the caller
                error = failure
            job.shelter()
        except Expired as expired:
            error = expired
        if error is None:
            job.answer.set_result(result)
        else:
            job.answer.set_exception(error)


def _thread_clock() -> Callable[[], float]:
    """Return the CPU clock of the calling thread, readable from other threads, or the wall clock if there is none."""
    try:
        clock = time.pthread_getcpuclockid(threading.get_ident())
        seen = time.clock_gettime(clock)
    except (AttributeError, OSError):
        return time.monotonic

    def read() -> float:
        nonlocal seen
        with contextlib.suppress(OSError):  # the thread has ended, so its answer is on its way
            seen = time.clock_gettime(clock)
        return seen

    return read

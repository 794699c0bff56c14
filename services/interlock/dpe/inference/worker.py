"""One thread for text work that can be cancelled: asked to stop, then interrupted, then replaced.

A thread cannot be killed, and a pool of one thread that hangs blocks every later call. Work that outlives its time
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

Left = Callable[[], bool]
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

    def __init__(self, work: Callable[[Left], Any], limit_s: float) -> None:
        self.answer: Future[Any] = Future()
        self.limit_s = limit_s
        self.expired = False
        self._work = work
        self._left = threading.Event()
        self._clock: Callable[[], float] | None = None
        self._began = 0.0
        self.calling_off = False
        self.interrupt_sent: bool | None = None

    def leave(self) -> None:
        """Tell the work that its caller no longer waits."""
        self._left.set()

    def used_s(self) -> float:
        """Return the CPU seconds used, 0.0 while queued. Wall seconds on platforms without thread clocks."""
        return self._clock() - self._began if self._clock else 0.0

    def run(self) -> Any:
        """Run the work on the calling thread."""
        clock = _thread_clock()
        self._began = clock()
        self._clock = clock
        result = self._work(self._over)
        if self.expired:
            raise OutOfTime
        return result

    def _over(self) -> bool:
        """Whether the work should end: its caller has left, or its time is up."""
        self.expired = self.expired or self.used_s() > self.limit_s
        return self.expired or self._left.is_set()


class Worker:
    """A thread that runs one job at a time. ``replace`` abandons a stuck thread; the queue continues on a new one."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._current: Job | None = None
        self._abandoned: list[threading.Thread] = []
        self._thread = self._start_thread()

    def submit(self, work: Callable[[Left], Any], limit_s: float) -> Job:
        """Queue *work*. The job's answer is a future."""
        job = Job(work, limit_s)
        self._queue.put(job)
        return job

    def interrupt(self, job: Job) -> None:
        """Raise ``Expired`` in the thread if it runs this job, at most once."""
        if job.calling_off:
            return
        job.expired = True
        job.leave()
        job.calling_off = True
        sent = self._current is job
        if sent:
            ident = ctypes.c_ulong(self._thread.ident or 0)
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ident, ctypes.py_object(Expired))
        job.interrupt_sent = sent

    def is_at(self, job: Job) -> bool:
        """Whether the thread is running this job."""
        return self._current is job

    def replace(self, job: Job) -> bool:
        """Abandon the thread if it still runs *job*, and return whether it did. A new thread takes over the queue."""
        if self._current is not job:
            return False
        self._abandoned.append(self._thread)
        self._current = None
        self._thread = self._start_thread()
        return True

    def left_behind(self) -> int:
        """Return the number of abandoned threads that are still alive."""
        self._abandoned = [thread for thread in self._abandoned if thread.is_alive()]
        return len(self._abandoned)

    def close(self) -> None:
        """Stop the thread and drop queued work. A thread that hangs is not awaited."""
        while True:
            try:
                job = self._queue.get_nowait()
            except queue.Empty:
                break
            if job is not None:
                job.answer.cancel()
        if self._current is not None:
            self.interrupt(self._current)
        self._queue.put(None)
        self._thread.join(_JOIN_S)

    def _start_thread(self) -> threading.Thread:
        thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
        thread.start()
        return thread

    def _loop(self) -> None:
        while (job := self._queue.get()) is not None:
            if job.answer.set_running_or_notify_cancel():
                self._do(job)
            if threading.current_thread() is not self._thread:
                return  # abandoned meanwhile: another thread has taken over

    def _do(self, job: Job) -> None:
        """Run one job. An interrupt is raised inside the outer ``try`` or awaited there, never in the next job."""
        result: Any = None
        error: BaseException | None = None
        try:
            self._current = job
            try:
                result = job.run()
            except Exception as failure:  # noqa: BLE001 - passed to the caller
                error = failure
            self._finish(job)
        except Expired as expired:
            self._forget(job)
            error = expired
        if error is None:
            job.answer.set_result(result)
        else:
            job.answer.set_exception(error)

    def _finish(self, job: Job) -> None:
        """Finish a job, and wait for an interrupt under way. Work that swallowed the interrupt has received it."""
        self._forget(job)
        ends = time.monotonic() + _LANDS_WITHIN_S
        while job.calling_off and job.interrupt_sent is not False and time.monotonic() < ends:
            time.sleep(_LEAST_WAIT_S)

    def _forget(self, job: Job) -> None:
        if self._current is job:
            self._current = None


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

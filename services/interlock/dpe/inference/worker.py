"""One thread for text work that can be called off: asked first, interrupted next, replaced when neither helps.

A thread cannot be killed, and a pool of one that hangs blocks every later call. So work that outlives its time gets an
exception at its next step of Python; a thread that stays in foreign code beyond a grace is left behind, and a new one
takes over what is queued (reliability.md A-23).
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
    """Raised in the thread from outside when the time of its work is up; no ``except Exception`` swallows it."""


class OutOfTime(Exception):  # noqa: N818 - what it says, not what went wrong
    """The work noticed itself that its time was up; what it returned is only a part."""


class Job:
    """A piece of work with its answer and the CPU time that it may use and has used."""

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
        """Tell the work that nobody waits for it any more."""
        self._left.set()

    def used_s(self) -> float:
        """Return the CPU seconds used; 0.0 while it is queued. Wall seconds where threads have no clocks."""
        return self._clock() - self._began if self._clock else 0.0

    def run(self) -> Any:
        """Do the work on the thread that calls this."""
        clock = _clock_of_this_thread()
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
    """A thread that does one job after the other. ``replace`` leaves a stuck one behind; the queue goes on."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._queue: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._current: Job | None = None
        self._behind: list[threading.Thread] = []
        self._thread = self._started()

    def submit(self, work: Callable[[Left], Any], limit_s: float) -> Job:
        """Queue *work*; the job's answer is a future."""
        job = Job(work, limit_s)
        self._queue.put(job)
        return job

    def interrupt(self, job: Job) -> None:
        """Raise ``Expired`` in the thread, if it is at this job; at most once."""
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
        """Whether the thread still does this job."""
        return self._current is job

    def replace(self, job: Job) -> bool:
        """Leave the thread behind if it is still at *job*; return whether it was. A new one does what is queued."""
        if self._current is not job:
            return False
        self._behind.append(self._thread)
        self._current = None
        self._thread = self._started()
        return True

    def left_behind(self) -> int:
        """Return how many threads were left behind and run still."""
        self._behind = [thread for thread in self._behind if thread.is_alive()]
        return len(self._behind)

    def close(self) -> None:
        """Stop the thread; what is queued is dropped, and one that hangs is not waited for."""
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

    def _started(self) -> threading.Thread:
        thread = threading.Thread(target=self._loop, name=self._name, daemon=True)
        thread.start()
        return thread

    def _loop(self) -> None:
        while (job := self._queue.get()) is not None:
            if job.answer.set_running_or_notify_cancel():
                self._do(job)
            if threading.current_thread() is not self._thread:
                return  # left behind meanwhile: another has taken over

    def _do(self, job: Job) -> None:
        """Do one job. An interrupt lands inside the outer ``try`` or is waited for there, never in the next job."""
        result: Any = None
        error: BaseException | None = None
        try:
            self._current = job
            try:
                result = job.run()
            except Exception as failure:  # noqa: BLE001 - goes to the caller
                error = failure
            self._done_with(job)
        except Expired as expired:
            self._forget(job)
            error = expired
        if error is None:
            job.answer.set_result(result)
        else:
            job.answer.set_exception(error)

    def _done_with(self, job: Job) -> None:
        """Take leave of a job, and wait for an interrupt that is on its way; work that swallowed it has had it."""
        self._forget(job)
        ends = time.monotonic() + _LANDS_WITHIN_S
        while job.calling_off and job.interrupt_sent is not False and time.monotonic() < ends:
            time.sleep(_LEAST_WAIT_S)

    def _forget(self, job: Job) -> None:
        if self._current is job:
            self._current = None


def _clock_of_this_thread() -> Callable[[], float]:
    """Return the CPU clock of the calling thread, readable from others; the wall clock where there is none."""
    try:
        clock = time.pthread_getcpuclockid(threading.get_ident())
        seen = time.clock_gettime(clock)
    except (AttributeError, OSError):
        return time.monotonic

    def read() -> float:
        nonlocal seen
        with contextlib.suppress(OSError):  # the thread has ended: its answer is on the way
            seen = time.clock_gettime(clock)
        return seen

    return read

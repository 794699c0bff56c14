"""The thread that reads text: what it says of a job when it has ended."""

from __future__ import annotations

import threading
import time

import pytest

from interlock.dpe.inference.worker import Job


@pytest.mark.req("DPE-11")
def test_the_time_of_a_job_can_be_asked_for_after_its_thread_has_ended():
    """A thread that was left behind ends with its job, and its clock with it; whoever watches may be about to ask."""
    job = Job(lambda _left: sum(range(200_000)), 1.0)
    thread = threading.Thread(target=job.run)
    thread.start()
    thread.join()

    for _ in range(50):  # the system lets go of it a moment after Python does
        assert 0.0 <= job.used_s() < 60.0
        time.sleep(0.005)

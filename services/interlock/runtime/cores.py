"""The cores that this process may use: those of its affinity, and no more than its control group's quota gives it time for."""

from __future__ import annotations

import math
import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")


def usable_cores(cgroup: Path = CGROUP) -> int:
    """Return how many threads can run at once, at least 1. A container's quota counts; a part of a core counts as one."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = _quota(cgroup)
    return max(1, cores if quota is None else min(cores, math.ceil(quota)))


def _quota(cgroup: Path) -> float | None:
    """Return the cores that the quota is worth (cgroup v2, then v1); ``None`` without one."""
    try:
        if (unified := cgroup / "cpu.max").exists():
            most, period = unified.read_text().split()
        else:
            most = (cgroup / "cpu/cpu.cfs_quota_us").read_text()
            period = (cgroup / "cpu/cpu.cfs_period_us").read_text()
        return None if most.strip() in {"max", "-1"} else int(most) / int(period)
    except (OSError, ValueError, ZeroDivisionError):
        return None

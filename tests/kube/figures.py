"""What was measured on the way: told at the end, and judged by nobody but the reader of docs/deploy-kubernetes.md."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

FIGURES: dict[str, str] = {}
"""By what was measured."""


def paced(call: Callable[[], None], *, per_second: int, seconds: int) -> list[float]:
    """Make calls at a steady pace, whether or not the ones before have ended; return how long each took, sorted, seconds."""
    began = time.monotonic()

    def one(number: int) -> float:
        due = began + number / per_second
        time.sleep(max(0.0, due - time.monotonic()))
        call()
        return time.monotonic() - due

    with ThreadPoolExecutor(max_workers=16) as pool:
        return sorted(pool.map(one, range(per_second * seconds)))


def quantile(ordered: list[float], share: float) -> float:
    """Return the smallest value that at least *share* of all do not exceed."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

"""Memory that starting took and running does not need."""

from __future__ import annotations

import ctypes
import gc
import linecache
import sys
from contextlib import suppress


def spare_drawing() -> None:
    """Keep drawing, green threads and a codec out of this process: structlog and httpx load them where they are installed, for what a service never does.

    They take more than 7 MiB. All go on without them, as where they are not installed. Call it before they are imported.
    """
    for name in ("rich", "pygments", "greenlet", "zstandard"):
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]


def settle() -> None:
    """Give back to the system what starting left behind, and keep what is there now out of later collections.

    A sidecar stands beside every agent: each MiB counts as often as there are agents. Where the C library cannot give pages back,
    nothing happens.
    """
    linecache.clearcache()
    gc.collect()
    gc.freeze()
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)

"""The real audit service, which also tells how long its writer holds the log: python -m bench.scale.audit FILE

FILE gets three numbers after each transaction: requests that were written, seconds of CPU, and seconds, both inside transactions.
"""

from __future__ import annotations

import struct
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from interlock.audit.store.log_postgres import PostgresLog
from interlock.cli.main import run

LAYOUT = struct.Struct("=3d")


def read(file: Path) -> tuple[float, float, float]:
    return LAYOUT.unpack(file.read_bytes()) if file.exists() else (0.0, 0.0, 0.0)


def timed(file: Path) -> None:
    """Count what a transaction takes of the writer's thread."""
    commit, told = PostgresLog.commit, [0.0, 0.0, 0.0]

    def counting(self: PostgresLog, works: Sequence[Any]) -> Any:
        began, cpu = time.perf_counter(), time.thread_time()
        found = commit(self, works)
        told[0] += len(works)
        told[1] += time.thread_time() - cpu
        told[2] += time.perf_counter() - began
        file.write_bytes(LAYOUT.pack(*told))
        return found

    PostgresLog.commit = counting  # type: ignore[method-assign]


if __name__ == "__main__":
    timed(Path(sys.argv[1]))
    sys.argv[1:] = ["serve", "audit"]
    run()

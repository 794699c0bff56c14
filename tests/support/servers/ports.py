"""Ports for servers that must be told their port, such as Valkey, its sentinels and PostgreSQL.

A probe that binds port 0 and lets go of it may be given the same port again at once, and the kernel may lend that port to
any outgoing connection before the server binds it. So ports are taken from below the kernel's range for such connections.
They are divided into blocks, and each process locks blocks of its own: pytest-xdist workers, parallel runs and the fault
suite's jobs never get the same port. The kernel drops the locks when the process ends, however it ends.

A server that can bind port 0 by itself needs none of this.
"""

from __future__ import annotations

import contextlib
import fcntl
import itertools
import os
import socket
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

FIRST = 10_240
"""Above the product's own default ports."""
BLOCK = 128
LOWEST_EPHEMERAL = 32_768
"""Where the kernel's range begins when it does not say: Linux's own default."""

_ours: dict[int, Iterator[int]] = {}
"""The ports that are left, by process id: a forked child starts with blocks of its own."""
_locks: list[int] = []
_turn = threading.Lock()


def free_port() -> int:
    """Return a port of 127.0.0.1 on which nothing listens. The same port is never returned twice in a process."""
    return free_ports(1)[0]


def free_ports(count: int) -> list[int]:
    """Return *count* different ports on which nothing listens.

    All of them are bound until the last one is chosen. Raises RuntimeError when every block is taken.
    """
    with _turn, contextlib.ExitStack() as held:
        left = _ours.setdefault(os.getpid(), _ports_of_this_process())
        free = (port for port in left if _bound(port, held))
        chosen = list(itertools.islice(free, count))
    if len(chosen) < count:
        raise RuntimeError("no free ports are left for this process")
    return chosen


def _bound(port: int, held: contextlib.ExitStack) -> bool:
    """Bind *port* until *held* ends; return whether that worked."""
    probe = held.enter_context(socket.socket())
    try:
        probe.bind(("127.0.0.1", port))
    except OSError:
        return False
    return True


def _ports_of_this_process() -> Iterator[int]:
    """Yield each port of each block that this process could lock. The next block is locked when it is needed."""
    folder = Path(tempfile.gettempdir()) / f"interlock-test-ports-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    for start in range(FIRST, _lowest_ephemeral() - BLOCK + 1, BLOCK):
        lock = os.open(folder / str(start), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        _locks.append(lock)  # until this process ends
        yield from range(start, start + BLOCK)


def _lowest_ephemeral() -> int:
    """Return the first port that the kernel may give to an outgoing connection."""
    try:
        lowest = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text(encoding="ascii").split()[0])
    except OSError:
        return LOWEST_EPHEMERAL
    return lowest if lowest >= FIRST + 8 * BLOCK else LOWEST_EPHEMERAL

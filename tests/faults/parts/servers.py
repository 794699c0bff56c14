"""Servers that the mesh depends on and that can be broken as a whole: PostgreSQL, and a small disk."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil

from tests.faults.parts.cluster import Cluster
from tests.support.servers.postgres import OWNER, PASSWORD, Postgres

DISK = "16m"
STARTS = 20


class Database:
    """A PostgreSQL server with one database for the audit log, reached over the line ``database``."""

    def __init__(self, server: Postgres, url: str) -> None:
        self.server, self.url = server, url
        self._stopped: list[Any] = []

    async def kill(self) -> None:
        """kill -9 of all its processes."""
        await asyncio.to_thread(self.server.kill)

    async def start(self) -> None:
        """Start it on its data, where it does not run."""
        for _ in range(STARTS):
            try:
                if self.server.process is None:
                    await asyncio.to_thread(self.server.start)
                return
            except AssertionError:
                # A killed server's children hold its shared memory for a moment longer.
                self.server.process = None
                await asyncio.sleep(0.2)
        raise AssertionError("PostgreSQL did not start again")

    async def pause(self) -> None:
        """SIGSTOP of all its processes."""
        self._stopped = list(self.server.processes()) if self.server.process else []
        for process in self._stopped:
            process.send_signal(signal.SIGSTOP)

    async def resume(self) -> None:
        """SIGCONT."""
        for process in self._stopped:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def database(cluster: Cluster) -> AsyncIterator[Database]:
    """Run a PostgreSQL with a database for the audit log."""
    server = await asyncio.to_thread(Postgres().__enter__)
    try:
        name = await asyncio.to_thread(server.database)
        line = await cluster.line("database", server.port)
        yield Database(server, f"postgresql://{OWNER}:{PASSWORD}@{line.address}/{name}")
    finally:
        await asyncio.to_thread(server.__exit__)


@contextlib.contextmanager
def small_disk(folder: Path) -> Iterator[Path]:
    """Give a file system of a few mebibytes; root only."""
    folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def may_mount() -> bool:
    """Tell whether a small disk can be had here."""
    return os.geteuid() == 0


def fill(folder: Path) -> None:
    """Leave no byte free, not inside the write-ahead log of an audit database either.

    SQLite writes over a log that was checkpointed, so that commits go through on a full disk as long as it has room. The log
    is cut to nothing first; a reader or a writer may be in the way of that.
    """
    for database in folder.glob("*.db"):
        with contextlib.closing(sqlite3.connect(database, timeout=0.2)) as connection:
            for _ in range(100):
                if connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0:
                    break
    with (folder / "filler").open("wb", buffering=0) as filler, contextlib.suppress(OSError):
        while filler.write(b"\0" * 4096):
            pass

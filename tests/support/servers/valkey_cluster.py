"""A real Valkey Cluster for tests: three primaries from the wheel's server, every slot on one of them."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from pathlib import Path

from tests.support.servers.ports import free_ports
from tests.support.servers.valkey import Valkey

SLOTS = 16_384


@contextlib.contextmanager
def cluster(folder: Path, size: int = 3) -> Iterator[list[Valkey]]:
    """Give the running servers of a Cluster whose slots are spread evenly."""
    with contextlib.ExitStack() as stack:
        # Chosen like the ports: the default, 10,000 above them, is where other programs' connections are.
        servers, buses = [], free_ports(size)
        for n in range(size):
            (folder / str(n)).mkdir()
            options = ("--cluster-enabled", "yes", "--cluster-node-timeout", "2000", "--cluster-port", str(buses[n]))
            servers.append(stack.enter_context(Valkey(folder / str(n), *options)))
        for n, server in enumerate(servers):
            with server.client() as client:
                client.execute_command("CLUSTER", "ADDSLOTSRANGE", n * SLOTS // size, (n + 1) * SLOTS // size - 1)
                client.execute_command("CLUSTER", "SET-CONFIG-EPOCH", n + 1)
                client.execute_command("CLUSTER", "MEET", "127.0.0.1", servers[0].port, buses[0])
        wait_until_whole(servers)
        yield servers


def wait_until_whole(servers: list[Valkey]) -> None:
    """Return when every server sees all the others and all slots served."""
    deadline = time.monotonic() + 30
    for server in servers:
        with server.client() as client:
            while True:
                told = bytes(client.execute_command("CLUSTER", "INFO"))
                if b"cluster_state:ok" in told and f"cluster_known_nodes:{len(servers)}\r".encode() in told:
                    break
                assert time.monotonic() < deadline, told
                time.sleep(0.05)

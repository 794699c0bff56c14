"""The node's network: a bridge, one network namespace for each pod, and addresses of services that lead to this machine."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path

from tests.kube.cluster.control_plane import NODE, SERVICES

BRIDGE = "interlock0"


def ip(*arguments: str) -> None:
    """Run iproute2."""
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"ip {' '.join(arguments)}: {done.stderr}"


class Network:
    """The network namespace that this process is in, as the node's."""

    def __init__(self) -> None:
        self._numbers = itertools.count(10)
        ip("link", "set", "lo", "up")
        ip("link", "add", BRIDGE, "type", "bridge")
        ip("addr", "add", f"{NODE}/16", "dev", BRIDGE)
        ip("link", "set", BRIDGE, "up")
        ip("route", "add", "local", SERVICES, "dev", "lo")

    def join(self) -> tuple[str, str]:
        """Make a pod's namespace; return its name and its address."""
        number = next(self._numbers)
        name, address = f"il{number}", f"10.244.{number // 250}.{number % 250 + 2}"
        ip("netns", "add", name)
        ip("link", "add", f"v{number}", "type", "veth", "peer", "name", "eth0", "netns", name)
        ip("link", "set", f"v{number}", "master", BRIDGE, "up")
        for step in (
            ("addr", "add", f"{address}/16", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
            ("route", "add", "default", "via", NODE),
        ):
            ip("-n", name, *step)
        return name, address

    @staticmethod
    def leave(name: str) -> None:
        """Remove a pod's namespace."""
        if (Path("/run/netns") / name).exists():
            ip("netns", "del", name)

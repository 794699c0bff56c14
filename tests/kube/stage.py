"""A cluster with its node, and what is outside of it: the stores and the model provider."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.kube import tools
from tests.kube.cluster.api import Api
from tests.kube.cluster.control_plane import NODE, ControlPlane
from tests.kube.node import image
from tests.kube.node.network import Network
from tests.kube.node.node import Node
from tests.kube.node.proxy import Forwarder
from tests.support.servers.postgres import OWNER, SERVICE, Postgres
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.valkey import Valkey

VALKEY, POSTGRES, PROVIDER = (NODE, 6379), (NODE, 5432), (NODE, 8800)
"""Where pods find what is not in the cluster."""


@dataclass
class Stage:
    """Everything that runs for the tests."""

    plane: ControlPlane
    node: Node
    provider: Provider
    valkey: Valkey
    postgres: Postgres
    forwarder: Forwarder
    folder: Path

    @property
    def api(self) -> Api:
        """The administrator's client."""
        return self.plane.admin

    def store(self) -> dict[str, str]:
        """Make a fresh audit database and empty the session store; return the Secret of the former."""
        self.valkey.flush()
        return self.database()

    def database(self) -> dict[str, str]:
        """Make a fresh audit database; return its Secret."""
        name = self.postgres.database()
        urls = {
            "url": self.postgres.url(name, SERVICE),
            "owner-url": self.postgres.url(name, OWNER),
        }
        here = f"127.0.0.1:{self.postgres.port}"
        return {key: url.replace(here, f"{POSTGRES[0]}:{POSTGRES[1]}") for key, url in urls.items()}


@contextlib.contextmanager
def standing(folder: Path) -> Iterator[Stage]:
    """Start it all in the network namespace that this process is in."""
    programs = tools.control_plane()
    network, forwarder = Network(), Forwarder()
    made = image.make(folder / "image" / "interlock")
    (folder / "valkey").mkdir()
    with (
        Valkey(folder / "valkey") as valkey,
        Postgres() as postgres,
        RunningProvider(Provider()) as provider,
        ControlPlane(programs, folder / "plane") as plane,
        Node(plane.admin, made, folder / "pods", network, forwarder) as node,
    ):
        forwarder.lead(VALKEY, [("127.0.0.1", valkey.port)])
        forwarder.lead(POSTGRES, [("127.0.0.1", postgres.port)])
        port = int(provider.base_url.rsplit(":", 1)[1].split("/")[0])
        forwarder.lead(PROVIDER, [("127.0.0.1", port)])
        yield Stage(plane, node, provider.provider, valkey, postgres, forwarder, folder)
    forwarder.close()

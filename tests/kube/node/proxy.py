"""A stand-in for kube-proxy: it listens on each service's cluster address and joins each connection to a ready endpoint."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import threading
from collections.abc import Sequence
from typing import Any

from tests.kube.cluster.api import Api, Json, Refusal

Place = tuple[str, int]


class Forwarder:
    """TCP connections from one address to one of several, in a thread of its own."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._targets: dict[Place, tuple[Place, ...]] = {}
        self._servers: dict[Place, asyncio.Server] = {}
        self._turn = itertools.count()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def lead(self, place: Place, targets: Sequence[Place]) -> None:
        """Have connections to *place* go to one of *targets* from now on; none: they are refused."""
        asyncio.run_coroutine_threadsafe(self._lead(place, tuple(targets)), self._loop).result(10)

    def places(self) -> set[Place]:
        """Return what it listens on or has listened on."""
        return set(self._targets)

    def close(self) -> None:
        """End every connection."""
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    async def _end(self) -> None:
        for server in self._servers.values():
            server.close()
        own = asyncio.current_task()
        joined = [task for task in asyncio.all_tasks() if task is not own]
        for task in joined:
            task.cancel()
        await asyncio.gather(*joined, return_exceptions=True)
        await asyncio.sleep(0)

    async def _lead(self, place: Place, targets: tuple[Place, ...]) -> None:
        self._targets[place] = targets
        if targets and place not in self._servers:
            self._servers[place] = await asyncio.start_server(
                lambda reader, writer: self._joined(place, reader, writer), *place
            )
        if not targets and place in self._servers:
            self._servers.pop(place).close()

    async def _joined(self, place: Place, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        targets = self._targets[place]
        try:
            far_reader, far_writer = await asyncio.open_connection(*targets[next(self._turn) % len(targets)])
        except (OSError, ZeroDivisionError):
            writer.close()
            return
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            writer.close()
            far_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(65536):
            writer.write(piece)
            await writer.drain()
    writer.close()


class ServiceProxy:
    """Follows services and their endpoints."""

    def __init__(self, api: Api, forwarder: Forwarder) -> None:
        self._api, self._forwarder = api, forwarder
        self._led: dict[Place, tuple[Place, ...]] = {}
        self._addresses: dict[str, str] = {}
        self.hosts = ""
        """Lines of /etc/hosts: every service by the names that a cluster's DNS has for it."""

    def leads(self, service: str) -> int:
        """Return how many endpoints NAME.NAMESPACE leads to."""
        address = self._addresses.get(service)
        return max((len(targets) for place, targets in self._led.items() if place[0] == address), default=0)

    def follow(self) -> None:
        """Bring the addresses up to date."""
        with contextlib.suppress(Refusal):
            services = self._api.items("services")
            slices = self._api.items("endpointslices")
            led: dict[Place, tuple[Place, ...]] = {}
            for service in services:
                led |= _places(service, slices)
            for place in self._led.keys() | led.keys():
                if self._led.get(place) != led.get(place):
                    self._forwarder.lead(place, led.get(place, ()))
            self._led = led
            self._addresses = {
                f"{one['metadata']['name']}.{one['metadata']['namespace']}": one["spec"]["clusterIP"]
                for one in services
            }
            self.hosts = "".join(_names(service) for service in services)


def _places(service: Json, slices: Sequence[Json]) -> dict[Place, tuple[Place, ...]]:
    metadata, found = service["metadata"], {}
    own = [
        one
        for one in slices
        if one["metadata"]["namespace"] == metadata["namespace"]
        and one["metadata"].get("labels", {}).get("kubernetes.io/service-name") == metadata["name"]
    ]
    for port in service["spec"].get("ports", ()):
        targets = sorted(
            (address, held["port"])
            for one in own
            for held in one.get("ports") or ()
            if held.get("name", "") == port.get("name", "")
            for endpoint in one.get("endpoints") or ()
            if endpoint.get("conditions", {}).get("ready", True)
            for address in endpoint["addresses"]
        )
        found[service["spec"]["clusterIP"], port["port"]] = tuple(targets)
    return found


def _names(service: Json) -> str:
    name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
    full = [f"{name}.{namespace}", f"{name}.{namespace}.svc", f"{name}.{namespace}.svc.cluster.local"]
    return f"{service['spec']['clusterIP']} {' '.join(full)}\n"


def links(services: Sequence[Json], namespace: str, *, enabled: bool) -> dict[str, Any]:
    """Return the variables that a kubelet derives from services: that of the API server, and those of the pod's namespace."""
    made: dict[str, Any] = {}
    for service in services:
        metadata, spec = service["metadata"], service["spec"]
        master = (metadata["namespace"], metadata["name"]) == ("default", "kubernetes")
        if not master and not (enabled and metadata["namespace"] == namespace):
            continue
        name, port = metadata["name"].upper().replace("-", "_"), spec["ports"][0]["port"]
        url = f"tcp://{spec['clusterIP']}:{port}"
        made |= {f"{name}_SERVICE_HOST": spec["clusterIP"], f"{name}_SERVICE_PORT": str(port), f"{name}_PORT": url}
        for held in spec["ports"]:
            at = f"{name}_PORT_{held['port']}_TCP"
            made |= {
                at: f"tcp://{spec['clusterIP']}:{held['port']}",
                f"{at}_PROTO": "tcp",
                f"{at}_PORT": str(held["port"]),
            }
            made[f"{at}_ADDR"] = spec["clusterIP"]
    return made

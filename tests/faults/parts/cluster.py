"""A mesh of real processes with a line between any two of them that can be broken."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx

from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from tests.faults.parts.processes import Part, part
from tests.faults.parts.proxy import FaultProxy
from tests.faults.parts.rogue import RogueProvider
from tests.support.policy import agents
from tests.support.servers.ports import free_port
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.sidecar import NO_COOKIES
from tests.support.valkey import Valkey

SERVICES = ("session", "policy", "dpe", "audit")
READY_S = 60.0
RPC = "-rpc"
"""Ends the label of a line to a gRPC front."""
SLACK_S = 10.0
"""What a call may take beyond its deadline before it counts as hanging: this machine does other things too."""

BRISK: Mapping[str, Any] = {
    "caller_budget": 1000.0, "caller_period_s": 31_536_000, "drain_s": 3, "request_timeout_s": 2.5, "rpc_timeout_s": 1, "upstream_timeout_s": 1.5,
    "stream_timeout_s": 1.8, "dpe_timeout_s": 1.5, "max_windows": 40, "max_dag_nodes": 80, "max_fan_out": 4, "agent_cache_s": 1,
    "stream_release": "sentences", "default_policy": "halt-on CRITICAL", "log_level": "warning", "checkpoint_s": 1, "checkpoint_entries": 64,
    "emergency_reach_s": 0.5,
}  # fmt: skip
"""Short deadlines, so that a lease runs out while a run waits for it, also where only the longest end of a stream is known. Callers have a budget that no run spends, so that what was
counted can be compared to the last millionth.
"""


@dataclass(frozen=True)
class Shape:
    """What a cluster is made of."""

    sidecars: int = 2
    database: str = "sqlite"
    """sqlite or postgres."""
    store: str = "valkey"
    """valkey or sentinel."""
    models: bool = False
    """Whether the real analysis runs, on the bundled models."""
    triton: bool = False
    """Whether its models run in a real tritonserver."""
    settings: tuple[tuple[str, Any], ...] = ()
    weakened: tuple[tuple[str, str], ...] = ()
    """Part → the defence that it runs without."""
    light: bool = False
    """Whether the mesh is one process, this one: nothing of it can be killed, and a run takes a second."""
    small_disk: bool = False
    """Whether the audit log lies on a disk that can be filled."""

    def with_(self, **settings: Any) -> dict[str, Any]:
        """Return the settings of every part."""
        return {**BRISK, **dict(self.settings), **settings}


@dataclass
class Cluster:
    """Its parts by label, the lines between them by what lies behind, and what was done to both."""

    folder: Path
    shape: Shape
    provider: RogueProvider
    ends: AsyncExitStack
    parts: dict[str, Part] = field(default_factory=dict)
    lines: dict[str, FaultProxy] = field(default_factory=dict)
    store: Any = None
    """The Valkey, or the trio behind a Sentinel."""
    database: Any = None
    triton: Any = None
    mesh: Any = None
    """The mesh of this process, where it is one."""
    disk: Path | None = None
    """The small disk under the audit log."""
    fronts: list[httpx.AsyncClient] = field(default_factory=list)
    rpc_fronts: list[str] = field(default_factory=list)
    """Addresses of the ways to the sidecars' gRPC fronts."""
    broken_fronts: dict[int, list[tuple[float, float]]] = field(default_factory=dict)
    """Sidecar → spans of time in which it, or the way to it, was not whole."""
    checkpoints: list[tuple[int, bytes]] = field(default_factory=list)
    """Sizes and roots of the checkpoints that were seen, over all runs of this cluster."""
    notes: list[str] = field(default_factory=list)
    """What faults have found while they were made."""
    set_back_at: float = 0.0
    """When the session store was set back in place, on the clock of the calls; 0 for never."""
    healers: list[Any] = field(default_factory=list)
    """What undoes faults that are neither lines nor processes."""
    _channels: dict[str, grpc.aio.Channel] = field(default_factory=dict)

    @property
    def limit_s(self) -> float:
        """By when any call must have ended."""
        return float(self.shape.with_()["request_timeout_s"]) + float(self.shape.with_()["rpc_timeout_s"]) + SLACK_S

    @property
    def lease_s(self) -> float:
        """How long a lease is held when no process gives it back."""
        return float(self.shape.with_()["request_timeout_s"]) + float(self.shape.with_()["rpc_timeout_s"])

    @property
    def decides(self) -> bool:
        """Whether there is a decision service. It takes the URL of one store, of no Sentinel."""
        return self.shape.store != "sentinel"

    def sidecars(self) -> list[Part]:
        """The sidecars, in order."""
        return [one for label, one in self.parts.items() if label.startswith("sidecar")]

    async def line(self, label: str, port: int) -> FaultProxy:
        """Lay a line to a port."""
        made = await FaultProxy(port).start()
        self.ends.push_async_callback(made.stop)
        self.lines[label] = made
        return made

    def lines_to(self, label: str) -> list[FaultProxy]:
        """Return the lines of that label; to a sidecar there are two, one to each of its fronts."""
        return [self.lines[name] for name in (label, f"{label}{RPC}") if name in self.lines]

    async def front(self, number: int, http: int, rpc: int) -> None:
        """Lay the lines to a sidecar's two fronts."""
        line = await self.line(f"front-{number}", http)
        client = httpx.AsyncClient(
            base_url=f"http://{line.address}", trust_env=False, timeout=self.limit_s + 5, cookies=NO_COOKIES
        )
        self.fronts.append(await self.ends.enter_async_context(client))
        self.rpc_fronts.append((await self.line(f"front-{number}{RPC}", rpc)).address)

    def front_down(self, number: int) -> None:
        """Note that a sidecar is not whole from now on."""
        self.broken_fronts.setdefault(number, []).append((time.monotonic(), float("inf")))

    def front_was_whole(self, number: int, started: float, ended: float) -> bool:
        """Tell whether a sidecar and the way to it were whole all that time."""
        return not any(start <= ended and started <= end for start, end in self.broken_fronts.get(number, ()))

    async def heal(self) -> None:
        """Undo every fault and wait until all serves: lines, processes, provider, stores."""
        self.provider.behave()
        for healer in reversed(self.healers):
            await healer()
        self.healers.clear()
        for line in self.lines.values():
            line.mend()
        for one in self.parts.values():
            if one.paused:
                one.resume()
        dead = [one for one in self.parts.values() if not one.alive]
        await asyncio.gather(*(one.up() for one in dead))
        await self.ready()
        now = time.monotonic() + 0.3  # connections that a front made to what was broken end in a moment
        for spans in self.broken_fronts.values():
            spans[:] = [(start, min(end, now)) for start, end in spans]

    async def ready(self, limit_s: float = READY_S) -> None:
        """Wait until every sidecar says that it misses nothing."""
        deadline = time.monotonic() + limit_s
        if self.mesh is not None:
            while await self.mesh.unready_dependencies() and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
            return
        for number in range(len(self.fronts)):
            while True:
                with contextlib.suppress(httpx.HTTPError):
                    answer = await self.fronts[number].get("/readyz", timeout=5)
                    if answer.status_code == 200:
                        break
                    said = answer.text
                if time.monotonic() > deadline:
                    raise AssertionError(f"sidecar {number} is not ready after {limit_s} s: {locals().get('said')}")
                await asyncio.sleep(0.05)

    def session_stub(self) -> Any:
        """The session service, past every line."""
        return self.mesh.session if self.mesh else SessionServiceStub(self._channel("session"))

    def audit_stub(self) -> Any:
        """The audit service, past every line."""
        return self.mesh.audit if self.mesh else AuditServiceStub(self._channel("audit"))

    def _channel(self, label: str) -> grpc.aio.Channel:
        if label in self._channels:
            return self._channels[label]
        address = f"127.0.0.1:{self.parts[label].ports[label]}"
        options = [("grpc.max_reconnect_backoff_ms", 500), ("grpc.use_local_subchannel_pool", 1)]
        self._channels[label] = grpc.aio.insecure_channel(address, options=options)
        self.ends.push_async_callback(self._channels[label].close)
        return self._channels[label]

    def defects(self) -> list[str]:
        """Return what the parts logged that is a defect of ours and not a refusal."""
        marks = ('"event":"rpc.defect"', '"event":"call.defect"', '"event":"loop.stray_exception"', "serve.defect")
        return [
            f"{label}: {line[:400]}"
            for label, one in self.parts.items()
            for line in one.log().splitlines()
            if any(mark in line.replace('": "', '":"') for mark in marks)
        ]


@asynccontextmanager
async def running(folder: Path, shape: Shape) -> AsyncIterator[Cluster]:
    """Run a cluster, with a line between any two parts of it."""
    async with AsyncExitStack() as ends:
        provider = RogueProvider()
        served = ends.enter_context(RunningProvider(provider))
        cluster = Cluster(folder, shape, provider, ends)
        provider_line = await cluster.line("provider", int(served.base_url.split(":")[2].split("/")[0]))
        reviewers = agents.write(folder / "reviewers.yaml", agents.reviewers())
        settings = shape.with_(upstream_base_url=f"http://{provider_line.address}/v1", reviewers_file=reviewers)
        settings |= await _stores(cluster)
        if shape.light:
            await _in_this_process(cluster, settings)
            yield cluster
            return
        ends.push_async_callback(_end_parts, cluster)
        settings |= await _services(cluster, settings)
        settings |= await _decisions(cluster, settings)
        await _sidecars(cluster, settings)
        await cluster.ready()
        yield cluster


async def _stores(cluster: Cluster) -> dict[str, Any]:
    """Start what holds the sessions and, where it is a server, what holds the audit log."""
    folder = cluster.folder / "store"
    folder.mkdir(parents=True)
    settings: dict[str, Any] = {}
    if cluster.shape.store == "valkey":
        cluster.store = cluster.ends.enter_context(Valkey(folder))
        with cluster.store.client() as client:
            # On a machine where many start servers, another one may have been faster with this port.
            assert client.info("server")["process_id"] == cluster.store.process.pid, "the port of the store was taken"
        line = await cluster.line("store", cluster.store.port)
        settings["redis_url"] = f"redis://{line.address}/0"
    else:
        from tests.faults.parts.sentinel import trio

        cluster.store = await cluster.ends.enter_async_context(trio(folder, cluster))
        settings["redis_url"] = cluster.store.url
    if cluster.shape.database == "postgres":
        from tests.faults.parts.servers import database

        cluster.database = await cluster.ends.enter_async_context(database(cluster))
        settings["audit_url"] = cluster.database.url
    return settings


async def _in_this_process(cluster: Cluster, settings: Mapping[str, Any]) -> None:
    """Open the mesh in this process, behind one front."""
    from tests.support.sidecar.sidecar import running_sidecar
    from tests.support.sidecar.world import ToldDpe

    given = {name: value for name, value in settings.items() if name not in {"upstream_base_url", "log_level"}}
    opening = running_sidecar(
        cluster.folder, upstream=settings["upstream_base_url"], dpe=ToldDpe(), decides=cluster.decides, **given
    )
    made = await cluster.ends.enter_async_context(opening)
    cluster.mesh = made.mesh
    await cluster.front(0, *(int(address.rsplit(":", 1)[1]) for address in (made.http, made.grpc)))


async def _services(cluster: Cluster, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Start the four services, each behind a line, and return the addresses of the lines."""
    state = cluster.folder / "state"
    extra: dict[str, dict[str, Any]] = {name: {} for name in SERVICES}
    if cluster.shape.small_disk:
        from tests.faults.parts.servers import small_disk

        cluster.disk = cluster.ends.enter_context(small_disk(cluster.folder / "disk"))
        extra["audit"] = {"audit_url": f"sqlite:///{cluster.disk}/audit.db"}
    if cluster.shape.triton:
        extra["dpe"] = await _triton(cluster)
    for name in SERVICES:
        made = part(cluster.folder, name, name, {**settings, **extra[name]}, state)
        made.told = name == "dpe" and not (cluster.shape.models or cluster.shape.triton)
        made.weakness = dict(cluster.shape.weakened).get(name, "")
        cluster.parts[name] = made
    await cluster.parts["session"].up()  # it makes the master key, where there is none
    await asyncio.gather(*(cluster.parts[name].up() for name in SERVICES if name != "session"))
    addresses = {}
    for name in SERVICES:
        line = await cluster.line(name, cluster.parts[name].ports[name])
        addresses[f"{name}_address"] = line.address
    return addresses


async def _decisions(cluster: Cluster, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Prepare the decision service over the lines to the others, and return the address of the line to it."""
    if not cluster.decides:
        return {}
    port = free_port()  # chosen here: the sidecars that are told of it start at the same time
    made = part(cluster.folder, "decision", "decision", {**settings, "decision_port": port}, cluster.folder / "state")
    made.weakness = dict(cluster.shape.weakened).get("decision", "")
    cluster.parts["decision"] = made
    line = await cluster.line("decision", port)
    return {"decision_address": line.address}


async def _triton(cluster: Cluster) -> dict[str, Any]:
    from interlock.dpe.inference.models import ModelManifest  # noqa: F401 - the models are needed from here on
    from interlock.dpe.inference.serving import served
    from tests.support.servers.triton import server_of

    cluster.triton = server_of(cluster.folder / "triton", served())
    address = await asyncio.to_thread(cluster.triton.start)
    cluster.ends.callback(cluster.triton.kill)
    line = await cluster.line("triton", int(address.rsplit(":", 1)[1]))
    return {"triton_url": line.address}


async def _sidecars(cluster: Cluster, settings: Mapping[str, Any]) -> None:
    state = cluster.folder / "state"
    for number in range(cluster.shape.sidecars):
        label = f"sidecar-{number}"
        own = {**settings, "emergency_dir": cluster.folder / f"emergencies-{number}"}
        cluster.parts[label] = part(cluster.folder, label, "sidecar", own, state)
        cluster.parts[label].weakness = dict(cluster.shape.weakened).get("sidecar", "")
    beside = [cluster.parts["decision"]] if cluster.decides else []
    await asyncio.gather(*(one.up() for one in (*cluster.sidecars(), *beside)))
    for number, sidecar in enumerate(cluster.sidecars()):
        await cluster.front(number, sidecar.ports["sidecar_http"], sidecar.ports["sidecar_grpc"])


async def _end_parts(cluster: Cluster) -> None:
    """End what is left, all together; one that does not end on SIGTERM is killed."""

    def end(one: Part) -> None:
        if one.alive:
            if one.paused:
                one.resume()
            with contextlib.suppress(AssertionError):
                one.stop()

    for line in cluster.lines.values():
        line.mend()
    await asyncio.gather(*(asyncio.to_thread(end, one) for one in cluster.parts.values()))

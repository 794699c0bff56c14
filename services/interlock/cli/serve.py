"""``interlock serve``: the whole mesh in one process, or one service, wired in one place."""

from __future__ import annotations

import asyncio
import importlib
import os
import resource
import signal
import socket
import sys
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from enum import StrEnum
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import structlog
import typer
import uvloop
from prometheus_client import disable_created_metrics

from interlock.cli.notices import log_stray, missing_package, profile_line, warn_of_no_reviewers
from interlock.cli.output import DEFECT, OK, Format, Output, print_json, print_refusal
from interlock.domain.errors import Refused
from interlock.runtime import failpoints, integrity, logging, memory, telemetry
from interlock.runtime.http.server import WebServer, listen, operations
from interlock.runtime.rpc.errors import internal
from interlock.runtime.rpc.health import Readiness, unready_across
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.places import INNER, address, socket_to_serve
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.service import Service
from interlock.runtime.rpc.sockets import require_free
from interlock.runtime.settings.loading import EffectiveSetting, deprecated, explain, load, unknown_variables
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.profile_files import ProfileName
from interlock.runtime.settings.values import without_password

if TYPE_CHECKING:
    from interlock.decision.wiring import OpenedDecision
    from interlock.sidecar.wiring import Sidecar

log = structlog.get_logger()

MESH = ("session", "policy", "dpe", "audit")
# Room for facts, headers and framing that the agents' front accepts in addition to the body.
FRONT_MARGIN_BYTES = 262_144

# The event loop and the models' threads wait for the text thread's bytecode: so long each time, and many times in a call.
SWITCH_S = 0.001

Ready = Callable[[], Awaitable[Mapping[str, str]]]


class ServedProcess(StrEnum):
    """The service that one process serves."""

    SESSION = "session"
    POLICY = "policy"
    DPE = "dpe"
    AUDIT = "audit"
    SIDECAR = "sidecar"
    OVERSIGHT = "oversight"
    DECISION = "decision"
    INJECTOR = "injector"


def serve(
    name: Annotated[
        ServedProcess | None, typer.Argument(help="One service. Default: all services in one process.")
    ] = None,
    output: Output = Format.TEXT,
    profile: Annotated[
        ProfileName | None,
        typer.Option(help="observe, enforce or regulated (docs/profiles.md). Default: the setting profile."),
    ] = None,
    upstream: Annotated[
        str, typer.Option(help="Base URL of the provider. Default: the setting upstream_base_url.")
    ] = "",
) -> None:
    """Serve until SIGTERM or Ctrl-C, then let the calls in flight finish.

    Without NAME the whole mesh runs in one process, with embedded parts unless settings name others. Logs and progress go
    to standard error. Once everything listens, one line {"event": "ready", "ports": …, "sockets": …} goes to standard output
    if that is not a terminal. Services behind the fronts listen on sockets that only you may open, or with certificates.

    Examples: interlock serve --upstream https://api.openai.com/v1 | interlock serve --profile enforce | interlock serve sidecar | INTERLOCK_SIDECAR_HTTP_PORT=0 interlock serve -o json
    """
    flags = {name: given for name, given in {"profile": profile, "upstream_base_url": upstream}.items() if given}
    settings, loaded = load(flags=flags), explain(flags=flags)
    logging.configure(settings.log_level)
    # A core dump would contain keys, prompts and answers in plain text (reliability.md A-43).
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    disable_created_metrics()  # type: ignore[no-untyped-call]
    try:
        failpoints.configure()
        sys.setswitchinterval(SWITCH_S)
        code = uvloop.run(_Process(settings, name, loaded, as_json=output is Format.JSON).run())
    except Refused as refused:
        code = print_refusal(refused, as_json=output is Format.JSON)
    except Exception:  # a defect: its place is logged, but not its text, which could contain anything
        log.exception("serve.defect")
        print_refusal(internal(), as_json=output is Format.JSON)
        code = DEFECT
    sys.exit(code)


class _Process:
    """One process: start, serve, end. All opened parts are closed in reverse order, also after a failed start."""

    def __init__(self, settings: Settings, name: ServedProcess | None, loaded: Sequence[EffectiveSetting], *, as_json: bool) -> None:  # fmt: skip
        self.settings, self.name, self.as_json, self._loaded = settings, name, as_json, loaded
        self.ports: dict[str, int] = {}
        self.sockets: dict[str, str] = {}
        self._fronts: list[RpcServer | WebServer] = []
        self._servers: list[RpcServer | WebServer] = []
        self._ends = AsyncExitStack()
        self._stop = asyncio.Event()
        self._serving = False

    async def run(self) -> int:
        """Start, serve until a signal, end. Returns the exit code."""
        self._catch_signals(asyncio.current_task())
        self._say(f"interlock {version('interlock')}, state in {self.settings.state_dir}")
        self._say(f"  {profile_line(self.settings)}")
        log.info("serve.profile", profile=self.settings.profile, unaware_callers=self.settings.unaware_callers)
        if self.name in {None, ServedProcess.POLICY}:
            warn_of_no_reviewers(self.settings)
        for variable in unknown_variables(os.environ):
            log.warning("setting.unknown", setting=variable, hint="no setting has this name; see docs/configuration.md")
        for name, hint in deprecated(self.settings).items():
            log.warning("setting.deprecated", setting=name, hint=hint)
        async with self._ends:
            telemetry.configure(self.settings, service=self.name or "mesh")
            self._ends.push_async_callback(asyncio.to_thread, telemetry.shutdown)
            try:
                await asyncio.to_thread(integrity.require, verified=self.settings.require_verified_code)
                readiness = await (self._start_mesh() if self.name is None else self._start_one(self.name))
                await self._tell_ready(await readiness())
            except asyncio.CancelledError:
                self._say("stopped while starting")
                return OK
            await self._stop.wait()
            self._say(f"stopping: calls in flight have {self.settings.drain_s:g} s")
        self._say("stopped")
        return OK

    async def _start_mesh(self) -> Ready:
        self._probe_ports("sidecar_grpc", *MESH, "oversight")
        for name in self.settings.model_fields_set.intersection(f"{inner}_port" for inner in INNER):
            log.info("port.unused", name=name, hint="a whole mesh in one process listens on its fronts only")
        listener = self._listener("sidecar_http")
        await self._embed_valkey()
        services = {name: await self._open(name) for name in MESH}
        inner: list[Readiness] = []
        readiness = self._until_stopped(lambda: unready_across(inner))
        mesh = Mesh.local(**services)
        decision = self._open_decision(mesh, readiness)
        sidecar = await self._open_sidecar(mesh, readiness, listener, decision.service.servicer)
        self._ends.push_async_callback(self._drain)
        self._ends.callback(decision.leave)
        for name, service in services.items():
            inner.append((await self._serve_grpc(name, service)).readiness)
        await self._serve_oversight(mesh, readiness)
        await self._serve_grpc("decision", decision.service)
        await self._serve_fronts(sidecar, listener)
        return readiness

    async def _start_one(self, name: ServedProcess) -> Ready:
        fronts = {
            "sidecar": self._start_sidecar, "oversight": self._start_oversight, "injector": self._start_injector,
            "decision": self._start_decision,
        }  # fmt: skip
        if start := fronts.get(name):
            return await start()
        self._probe_ports(name)
        listener = self._metrics_listener()
        if name is ServedProcess.SESSION:
            await self._embed_valkey()
        service = await self._open(name)
        self._ends.push_async_callback(self._drain)
        readiness = self._until_stopped((await self._serve_grpc(name, service)).readiness.unready_dependencies)
        await self._serve_http("metrics", operations(readiness, self.settings), listener)
        return readiness

    async def _start_sidecar(self) -> Ready:
        self._probe_ports("sidecar_grpc")
        listener = self._listener("sidecar_http")
        mesh = Mesh.remote(self.settings)
        self._ends.push_async_callback(mesh.close)
        readiness = self._until_stopped(mesh.unready_dependencies)
        sidecar = await self._open_sidecar(mesh, readiness, listener, None)
        self._ends.push_async_callback(self._drain)
        await self._serve_fronts(sidecar, listener)
        return readiness

    async def _start_oversight(self) -> Ready:
        mesh = Mesh.remote(self.settings)
        self._ends.push_async_callback(mesh.close)
        readiness = self._until_stopped(mesh.unready_dependencies)
        self._ends.push_async_callback(self._drain)
        await self._serve_oversight(mesh, readiness)
        return readiness

    async def _start_decision(self) -> Ready:
        listener = self._metrics_listener()
        mesh = Mesh.remote(self.settings)
        self._ends.push_async_callback(mesh.close)
        decision = self._open_decision(mesh, mesh.unready_dependencies)
        self._ends.push_async_callback(self._drain)
        self._ends.callback(decision.leave)
        server = await self._serve_grpc("decision", decision.service)
        readiness = self._until_stopped(server.readiness.unready_dependencies)
        await self._serve_http("metrics", operations(readiness, self.settings), listener)
        return readiness

    def _open_decision(self, mesh: Mesh, readiness: Ready) -> OpenedDecision:
        from interlock.decision.wiring import open_decision

        self._or_aside("decision").close()
        decision = open_decision(self.settings, mesh, readiness)
        self._ends.push_async_callback(decision.service.close)
        return decision

    async def _start_injector(self) -> Ready:
        injector = importlib.import_module("interlock.injector.wiring").open_injector(self.settings, self._ends)
        await self._serve_http("injector", injector, self._listener("injector"), front=True)
        self._ends.push_async_callback(self._drain)
        return self._until_stopped(lambda: unready_across([]))

    async def _serve_oversight(self, mesh: Mesh, readiness: Ready) -> None:
        """Serve the reviewers on separate listeners, so that nothing that an agent can reach decides (A-48)."""
        from interlock.cli.probing.running import running_parts
        from interlock.oversight import link
        from interlock.oversight.wiring import open_oversight

        if self._socket("oversight") is None:
            self._or_aside("oversight").close()
        listener = self._or_aside("oversight_http")
        opened = open_oversight(self.settings, mesh, readiness, lambda: running_parts(self.settings), http_port=listener.getsockname()[1], loaded=self._loaded)  # fmt: skip
        await self._serve_grpc("oversight", opened.service)
        await self._serve_http("oversight_http", opened.http_app, listener, front=True)
        self._say(f"  console: {link.offered(self.settings, opened.link, self._ends)}")

    def _or_aside(self, name: str) -> socket.socket:
        """Listen on a port of the settings. If another mesh on this machine has the default port, use any free port."""
        try:
            return self._listener(name)
        except Refused:
            if f"{name}_port" in self.settings.model_fields_set:
                raise
            log.info("port.moved", name=name, port=getattr(self.settings, f"{name}_port"))
            self.settings = self.settings.model_copy(update={f"{name}_port": 0})
            return self._listener(name)

    async def _embed_valkey(self) -> None:
        if self.settings.redis_url:
            self._say(f"  sessions in {without_password(self.settings.redis_url)}")
            return
        from interlock.cli.local.embedded import EmbeddedValkey

        valkey = EmbeddedValkey()
        url = await valkey.start(self.settings.state_dir)
        self._ends.push_async_callback(valkey.stop)
        self.settings = self.settings.model_copy(update={"redis_url": url})
        self._say(f"  sessions in {without_password(url)}, an embedded Valkey")

    async def _open(self, name: str) -> Service:
        begin = time.monotonic()
        try:
            service: Service = await importlib.import_module(f"interlock.{name}.wiring").open_service(self.settings)
        except ModuleNotFoundError as error:
            raise missing_package(name, error) from None
        self._ends.push_async_callback(service.close)
        self._say(f"  {name} opened in {time.monotonic() - begin:.1f} s")
        return service

    async def _open_sidecar(self, mesh: Mesh, readiness: Ready, listener: socket.socket, decision: Any) -> Sidecar:
        from interlock.sidecar.wiring import open_sidecar

        if not self.settings.public_base_url:
            base = f"{self._scheme}://{address(self.settings.host, listener.getsockname()[1])}"
            self.settings = self.settings.model_copy(update={"public_base_url": base})
        sidecar = await open_sidecar(self.settings, mesh, readiness, decision=decision)
        self._ends.push_async_callback(sidecar.close)
        return sidecar

    async def _serve_fronts(self, sidecar: Sidecar, listener: socket.socket) -> None:
        largest = self.settings.max_body_bytes + FRONT_MARGIN_BYTES
        self._fronts.append(await self._serve_grpc("sidecar_grpc", sidecar.service, largest_request=largest))
        self._fronts.append(await self._serve_http("sidecar_http", sidecar.http_app, listener, front=True))
        if sidecar.envoy is not None:
            from interlock.sidecar.fronts.envoy.service import LARGEST_PIECE

            self._fronts.append(await self._serve_grpc("envoy", sidecar.envoy, largest_request=LARGEST_PIECE))

    async def _serve_grpc(self, name: str, service: Service, *, largest_request: int | None = None) -> RpcServer:
        port, socket_path = getattr(self.settings, f"{name}_port"), self._socket(name)
        server = RpcServer([service], self.settings, port=port, socket=socket_path, largest_request=largest_request)
        bound = await server.start()
        if socket_path is None:
            self.ports[name] = bound
        else:
            self.sockets[name] = str(socket_path)
        self._servers.append(server)
        self._say(f"  {name} on {server.target}")
        return server

    def _socket(self, name: str) -> Path | None:
        """Return the socket that a service behind the fronts is served on; ``None``: its port."""
        return socket_to_serve(self.settings, name, alone=self.name is not None) if name in INNER else None

    async def _serve_http(self, name: str, app: Any, listener: socket.socket, *, front: bool = False) -> WebServer:
        web = WebServer(app, self.settings, listener, front=front)
        self.ports[name] = await web.start()
        self._servers.append(web)
        self._say(f"  {name} on {address(self.settings.host, self.ports[name])}")
        return web

    async def _drain(self) -> None:
        """Drain the agents' fronts first: their calls in flight still need the services behind them."""
        await asyncio.gather(*(server.leave() for server in self._servers if isinstance(server, RpcServer)))
        await asyncio.gather(*(front.drain() for front in self._fronts))
        await asyncio.gather(*(server.drain() for server in self._servers if server not in self._fronts))

    @property
    def _scheme(self) -> str:
        return "https" if self.settings.front_cert_file else "http"

    def _until_stopped(self, readiness: Ready) -> Ready:
        async def unready_dependencies() -> Mapping[str, str]:
            return {"process": "it is ending"} if self._stop.is_set() else await readiness()

        return unready_dependencies

    def _probe_ports(self, *names: str) -> None:
        """Refuse a taken port or socket now, before the models are loaded."""
        for name in names:
            if path := self._socket(name):
                require_free(path)
            elif getattr(self.settings, f"{name}_port"):
                self._listener(name).close()

    def _listener(self, name: str, port: int | None = None) -> socket.socket:
        wanted = getattr(self.settings, f"{name}_port") if port is None else port
        listener = listen(self.settings, wanted, f"{name}_port")
        self._ends.callback(listener.close)
        return listener

    def _metrics_listener(self) -> socket.socket:
        """Listen for /metrics. Four services on one machine share the default port, so three of them use free ports."""
        try:
            return self._listener("metrics")
        except Refused:
            if "metrics_port" in self.settings.model_fields_set:
                raise
            log.info("metrics.port_moved", port=self.settings.metrics_port, hint="INTERLOCK_METRICS_PORT fixes one")
            return self._listener("metrics", 0)

    def _catch_signals(self, starting: asyncio.Task[Any] | None) -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(log_stray)

        def stop(number: int) -> None:
            if self._stop.is_set():
                os._exit(128 + number)  # second signal: exit now
            self._stop.set()
            if not self._serving and starting:
                starting.cancel()

        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop, number)

    async def _tell_ready(self, unready: Mapping[str, str]) -> None:
        # Loaded objects stay, so the garbage collector need not scan them again during every call.
        memory.settle()
        self._serving = True
        for dependency, hint in unready.items():
            self._say(f"  waiting for {dependency}: {hint}")
        if self.as_json or not sys.stdout.isatty():
            ready = {"event": "ready", "pid": os.getpid(), "ports": self.ports, "sockets": self.sockets}
            print_json({**ready, "missing": dict(unready)})
        log.info("serve.ready", ready=not unready, missing=sorted(unready))
        if "sidecar_http" not in self.ports:
            self._say("ready" if not unready else "serving, and not ready yet")
            return
        base = f"{self._scheme}://{address(self.settings.host, self.ports['sidecar_http'])}/v1"
        self._say(f"{'serving, and not ready yet' if unready else 'ready'}: OPENAI_BASE_URL={base}")
        if not self.settings.upstream_base_url:
            self._say("note: INTERLOCK_UPSTREAM_BASE_URL is not set; until it is, chat completions are refused")

    def _say(self, line: str) -> None:
        """Print progress for people. Programs read the log and the ready line."""
        if not self.as_json:
            sys.stderr.write(line + "\n")
            sys.stderr.flush()

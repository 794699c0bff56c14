"""HTTP servers in this process: uvicorn without its own signals and logging, and the three pages for operators."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any

import uvicorn
from prometheus_client import REGISTRY
from prometheus_client.exposition import choose_encoder
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from interlock.runtime.http.outcomes import Outcomes
from interlock.runtime.http.protocol import guarded
from interlock.runtime.rpc.places import address
from interlock.runtime.rpc.server import port_in_use
from interlock.runtime.settings.access import is_open
from interlock.runtime.settings.model import Settings
from interlock.runtime.tls.fronts import FrontTls, open_front_tls
from interlock.runtime.tls.mutual import require_private

KEEP_ALIVE_S = 75
TICKS_A_SECOND = 10


def listen(settings: Settings, port: int, name: str) -> socket.socket:
    """Return a socket that listens on *port* of the settings' host. Refused with PORT_IN_USE if the port is unavailable."""
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        # This frees a port of a process that just ended, but not a port with a listener.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((settings.host, port))
        listener.listen(2048)
    except OSError:
        listener.close()
        raise port_in_use(address(settings.host, port), name) from None
    listener.setblocking(False)  # noqa: FBT003 - the socket API's own signature
    return listener


class WebServer:
    """Serves one ASGI application on a listening socket until it is drained."""

    def __init__(self, app: Any, settings: Settings, listener: socket.socket, *, front: bool = False) -> None:
        """Prepare the server. A *front* serves people or agents: it has the fronts' certificate and no remote plain text."""
        self._listener = listener
        tls = open_front_tls(settings) if front else None
        if front:
            require_private(settings, front=True)
        self._server = _Quiet(
            uvicorn.Config(
                Outcomes(app),
                log_config=None,
                access_log=False,
                server_header=False,
                http=guarded(settings.head_timeout_s, settings.request_timeout_s),
                ws="none",
                loop="none",
                # Longer than the idle time of common clients, so that none writes into a closing connection.
                timeout_keep_alive=KEEP_ALIVE_S,
                timeout_graceful_shutdown=max(1, round(settings.drain_s)),
            ),
            tls,
        )
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> int:
        """Serve, and return the port."""
        self._task = asyncio.create_task(self._server.serve(sockets=[self._listener]))
        await self._server.settled.wait()
        if not self._server.started:
            await self._task
            raise RuntimeError("the HTTP front did not start")
        port: int = self._listener.getsockname()[1]
        return port

    async def drain(self) -> None:
        """Accept no more requests, let the ones in flight finish within ``drain_s``, then stop."""
        self._server.should_exit = True
        if self._task:
            await self._task


class _Quiet(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, tls: FrontTls | None) -> None:
        super().__init__(config)
        self.settled = asyncio.Event()
        self._tls = tls

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the process, which stops more than this server."""
        yield

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and report success or failure. A failing application must not end the process without an error."""
        if self._tls:
            self.config.ssl = self._tls.context()
        try:
            await super().startup(sockets)
        except SystemExit:
            raise RuntimeError("the application's start failed; the log has the place") from None
        finally:
            self.settled.set()

    async def on_tick(self, counter: int) -> bool:
        """Update the certificate for new connections, about once a second."""
        if self._tls and counter % TICKS_A_SECOND == 0:
            self._tls.follow()
        return await super().on_tick(counter)


def operations(readiness: Callable[[], Awaitable[Mapping[str, str]]], settings: Settings) -> Starlette:
    """Return the pages for operators: /healthz, /readyz, and /metrics, which is 403 where ``metrics_access`` is against it."""

    async def healthz(_request: Request) -> Response:
        return PlainTextResponse("ok\n")

    async def readyz(_request: Request) -> Response:
        unready = dict(await readiness())
        return JSONResponse({"ready": not unready, "missing": unready}, status_code=503 if unready else 200)

    async def metrics(request: Request) -> Response:
        if not is_open(settings.metrics_access, settings.host):
            return PlainTextResponse(f"metrics_access is {settings.metrics_access}\n", status_code=403)
        encode, media_type = choose_encoder(request.headers.get("accept", ""))  # exemplars are in OpenMetrics alone
        return Response(encode(REGISTRY), media_type=media_type)

    return Starlette(routes=[Route("/healthz", healthz), Route("/readyz", readyz), Route("/metrics", metrics)])

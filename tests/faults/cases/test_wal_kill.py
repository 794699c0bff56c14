"""kill -9 before and after each durable step of a call, in the sidecar and in the session service; the client tries again.

Afterwards ledger, store, audit log and tokens agree: what was released was sealed and settled, and every charge counts once.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.runtime.failpoints import POINTS
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.processes import Process, Processes
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.world import _dpe_service, obedient
from tests.support.valkey import Valkey

pytestmark = pytest.mark.long

PATIENCE_S = 40.0
COST = 50_000
AT_START = frozenset({"sidecar.before_created", "sidecar.after_created", "session.before_start", "session.after_start"})
AT_RESTORE = frozenset({"sidecar.before_restore", "session.before_restore", "session.after_restore"})
ELSEWHERE = frozenset({"sidecar.after_part", "session.before_hold", "session.after_hold", "sidecar.after_reserve"})
"""No call passes them that asks for a whole answer without a spending limit: other tests of this folder and the suite die there."""
KILLED = [name for name in POINTS if name.startswith(("sidecar.", "session.")) and name not in ELSEWHERE]
LOST = frozenset({"TOKEN_REPLAYED"})
"""The answer was settled and the sidecar died before it left: its token went with it."""


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    """Valkey, policy and audit for all points; session and sidecar are killed and started again."""
    folder = tmp_path_factory.mktemp("wal")
    with ExitStack() as ends:
        valkey = ends.enter_context(Valkey(_made(folder / "valkey")))
        provider = ends.enter_context(RunningProvider(obedient(Provider())))
        dpe = ends.enter_context(_dpe(folder))
        settings = {
            "redis_url": valkey.url, "upstream_base_url": provider.base_url, "rpc_timeout_s": 2, "request_timeout_s": 3,
            "upstream_timeout_s": 2, "dpe_address": f"127.0.0.1:{dpe}", "drain_s": 1,
        }  # fmt: skip
        processes = ends.enter_context(Processes(folder, settings))
        services = {name: processes.process(name).start() for name in ("session", "policy", "audit")}
        found = {f"{name}_address": f"127.0.0.1:{one.wait().ports[name]}" for name, one in services.items()}
        services["sidecar"] = processes.process("sidecar", **found).start().wait()
        yield Mesh(valkey, services, found)


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


@contextmanager
def _dpe(folder: Path) -> Iterator[int]:
    """The analysis, in a thread of its own loop."""
    import asyncio
    import threading

    loop, started = asyncio.new_event_loop(), threading.Event()
    port: list[int] = []

    async def serve() -> RpcServer:
        server = RpcServer([_dpe_service()], Settings(state_dir=folder / "dpe", allow_plaintext=True), port=0)
        port.append(await server.start())
        return server

    def run() -> None:
        asyncio.set_event_loop(loop)
        server = loop.run_until_complete(serve())
        started.set()
        loop.run_forever()
        loop.run_until_complete(server.drain())
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(30)
    try:
        yield port[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


@dataclass
class Mesh:
    """What runs, and how to ask it."""

    valkey: Valkey
    services: dict[str, Process]
    addresses: dict[str, str]
    killed: list[str] = field(default_factory=list)
    """The services that were found dead by SIGKILL, in order."""

    @contextmanager
    def dying_at(self, point: str, at: int) -> Iterator[None]:
        """Let the process of *point* kill itself at its pass number *at*; bring it back when it has."""
        one = self.services[point.partition(".")[0]]
        one.stop()
        one.env["INTERLOCK_FAILPOINTS"] = f"{point}:kill@{at}"
        one.restart()
        self.killed.clear()
        try:
            yield
        finally:
            if not self.killed:
                self._ended(one, one.stop())

    def _ended(self, one: Process, code: int) -> None:
        """Note how it ended and bring it back without its failpoint."""
        self.killed += [str(one.name)] if code == -signal.SIGKILL else []
        one.env.pop("INTERLOCK_FAILPOINTS", None)
        one.restart()

    def revived(self) -> None:
        """Start what died."""
        for one in self.services.values():
            code = one.child.poll()
            if code is not None:
                self._ended(one, code)


@dataclass
class Client:
    """A client that tries again until it is told to stop, as an agent does."""

    mesh: Mesh
    token: str = ""
    session: str = ""
    answers: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    lost: bool = False

    def ask(self) -> None:
        """Get one answer, or learn that it was settled without one."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline and not self.lost:
            try:
                response = self._post()
            except httpx.TransportError:
                self.seen.append("died")
                self.mesh.revived()
                continue
            if self._learned(response):
                return
            self.mesh.revived()
            time.sleep(0.1)
        assert self.lost, f"no answer in {PATIENCE_S} s: {self.seen}"

    def _post(self) -> httpx.Response:
        port = self.mesh.services["sidecar"].ports["sidecar_http"]
        body = {"model": "m", "messages": [{"role": "user", "content": "Say: MEDIUM"}]}
        sent = {"crp-session-token": self.token} if self.token else {}
        return httpx.post(f"http://127.0.0.1:{port}/v1/chat/completions", json=body, headers=sent, timeout=15)

    def _learned(self, response: httpx.Response) -> bool:
        reason = "" if response.status_code == 200 else str(response.json().get("reason"))
        self.seen.append(reason or "200")
        if "crp-set-session" in response.headers and reason in {"", "WINDOW_ALREADY_SETTLED"}:
            self.token = response.headers["crp-set-session"].split(";")[0].removeprefix("token=")
            self.session = response.headers.get("crp-context-session-id") or self.session
        if not reason:
            self.answers.append(response.headers["crp-provenance-hmac"])
            return True
        self.lost = reason in LOST
        assert self.lost or response.status_code in {409, 502, 503, 504}, response.text
        return False


@pytest.mark.req("BUD-4", "BUD-8")
@pytest.mark.parametrize("point", KILLED)
def test_a_process_that_dies_there_loses_and_doubles_nothing(mesh, point):
    """Whichever side of which step it dies on, the retry leads to one truth."""
    first_dies, client = point in AT_START, Client(mesh)
    if not first_dies:
        client.ask()
    with mesh.dying_at(point, 1):
        if point in AT_RESTORE:
            mesh.valkey.flush()
        client.ask()
    if not client.lost:
        client.ask()
    check(mesh, client)

    # What the client saw of it is a matter of time: a refusal, a closed connection, or nothing but a slow answer.
    assert mesh.killed == [point.partition(".")[0]], client.seen


def check(mesh: Mesh, client: Client) -> None:
    """The audit log verifies; every answer was sealed; the store holds what was sealed, each charge once; the token fits."""
    with ExitStack() as ends:
        audit = AuditServiceStub(ends.enter_context(grpc.insecure_channel(mesh.addresses["audit_address"])))
        session = SessionServiceStub(ends.enter_context(grpc.insecure_channel(mesh.addresses["session_address"])))
        verified = audit.Verify(audit_pb2.VerifyRequest(session_id=client.session))
        events = [one.event for one in audit.Export(audit_pb2.ExportRequest(session_id=client.session))]
        stored = session.GetSession(session_pb2.GetSessionRequest(session_id=client.session)).session
    sealed: list[dict[str, Any]] = [json.loads(one.data_json) for one in events if one.event_type == "WINDOW_SEALED"]
    settled = {window.hmac: window for window in stored.windows}

    assert verified.integrity in {common_pb2.CHAIN_INTEGRITY_VALID, common_pb2.CHAIN_INTEGRITY_UNVERIFIED}
    assert set(client.answers) <= {one["hmac"] for one in sealed}
    assert {one["hmac"] for one in sealed} == set(settled)
    assert len(client.answers) == len(set(client.answers))
    assert stored.safety_budget_micros == 1_000_000 - COST * len(sealed)
    assert verified.charged_micros == COST * len(sealed)
    assert len(sealed) <= len(client.answers) + 1

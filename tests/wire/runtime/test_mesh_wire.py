"""The mesh as the sidecar sees it, over real gRPC."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceServicer
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1.session_pb2_grpc import SessionServiceServicer
from interlock.client.decision.places import OPTIONS
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc import mesh as runtime_mesh
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.mesh import NAMES, Mesh
from interlock.runtime.rpc.server import RpcServer, options
from interlock.runtime.settings.model import Settings
from tests.faults.parts.proxy import FaultProxy
from tests.support.servers.ports import free_port
from tests.support.servers.probe import AuditProbe, Dependency, PolicyProbe, audit_service, policy_service
from tests.support.streams import ask_each


class Peers:
    """A policy and an audit service on one port; session and dpe are not there."""

    def __init__(self) -> None:
        self.port = free_port()
        self.redis = Dependency()
        addresses = {f"{name}_address": f"127.0.0.1:{free_port()}" for name in ("session", "dpe")}
        ours = {f"{name}_address": f"127.0.0.1:{self.port}" for name in ("policy", "audit")}
        self.settings = Settings(**addresses, **ours, drain_s=0.1, allow_plaintext=True)

    async def start(self) -> RpcServer:
        services = [policy_service(PolicyProbe(), self.redis), audit_service(AuditProbe())]
        server = RpcServer(services, self.settings, port=self.port)
        await server.start()
        return server


@pytest.fixture
async def peers():
    yield Peers()


@pytest.fixture
async def mesh(peers):
    made = Mesh.remote(peers.settings)
    yield made
    await made.close()


def parse(text: str) -> policy_pb2.ParseRequest:
    return policy_pb2.ParseRequest(text=text)


@pytest.mark.req("SVC-4", "SVC-9")
async def test_missing_names_each_service_with_what_to_do(mesh, peers):
    """Services that do not answer are named, with the command that starts them and the setting that finds them."""
    server = await peers.start()
    missing = await mesh.unready_dependencies()
    await server.drain()

    assert set(missing) == {"session", "dpe"}
    assert "interlock serve session" in missing["session"]
    assert "INTERLOCK_DPE_ADDRESS" in missing["dpe"]


@pytest.mark.req("SVC-9")
async def test_missing_names_what_a_service_misses(mesh, peers):
    """A service that runs without its dependency is named with that dependency and its own hint."""
    peers.redis.gone = {"redis": "start it"}
    server = await peers.start()
    missing = await mesh.unready_dependencies()
    await server.drain()

    assert missing["policy/redis"] == "start it"
    assert "policy" not in missing


async def test_another_service_at_the_address_is_told(mesh, peers):
    """A service of another kind at the address is not taken for the right one."""
    wrong = Mesh.remote(peers.settings.model_copy(update={"dpe_address": f"127.0.0.1:{peers.port}"}))
    server = await peers.start()
    missing = await wrong.unready_dependencies()
    await server.drain()
    await wrong.close()

    assert "is not the dpe service" in missing["dpe"]


@pytest.mark.req("SVC-9")
async def test_absent_service_is_refused_with_its_name(mesh):
    """A call to a service that is not there is UNAVAILABLE with that service's reason."""
    with pytest.raises(Refused) as raised:
        await call_service("policy", mesh.policy.Parse(parse("hello"), timeout=5))

    assert (raised.value.kind, raised.value.reason) == (Kind.UNAVAILABLE, "POLICY_UNAVAILABLE")
    assert raised.value.retry_after_ms > 0


@pytest.mark.req("SVC-9")
async def test_channel_recovers_by_itself(mesh, peers):
    """A channel made before its peer, and one that outlived its peer, both find it when it is there."""
    with pytest.raises(Refused):
        await call_service("policy", mesh.policy.Parse(parse("early"), timeout=5))
    for text in ("first", "second"):
        server = await peers.start()
        async with asyncio.timeout(10):
            while (answer := await _answer(mesh, text)) is None:
                await asyncio.sleep(0.05)
        await server.drain()
        assert answer == text
        assert await _answer(mesh, text) is None


async def _answer(mesh: Mesh, text: str):
    try:
        return (await call_service("policy", mesh.policy.Parse(parse(text), timeout=5))).canonical_text
    except Refused:
        return None


async def test_large_messages_pass_between_services(mesh, peers):
    """A message beyond gRPC's own default of 4 MiB passes in both directions."""
    server = await peers.start()
    back = await call_service("policy", mesh.policy.Parse(parse("large"), timeout=10))
    there = await call_service("policy", mesh.policy.Parse(parse("x" * 5_000_000), timeout=10))
    await server.drain()

    assert len(back.canonical_text) == len(there.canonical_text) == 5_000_000


async def test_environment_proxy_is_not_used(peers, monkeypatch):
    """Calls between services go straight to their address, whatever proxy the machine has."""
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{free_port()}")
    monkeypatch.setenv("no_proxy", "")
    mesh = Mesh.remote(peers.settings)
    server = await peers.start()
    answer = await call_service("policy", mesh.policy.Parse(parse("hello"), timeout=5))
    await mesh.close()
    await server.drain()

    assert answer.canonical_text == "hello"


@pytest.mark.req("SVC-1")
async def test_local_mesh_takes_services_and_servicers():
    """A mesh in one process is made of opened services or of bare servicers, and merges what they miss."""
    dependency = Dependency()
    policy, audit = policy_service(PolicyProbe(), dependency), AuditProbe()
    mesh = Mesh.local(session=SessionServiceServicer(), policy=policy, dpe=DpeServiceServicer(), audit=audit)
    dependency.gone = {"files": "put them back"}
    answer = await call_service("policy", mesh.policy.Parse(parse("hello"), timeout=5))
    stream = ask_each("audit", mesh.audit.Export(audit_pb2.ExportRequest(session_id="s")))

    assert answer.canonical_text == "hello"
    assert [message.event.sequence async for message in stream] == [1, 2]
    assert await mesh.unready_dependencies() == {"files": "put them back"}
    assert set(NAMES) <= set(vars(mesh))


async def test_a_line_that_died_in_silence_is_given_up_for_another(peers, monkeypatch):
    """Nobody tells the channel: its pings are not answered, so it opens another line. Here it pings sooner than it does."""
    timeouts = dict.fromkeys(("grpc.keepalive_timeout_ms", "grpc.http2.ping_timeout_ms"), 1_000)
    sooner = {"grpc.keepalive_time_ms": 1_000, **timeouts}
    monkeypatch.setattr(runtime_mesh, "_OPTIONS", [(name, sooner.get(name, to)) for name, to in runtime_mesh._OPTIONS])
    server, line = await peers.start(), await FaultProxy(peers.port).start()
    mesh = Mesh.remote(peers.settings.model_copy(update={"policy_address": line.address}))
    try:
        await call_service("policy", mesh.policy.Parse(parse(""), timeout=10))
        line.half_open()
        async with asyncio.timeout(20):
            while line.connections < 2:
                with contextlib.suppress(Refused):
                    await call_service("policy", mesh.policy.Parse(parse(""), timeout=0.2))
        line.mend()
        asked = mesh.policy.Parse(parse("back"), timeout=10, wait_for_ready=True)
        assert (await call_service("policy", asked)).canonical_text == "back"
    finally:
        await mesh.close()
        await line.stop()
        await server.drain()


def test_no_server_takes_the_pings_of_a_client_for_abuse():
    """A client pings no sooner than each server lets it, and a server lets it while nothing is called."""
    demanded = dict(options(Settings(), 1024))
    for given in (dict(runtime_mesh._OPTIONS), dict(OPTIONS)):
        assert given["grpc.keepalive_time_ms"] >= demanded["grpc.http2.min_recv_ping_interval_without_data_ms"]
    assert demanded["grpc.keepalive_permit_without_calls"] == 1

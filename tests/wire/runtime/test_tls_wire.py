"""Mutual TLS over real ports: who gets in, who does not, and certificates that change under live calls (SVC-6)."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import replace as replace_fields

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc
from prometheus_client import REGISTRY

from interlock.api.policy.v1 import policy_pb2
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from interlock.domain.errors import Kind, Refused
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.probe import PolicyProbe, policy_service
from tests.support.servers.tls import (
    a_mesh_of_certificates,
    dns,
    files,
    issue,
    mesh_of,
    raw_channel,
    replace,
    serving,
    uri,
)

pytestmark = pytest.mark.req("SVC-6")


@pytest.fixture(scope="module")
def held(tmp_path_factory):
    """The certificates of a mesh."""
    return a_mesh_of_certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def own(tmp_path):
    """Certificates of a mesh that this test alone changes."""
    return a_mesh_of_certificates(tmp_path / "certificates")


def request(text: str = "x") -> policy_pb2.ParseRequest:
    return policy_pb2.ParseRequest(text=text)


async def parse(mesh, text: str = "x") -> str:
    return (await call_service("policy", mesh.policy.Parse(request(text), timeout=5))).canonical_text


async def test_a_member_is_served(held):
    """A sidecar with its certificate calls policy with its own, and health tells that policy is there."""
    async with serving([policy_service(PolicyProbe())], **files(held, "policy")) as port:
        async with mesh_of(port, **files(held, "sidecar")) as mesh:
            assert await parse(mesh, "hello") == "hello"
            assert "policy" not in await mesh.unready_dependencies()


async def test_plain_text_is_not_served(held):
    """A caller without TLS gets no answer from a port of the mesh."""
    async with serving([policy_service(PolicyProbe())], **files(held, "policy")) as port, mesh_of(port) as mesh:
        with pytest.raises(Refused, match="POLICY_UNAVAILABLE"):
            await parse(mesh)


async def test_a_caller_without_a_certificate_is_not_served(held):
    """TLS without a client certificate ends in the handshake."""
    async with serving([policy_service(PolicyProbe())], **files(held, "policy")) as port:
        credentials = grpc.ssl_channel_credentials((held / "ca.pem").read_bytes())
        options = [("grpc.ssl_target_name_override", "policy.interlock")]
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options=options) as channel:
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await PolicyServiceStub(channel).Parse(request(), timeout=5)

    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_caller_of_another_authority_is_not_served(held, tmp_path):
    """A certificate with the right names by another authority ends in the handshake."""
    foreign = a_mesh_of_certificates(tmp_path / "foreign")
    own = {**files(foreign, "sidecar"), "tls_ca_file": held / "ca.pem"}
    async with serving([policy_service(PolicyProbe())], **files(held, "policy")) as port:
        async with raw_channel(port, own, target="policy.interlock") as channel:
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await PolicyServiceStub(channel).Parse(request(), timeout=5)

    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_another_service_is_not_taken_for_the_one_called(held):
    """A rogue that has the certificate of dpe cannot stand in for policy."""
    rogue = RpcServer([policy_service(PolicyProbe())], Settings(drain_s=0.2, allow_plaintext=True), port=0)
    credentials = grpc.ssl_server_credentials(
        [((held / "dpe.key").read_bytes(), (held / "dpe.pem").read_bytes())], (held / "ca.pem").read_bytes(), True
    )
    rogue._credentials = credentials
    port = await rogue.start()
    async with mesh_of(port, **files(held, "sidecar")) as mesh:
        with pytest.raises(Refused, match="POLICY_UNAVAILABLE"):
            await parse(mesh)
    await rogue.drain()


@pytest.mark.parametrize(
    "names",
    [
        pytest.param([uri("sidecar", "elsewhere")], id="another trust domain"),
        pytest.param([dns("sidecar")], id="no SPIFFE id"),
        pytest.param([uri("sidecar"), uri("operator")], id="two SPIFFE ids"),
        pytest.param([uri("nobody")], id="no member"),
        pytest.param([uri("sidecar/extra")], id="a longer path"),
        pytest.param([uri("Sidecar")], id="another case"),
    ],
)
async def test_whoever_is_no_one_member_may_not_even_ask_for_health(own, names):
    """A certificate of our own authority that names no one member of this mesh is denied everything."""
    stranger = issue(own, "stranger", names)
    async with serving([policy_service(PolicyProbe())], **files(own, "policy")) as port:
        async with raw_channel(port, stranger, target="policy.interlock") as channel:
            calls = (
                PolicyServiceStub(channel).Parse(request(), timeout=5),
                health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(), timeout=5),
            )
            codes = [await code_of(call) for call in calls]

    assert codes == [grpc.StatusCode.PERMISSION_DENIED] * 2


async def code_of(call) -> grpc.StatusCode:
    try:
        await call
    except grpc.aio.AioRpcError as error:
        return error.code()
    return grpc.StatusCode.OK


async def test_a_denied_caller_is_told_counted_and_logged(held, capsys):
    """The refusal has its reason; the metric names service, method and caller."""
    labels = {"service": "policy", "method": "Parse", "caller": "oversight"}
    before = REGISTRY.get_sample_value("interlock_callers_denied_total", labels) or 0
    async with serving([policy_service(PolicyProbe())], **files(held, "policy")) as port:
        async with mesh_of(port, **files(held, "oversight")) as mesh:
            with pytest.raises(Refused) as raised:
                await parse(mesh)

    assert (raised.value.kind, raised.value.reason) == (Kind.FORBIDDEN, "CALLER_NOT_ALLOWED")
    assert REGISTRY.get_sample_value("interlock_callers_denied_total", labels) == before + 1


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1])
async def test_tls_before_1_2_is_not_spoken(held, version):
    """A client that speaks nothing newer than TLS 1.1 gets no handshake."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = version
    context.load_cert_chain(held / "sidecar.pem", held / "sidecar.key")
    async with serving([policy_service(PolicyProbe())], **files(held, "policy")) as port:
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.open_connection("127.0.0.1", port, ssl=context)


async def test_certificates_change_under_live_calls_without_a_failed_one(own):
    """Server and client get new certificates, then a new authority, while calls run; not one of them fails."""
    async with serving([policy_service(PolicyProbe())], **files(own, "policy")) as port:
        async with mesh_of(port, **files(own, "sidecar")) as mesh:
            stop = asyncio.Event()
            calls = asyncio.create_task(_calling(mesh, stop))
            before = _reloads()
            a_mesh_of_certificates(own)
            await _until(lambda: _reloads() >= before + 2)
            a_new_authority(own)
            await _until(lambda: _reloads() >= before + 4)
            await asyncio.sleep(1.5)
            stop.set()
            made = await calls
        # Who knows the new authority alone gets in now: the server follows too.
        (own / "ca.pem").write_bytes(_last(own / "ca.pem"))
        async with mesh_of(port, **files(own, "sidecar")) as late:
            assert await parse(late, "late") == "late"

    assert made > 50


def a_new_authority(folder) -> None:
    """Trust the old authority and a new one, and issue every certificate by the new one."""
    old = (folder / "ca.pem").read_bytes()
    (folder / "ca.key").unlink()
    a_mesh_of_certificates(folder)
    scratch = folder / "both.pem"
    scratch.write_bytes(old + (folder / "ca.pem").read_bytes())
    scratch.replace(folder / "ca.pem")


def _last(path) -> bytes:
    mark = b"-----BEGIN"
    return mark + path.read_bytes().split(mark)[-1]


async def _calling(mesh, stop: asyncio.Event) -> int:
    made = 0
    while not stop.is_set():
        assert await parse(mesh, str(made)) == str(made)
        made += 1
        await asyncio.sleep(0.01)
    return made


def _reloads(outcome: str = "accepted") -> float:
    labels = {"setting": "tls_cert_file", "outcome": outcome}
    return REGISTRY.get_sample_value("interlock_file_reloads_total", labels) or 0


async def _until(condition) -> None:
    async with asyncio.timeout(15):
        while not condition():
            await asyncio.sleep(0.05)


async def test_a_bad_new_certificate_is_told_and_the_good_one_stays(own):
    """A certificate with another's key is refused once; calls, and new connections, go on with the one before."""
    async with serving([policy_service(PolicyProbe())], **files(own, "policy")) as port:
        refused = _reloads("refused")
        (own / "policy.pem").write_bytes((own / "audit.pem").read_bytes())
        async with mesh_of(port, **files(own, "sidecar")) as mesh:
            await asyncio.sleep(1.1)
            assert await parse(mesh, "still") == "still"
        await _until(lambda: _reloads("refused") == refused + 1)
        assert REGISTRY.get_sample_value("interlock_file_faulty", {"setting": "tls_cert_file"}) == 1


async def test_a_client_whose_new_certificate_is_not_taken_keeps_its_connection(own, tmp_path):
    """A client that is given a certificate of an authority its peer does not trust goes on over what it has."""
    foreign = a_mesh_of_certificates(tmp_path / "foreign")
    for name in ("sidecar", "ca"):
        (foreign / f"{name}.pem").replace(foreign / f"{name}-new.pem")
    (foreign / "sidecar.key").replace(foreign / "sidecar-new.key")
    for kind in ("pem", "key"):
        (foreign / f"sidecar.{kind}").write_bytes((own / f"sidecar.{kind}").read_bytes())
        (foreign / f"sidecar.{kind}").chmod(0o600)
    (foreign / "ca.pem").write_bytes((own / "ca.pem").read_bytes() + (foreign / "ca-new.pem").read_bytes())
    async with serving([policy_service(PolicyProbe())], **files(own, "policy")) as port:
        async with mesh_of(port, **files(foreign, "sidecar")) as mesh:
            assert await parse(mesh, "before") == "before"
            before = _reloads()
            replace(foreign, "sidecar", "sidecar-new")
            stop = asyncio.Event()
            calls = asyncio.create_task(_calling(mesh, stop))
            await _until(lambda: _reloads() > before)
            await asyncio.sleep(1)
            stop.set()
            assert await calls > 20


async def test_the_end_of_the_certificate_is_a_metric(own):
    """Operators see when the certificate in force ends."""
    async with serving([policy_service(PolicyProbe())], **files(own, "policy")):
        ends = REGISTRY.get_sample_value("interlock_certificate_expiry_seconds", {"certificate": "mesh"})

    assert ends and ends > 1_700_000_000


async def test_the_agents_front_is_tls_without_a_certificate_of_the_agents(held):
    """An agent shows an API key and no certificate: it checks the front's own, and plain text gets no answer."""
    front = replace_fields(policy_service(PolicyProbe()), name="sidecar")
    settings = {"front_cert_file": held / "front.pem", "front_key_file": held / "front.key"}
    async with serving([front], **settings, **files(held, "sidecar")) as port:
        credentials = grpc.ssl_channel_credentials((held / "ca.pem").read_bytes())
        async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials) as channel:
            answer = await PolicyServiceStub(channel).Parse(request("hello"), timeout=5)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            plain = await code_of(PolicyServiceStub(channel).Parse(request(), timeout=5))

    assert answer.canonical_text == "hello"
    assert plain is grpc.StatusCode.UNAVAILABLE


async def test_a_service_without_its_name_in_the_certificate_does_not_start(held):
    """A process that was given the certificate of another service refuses to start: no client would take it."""
    with pytest.raises(Refused, match="TLS_IDENTITY_MISMATCH"):
        RpcServer([policy_service(PolicyProbe())], Settings(**files(held, "dpe")), port=0)


async def test_plain_text_beyond_this_machine_is_refused():
    """A port that other machines reach is encrypted, or said to be plain on purpose."""
    open_ = RpcServer([policy_service(PolicyProbe())], Settings(host="0.0.0.0"), port=0)
    with pytest.raises(Refused) as raised:
        await open_.start()
    allowed = RpcServer(
        [policy_service(PolicyProbe())], Settings(host="0.0.0.0", allow_plaintext=True, drain_s=0.1), port=0
    )
    port = await allowed.start()
    await allowed.drain()

    assert raised.value.reason == "PLAINTEXT_REFUSED"
    assert port

"""A-32: doors that stand open to every process of the machine, or to everyone on the network."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import grpc
import httpx
import psutil
import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.domain.errors import Refused
from interlock.policy.reviewers import load_reviewers
from interlock.runtime.keys.api_keys import require_keys
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.rpc.places import address_to_call, own_socket, socket_to_serve
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.rpc.sockets import OwnedSocket
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import read_content
from tests.support.servers.probe import PolicyProbe, policy_service
from tests.support.servers.processes import Process, Processes, environment, run

pytestmark = pytest.mark.req("SVC-6")

CONNECT = "import os, socket, sys; os.setuid(65534); socket.socket(socket.AF_UNIX).connect(sys.argv[1])"


def listening(process: Process) -> set[int]:
    """Return the TCP ports on which a process and its children accept connections."""
    whole = [psutil.Process(process.child.pid)]
    whole += whole[0].children(recursive=True)
    found = [connection for one in whole for connection in one.net_connections("tcp")]
    return {connection.laddr.port for connection in found if connection.status == psutil.CONN_LISTEN}


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    """The whole mesh in one process, as the README starts it."""
    with Processes(tmp_path_factory.mktemp("m")) as processes:
        yield processes.mesh()


@pytest.mark.long
@pytest.mark.models
@pytest.mark.timeout(180)
def test_a32_one_process_listens_on_its_fronts_and_nowhere_else(mesh):
    """No TCP port of session, policy, dpe, audit or oversight: not by default, and not behind another name."""
    assert set(mesh.ports) == {"sidecar_http", "sidecar_grpc", "oversight_http", "decision"}
    assert listening(mesh) == set(mesh.ports.values())
    assert set(mesh.sockets) == {"session", "policy", "dpe", "audit", "oversight"}


@pytest.mark.long
@pytest.mark.models
def test_a32_what_its_operator_calls_is_a_file_of_its_owner(mesh):
    """The sockets have mode 0600 in a folder of mode 0700, and a command on the same state finds them by itself."""
    modes = {stat.S_IMODE(Path(path).stat().st_mode) for path in mesh.sockets.values()}
    folders = {stat.S_IMODE(Path(path).parent.stat().st_mode) for path in mesh.sockets.values()}
    listed = run("session", "list", "-o", "json", env=mesh.env)

    assert (modes, folders) == ({0o600}, {0o700})
    assert listed.returncode == 0, listed.stderr


@pytest.mark.long
@pytest.mark.models
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a32_another_user_of_the_machine_cannot_call_an_inner_service(mesh):
    """The agent, as another user, is refused by the kernel; with the folder open it is refused by the file's own mode."""
    path = Path(mesh.sockets["audit"])
    closed = subprocess.run([sys.executable, "-c", CONNECT, str(path)], capture_output=True, text=True, check=False)
    with grpc.insecure_channel(f"unix:{path}") as channel:
        answer = AuditServiceStub(channel).GetCheckpoint(audit_pb2.GetCheckpointRequest(), timeout=10)

    assert "PermissionError" in closed.stderr
    assert answer is not None


@pytest.mark.parametrize("name", ["session", "policy", "audit"])
def test_a32_a_service_by_itself_has_no_port_without_certificates(tmp_path, name):
    """`interlock serve NAME`, with nothing set, listens on a socket of its owner; its metrics page is its one port."""
    process = Process(tmp_path, name, environment(tmp_path / "state", {"redis_url": "memory://"})).start()
    try:
        process.wait()
        ports, sockets, found = process.ports, process.sockets, listening(process)
        mode = stat.S_IMODE(Path(sockets[name]).stat().st_mode)
    finally:
        code = process.stop()

    assert (set(ports), set(sockets), found, mode, code) == ({"metrics"}, {name}, set(ports.values()), 0o600, 0)
    assert not Path(sockets[name]).exists()


def test_a32_a_port_of_the_mesh_on_loopback_needs_certificates(tmp_path):
    """Asked for by name, it is refused, and not replaced by anything; the refusal says what to set."""
    said = run("serve", "policy", env=environment(tmp_path / "state", {"policy_port": 0}))

    assert (said.returncode, "PLAINTEXT_REFUSED" in said.stderr, "hint: " in said.stderr) == (2, True, True)


async def test_a32_a_server_of_the_mesh_binds_no_open_port(tmp_path):
    """Whoever wires a server of the mesh by hand is refused the same: it is the server that looks."""
    server = RpcServer([policy_service(PolicyProbe())], Settings(state_dir=tmp_path), port=0)
    with pytest.raises(Refused, match="PLAINTEXT_REFUSED"):
        await server.start()


async def test_a32_one_socket_has_one_server(tmp_path):
    """A second process does not take a socket over in silence, and what a killed one left is no obstacle."""
    path = tmp_path / "run" / "policy.sock"
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(path))
    first = RpcServer([policy_service(PolicyProbe())], Settings(drain_s=0.1), socket=path)
    await first.start()
    second = RpcServer([policy_service(PolicyProbe())], Settings(drain_s=0.1), socket=path)
    with pytest.raises(Refused, match="PORT_IN_USE"):
        await second.start()
    await first.drain()
    await second.start()
    await second.drain()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o707])
def test_a32_no_socket_in_a_folder_that_others_may_change(tmp_path, mode):
    """Whoever may replace the file could stand in for the service."""
    folder = tmp_path / "run"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(Refused, match="SOCKET_FOLDER_UNSAFE"):
        OwnedSocket(folder / "audit.sock")


def test_a32_a_link_is_no_folder_of_sockets(tmp_path):
    """A link to a folder elsewhere, as another user could put into a shared place, is not followed."""
    (tmp_path / "elsewhere").mkdir(mode=0o700)
    (tmp_path / "run").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="SOCKET_FOLDER_UNSAFE"):
        OwnedSocket(tmp_path / "run" / "audit.sock")


def test_a32_callers_and_services_mean_the_same_place(tmp_path):
    """By default, with a socket of one's own, with a state folder whose path no socket may have, and with a port."""
    long = tmp_path / ("x" * 90)
    for settings in (
        Settings(state_dir=tmp_path / "s"),
        Settings(state_dir=long),
        Settings(audit_address="unix:/run/a.sock"),
    ):
        served = socket_to_serve(settings, "audit", alone=True)
        assert address_to_call(settings, "audit") == f"unix:{served}"
        assert len(os.fsencode(served)) < 104
    assert own_socket(Settings(state_dir=long), "audit") != own_socket(Settings(state_dir=long / "y"), "audit")
    assert address_to_call(Settings(allow_plaintext=True, state_dir=tmp_path, audit_port=9), "audit") == "127.0.0.1:9"
    assert socket_to_serve(Settings(allow_plaintext=True), "audit", alone=True) is None
    assert socket_to_serve(Settings(allow_plaintext=True), "audit", alone=False) is not None


async def test_a32_a_deep_folder_for_temporary_files_is_no_place_for_a_socket(tmp_path, monkeypatch):
    """Where state and temporary files both lie too deep, the socket is in a folder of this user that is short, and serves."""
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(deep))
    settings = Settings(state_dir=deep)
    served = own_socket(settings, "oversight")
    assert len(os.fsencode(served)) < 104
    server = RpcServer([policy_service(PolicyProbe())], settings, port=0, socket=served)
    await server.start()
    assert stat.S_IMODE(served.parent.stat().st_mode) == 0o700
    await server.drain()


KEYS: dict[str, Any] = {"api_keys_file": "keys.yaml"}


@pytest.mark.parametrize("given", [{}, {"agents_file": "agents.yaml"}, {"upstream_api_key": "sk"}])
def test_a32_a_front_for_other_machines_wants_a_list_of_keys(given):
    """Without one it would serve strangers, with this deployment's key."""
    for host in ("0.0.0.0", "::", "10.0.0.1", "gateway.example"):
        with pytest.raises(Refused, match="API_KEYS_REQUIRED"):
            require_keys(Settings(host=host, allow_plaintext=True, **given))
    require_keys(Settings(**given))


@pytest.mark.parametrize(
    "given", [KEYS, {"agents_file": "agents.yaml", "require_registered_agents": True}, {"allow_unlisted_keys": True}]
)
def test_a32_a_front_that_knows_its_callers_may_listen_everywhere(given):
    """A list of keys, registered agents only, or somebody who says that something else checks them."""
    require_keys(Settings(host="0.0.0.0", **given))


def test_a32_a_sidecar_for_strangers_does_not_start(tmp_path):
    """`INTERLOCK_HOST=0.0.0.0` without API keys is one clear line; it used to serve without a word."""
    open_to_all = {"host": "0.0.0.0", "allow_plaintext": "true", "upstream_api_key": "sk-deployment"}
    said = run("serve", "sidecar", env=environment(tmp_path / "state", open_to_all))

    assert (said.returncode, "API_KEYS_REQUIRED" in said.stderr) == (2, True)
    assert "sk-deployment" not in said.stderr + said.stdout


@pytest.mark.parametrize(
    ("access", "code", "reflects"), [("local", 403, False), ("anyone", 200, True), ("nobody", 403, False)]
)
def test_a32_metrics_and_reflection_are_not_for_everyone(tmp_path, access, code, reflects):
    """On an address that other machines reach they answer only where a setting says so; health always answers."""
    (tmp_path / "keys.yaml").write_text(f"agent: {hashlib.sha256(b'sk').hexdigest()}\n")
    (tmp_path / "keys.yaml").chmod(0o640)
    settings = {
        "host": "0.0.0.0", "allow_plaintext": "true", "api_keys_file": tmp_path / "keys.yaml", "metrics_access": access,
        "reflection_access": access,
    }  # fmt: skip
    process = Process(tmp_path, "sidecar", environment(tmp_path / "state", settings)).start()
    try:
        process.wait()
        url = f"http://127.0.0.1:{process.ports['sidecar_http']}"
        codes = [
            httpx.get(f"{url}{path}", timeout=10, trust_env=False).status_code for path in ("/metrics", "/healthz")
        ]
        described = _describes(f"127.0.0.1:{process.ports['sidecar_grpc']}")
    finally:
        process.stop()

    assert (codes, described) == ([code, 200], reflects)


def _describes(address: str) -> bool:
    from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

    with grpc.insecure_channel(address) as channel:
        stub = reflection_pb2_grpc.ServerReflectionStub(channel)
        asked = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
        try:
            return bool(next(stub.ServerReflectionInfo(asked, timeout=10)).list_services_response.service)
        except grpc.RpcError as error:
            assert error.code() is grpc.StatusCode.UNIMPLEMENTED
            return False


@pytest.mark.parametrize("mode", [0o666, 0o644, 0o604, 0o602, 0o660])
def test_a32_a_master_key_that_others_have_is_refused(tmp_path, mode):
    """The key that we made ourselves: readable or writable by everyone, or writable by the group."""
    load_keyring(Settings(state_dir=tmp_path))
    (tmp_path / "master.key").chmod(mode)
    with pytest.raises(Refused, match="KEY_FILE_EXPOSED"):
        load_keyring(Settings(state_dir=tmp_path))


def test_a32_a_mounted_secret_may_be_read_by_its_group(tmp_path):
    """As Kubernetes mounts one: owner and group read, nobody else."""
    path = tmp_path / "key"
    path.write_text("secret")
    path.chmod(0o440)

    assert read_content(path, secret=True) == b"secret"


def test_a32_a_list_of_reviewers_that_everyone_may_change_is_refused(tmp_path):
    """Who writes it releases held answers."""
    path = tmp_path / "reviewers.yaml"
    path.write_text("reviewers: {}\n")
    path.chmod(0o666)
    with pytest.raises(Refused, match="FILE_UNSAFE"):
        load_reviewers(path)

"""The compose file: its own promises, and its processes started with their commands and variables outside containers."""

from __future__ import annotations

import re
import secrets
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest
import yaml

from interlock.api.decision.v1 import decision_pb2
from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.runtime.settings.declarations import SettingDeclarations
from tests.support.paths import ROOT
from tests.support.servers.ports import free_port
from tests.support.servers.postgres import OWNER, PASSWORD, SERVICE
from tests.support.servers.processes import COMMAND, Process, environment, run
from tests.support.servers.provider import Provider, RunningProvider

FILE = ROOT / "deploy" / "compose.yaml"
OURS = ("session", "policy", "dpe", "audit", "oversight", "decision", "sidecar")
GIVEN = {
    "INTERLOCK_MASTER_KEY": secrets.token_hex(32),
    "POSTGRES_PASSWORD": PASSWORD,
    "INTERLOCK_SERVICE_PASSWORD": PASSWORD,
}
FOLDER = "/var/lib/interlock"

pytestmark = pytest.mark.req("KUB-1", "SVC-7")


def interpolated(value: Any, given: Mapping[str, str]) -> Any:
    """Return *value* with its ${NAME}, ${NAME:-default} and ${NAME:?why} replaced."""
    if isinstance(value, dict):
        return {name: interpolated(one, given) for name, one in value.items()}
    if isinstance(value, list):
        return [interpolated(one, given) for one in value]
    if not isinstance(value, str):
        return value

    def replaced(found: re.Match[str]) -> str:
        name, kind, rest = found.groups()
        if name in given:
            return given[name]
        assert kind == ":-", f"{name} is required"
        return str(rest)

    return re.sub(r"\$\{(\w+)(?:(:-|:\?)([^}]*))?\}", replaced, value)


def composed(given: Mapping[str, str] = GIVEN) -> dict[str, Any]:
    return interpolated(yaml.safe_load(FILE.read_text(encoding="utf-8")), given)["services"]


def test_every_variable_of_the_compose_file_is_a_setting():
    """A misspelt INTERLOCK_ variable would be ignored without a word."""
    known = {f"INTERLOCK_{name.upper()}" for name in SettingDeclarations.model_fields}

    assert not {name for service in OURS for name in composed()[service]["environment"]} - known


def test_our_containers_are_read_only_and_have_no_capability():
    """Non-root by the image, read-only root, nothing to gain."""
    for name in (*OURS, "certificates", "migrate"):
        one = composed()[name]
        assert (one["read_only"], one["cap_drop"], one["security_opt"]) == (
            True,
            ["ALL"],
            ["no-new-privileges:true"],
        ), name


def test_a_secret_that_is_missing_stops_the_compose_file():
    """No default password and no default master key."""
    for missing in GIVEN:
        with pytest.raises(AssertionError, match=f"{missing} is required"):
            composed({name: value for name, value in GIVEN.items() if name != missing})


def test_only_dpe_shares_a_network_with_triton():
    """Triton does not authenticate its callers (A-39), and no port leaves the machine."""
    services = composed()
    beside = {name for name, one in services.items() if "models" in one.get("networks", [])}
    ports = [port for one in services.values() for port in one.get("ports", [])]

    assert {"dpe", "triton"} == beside
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert "ports" not in services["triton"]


class Outside:
    """The compose file's processes on loopback: the same commands and variables, hosts and folders moved to this machine."""

    def __init__(self, folder: Path, redis_url: str, database: str, provider: str) -> None:
        self.folder, self.redis_url, self.database = folder, redis_url, database
        self.services = composed({**GIVEN, "INTERLOCK_UPSTREAM_BASE_URL": provider, "INTERLOCK_PROFILE": "enforce"})
        self.ports = {str(7081 + n): free_port() for n in (0, 1, 2, 3, 5)}

    def env(self, name: str) -> dict[str, str]:
        """Return the variables of one service."""
        bare = {k: v for k, v in environment(self.folder / name, {}).items() if not k.startswith("INTERLOCK_")}
        wanted = {k: self.moved(str(v), name) for k, v in self.services[name].get("environment", {}).items()}
        own = {"INTERLOCK_HOST": "127.0.0.1", "INTERLOCK_STATE_DIR": str(self.folder / name)}
        inner = {f"INTERLOCK_{n.upper()}_PORT": str(p) for n, p in zip(OURS[:4], self.ports.values(), strict=False)}
        any_port = {
            f"INTERLOCK_{n}_PORT": "0"
            for n in ("SIDECAR_HTTP", "SIDECAR_GRPC", "OVERSIGHT", "OVERSIGHT_HTTP", "METRICS")
        } | {"INTERLOCK_DECISION_PORT": str(self.ports["7086"])}
        (self.folder / name / "anchor").mkdir(parents=True, exist_ok=True)
        return {**bare, **wanted, **inner, **any_port, **own}

    def moved(self, value: str, name: str) -> str:
        """Return a value of the compose file as it is outside."""
        value = value.replace(f"{FOLDER}/certificates", str(self.folder / "certificates"))
        value = value.replace(FOLDER, str(self.folder / name)).replace("redis://valkey:6379/0", self.redis_url)
        value = re.sub(r"@postgres/interlock$", f"@{self.database}", value)
        return re.sub(r"^\w+:(708[1-46])$", lambda m: f"127.0.0.1:{self.ports[m[1]]}", value)

    def once(self, name: str) -> None:
        """Run a container that ends by itself."""
        arguments = [self.moved(str(part), name) for part in self.services[name]["command"]]
        done = run(*arguments, env=self.env(name), timeout_s=120)
        assert done.returncode == 0, done.stdout + done.stderr

    def start(self, name: str) -> Process:
        command = self.services[name]["command"]
        assert ["serve", name] == command
        (self.folder / "log").mkdir(exist_ok=True)
        return Process(self.folder / "log", name, self.env(name)).start()


@pytest.mark.long
@pytest.mark.models
@pytest.mark.timeout(300)
def test_the_processes_of_the_compose_file_govern_a_call(tmp_path, valkey, postgres):
    """Certificates, migration, five services and the sidecar as the file names them: one call is judged, sealed and verified over mutual TLS."""
    valkey.flush()
    name = postgres.database()
    address = f"127.0.0.1:{postgres.port}/{name}"
    assert (OWNER, SERVICE) == ("interlock_owner", "interlock_service")
    with RunningProvider(Provider()) as provider:
        outside = Outside(tmp_path, valkey.url, address, provider.base_url)
        outside.once("certificates")
        outside.once("migrate")
        started = [outside.start(one) for one in OURS]
        try:
            for process in started:
                process.wait()
            port = started[-1].ports["sidecar_http"]
            ca = str(tmp_path / "certificates" / "ca.pem")
            _until_ready(f"https://localhost:{port}/readyz", ca)
            body = {"model": "m", "messages": [{"role": "user", "content": "Say something."}]}
            answer = httpx.post(
                f"https://localhost:{port}/v1/chat/completions", json=body, headers={"Authorization": "Bearer k"}, verify=_trusting(ca), timeout=60,
            )  # fmt: skip
            assert answer.status_code == 200, answer.text + "".join(process.log() for process in started)
            session = answer.headers["crp-context-session-id"]
            operator = outside.env("audit") | {
                "INTERLOCK_TLS_CERT_FILE": str(tmp_path / "certificates" / "operator.pem"),
                "INTERLOCK_TLS_KEY_FILE": str(tmp_path / "certificates" / "operator.key"),
            }
            verified = subprocess.run(
                [*COMMAND, "audit", "verify", session, "-o", "json"],
                env=operator,
                capture_output=True,
                text=True,
                check=False,
            )
            tested = _helm_tested(outside, started)
            decided = _experiment_by_sidecar(started[len(OURS) - 1].ports["sidecar_grpc"], Path(ca))
        finally:
            for process in started:
                process.stop()

    assert decided.created
    assert verified.returncode == 0, verified.stdout + verified.stderr
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert ["health", "governed call", "audit"] == [line.partition(":")[0] for line in tested.stdout.splitlines()]


def _experiment_by_sidecar(port: int, ca: Path) -> decision_pb2.OpenExperimentResponse:
    """Open an experiment by the sidecar: agents' TLS before it, the mesh's authority and the member decision behind it."""
    request = decision_pb2.OpenExperimentRequest(experiment="search", profile="ml")
    with grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(ca.read_bytes())) as channel:
        stub = DecisionServiceStub(channel)
        return stub.OpenExperiment(request, metadata=(("authorization", "Bearer k"),), timeout=20)


def _helm_tested(outside: Outside, started: list[Process]) -> subprocess.CompletedProcess[str]:
    """Run the script of `helm test` against the same mesh, over a sidecar on loopback as its pod has one."""
    bare = {name: value for name, value in outside.env("sidecar").items() if "_FRONT_" not in name}
    sidecar = Process(outside.folder / "log", "sidecar", bare, label="test-sidecar").start()
    started.append(sidecar)
    ports = sidecar.wait().ports
    held = outside.folder / "certificates"
    env = bare | {
        "SIDECAR_READY": f"http://127.0.0.1:{ports['sidecar_http']}/readyz", "SIDECAR_TARGET": f"127.0.0.1:{ports['sidecar_grpc']}",
        "INTERLOCK_TLS_CERT_FILE": str(held / "operator.pem"), "INTERLOCK_TLS_KEY_FILE": str(held / "operator.key"),
    }  # fmt: skip
    script = ROOT / "helm" / "interlock" / "files" / "helm_test.py"
    return subprocess.run(
        [sys.executable, str(script)], env=env, capture_output=True, text=True, timeout=120, check=False
    )


def _until_ready(url: str, ca: str) -> None:
    deadline = time.monotonic() + 60
    while httpx.get(url, verify=_trusting(ca)).status_code != 200:
        assert time.monotonic() < deadline, "the sidecar is not ready"
        time.sleep(0.1)


def _trusting(ca: str) -> Any:
    import ssl

    return ssl.create_default_context(cafile=ca)

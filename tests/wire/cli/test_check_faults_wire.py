"""`interlock check` with something broken: it names that, and goes on telling about everything else (SVC-9)."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from interlock.cli.check.command import examine
from interlock.cli.probing import groups as check_groups
from interlock.cli.probing.groups import answering, blocking
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from tests.faults.parts.processes import skewed
from tests.support.servers.collector import Collector
from tests.support.servers.fake_triton import FakeTriton
from tests.support.servers.ports import free_port
from tests.support.servers.processes import environment, run
from tests.support.servers.tls import a_mesh_of_certificates, files
from tests.support.valkey import Valkey

pytestmark = pytest.mark.req("SVC-9", "OBS-4")

GROUPS = {
    "configuration", "code", "profile", "keys", "emergencies", "certificates", "embedded parts", "redis", "audit store", "models", "triton",
    "services", "upstream", "sign-in", "traces", "ports",
}  # fmt: skip


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No setting of the machine, and state of this test."""
    for name in [name for name in os.environ if name.upper().startswith("INTERLOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path / "state"))
    for name in ("SIDECAR_HTTP", "SIDECAR_GRPC", "METRICS"):
        monkeypatch.setenv(f"INTERLOCK_{name}_PORT", str(free_port()))


def _set(monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        monkeypatch.setenv(f"INTERLOCK_{name.upper()}", str(value))


async def found(group: str, name: str) -> ProbeFinding:
    [finding] = [one for one in await examine() if (one.group, one.name) == (group, name)]
    return finding


@pytest.mark.parametrize(
    "fault", [RuntimeError("sk-secret"), OSError(5, "sk-secret"), RecursionError(), UnicodeError()]
)
async def test_a_group_that_breaks_keeps_what_it_had_and_shows_no_text(fault):
    """A probe raises what nobody expected, in its middle: one more finding, by type, and no exception for the others."""

    def breaks() -> Iterator[ProbeFinding]:
        yield ProbeFinding("g", "first", ProbeStatus.OK, "seen")
        raise fault

    async def breaks_too() -> AsyncIterator[ProbeFinding]:
        for finding in breaks():
            yield finding

    for findings in (await blocking("g", breaks), await answering("g", breaks_too)):
        assert [(one.name, one.status.value) for one in findings] == [("first", "OK"), ("probe", "FAIL")]
        assert findings[1].detail.endswith(type(fault).__name__)
        assert "sk-secret" not in str(findings)


def folder_at(path: Path) -> Path:
    path.mkdir(parents=True)
    return path


def text_at(path: Path, content: bytes = b"\xff\xfe\0: [") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o600)
    return path


def pipe_at(path: Path) -> Path:
    """A pipe that nobody writes to: whoever opens it waits for ever."""
    path.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(path, 0o600)
    return path


@pytest.fixture(scope="module")
def silent():
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


class Fault(NamedTuple):
    """Settings that break one thing, and the finding that names it: group, name, a word of its text."""

    settings: Callable[[Path, int], dict[str, Any]]
    group: str
    name: str
    says: str
    status: str = "FAIL"


FAULTS: dict[str, Fault] = {
    "no front certificate": Fault(lambda p, _: {"front_cert_file": p / "no.pem", "front_key_file": p / "no.key"}, "certificates", "fronts", "no.pem"),
    "half a front": Fault(lambda p, _: {"front_cert_file": p / "no.pem"}, "certificates", "fronts", ""),
    "front of rubbish": Fault(lambda p, _: {"front_cert_file": text_at(p / "f"), "front_key_file": text_at(p / "k")}, "certificates", "fronts", ""),
    "front certificate is a pipe": Fault(lambda p, _: {"front_cert_file": pipe_at(p / "f"), "front_key_file": pipe_at(p / "k")}, "certificates", "fronts", "regular file"),
    "no mesh certificate": Fault(lambda p, _: dict.fromkeys(("tls_cert_file", "tls_key_file", "tls_ca_file"), p / "no"), "certificates", "mesh", "no"),
    "certificate is a folder": Fault(lambda p, _: dict.fromkeys(("tls_cert_file", "tls_key_file", "tls_ca_file"), folder_at(p / "d")), "certificates", "mesh", ""),
    "master key of rubbish": Fault(lambda p, _: {"state_dir": text_at(p / "s" / "master.key").parent}, "keys", "master key", "master.key"),
    "master key is a folder": Fault(lambda p, _: {"state_dir": folder_at(p / "s" / "master.key").parent}, "keys", "master key", "master.key"),
    "master key is a pipe": Fault(lambda p, _: {"state_dir": pipe_at(p / "s" / "master.key").parent}, "keys", "master key", "regular file"),
    "keys file of rubbish": Fault(lambda p, _: {"master_keys_file": text_at(p / "keys.yaml")}, "keys", "master keys", "keys.yaml"),
    "state is a file": Fault(lambda p, _: {"state_dir": text_at(p / "s")}, "configuration", "state_dir", "not a folder"),
    "database of rubbish": Fault(lambda p, _: {"state_dir": text_at(p / "s" / "audit.db", b"no database" * 500).parent}, "audit store", "database", "audit.db"),
    "database is a folder": Fault(lambda p, _: {"state_dir": folder_at(p / "s" / "audit.db").parent}, "audit store", "database", "not a file"),
    "database is a pipe": Fault(lambda p, _: {"state_dir": pipe_at(p / "s" / "audit.db").parent}, "audit store", "database", "not a file"),
    "no PostgreSQL": Fault(lambda p, _: {"audit_url": f"postgresql://x@127.0.0.1:{free_port()}/x"}, "audit store", "database", "postgresql://"),
    "silent PostgreSQL": Fault(lambda p, port: {"audit_url": f"postgresql://x@127.0.0.1:{port}/x"}, "audit store", "database", "postgresql://"),
    "checkpoint key of rubbish": Fault(lambda p, _: {"state_dir": text_at(p / "s" / "checkpoint.key").parent}, "audit store", "checkpoint key", "Ed25519"),
    "no anchor": Fault(lambda p, _: {"audit_anchor": p / "no", "audit_anchor_required": "true"}, "audit store", "anchor", "is not there"),
    "no anchor, not required": Fault(lambda p, _: {"audit_anchor": p / "no"}, "audit store", "anchor", "is not there", "WARN"),
    "agents of rubbish": Fault(lambda p, _: {"agents_file": text_at(p / "agents.yaml")}, "configuration", "agents_file", "agents.yaml"),
    "agents that everyone may change": Fault(lambda p, _: {"agents_file": for_everyone(p / "agents.yaml")}, "configuration", "agents_file", "everyone"),
    "reviewers of rubbish": Fault(lambda p, _: {"reviewers_file": text_at(p / "reviewers.yaml")}, "configuration", "reviewers_file", "reviewers.yaml"),
    "API keys of rubbish": Fault(lambda p, _: {"api_keys_file": text_at(p / "keys.yaml")}, "configuration", "api_keys_file", ""),
    "prices of rubbish": Fault(lambda p, _: {"prices_file": text_at(p / "prices.yaml")}, "configuration", "prices_file", ""),
    "webhooks of rubbish": Fault(lambda p, _: {"sinks_file": text_at(p / "sinks.yaml")}, "configuration", "sinks_file", ""),
    "webhooks are a pipe": Fault(lambda p, _: {"sinks_file": pipe_at(p / "sinks.yaml")}, "configuration", "sinks_file", "regular file"),
    "authority of webhooks is none": Fault(lambda p, _: {"egress_ca_file": text_at(p / "ca.pem", b"none")}, "configuration", "egress_ca_file", "PEM"),
    "models are a file": Fault(lambda p, _: {"nli_model_dir": text_at(p / "m"), "embed_model_dir": text_at(p / "m")}, "models", "nli", ""),
    "manifest of rubbish": Fault(lambda p, _: {"ner_model_dir": text_at(p / "m" / "manifest.json").parent}, "models", "ner", ""),
    "no Redis": Fault(lambda p, _: {"redis_url": f"redis://127.0.0.1:{free_port()}/0"}, "redis", "server", "redis://"),
    "silent Redis": Fault(lambda p, port: {"redis_url": f"redis://127.0.0.1:{port}/0"}, "redis", "server", "redis://"),
    "no sentinel": Fault(lambda p, _: {"redis_url": f"sentinel://127.0.0.1:{free_port()}/main"}, "redis", "sentinels", "none names the master"),
    "no Triton": Fault(lambda p, _: {"triton_url": f"127.0.0.1:{free_port()}"}, "triton", "server", ""),
    "no authority of Triton": Fault(lambda p, _: {"triton_url": "grpcs://127.0.0.1:1", "triton_ca_file": p / "no"}, "triton", "probe", "no"),
    "no provider": Fault(lambda p, _: {"upstream_base_url": f"http://127.0.0.1:{free_port()}/v1"}, "upstream", "provider", "ConnectError"),
    "silent provider": Fault(lambda p, port: {"upstream_base_url": f"http://127.0.0.1:{port}/v1"}, "upstream", "provider", "Timeout"),
    "silent service": Fault(lambda p, port: {"session_address": f"127.0.0.1:{port}"}, "services", "session", "does not answer"),
    "strangers": Fault(lambda p, _: {"host": "0.0.0.0", "allow_plaintext": "true"}, "certificates", "callers", ""),
    "a taken port": Fault(lambda p, port: {"sidecar_http_port": port}, "ports", "sidecar_http_port", "another process", "WARN"),
    "unverifiable code": Fault(lambda p, _: {"require_verified_code": "true"}, "code", "interlock", ""),
    "a misspelt setting": Fault(lambda p, _: {"defualt_policy": "halt-on HIGH"}, "configuration", "INTERLOCK_DEFUALT_POLICY", "no setting", "WARN"),
    "a policy that says nothing": Fault(lambda p, _: {"default_policy": "halt-on HIGH; warn-on CRITICAL"}, "configuration", "default_policy", "changes nothing", "WARN"),
    "settings": Fault(lambda p, _: {"decrement_high": "0.9"}, "configuration", "settings", "decrement_high"),
    "settings file of rubbish": Fault(lambda p, _: {"config_file": text_at(p / "interlock.yaml")}, "configuration", "settings", "interlock.yaml"),
    "settings file is a folder": Fault(lambda p, _: {"config_file": folder_at(p / "interlock.yaml")}, "configuration", "settings", "regular file"),
    "settings file is a pipe": Fault(lambda p, _: {"config_file": pipe_at(p / "interlock.yaml")}, "configuration", "settings", "regular file"),
    "policy": Fault(lambda p, _: {"default_policy": "halt-onn HIGH"}, "configuration", "default_policy", "halt-onn"),
}  # fmt: skip


def for_everyone(path: Path) -> Path:
    text_at(path, b"agents: {}\n").chmod(0o666)
    return path


@pytest.mark.parametrize("fault", FAULTS)
async def test_any_one_fault_is_named_and_hides_nothing_else(monkeypatch, tmp_path, silent, fault):
    """Real files, pipes, ports and settings, each broken once: the finding names it with a hint, within seconds, and hides no group."""
    given = FAULTS[fault]
    _set(monkeypatch, given.settings(tmp_path, silent))
    findings = await examine()
    named = [
        one for one in findings if (one.group, one.name, str(one.status)) == (given.group, given.name, given.status)
    ]

    assert [one for one in named if given.says in one.detail], [
        one for one in findings if one.status in {"FAIL", "WARN"}
    ]
    assert all(one.detail and one.hint for one in findings if one.status in {"FAIL", "WARN"})
    assert "time" not in {one.name for one in findings}, "a probe knew the fault, and was not cut off"
    whole = {one.group for one in findings} == GROUPS
    assert whole or {one.group for one in findings} == {"configuration", "everything else"}
    assert whole != fault.startswith("settings")


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", ["no front certificate", "master key is a folder", "settings file of rubbish", "no Triton"]
)
def test_the_command_never_prints_a_traceback(tmp_path, silent, fault):
    """As a process: exit code 1, one JSON document, nothing on standard error."""
    said = run("check", "-o", "json", env=environment(tmp_path / "state", FAULTS[fault].settings(tmp_path, silent)))

    assert (said.returncode, json.loads(said.stdout)["ok"]) == (1, False)
    assert "Traceback" not in said.stderr + said.stdout


async def test_a_missing_front_certificate_hides_no_service(monkeypatch, tmp_path):
    """Only calls to the fronts need it; the others are looked at."""
    _set(monkeypatch, FAULTS["no front certificate"].settings(tmp_path, 0))
    services = {one.name: one.status for one in await examine() if one.group == "services"}

    fronts, inner = ("sidecar", "decision"), ("session", "policy", "dpe", "audit")
    assert services == {**dict.fromkeys(fronts, "FAIL"), **dict.fromkeys(inner, "WARN")}


async def test_triton_is_found_by_what_it_serves(monkeypatch):
    """The pinned models: fine; another model under the name of ours: said; gone: said."""
    pytest.importorskip("tritonclient")
    server = FakeTriton()
    await server.start()
    monkeypatch.setenv("INTERLOCK_TRITON_URL", server.address)
    fine = await found("triton", "server")
    server.spoil_config = lambda config: config.parameters["sha256"].ClearField("string_value")
    other = await found("triton", "server")
    await server.stop()
    gone = await found("triton", "server")

    assert (fine.status, other.status, gone.status) == ("OK", "FAIL", "FAIL")
    assert gone.hint


async def test_the_trace_collector_is_tried(monkeypatch):
    """One that listens, and one that does not: a warning, since no call depends on it."""
    with Collector() as collector:
        monkeypatch.setenv("INTERLOCK_OTLP_ENDPOINT", collector.endpoint)
        there = await found("traces", "otlp")
    monkeypatch.setenv("INTERLOCK_OTLP_ENDPOINT", f"http://127.0.0.1:{free_port()}")
    gone = await found("traces", "otlp")

    assert (there.status, gone.status) == ("OK", "WARN")


def test_the_clock_is_compared_with_the_stores(tmp_path):
    """Within the leeway of tokens it is fine; two hours off it is a warning that says which way."""
    with Valkey(tmp_path) as valkey:
        env = environment(tmp_path / "state", {"redis_url": valkey.url})
        fine = clock_of(run("check", "-o", "json", env=env).stdout)
        ahead = clock_of(run("check", "-o", "json", env={**env, **skewed(7200)}).stdout)

    assert (fine["status"], ahead["status"]) == ("OK", "WARN")
    assert "s ahead of the store's" in ahead["detail"]


def clock_of(printed: str) -> dict[str, str]:
    [finding] = [one for one in json.loads(printed)["findings"] if one["name"] == "clock"]
    return finding


async def test_what_is_late_on_a_busy_machine_is_not_missing(monkeypatch):
    """The loop is kept for longer than a group may take, as by an import on a busy machine: what was found meanwhile is told."""
    monkeypatch.setattr(check_groups, "GROUP_LIMIT_S", 0.2)
    fine = ProbeFinding("keys", "keys", ProbeStatus.OK, "")

    async def keeping() -> AsyncIterator[ProbeFinding]:
        time.sleep(0.5)
        yield fine

    groups = await asyncio.gather(blocking("keys", lambda: iter([fine])), answering("redis", keeping))

    assert groups == [[fine], [fine]]


async def test_profile_callers_and_reviewers_are_told():
    """What the profile does, whether callers have a budget, who reviews."""
    names = {one.name for one in await examine() if one.group == "profile"}

    assert {"profile", "callers", "reviewers"} <= names


async def test_a_port_that_hangs_is_bounded(monkeypatch):
    """A Triton that accepts and never answers is a finding within seconds."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("INTERLOCK_TRITON_URL", f"127.0.0.1:{silent.getsockname()[1]}")
        finding = await found("triton", "server")

    assert finding.status == "FAIL"


def test_certificates_of_an_operator_are_enough(monkeypatch, tmp_path):
    """With valid certificates the command ends by itself and finds no fault in them."""
    held = a_mesh_of_certificates(tmp_path / "certificates")
    settings = {name: str(path) for name, path in files(held, "operator").items()}
    said = run("check", "-o", "json", env=environment(tmp_path / "state", settings))
    found = [one for one in json.loads(said.stdout)["findings"] if one["group"] == "certificates"]

    assert {one["status"] for one in found} <= {"OK", "WARN"}

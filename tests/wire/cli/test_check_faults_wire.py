"""`interlock check` with something broken: it names that, and goes on telling about everything else (SVC-9)."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.check.command import answering, blocking, examine
from interlock.cli.check.probes import ProbeFinding, ProbeStatus
from tests.faults.parts.processes import skewed
from tests.support.servers.collector import Collector
from tests.support.servers.fake_triton import FakeTriton
from tests.support.servers.ports import free_port
from tests.support.servers.processes import environment, run
from tests.support.servers.tls import a_mesh_of_certificates, files
from tests.support.valkey import Valkey

pytestmark = pytest.mark.req("SVC-9", "OBS-4")

GROUPS = {
    "configuration", "code", "profile", "keys", "certificates", "embedded parts", "redis", "audit store", "models", "triton",
    "services", "upstream", "traces", "ports",
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


FAULTS: dict[str, Callable[[Path], dict[str, Any]]] = {
    "no front certificate": lambda p: {"front_cert_file": p / "no.pem", "front_key_file": p / "no.key"},
    "half a front": lambda p: {"front_cert_file": p / "no.pem"},
    "front of rubbish": lambda p: {"front_cert_file": text_at(p / "f"), "front_key_file": text_at(p / "k")},
    "no mesh certificate": lambda p: dict.fromkeys(("tls_cert_file", "tls_key_file", "tls_ca_file"), p / "no"),
    "certificate is a folder": lambda p: dict.fromkeys(
        ("tls_cert_file", "tls_key_file", "tls_ca_file"), folder_at(p / "d")
    ),
    "master key of rubbish": lambda p: {"state_dir": text_at(p / "s" / "master.key").parent},
    "master key is a folder": lambda p: {"state_dir": folder_at(p / "s" / "master.key").parent},
    "keys file of rubbish": lambda p: {"master_keys_file": text_at(p / "keys.yaml")},
    "state is a file": lambda p: {"state_dir": text_at(p / "s")},
    "database of rubbish": lambda p: {"state_dir": text_at(p / "s" / "audit.db", b"no database" * 500).parent},
    "database is a folder": lambda p: {"state_dir": folder_at(p / "s" / "audit.db").parent},
    "no PostgreSQL": lambda _: {"audit_url": f"postgresql://x@127.0.0.1:{free_port()}/x"},
    "agents of rubbish": lambda p: {"agents_file": text_at(p / "agents.yaml")},
    "reviewers of rubbish": lambda p: {"reviewers_file": text_at(p / "reviewers.yaml")},
    "API keys of rubbish": lambda p: {"api_keys_file": text_at(p / "keys.yaml")},
    "models are a file": lambda p: {"nli_model_dir": text_at(p / "m"), "embed_model_dir": text_at(p / "m")},
    "manifest of rubbish": lambda p: {"ner_model_dir": text_at(p / "m" / "manifest.json").parent},
    "no Redis": lambda _: {"redis_url": f"redis://127.0.0.1:{free_port()}/0"},
    "no sentinel": lambda _: {"redis_url": f"sentinel://127.0.0.1:{free_port()}/main"},
    "no Triton": lambda _: {"triton_url": f"127.0.0.1:{free_port()}"},
    "no authority of Triton": lambda p: {"triton_url": "grpcs://127.0.0.1:1", "triton_ca_file": p / "no"},
    "no provider": lambda _: {"upstream_base_url": f"http://127.0.0.1:{free_port()}/v1"},
    "provider without a port": lambda _: {"upstream_base_url": "http://127.0.0.1:x/v1"},
    "strangers": lambda _: {"host": "0.0.0.0", "allow_plaintext": "true"},
    "unverifiable code": lambda _: {"require_verified_code": "true"},
    "settings": lambda _: {"decrement_high": "0.9"},
    "settings file of rubbish": lambda p: {"config_file": text_at(p / "interlock.yaml")},
    "settings file is a folder": lambda p: {"config_file": folder_at(p / "interlock.yaml")},
    "policy": lambda _: {"default_policy": "halt-onn HIGH"},
}


@pytest.mark.parametrize("fault", FAULTS)
async def test_any_one_fault_is_named_and_hides_nothing_else(monkeypatch, tmp_path, fault):
    """Real files, ports and settings, each broken once: something fails, everything else is still looked at."""
    _set(monkeypatch, FAULTS[fault](tmp_path))
    findings = await examine()
    failed = [one for one in findings if one.status == "FAIL"]

    assert failed
    assert all(one.detail and one.hint for one in failed)
    assert {one.group for one in findings} == ({"configuration", "everything else"} if "settings" in fault else GROUPS)


@pytest.mark.long
@pytest.mark.parametrize(
    "fault", ["no front certificate", "master key is a folder", "settings file of rubbish", "no Triton"]
)
def test_the_command_never_prints_a_traceback(tmp_path, fault):
    """As a process: exit code 1, one JSON document, nothing on standard error."""
    said = run("check", "-o", "json", env=environment(tmp_path / "state", FAULTS[fault](tmp_path)))

    assert (said.returncode, json.loads(said.stdout)["ok"]) == (1, False)
    assert "Traceback" not in said.stderr + said.stdout


async def test_a_missing_front_certificate_hides_no_service(monkeypatch, tmp_path):
    """Only calls to the fronts need it; the others are looked at."""
    _set(monkeypatch, FAULTS["no front certificate"](tmp_path))
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

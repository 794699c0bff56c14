"""The doctor: every injected fault is named, with a hint, and nothing hangs."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
from contextlib import asynccontextmanager

import pytest
import redis

from interlock.cli.check.command import examine
from interlock.cli.local.embedded import EmbeddedValkey
from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.ports import free_port
from tests.support.servers.probe import Dependency, PolicyProbe, policy_service
from tests.support.servers.processes import environment, run
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.servers.tls import a_mesh_of_certificates, files
from tests.support.texts.canary import API_KEY, MASTER_KEY, PASSWORD, found_in


@pytest.fixture(autouse=True)
def bare(monkeypatch, tmp_path):
    """No setting of the machine; state of this test; ports and addresses at which nobody is."""
    for name in [name for name in os.environ if name.upper().startswith("INTERLOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path / "state"))
    for name in ("SESSION", "POLICY", "DPE", "AUDIT"):
        monkeypatch.setenv(f"INTERLOCK_{name}_ADDRESS", f"127.0.0.1:{free_port()}")
    for name in ("SIDECAR_HTTP", "SIDECAR_GRPC", "SESSION", "POLICY", "DPE", "AUDIT", "METRICS"):
        monkeypatch.setenv(f"INTERLOCK_{name}_PORT", str(free_port()))


async def found(group: str, name: str):
    """Return the finding of that group and name."""
    [finding] = [f for f in await examine() if (f.group, f.name) == (group, name)]
    return finding


@asynccontextmanager
async def answering(reply: bytes | None):
    """Listen on a port and answer every connection with *reply*, or never."""
    ended = asyncio.Event()

    async def serve(reader, writer):
        if reply is None:
            await ended.wait()
        else:
            await reader.read(1)
            writer.write(reply)
        writer.close()
        await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        ended.set()
        server.close()
        await asyncio.sleep(0.05)  # for the connections' own ends


async def test_fresh_machine_has_no_failure():
    """Before anything was started, nothing fails; what is not there yet is said."""
    findings = await examine()

    assert [f for f in findings if f.status == "FAIL"] == []
    assert {f.group for f in findings} == {
        "configuration", "code", "profile", "keys", "emergencies", "certificates", "embedded parts", "redis", "audit store", "models",
        "triton", "services", "upstream", "sign-in", "traces", "ports",
    }  # fmt: skip


async def test_check_changes_nothing(tmp_path):
    """Looking makes no key, no database and no folder."""
    await examine()

    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("settings", "group", "name", "status", "told"),
    [
        ({"DECREMENT_LOW": "0.3"}, "configuration", "settings", "FAIL", "0.00 to 0.05"),
        ({"REDIS_ULR": "x"}, "configuration", "INTERLOCK_REDIS_ULR", "WARN", "no setting"),
        ({"API_KEYS_FILE": "nowhere.yaml"}, "configuration", "api_keys_file", "FAIL", "FileNotFoundError"),
        ({"AGENTS_FILE": "nowhere.yaml"}, "configuration", "agents_file", "FAIL", "FileNotFoundError"),
        ({"REVIEWERS_FILE": "nowhere.yaml"}, "configuration", "reviewers_file", "FAIL", "FileNotFoundError"),
        ({"DEFAULT_POLICY": "halt-onn HIGH"}, "configuration", "default_policy", "FAIL", "halt-on"),
        ({"MASTER_KEY": "00"}, "keys", "master key", "FAIL", "1 bytes"),
        ({"REDIS_URL": "memory://"}, "redis", "server", "WARN", "one process"),
        ({"NLI_MODEL_DIR": "nowhere"}, "models", "nli", "FAIL", "MODEL_MISSING"),
        ({"AUDIT_URL": "sqlite:///"}, "audit store", "database", "FAIL", "audit_url"),
        ({}, "services", "policy", "WARN", "not running"),
        ({}, "upstream", "provider", "WARN", "not configured"),
    ],
)
async def test_fault_of_a_setting_is_named(monkeypatch, settings, group, name, status, told):
    """A wrong or missing setting is found under its name, with what is wrong and what to do."""
    for setting, value in settings.items():
        monkeypatch.setenv(f"INTERLOCK_{setting}", value)
    finding = await found(group, name)

    assert finding.status == status
    assert told in finding.detail + finding.hint
    assert finding.hint


async def test_state_dir_that_cannot_be_written(tmp_path):
    """A state folder that is a file fails, and says which setting moves it."""
    (tmp_path / "state").write_text("")
    finding = await found("configuration", "state_dir")

    assert (finding.status, "INTERLOCK_STATE_DIR" in finding.hint) == ("FAIL", True)


async def test_key_file_that_others_can_read(tmp_path):
    """A key file with open permissions fails, with the command that closes it."""
    (tmp_path / "state").mkdir()
    path = tmp_path / "state" / "master.key"
    path.write_text(MASTER_KEY)
    path.chmod(0o644)
    finding = await found("keys", "master key file")

    assert (finding.status, finding.hint) == ("FAIL", f"chmod 600 {path}")


async def test_damaged_database(tmp_path):
    """An audit database that is no database fails."""
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "audit.db").write_bytes(b"not a database, but long enough to be read as one" * 100)

    assert (await found("audit store", "database")).status == "FAIL"


async def test_database_without_wal(tmp_path):
    """An audit database that lost its WAL mode is a warning."""
    (tmp_path / "state").mkdir()
    with sqlite3.connect(tmp_path / "state" / "audit.db") as connection:
        connection.execute("CREATE TABLE t (x)")
    connection.close()

    assert (await found("audit store", "journal mode")).status == "WARN"


@pytest.mark.req("SVC-9")
async def test_redis_that_is_not_there(monkeypatch):
    """An unreachable Redis fails; its password is not shown."""
    monkeypatch.setenv("INTERLOCK_REDIS_URL", f"redis://user:{PASSWORD}@127.0.0.1:{free_port()}/0")
    finding = await found("redis", "server")

    assert finding.status == "FAIL"
    assert not found_in(str(finding))


async def test_redis_that_is_well(monkeypatch, redis_url):
    """A reachable Valkey with AOF and noeviction has no finding but OK."""
    monkeypatch.setenv("INTERLOCK_REDIS_URL", redis_url)
    statuses = {f.name: f.status for f in await examine() if f.group == "redis"}

    assert statuses == dict.fromkeys(["server", "version", "maxmemory-policy", "appendonly", "clock"], "OK")


@pytest.mark.parametrize(
    ("setting", "value", "good", "status"),
    [("maxmemory-policy", "allkeys-lru", "noeviction", "FAIL"), ("appendonly", "no", "yes", "FAIL")],
)
async def test_redis_that_could_lose_a_budget(monkeypatch, valkey, redis_url, setting, value, good, status):
    """A Redis that evicts fails, one without AOF is a warning; the hint has the command."""
    monkeypatch.setenv("INTERLOCK_REDIS_URL", redis_url)
    with redis.Redis(port=valkey.port) as client:
        client.config_set(setting, value)
        try:
            finding = await found("redis", setting)
        finally:
            client.config_set(setting, good)

    assert (finding.status, "CONFIG SET" in finding.hint) == (status, True)


async def test_embedded_valkey_that_runs_is_found(tmp_path):
    """A running mesh's embedded Valkey is looked at without any setting."""
    valkey = EmbeddedValkey()
    await valkey.start(tmp_path / "state")
    try:
        finding = await found("redis", "server")
    finally:
        await valkey.stop()

    assert (finding.status, "valkey.sock" in finding.detail) == ("OK", True)


@pytest.mark.parametrize(
    ("reply", "status"),
    [(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}", "OK"),
     (b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 0\r\n\r\n", "FAIL"),
     (b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n", "WARN"),
     (b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n", "FAIL"),
     (b"\x00\x01 no http", "FAIL")],
    ids=["well", "key refused", "not found", "failing", "no http"],
)  # fmt: skip
async def test_upstream_by_its_answer(monkeypatch, reply, status):
    """A provider is well, refuses our key, or fails, by what it answers; the key is not shown."""
    async with answering(reply) as port:
        monkeypatch.setenv("INTERLOCK_UPSTREAM_BASE_URL", f"http://127.0.0.1:{port}/v1")
        monkeypatch.setenv("INTERLOCK_UPSTREAM_API_KEY", API_KEY)
        finding = await found("upstream", "provider")

    assert finding.status == status
    assert not found_in(str(finding))


@pytest.mark.req("SVC-9")
async def test_peers_that_hang_do_not_hang_the_check(monkeypatch):
    """A Redis, a provider and a service that accept and stay silent are failures, not a wait without end."""
    async with answering(None) as port:
        monkeypatch.setenv("INTERLOCK_REDIS_URL", f"redis://127.0.0.1:{port}/0")
        monkeypatch.setenv("INTERLOCK_UPSTREAM_BASE_URL", f"http://127.0.0.1:{port}/v1")
        monkeypatch.setenv("INTERLOCK_POLICY_ADDRESS", f"127.0.0.1:{port}")
        async with asyncio.timeout(20):
            findings = await examine()

    statuses = {(f.group, f.name): f.status for f in findings}
    assert statuses["redis", "server"] == statuses["upstream", "provider"] == "FAIL"
    assert statuses["services", "policy"] == "FAIL", "what takes connections and is silent is not simply absent"


@pytest.mark.req("SVC-9")
async def test_service_by_its_health(monkeypatch):
    """A service that runs is OK; one that misses something fails with that thing's name; a stranger fails as such."""
    dependency = Dependency()
    server = RpcServer([policy_service(PolicyProbe(), dependency)], Settings(allow_plaintext=True), port=0)
    port = await server.start()
    monkeypatch.setenv("INTERLOCK_POLICY_ADDRESS", f"127.0.0.1:{port}")
    monkeypatch.setenv("INTERLOCK_DPE_ADDRESS", f"127.0.0.1:{port}")
    try:
        well, stranger = await found("services", "policy"), await found("services", "dpe")
        dependency.gone = {"files": "put them back"}
        await asyncio.sleep(0.25)
        ill = await found("services", "policy")
    finally:
        await server.drain()

    assert (well.status, stranger.status, ill.status) == ("OK", "FAIL", "FAIL")
    assert "not the dpe service" in stranger.hint
    assert ("files" in ill.detail, ill.hint) == (True, "put them back")


async def test_port_that_a_stranger_has(monkeypatch):
    """A port that another program listens on is a warning that names the setting."""
    async with answering(b"") as port:
        monkeypatch.setenv("INTERLOCK_AUDIT_PORT", str(port))
        finding = await found("ports", "audit_port")

    assert (finding.status, "INTERLOCK_AUDIT_PORT" in finding.hint) == ("WARN", True)


def test_command_ends_with_1_on_a_failure(tmp_path):
    """The command prints one JSON document and ends with 1 when something fails."""
    said = run("check", "-o", "json", env=environment(tmp_path / "state", {"master_key": "00"}))
    document = json.loads(said.stdout)

    assert (said.returncode, document["ok"]) == (1, False)
    assert {"group", "name", "status", "detail", "hint"} == set(document["findings"][0])


def test_command_ends_with_0_otherwise(tmp_path):
    """Warnings do not fail the check; people get one line per finding and the hints."""
    said = run("check", "--wait", "0.1", env=environment(tmp_path / "state"))

    assert said.returncode == 0
    assert "hint: " in said.stdout
    assert "\x1b" not in said.stdout


@pytest.mark.req("SVC-6")
async def test_certificates_are_looked_at(tmp_path, monkeypatch):
    """A good pair is shown with its end, one that ends soon warned of, a broken one fails and is said before the services."""
    held = a_mesh_of_certificates(tmp_path / "certificates")
    for name, path in files(held, "operator").items():
        monkeypatch.setenv(f"INTERLOCK_{name.upper()}", str(path))
    soon = [finding for finding in await examine() if finding.group == "certificates"]
    (held / "operator.key").write_bytes((held / "audit.key").read_bytes())
    broken = {(finding.group, finding.name): finding.status for finding in await examine()}

    assert {(one.name, one.status.value) for one in soon} == {("mesh", "WARN"), ("fronts", "OK"), ("callers", "OK")}
    assert broken["certificates", "mesh"].value == "FAIL"
    assert broken["services", "all"].value == "SKIP"


KEYS = {
    "any key": (200, 400, "WARN"),
    "its own keys": (401, 401, "OK"),
    "a list for everybody": (200, 401, "OK"),
    "no list": (404, 404, "OK"),
}


@pytest.mark.req("ATT-2")
@pytest.mark.parametrize(("listed", "asked", "status"), KEYS.values(), ids=KEYS)
async def test_a_provider_that_takes_any_key_is_told(monkeypatch, listed, asked, status):
    """Callers are told apart by keys that the provider gets: one that is made up must not be served."""
    provider = Provider()
    provider.fails(asked)
    with RunningProvider(provider) as running:
        monkeypatch.setenv("INTERLOCK_UPSTREAM_BASE_URL", running.base_url)
        monkeypatch.setenv("INTERLOCK_PROFILE", "enforce")
        provider.lists({"data": []}, status=listed)
        finding = await found("upstream", "keys")

    assert finding.status == status
    assert ("made up" in finding.detail, "INTERLOCK_API_KEYS_FILE" in finding.hint) == (True, status == "WARN")
    assert [one.body for one in provider.received if one.body is not None] == [{}]

"""A mesh of processes that talk mutual TLS, an HTTPS front, the operator's command line, and certificates that change (SVC-6)."""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from pathlib import Path

import httpx
import openai
import pytest

from interlock.runtime.rpc.server import RpcServer
from interlock.runtime.settings.model import Settings
from tests.support.servers.processes import Processes, environment, run
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.servers.tls import a_mesh_of_certificates, files
from tests.support.sidecar.sidecar import token_of
from tests.support.sidecar.world import CALM, _dpe_service

pytestmark = [pytest.mark.long, pytest.mark.timeout(180), pytest.mark.req("SVC-6")]

MESSAGES = [{"role": "user", "content": "Say: LOW"}]


@dataclass
class Encrypted:
    """Where the front is, what the command line is told, and the certificates of all."""

    http: str
    addresses: dict[str, str]
    held: Path
    folder: Path

    def cli(self, *arguments: str, member: str = "operator"):
        """Run a command with the certificate of a member."""
        settings = {**self.addresses, **files(self.held, member)}
        return run(*arguments, env=environment(self.folder / "operator", settings))


@pytest.fixture
async def encrypted(tmp_path, redis_url):
    """Session, policy, audit and a sidecar as processes, each with its own certificate."""
    held = a_mesh_of_certificates(tmp_path / "certificates")
    front = {"front_cert_file": held / "front.pem", "front_key_file": held / "front.key"}
    dpe = RpcServer([_dpe_service()], Settings(**files(held, "dpe")), port=0)
    addresses = {"dpe_address": f"127.0.0.1:{await dpe.start()}"}
    with RunningProvider(Provider()) as provider:
        shared = {**CALM, "upstream_base_url": provider.base_url, "redis_url": redis_url}
        with Processes(tmp_path, shared) as processes:
            started = [processes.process(name, **files(held, name)).start() for name in ("session", "policy", "audit")]
            addresses |= {f"{one.name}_address": f"127.0.0.1:{one.wait().ports[one.name]}" for one in started}
            sidecar = processes.process("sidecar", **files(held, "sidecar"), **front, **addresses).start().wait()
            yield Encrypted(f"https://127.0.0.1:{sidecar.ports['sidecar_http']}", addresses, held, tmp_path)
    await dpe.drain()


def client_of(encrypted: Encrypted) -> openai.AsyncOpenAI:
    context = ssl.create_default_context(cafile=str(encrypted.held / "ca.pem"))
    http = httpx.AsyncClient(verify=context, trust_env=False, timeout=30)
    return openai.AsyncOpenAI(base_url=f"{encrypted.http}/v1", api_key="sk", http_client=http, max_retries=0)


async def test_every_certificate_changes_under_live_calls_and_none_fails(encrypted):
    """The openai client talks through HTTPS and four mutual-TLS hops while all certificates are renewed twice."""
    async with client_of(encrypted) as client:
        stop = asyncio.Event()

        async def talking() -> int:
            made = 0
            while not stop.is_set():
                raw = await client.chat.completions.with_raw_response.create(model="m", messages=MESSAGES)
                await client.chat.completions.create(
                    model="m", messages=MESSAGES, extra_headers={"CRP-Session-Token": token_of(raw)}
                )
                made += 1
            return made

        load = asyncio.create_task(talking())
        for _ in range(2):
            await asyncio.sleep(1)
            await asyncio.to_thread(a_mesh_of_certificates, encrypted.held)
            await asyncio.sleep(2)
        stop.set()
        assert await load > 5
    renewed = (encrypted.held / "front.pem").read_text()
    served = await asyncio.to_thread(_served_by, encrypted.http)

    assert served.strip() in renewed


def _served_by(url: str) -> str:
    host, port = url.removeprefix("https://").split(":")
    return ssl.get_server_certificate((host, int(port)))


async def test_the_operator_asks_with_its_own_certificate_and_others_may_not(encrypted):
    """`interlock agents list` works for the operator, is CALLER_NOT_ALLOWED for a sidecar, and nothing without one."""
    allowed = await asyncio.to_thread(encrypted.cli, "agents", "list")
    denied = await asyncio.to_thread(encrypted.cli, "agents", "list", member="sidecar")
    bare = await asyncio.to_thread(
        run, "agents", "list", env=environment(encrypted.folder / "operator", encrypted.addresses)
    )

    assert allowed.returncode == 0, allowed.stderr
    assert (denied.returncode, "CALLER_NOT_ALLOWED" in denied.stderr) == (2, True)
    assert (bare.returncode, "POLICY_UNAVAILABLE" in bare.stderr) == (2, True)


async def test_check_finds_the_services_behind_tls(encrypted):
    """`interlock check` with the operator's certificate sees session, policy, dpe and audit ready."""
    checked = await asyncio.to_thread(encrypted.cli, "check")
    lines = [line.split() for line in checked.stdout.splitlines()]

    assert {line[1] for line in lines if line[:1] == ["OK"] and "ready" in line} >= {
        "session",
        "policy",
        "dpe",
        "audit",
    }


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"tls_cert_file": "a.pem"}, "TLS_SETTINGS_INCOMPLETE"),
        ({"tls_cert_file": "a.pem", "tls_key_file": "a.key"}, "TLS_SETTINGS_INCOMPLETE"),
        ({"tls_cert_file": "a.pem", "tls_key_file": "a.key", "tls_ca_file": "ca.pem"}, "FILE_UNREADABLE"),
        ({"host": "0.0.0.0", "redis_url": "memory://"}, "PLAINTEXT_REFUSED"),
    ],
)
def test_a_half_encrypted_start_is_one_clear_line(tmp_path, settings, reason):
    """Part of the settings, files that are not there, plain text for all to read: refused, with what to do about it."""
    done = run("serve", "session", env=environment(tmp_path, {"redis_url": "memory://", **settings}))

    assert (done.returncode, reason in done.stderr) == (2, True), done.stderr


def test_a_key_that_everybody_may_read_is_refused(tmp_path):
    """A private key with mode 0644 is no secret, and nothing starts with it."""
    held = a_mesh_of_certificates(tmp_path / "certificates")
    (held / "session.key").chmod(0o644)
    done = run("serve", "session", env=environment(tmp_path, {"redis_url": "memory://", **files(held, "session")}))

    assert (done.returncode, "KEY_FILE_EXPOSED" in done.stderr) == (2, True), done.stderr

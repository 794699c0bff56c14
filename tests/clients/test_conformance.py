"""One script, played by the clients of every language against the same mesh, over plain text and TLS."""

from __future__ import annotations

import datetime as dt
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse

from tests.clients.python_player import play
from tests.clients.toolchains import needs, run
from tests.support.paths import ROOT
from tests.support.servers.provider import Provider, RunningProvider, completion, message
from tests.support.sidecar.mesh import Front, start_front

CLIENTS = ROOT / "clients"
SCRIPT = CLIENTS / "conformance.yaml"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"

pytestmark = [pytest.mark.models, pytest.mark.long, pytest.mark.timeout(600), pytest.mark.req("LNG-1", "SVC-8")]


def script() -> dict[str, Any]:
    return yaml.safe_load(SCRIPT.read_text(encoding="utf-8"))


@dataclass(frozen=True)
class World:
    """A running mesh and its provider."""

    front: Front
    provider: Provider
    ca: Path | None

    def traces(self) -> set[str]:
        """Return the ids of the traces that the provider was called in."""
        return {(one.header("traceparent") or "--").split("-")[1] for one in self.provider.received}


def answer_by_script(provider: Provider) -> Any:
    """Return the handler that answers a question as the script says; a review finds nothing."""
    known = script()["provider"]

    async def reply(request: Request) -> JSONResponse:
        asked = str((await request.json())["messages"][-1]["content"])
        return JSONResponse(completion(message(known.get(asked, '{"issues": []}'))))

    return reply


@pytest.fixture(scope="module", params=["plain", "tls"])
def world(request, tmp_path_factory) -> Iterator[World]:
    """A mesh in one process with the agent types of the examples; its fronts have a certificate, or none."""
    folder = tmp_path_factory.mktemp("clients")
    settings: dict[str, Any] = {"agents_file": ROOT / "examples" / "agents.yaml", "require_registered_agents": "true"}
    ca = None
    if request.param == "tls":
        ca, cert, key = certificate(folder)
        settings |= {"front_cert_file": cert, "front_key_file": key}
    with RunningProvider(Provider()) as running:
        running.provider._reply = answer_by_script(running.provider)
        front = start_front("local", folder, {"upstream_base_url": running.base_url, **settings})
        with front.processes:
            yield World(front, running.provider, ca)


def certificate(folder: Path) -> tuple[Path, Path, Path]:
    """Write an authority and a certificate for 127.0.0.1."""
    from ipaddress import ip_address

    from cryptography import x509
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    now = dt.datetime.now(dt.UTC)
    made: dict[str, Path] = {name: folder / f"{name}.pem" for name in ("ca", "front", "key")}
    authority, leaf = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "conformance")])

    def built(subject: x509.Name, public: Any) -> x509.CertificateBuilder:
        start, end = now - dt.timedelta(minutes=5), now + dt.timedelta(days=1)
        builder = x509.CertificateBuilder().subject_name(subject).issuer_name(name).public_key(public)
        return builder.serial_number(x509.random_serial_number()).not_valid_before(start).not_valid_after(end)

    root = built(name, authority.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    names = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    front = built(x509.Name([]), leaf.public_key()).add_extension(names, critical=True)
    made["ca"].write_bytes(root.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM))
    made["front"].write_bytes(front.sign(authority, hashes.SHA256()).public_bytes(Encoding.PEM))
    made["key"].write_bytes(leaf.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    made["key"].chmod(0o600)
    return made["ca"], made["front"], made["key"]


def problems(printed: str) -> list[str]:
    """Return the steps that a runner says differed, once it has played them all."""
    lines = [line.split("\t") for line in printed.splitlines()]
    assert sum(len(case["steps"]) for case in script()["cases"]) == len(lines)
    return ["\t".join(line) for line in lines if line[2]]


def test_the_python_client_plays_the_script(world):
    """The reference: what Go and Node must do, the Python client does over HTTP."""
    if world.ca is not None:
        pytest.skip("the Python client checks a sidecar by the machine's authorities")
    world.provider.received.clear()

    assert not [outcome for outcome in play(script(), f"{world.front.http}/v1") if outcome[1]]
    assert TRACE in world.traces()


@pytest.fixture(scope="module")
def go_runner(tmp_path_factory) -> Path:
    """The runner of the Go client, built from stubs that are generated now."""
    folder = tmp_path_factory.mktemp("go") / "client"
    shutil.copytree(CLIENTS / "go", folder, ignore=shutil.ignore_patterns("gen"))
    run(sys.executable, ROOT / "scripts" / "gen_clients.py", "go", "--out", folder, cwd=ROOT)
    run("go", "vet", ".", "./cmd/...", cwd=folder)
    run("go", "build", "-o", folder / "conformance", "./cmd/conformance", cwd=folder)
    return folder / "conformance"


@needs("go")
def test_the_go_client_plays_the_script(world, go_runner, tmp_path):
    """Sessions, delegation, refusals and traces over gRPC from Go."""
    world.provider.received.clear()
    printed = run(go_runner, SCRIPT, world.front.grpc, *([world.ca] if world.ca else []), cwd=tmp_path)

    assert not problems(printed)
    assert TRACE in world.traces()


@pytest.fixture(scope="module")
def node_client(tmp_path_factory) -> Path:
    """The Node client as npm packs and installs it."""
    folder = tmp_path_factory.mktemp("node") / "client"
    shutil.copytree(CLIENTS / "node", folder, ignore=shutil.ignore_patterns("node_modules"))
    shutil.copy(ROOT / "services" / "interlock" / "api" / "descriptors.binpb", folder)
    run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
    return folder


@needs("node", "npm")
def test_the_node_client_plays_the_script(world, node_client):
    """The same from Node, without generated stubs: the client reads the published descriptors."""
    world.provider.received.clear()
    ca = [world.ca] if world.ca else []
    printed = run("node", "conformance.mjs", SCRIPT, world.front.grpc, *ca, cwd=node_client)

    assert not problems(printed)
    assert TRACE in world.traces()


@needs("node", "npm")
def test_the_types_of_the_node_client_are_sound(node_client):
    """TypeScript reads the declarations in strict mode, and a program that uses them."""
    (node_client / "use.ts").write_text(
        'import { Client, SafetyHalt } from "./index.mjs";\n'
        'const session = new Client("127.0.0.1:7071", { apiKey: "key" }).session({ policy: "halt-on HIGH" });\n'
        'export const risk = async (): Promise<string | undefined> => (await session.chat({ model: "m", messages: [] })).headers["x"];\n'
        'export const why = (error: unknown): string => (error instanceof SafetyHalt ? error.reason : "");\n',
        encoding="utf-8",
    )
    shutil.copy(node_client / "index.d.ts", node_client / "index.d.mts")
    run("npx", "tsc", "--noEmit", "--strict", "--module", "nodenext", "--target", "es2022", "use.ts", cwd=node_client)

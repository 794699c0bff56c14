"""One script, played by the clients of every language against the same mesh, over plain text and TLS."""

from __future__ import annotations

import asyncio
import datetime as dt
import os
import re
import shutil
import ssl
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse

from tests.clients.python_player import play
from tests.clients.toolchains import needs, run
from tests.support.paths import ROOT
from tests.support.servers.provider import Provider, RunningProvider, completion, message
from tests.support.servers.streaming import chunk, spoken
from tests.support.sidecar.mesh import Front, start_front

CLIENTS = ROOT / "clients"
SCRIPT = CLIENTS / "conformance.yaml"
RELEASED_S = 20.0
"""How long the model waits for a sentence to be released."""
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


def answer_by_script(released: Callable[[], float]) -> Any:
    """Return the handler that answers a question as the script says; a review finds nothing.

    To a stream it says one sentence, and the rest once more parts were *released* than before.
    """
    known = script()["provider"]

    async def sentences(text: str) -> AsyncIterator[bytes]:
        first, dot, rest = text.partition(". ")
        before, ends = await asyncio.to_thread(released), time.monotonic() + RELEASED_S
        pieces = spoken(first + dot, rest)
        for piece in pieces[:2] if rest else pieces:
            yield piece
        # The sentence is certain to be one once the next one begins. A text is searched again once it grew by a sixteenth: one letter
        # that comes alone would not do.
        yield chunk({"content": rest[:8]}) if rest else b""
        while rest and await asyncio.to_thread(released) <= before and time.monotonic() < ends:
            await asyncio.sleep(0.05)
        for piece in (chunk({"content": rest[8:]}), *pieces[3:]) if rest else ():
            yield piece

    async def reply(request: Request) -> Response:
        body = await request.json()
        said = known.get(str(body["messages"][-1]["content"]), '{"issues": []}')
        if body.get("stream"):
            return StreamingResponse(sentences(said), media_type="text/event-stream")
        return JSONResponse(completion(message(said)))

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
        front = start_front("local", folder, {"upstream_base_url": running.base_url, **settings})
        running.provider._reply = answer_by_script(lambda: parts_released(front, ca))
        with front.processes:
            yield World(front, running.provider, ca)


def parts_released(front: Front, ca: Path | None) -> float:
    """Return how many parts of answers the sidecar has released."""
    base = front.http.replace("http:", "https:") if ca else front.http
    verify = ssl.create_default_context(cafile=str(ca)) if ca else False
    shown = httpx.get(f"{base}/metrics", timeout=10, trust_env=False, verify=verify).text
    found = re.search(r'^interlock_stream_parts_total\{outcome="released"\} (\S+)', shown, re.MULTILINE)
    return float(found[1]) if found else 0.0


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


def test_the_python_client_plays_the_script(world, monkeypatch):
    """The reference: what Go and Node must do, the Python client does over HTTP; it finds an authority by SSL_CERT_FILE."""
    world.provider.received.clear()
    base = world.front.http
    if world.ca is not None:
        monkeypatch.setenv("SSL_CERT_FILE", str(world.ca))
        base = base.replace("http:", "https:")

    assert not [outcome for outcome in play(script(), f"{base}/v1") if outcome[1]]
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


@pytest.fixture(scope="module")
def rust_runner() -> Path:
    """The runner of the Rust client, whose stubs its build writes; what was built before is built upon."""
    run("cargo", "build", "--quiet", "--locked", "-j", "1", "--example", "conformance", cwd=CLIENTS / "rust")
    target = Path(os.environ.get("CARGO_TARGET_DIR", CLIENTS / "rust" / "target"))
    return target / "debug" / "examples" / "conformance"


@needs("cargo")
@pytest.mark.timeout(1200)
def test_the_rust_client_plays_the_script(world, rust_runner, tmp_path):
    """The same from Rust."""
    world.provider.received.clear()
    printed = run(rust_runner, SCRIPT, world.front.grpc, *([world.ca] if world.ca else []), cwd=tmp_path)

    assert not problems(printed)
    assert TRACE in world.traces()


@needs("cargo")
@pytest.mark.timeout(1200)
def test_a_key_that_cannot_be_sent_is_refused_by_the_rust_client(rust_runner):
    """Without it the call would be another caller's: a key from a file that ends with a line break is one."""
    del rust_runner  # what it built is built upon
    run("cargo", "test", "-q", "--locked", "-j", "1", "--lib", cwd=CLIENTS / "rust")


@pytest.fixture(scope="module")
def java_classes(tmp_path_factory) -> str:
    """The class path of the Java client and of its runner."""
    folder = tmp_path_factory.mktemp("java") / "client"
    shutil.copytree(CLIENTS / "java", folder, ignore=shutil.ignore_patterns("target"))
    copied = ("dependency:copy-dependencies", "-DincludeScope=test", "-DoutputDirectory=target/lib")
    run("mvn", "-q", "-B", f"-Dprotos={ROOT / 'protos'}", "test-compile", *copied, cwd=folder)
    return os.pathsep.join(str(folder / "target" / part) for part in ("classes", "test-classes", "lib/*"))


@needs("mvn", "javac")
def test_the_java_client_plays_the_script(world, java_classes, tmp_path):
    """The same from Java."""
    world.provider.received.clear()
    ca = [world.ca] if world.ca else []
    runner = ("java", "-cp", java_classes, "dev.interlock.client.Conformance")
    printed = run(*runner, SCRIPT, world.front.grpc, *ca, cwd=tmp_path)

    assert not problems(printed)
    assert TRACE in world.traces()


@needs("mvn", "javac")
def test_a_key_that_cannot_be_sent_is_refused_by_the_java_client(world, java_classes, tmp_path):
    """The same from Java, whose gRPC leaves such a header out without a word."""
    world.provider.received.clear()
    (tmp_path / "Key.java").write_text(
        "import dev.interlock.client.*;\n"
        "public class Key {\n"
        "  public static void main(String[] args) {\n"
        '    try (Client client = Client.connect(args[0], "from a file\\n")) {\n'
        '      client.session("").chat(Request.ask("m", "Say hello."));\n'
        "    } catch (InterlockException refused) {\n"
        '      System.out.println(refused.kind() + " " + refused.getMessage().contains("authorization"));\n'
        "    }\n"
        "  }\n"
        "}\n",
        encoding="utf-8",
    )
    run("javac", "-cp", java_classes, "-d", tmp_path, tmp_path / "Key.java", cwd=tmp_path)
    printed = run("java", "-cp", os.pathsep.join((java_classes, str(tmp_path))), "Key", world.front.grpc, cwd=tmp_path)

    assert printed.split() == ["BadRequest", "true"]
    assert not world.provider.received


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


def block(readme: Path, language: str) -> str:
    """Return the one program of a README."""
    (code,) = re.findall(rf"```{language}\n(.*?)```", readme.read_text(encoding="utf-8"), re.DOTALL)
    return code


@needs("cargo")
@pytest.mark.timeout(1200)
def test_the_readme_of_the_rust_client_ends_in_a_halt(world, rust_runner):
    """The program that it prints is the example that is built here, and its answer is halted."""
    if world.ca is not None:
        pytest.skip("the program of the README speaks to a sidecar on loopback")
    assert block(CLIENTS / "rust" / "README.md", "rust") in (CLIENTS / "rust" / "examples" / "halt.rs").read_text()
    env = {"SIDECAR_TARGET": world.front.grpc, "OPENAI_API_KEY": script()["keys"]["orchestrator"]}
    del rust_runner  # what it built is built upon

    printed = run("cargo", "run", "-q", "--locked", "-j", "1", "--example", "halt", cwd=CLIENTS / "rust", **env)
    assert printed == "halted: SAFETY_HALT\n"


@needs("mvn", "javac")
def test_the_readme_of_the_java_client_ends_in_a_halt(world, java_classes, tmp_path):
    """The program that it prints compiles against the client, and its answer is halted."""
    if world.ca is not None:
        pytest.skip("the program of the README speaks to a sidecar on loopback")
    (tmp_path / "Halt.java").write_text(block(CLIENTS / "java" / "README.md", "java"), encoding="utf-8")
    env = {"SIDECAR_TARGET": world.front.grpc, "OPENAI_API_KEY": script()["keys"]["orchestrator"]}
    run("javac", "-cp", java_classes, "-d", tmp_path, tmp_path / "Halt.java", cwd=tmp_path)

    printed = run("java", "-cp", f"{java_classes}{os.pathsep}{tmp_path}", "Halt", cwd=tmp_path, **env)
    assert printed == "halted: SAFETY_HALT\n"

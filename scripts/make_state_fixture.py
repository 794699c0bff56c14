"""Have one version of the code write a state folder, and record what that version said of it (tests/e2e/test_old_state.py).

    git worktree add --detach ../old 4423755
    PYTHONPATH=../old/services python scripts/make_state_fixture.py tests/data/state_4423755

It needs the packages of ``.[test]`` and no code of this repository but the ``interlock`` of PYTHONPATH. It serves the whole
mesh on one state folder three times, with a model provider of its own:

1. calls in several sessions, a delegation, two held responses, one session that is ended, and a clean stop;
2. a fresh start that only reads the sessions and reports, and a clean stop;
3. a window that is sealed and not settled, because the process is killed in between.

Then it asks the commands of that version about the log, and writes ``state.tar.gz``, ``settings.yaml``, ``agents.yaml``,
``reviewers.yaml`` and ``recorded.json`` to the folder.
"""

from __future__ import annotations

import argparse
import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx

COMMAND = [sys.executable, "-m", "interlock.cli.main"]
START_S, STOP_S = 90.0, 30.0
PORTS = ("SIDECAR_HTTP", "SIDECAR_GRPC", "SESSION", "POLICY", "DPE", "AUDIT", "OVERSIGHT", "OVERSIGHT_HTTP", "METRICS")
LEFT_OUT = {"owner.lock", "valkey.log", "valkey.sock"}
"""Of the process that ran, not of its state: its pid, the path of its socket, its output."""

QUESTION = "How tall is the Eiffel Tower, and when was it completed?"
FACTS = [
    {"id": "tower", "content": "The Eiffel Tower is 330 metres tall and stands in Paris.", "importance": 0.9},
    {"id": "year", "content": "The Eiffel Tower was completed in 1889.", "importance": 0.8},
]
TRUE = "The Eiffel Tower is 330 metres tall and was completed in 1889."
FALSE = "The Eiffel Tower is 990 metres tall. It was moved to Berlin by Otto Krause in 1953."
HOLDS = {"crp-safety-oversight-mode": "human-review"}
REVIEWER, REVIEWER_SEED = "reviewer@company.com", bytes([1]) * 32
"""The reviewer of tests/support/policy/agents.py."""

SETTINGS = """\
# A settings file of 4423755, with paths that are relative to the folder in which the mesh is started.
state_dir: state
audit_anchor: anchor
audit_origin: fixture.example/audit
audit_anchor_required: true
audit_anchor_max_lag: 500
checkpoint_entries: 4
checkpoint_s: 1
agents_file: agents.yaml
reviewers_file: reviewers.yaml
public_base_url: https://interlock.example
default_policy: warn-on HIGH
token_lifetime_s: 86400
hold_expires_s: 2592000
decrement_medium: 0.06
decrement_high: 0.16
decrement_critical: 0.36
max_windows: 12
max_loop_depth: 2
max_delegations: 7
grant_lifetime_s: 600
remediation: none
ai_domain: general
data_region: EU
upstream_timeout_s: 40
log_level: warning
"""


@dataclass
class Provider:
    """A model provider that answers every chat with ``text``."""

    text: str = TRUE

    @contextmanager
    def served(self) -> Iterator[str]:
        """Serve on a free port and give the base URL."""
        provider = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["content-length"]))
                said = {"role": "assistant", "content": provider.text}
                body = json.dumps({
                    "id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": "test-model",
                    "choices": [{"index": 0, "message": said, "finish_reason": "stop"}],
                    "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
                }).encode()  # fmt: skip
                self.send_response(200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            server.server_close()


@dataclass
class Mesh:
    """A running ``interlock serve``, and what its clients have seen so far."""

    folder: Path
    env: dict[str, str]
    provider: Provider
    sessions: dict[str, dict[str, Any]] = field(default_factory=dict)
    ports: dict[str, int] = field(default_factory=dict)

    @contextmanager
    def served(self, **env: str) -> Iterator[None]:
        """Serve while the block runs, and end it with SIGTERM; a failpoint may have killed it."""
        with (self.folder / "serve.err").open("ab") as errors:
            child = subprocess.Popen(
                [*COMMAND, "serve"], cwd=self.folder, env={**self.env, **env}, stdout=subprocess.PIPE, stderr=errors
            )
        assert child.stdout is not None
        try:
            self.ports = json.loads(child.stdout.readline())["ports"]
            yield
        finally:
            child.send_signal(signal.SIGTERM)
            if child.wait(STOP_S) not in {0, -signal.SIGKILL}:
                raise RuntimeError((self.folder / "serve.err").read_text())

    def request(self, method: str, path: str, name: str, *, headers: dict[str, str] | None = None, **more: Any) -> Any:
        """Ask the sidecar as a session's client."""
        session = self.sessions.setdefault(name, {"api_key": "sk-anonymous", "answers": []})
        sent = {"authorization": f"Bearer {session['api_key']}", **(headers or {})}
        if "token" in session:
            sent.setdefault("crp-session-token", session["token"])
        url = f"http://127.0.0.1:{self.ports['sidecar_http']}{path}"
        return httpx.request(method, url, headers=sent, timeout=60, trust_env=False, **more)

    def chat(self, name: str, text: str, *, headers: dict[str, str] | None = None, **interlock: Any) -> dict[str, Any]:
        """Have the provider answer *text* in a session, and keep what the client got."""
        self.provider.text = text
        body = {
            "model": "test-model", "messages": [{"role": "user", "content": QUESTION}],
            "interlock": {"facts": FACTS, **interlock},
        }  # fmt: skip
        response = self.request("POST", "/v1/chat/completions", name, headers=headers, json=body)
        got = {
            "status": response.status_code,
            "headers": {key: value for key, value in response.headers.items() if key.startswith("crp-")},
            "body": response.json(),
        }
        session = self.sessions[name]
        session["answers"].append(got)
        session["session_id"] = got["headers"].get("crp-context-session-id", session.get("session_id"))
        if fresh := got["headers"].get("crp-set-session"):
            session["token"] = fresh.split(";")[0].removeprefix("token=")
        return got

    def command(self, *arguments: str) -> dict[str, Any]:
        """Run an ``interlock`` command to its end, and return its exit code and what it printed."""
        env = {**self.env}
        if "oversight" in self.ports:
            env["INTERLOCK_OVERSIGHT_ADDRESS"] = f"127.0.0.1:{self.ports['oversight']}"
        done = subprocess.run(
            [*COMMAND, *arguments], cwd=self.folder, env=env, capture_output=True, text=True, timeout=60, check=False
        )
        if done.returncode == 2:
            raise RuntimeError(done.stdout + done.stderr)
        return {"exit": done.returncode, "stdout": done.stdout}


def main() -> None:
    """Write the fixture."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("out", type=Path)
    out: Path = options.parse_args().out.absolute()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="interlock-state-") as made:
        folder = Path(made)
        _configure(folder)
        recorded = _recorded(folder)
        for name in ("settings.yaml", "agents.yaml", "reviewers.yaml"):
            (out / name).write_bytes((folder / name).read_bytes())
        (out / "recorded.json").write_text(json.dumps(recorded, indent=1, ensure_ascii=False, default=str) + "\n")
        if any(str(folder).encode() in path.read_bytes() for path in _packed(folder) if path.is_file()):
            raise RuntimeError(f"the state names {folder}")
        _pack(folder, out / "state.tar.gz")


def _configure(folder: Path) -> None:
    keys = {name: hashlib.sha256(f"fixture-{name}".encode()).hexdigest() for name in ("orchestrator", "legal")}
    (folder / "settings.yaml").write_text(SETTINGS)
    (folder / "agents.yaml").write_text(
        "agents:\n"
        f"  orchestrator:\n    api_key: sha256:{keys['orchestrator']}\n    max_loop_depth: 1\n    max_delegations: 5\n"
        "    allowed_strategies: [push, reflexive, fan-out, fan-in, batch]\n"
        f"  legal:\n    api_key: sha256:{keys['legal']}\n    max_loop_depth: 0\n    max_delegations: 0\n"
        "    allowed_strategies: [push, reflexive]\n    safety_policy: halt-on CRITICAL\n"
    )
    (folder / "anchor").mkdir()


def _reviewer(mesh: Mesh) -> Path:
    """Write the reviewer's two files; the private one stays out of the fixture."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    def text(raw: bytes) -> str:
        return "ed25519:" + base64.urlsafe_b64encode(raw).decode().rstrip("=")

    key = Ed25519PrivateKey.from_private_bytes(REVIEWER_SEED)
    public = text(key.public_key().public_bytes_raw())
    (mesh.folder / "reviewers.yaml").write_text(f"reviewers:\n  {REVIEWER}:\n    public_key: {public}\n")
    path = mesh.folder / "reviewer.key"
    path.write_text(json.dumps({"reviewer": REVIEWER, "private_key": text(key.private_bytes_raw())}))
    path.chmod(0o600)
    return path


def _recorded(folder: Path) -> dict[str, Any]:
    """Serve, and return what clients, reviewer and auditor were told."""
    provider = Provider()
    with provider.served() as upstream:
        bare = {name: value for name, value in os.environ.items() if not name.startswith(("INTERLOCK_", "OTEL_"))}
        ports = {f"INTERLOCK_{name}_PORT": "0" for name in PORTS}
        named = {"INTERLOCK_CONFIG_FILE": "settings.yaml", "INTERLOCK_UPSTREAM_BASE_URL": upstream, "NO_COLOR": "1"}
        mesh = Mesh(folder, {**bare, **ports, **named}, provider)
        key = _reviewer(mesh)
        with mesh.served():
            approved = _talk(mesh, key)
        with mesh.served():
            reports, shown = _reports(mesh), _shown(mesh)
        with mesh.served(INTERLOCK_FAILPOINTS="sidecar.after_seal:kill@2"), suppress(httpx.TransportError):
            mesh.chat("doubtful", TRUE)
            mesh.chat("doubtful", FALSE)  # never answered
    return {
        "written_at": int(time.time()), "sessions": mesh.sessions, "approved": approved, "reports": reports,
        "shown": shown, "audit": _audited(mesh), "settings": _settings(folder),
    }  # fmt: skip


def _talk(mesh: Mesh, key: Path) -> str:
    """Have every session but the doubtful one, and return the oversight token of the response that was approved."""
    _tree(mesh)
    for text in (TRUE, FALSE):
        mesh.chat("single", text)
    mesh.chat("held", TRUE)
    mesh.chat("held", FALSE, headers=HOLDS)
    mesh.chat("approved", FALSE, headers=HOLDS)
    mesh.chat("ended", FALSE)
    mesh.request("DELETE", f"/crp/v3/session/{mesh.sessions['ended']['session_id']}", "ended").raise_for_status()
    window = mesh.sessions["approved"]["answers"][0]["body"]["metadata"]["window_id"]
    arguments = ("oversight", "approve", window, "--key", str(key), "--reason", "SOURCES_CHECKED")
    return str(mesh.command(*arguments)["stdout"].strip())


def _tree(mesh: Mesh) -> None:
    """A root that goes on after its sub-agent has answered, with that answer."""
    mesh.sessions["root"] = {"api_key": "fixture-orchestrator", "answers": []}
    mesh.sessions["child"] = {"api_key": "fixture-legal", "answers": []}
    mesh.chat("root", TRUE)
    mesh.chat("root", FALSE)
    granted = mesh.request("POST", "/crp/v3/delegations", "root", json={"agent_type": "legal"}).raise_for_status()
    child = mesh.chat("child", TRUE, headers=granted.json()["headers"])
    mesh.chat("child", TRUE)
    result = {
        "session_id": child["headers"]["crp-context-session-id"],
        "hmac": child["headers"]["crp-provenance-hmac"],
    }
    mesh.chat("root", TRUE, sub_agent_results=[result])


def _reports(mesh: Mesh) -> dict[str, dict[str, Any]]:
    """Return the answer to the URI of every window's sealed report, by its path."""
    found = {}
    for name, session in mesh.sessions.items():
        for answer in session["answers"]:
            if uri := answer["headers"].get("crp-provenance-report-uri"):
                response = mesh.request("GET", httpx.URL(uri).path, name)
                found[httpx.URL(uri).path] = {"session": name, "status": response.status_code, "body": response.text}
    return found


def _shown(mesh: Mesh) -> dict[str, dict[str, Any]]:
    """Return what each session's own client is shown of it, by name."""
    found = {}
    for name, session in mesh.sessions.items():
        response = mesh.request("GET", f"/crp/v3/session/{session['session_id']}", name)
        found[name] = {"status": response.status_code, "body": response.json()}
    return found


def _audited(mesh: Mesh) -> dict[str, Any]:
    """Return what the auditor's commands print."""
    ids = {name: session["session_id"] for name, session in mesh.sessions.items()}
    return {
        "fsck": mesh.command("audit", "fsck", "-o", "json"),
        "tree": mesh.command("audit", "verify", "--tree", ids["root"], "-o", "json"),
        "verify": {name: mesh.command("audit", "verify", one, "-o", "json") for name, one in ids.items()},
        "export": {name: mesh.command("audit", "export", one)["stdout"] for name, one in ids.items()},
    }


def _settings(folder: Path) -> dict[str, Any]:
    """Return every setting of that version, as it reads the settings file."""
    from interlock.runtime import config

    return dict(config.load(folder / "settings.yaml"))


def _packed(folder: Path) -> list[Path]:
    found = [path for part in ("state", "anchor") for path in (folder / part, *sorted((folder / part).rglob("*")))]
    return [path for path in found if path.name not in LEFT_OUT]


def _pack(folder: Path, archive: Path) -> None:
    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:gz") as packed:
        for path in _packed(folder):
            packed.add(path, arcname=path.relative_to(folder), recursive=False, filter=anonymous)


if __name__ == "__main__":
    main()

"""``interlock demo --tree``: an orchestrator and three specialists, one of which exhausts the budget of the tree."""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, Queue
from typing import IO, Any

import grpc
from rich.console import Console
from rich.text import Text

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2, session_pb2_grpc
from interlock.demo.mesh import DemoMesh, MeshFailedError
from interlock.demo.provider import MODEL, Replay, RunningProvider
from interlock.demo.run import wait
from interlock.demo.tree_promises import broken
from interlock.demo.tree_script import SPECIALISTS, provider_recording
from interlock.demo.tree_view import agent_name, show_step, show_tree

POLICY = "halt-on CRITICAL; warn-on HIGH"
STEP_S = 240.0
SERVICES = ("session", "policy", "dpe", "audit")


@dataclass(frozen=True)
class TreeRun:
    """Result of a run."""

    steps: list[dict[str, Any]]
    sessions: list[session_pb2.Session]
    broken: list[str]
    """A sentence for every broken promise."""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        tree = [
            {
                "agent": agent_name(one),
                "session_id": one.session_id,
                "parent_session_id": one.parent_session_id,
                "safety_budget_micros": one.safety_budget_micros,
                "breaker": common_pb2.BreakerState.Name(one.breaker).removeprefix("BREAKER_STATE_"),
                "windows": len(one.windows),
            }
            for one in self.sessions
        ]
        return {"steps": self.steps, "tree": tree, "broken": self.broken}


def run(out: Console) -> TreeRun:
    """Show the whole demonstration on *out*."""
    replay = Replay(provider_recording(), api_key=secrets.token_hex(16))
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="interlock-demo-tree-")))
        provider = ends.enter_context(RunningProvider(replay))
        keys = {name: secrets.token_hex(16) for name in ("orchestrator", *SPECIALISTS)}
        settings = _settings(folder, provider, replay, keys)
        _introduce(out, keys)
        mesh = ends.enter_context(DemoMesh(folder / "mesh", settings))
        wait(out, mesh)
        sidecars = _sidecars(out, ends, mesh, folder, settings)
        channel = ends.enter_context(grpc.insecure_channel(mesh.address("session")))
        tree = _Tree(session_pb2_grpc.SessionServiceStub(channel))
        steps = _act(out, ends, tree, {"orchestrator": mesh, **sidecars}, keys)
        failures = list(broken(steps, tree.sessions, tree.rises, crp_headers=replay.crp_headers))
        out.print(f"\nThe provider was called {replay.calls} times and saw {len(replay.crp_headers)} CRP headers.")
        failures += _verify(out, mesh, tree.root)
    return TreeRun(steps, tree.sessions, failures)


def _settings(folder: Path, provider: RunningProvider, replay: Replay, keys: Mapping[str, str]) -> dict[str, str]:
    agents = folder / "agents.yaml"
    agents.write_text("\n".join(["agents:", *(line for name in keys for line in _agent(name, keys[name]))]) + "\n")
    return {
        "INTERLOCK_UPSTREAM_BASE_URL": provider.base_url,
        "INTERLOCK_UPSTREAM_API_KEY": replay.api_key,
        "INTERLOCK_DEFAULT_POLICY": POLICY,
        "INTERLOCK_AGENTS_FILE": str(agents),
        "INTERLOCK_MAX_WINDOWS": "12",
        "INTERLOCK_REQUEST_TIMEOUT_S": "150",
        # Recorded answers repeat one another, so each is decided without a remedy.
        "INTERLOCK_REMEDIATION": "none",
    }


def _agent(name: str, key: str) -> list[str]:
    """Return the lines of an agent type in the registry's file (SPEC-012 §7.1)."""
    orchestrates = name == "orchestrator"
    return [
        f"  {name}:",
        f"    api_key: sha256:{hashlib.sha256(key.encode()).hexdigest()}",
        f"    max_loop_depth: {1 if orchestrates else 0}",
        f"    max_delegations: {len(SPECIALISTS) if orchestrates else 0}",
        "    allowed_strategies: [push, reflexive]",
    ]


def _introduce(out: Console, agents: Mapping[str, str]) -> None:
    recording = provider_recording()
    out.print(Text("Interlock demonstration: a tree of agents", style="bold"))
    out.print(f"{', '.join(agents)}: four processes, each with a sidecar of its own.")
    out.print("Each specialist reads one sales e-mail and is asked for summaries of it.")
    out.print(f"E-mails, summaries and their labels are recorded data: {recording.citation},")
    out.print(f"{recording.licence}. The questions, the reviews and the words between two answers are ours.")
    out.print(f"policy    {POLICY}")


def _sidecars(
    out: Console, ends: ExitStack, mesh: DemoMesh, folder: Path, settings: Mapping[str, str]
) -> dict[str, DemoMesh]:
    """Start one sidecar per specialist. All use the same services."""
    shared = {f"INTERLOCK_{name.upper()}_ADDRESS": mesh.address(name) for name in SERVICES}
    started = {
        name: ends.enter_context(DemoMesh(folder / name, {**settings, **shared}, "sidecar")) for name in SPECIALISTS
    }
    for name, sidecar in started.items():
        wait(out, sidecar, name)
    return started


def _act(
    out: Console, ends: ExitStack, tree: _Tree, sidecars: Mapping[str, DemoMesh], keys: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Run the agents, and show their actions and the state of the tree, step by step."""
    said: Queue[dict[str, Any] | None] = Queue()
    for name in SPECIALISTS:
        ends.enter_context(_agent_process(["specialist", name], sidecars[name], keys[name], said))
    urls = {line["agent"]: line["url"] for line in (_next(said) for _ in SPECIALISTS) if line}
    arguments = ["orchestrator", *(urls[name] for name in SPECIALISTS)]
    steps: list[dict[str, Any]] = []
    orchestrator = _agent_process(arguments, sidecars["orchestrator"], keys["orchestrator"], said, last=True)
    with orchestrator:
        while line := _next(said):
            steps.append(line)
            tree.learn(line)
            show_step(out, line)
            show_tree(out, *tree.refreshed())
    return steps


def _next(said: Queue[dict[str, Any] | None]) -> dict[str, Any] | None:
    try:
        return said.get(timeout=STEP_S)
    except Empty:
        raise MeshFailedError(f"no agent did anything for {STEP_S:.0f} seconds") from None


@contextmanager
def _agent_process(
    arguments: Sequence[str], sidecar: DemoMesh, key: str, said: Queue[dict[str, Any] | None], *, last: bool = False
) -> Iterator[None]:
    """Run an agent that knows only the address of its sidecar and its own key."""
    env = {"OPENAI_BASE_URL": sidecar.base_url, "OPENAI_API_KEY": key, "OPENAI_MODEL": MODEL}
    process = subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-m", "interlock.demo.tree_agents", *arguments],
        env={**sidecar.env, **env}, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    reader = threading.Thread(target=_read, args=(process.stdout, said, last), daemon=True)
    reader.start()
    try:
        yield
    finally:
        process.terminate()
        process.wait()
        reader.join()
        process.stdout.close()


def _read(lines: IO[str], said: Queue[dict[str, Any] | None], last: bool) -> None:  # noqa: FBT001 - a thread's target
    for line in lines:
        said.put(json.loads(line))
    if last:
        said.put(None)


class _Tree:
    """The tree as the session service knows it. It is read after every step, as an operator would read it."""

    def __init__(self, service: session_pb2_grpc.SessionServiceStub) -> None:
        self._service = service
        self.root = ""
        self.sessions: list[session_pb2.Session] = []
        self.rises: list[str] = []
        """Agents whose budget rose between two steps. There must be none (I1)."""

    def learn(self, line: Mapping[str, Any]) -> None:
        """Keep the id of the root: the session of the first answer."""
        self.root = self.root or line.get("session_id", "")

    def refreshed(self) -> tuple[list[session_pb2.Session], dict[str, int]]:
        """Return the current tree, and the budgets before the step."""
        before = {one.session_id: one.safety_budget_micros for one in self.sessions}
        if self.root:
            request = session_pb2.GetDagRequest(session_id=self.root, tree=True)
            answer = self._service.GetDag(request, timeout=10)
            if answer.HasField("refusal"):
                raise MeshFailedError(f"the tree cannot be read: {answer.refusal.reason}")
            self.sessions = list(answer.sessions)
            self.rises += [
                agent_name(one)
                for one in self.sessions
                if one.safety_budget_micros > before.get(one.session_id, 1_000_000)
            ]
        return self.sessions, before


def _verify(out: Console, mesh: DemoMesh, root: str) -> list[str]:
    out.print(Text(f"\n$ interlock audit verify --tree {root}", style="bold"))
    said = mesh.command("audit", "verify", "--tree", root)
    out.print(Text((said.stdout + said.stderr).rstrip()))
    valid = said.returncode == 0 and re.search(r"\bVALID\b", said.stdout)
    return [] if valid else ["audit verify --tree did not find a valid tree"]

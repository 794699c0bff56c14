"""The demonstration from its first line to its last."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import secrets
import sys
import tempfile
import webbrowser
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import openai
from rich.console import Console
from rich.text import Text

from interlock.demo.agent import HALTED, Agent, DemoWindow
from interlock.demo.mesh import DemoMesh
from interlock.demo.plain import KEY as PLAIN_KEY
from interlock.demo.plain import start_anew
from interlock.demo.promises import broken
from interlock.demo.provider import Replay, RunningProvider
from interlock.demo.recording import Recording, load
from interlock.demo.view import FULL_MICROS, show, show_models, summary

POLICY = "halt-on CRITICAL; warn-on HIGH"
SEALED = "WINDOW_SEALED"


@dataclass(frozen=True)
class DemoRun:
    """Result of a run."""

    windows: list[DemoWindow]
    broken: list[str]
    """A sentence for every broken promise."""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs, without the texts of answers that were not released."""
        return {"windows": [summary(window) for window in self.windows], "broken": self.broken}


def run(out: Console, *, stays: bool = False) -> DemoRun:
    """Show the whole demonstration on *out*. With *stays* its console is open until Ctrl-C."""
    recording, key = load(), secrets.token_hex(16)
    replay = Replay(recording, api_key=key)
    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as folder, RunningProvider(replay) as provider:
        settings = {
            "INTERLOCK_UPSTREAM_BASE_URL": provider.base_url,
            "INTERLOCK_UPSTREAM_API_KEY": key,
            "INTERLOCK_API_KEYS_FILE": str(_keys_file(Path(folder))),
            "INTERLOCK_DEFAULT_POLICY": POLICY,
            # Remedies are off by default. A re-dispatch is reviewed, so it takes two calls besides the draft's.
            "INTERLOCK_REMEDIES": "redispatch",
            "INTERLOCK_MAX_PROVIDER_CALLS": "3",
            # A remedy is not started if the remaining time is too short. This one must run, also on a slow machine.
            "INTERLOCK_REQUEST_TIMEOUT_S": "150",
            "INTERLOCK_MAX_WINDOWS": str(len(recording.turns) + 1),
        }
        _introduce(out, recording, provider)
        with DemoMesh(Path(folder), settings) as mesh:
            wait(out, mesh)
            agent = Agent(mesh.base_url, mesh.grpc_address, api_key="demo-agent")
            try:
                windows = _converse(out, agent, recording, replay)
                calls = replay.calls
                failures = _refused_after(out, agent, windows, replay)
            except (openai.OpenAIError, grpc.RpcError, httpx.HTTPError) as error:
                raise mesh.failed(str(error)) from None
            finally:
                agent.close()
            show_models(out, windows[-1].report)
            recorded = _remedies(out, mesh, windows)
            failures += broken(windows, provider_calls=calls, recorded_calls=recorded, crp_headers=replay.crp_headers)
            failures += _verify(out, mesh, windows)
            failures += start_anew(out, mesh, recording.passage, windows, replay)
            if stays:
                _stay(out, mesh)
    _attach(out, stays=stays)
    return DemoRun(windows, failures)


def _keys_file(folder: Path) -> Path:
    """List the keys of the two agents, so that each has a budget of its own."""
    path = folder / "api-keys.yaml"
    hashes = {name: hashlib.sha256(name.encode()).hexdigest() for name in ("demo-agent", PLAIN_KEY)}
    path.write_text("".join(f"{name}: {digest}\n" for name, digest in hashes.items()), encoding="utf-8")
    path.chmod(0o600)
    return path


def _introduce(out: Console, recording: Recording, provider: RunningProvider) -> None:
    out.print(Text("Interlock demonstration", style="bold"))
    out.print(f"An agent asks a model for {len(recording.turns)} {recording.title}.")
    out.print(f"Passage and answers are recorded data: {recording.citation},")
    out.print(f"{recording.licence}, with labels by people.")
    out.print("The questions, the reviews (in which the model finds no issue) and one second")
    out.print("answer are ours. [[...]] marks text that the passage does not support.", markup=False)
    out.print(f"policy    {POLICY}")
    out.print(f"provider  {provider.base_url} replays {len(recording.turns)} recorded answers")


def wait(out: Console, mesh: DemoMesh, name: str = "mesh") -> None:
    """Show progress while the models load: a spinner in a terminal, a line per change in a pipe."""
    said: set[str] = set()
    with out.status(f"{name:<10}starting") as status:

        def progress(line: str) -> None:
            status.update(Text(f"{name:<10}{line}"))
            if not out.is_terminal and line not in said:
                said.add(line)
                out.print(Text(f"{name:<10}{line}"), no_wrap=True, overflow="ellipsis")

        seconds = mesh.wait_ready(progress)
    out.print(f"{name:<10}{mesh.base_url} ready after {seconds:.1f} s")


def _converse(out: Console, agent: Agent, recording: Recording, replay: Replay) -> list[DemoWindow]:
    windows: list[DemoWindow] = []
    before, calls = FULL_MICROS, 0
    for window in agent.converse(recording.passage, recording.turns):
        windows.append(window)
        show(out, window, of=len(recording.turns), before_micros=before, calls=replay.calls - calls)
        before, calls = window.budget_micros, replay.calls
    return windows


def _refused_after(out: Console, agent: Agent, windows: list[DemoWindow], replay: Replay) -> list[str]:
    """Ask once more after the halt. An open breaker lets no call reach the provider."""
    failures: list[str] = []
    if windows[-1].breaker == "OPEN":
        calls = replay.calls
        status, body = agent.ask_once_more(windows[0].turn.question)
        out.print(f"\nOne more question in this session: {status} {body.get('crp_halt_reason', '')}.")
        if status != HALTED or replay.calls != calls:
            failures.append("a call after the breaker opened was not refused before the provider")
    out.print(f"The provider was called {replay.calls} times and saw {len(replay.crp_headers)} CRP headers.")
    return failures


def _remedies(out: Console, mesh: DemoMesh, windows: list[DemoWindow]) -> int:
    """Show every recorded remedy, and return the number of recorded provider calls."""
    said = mesh.command("audit", "export", windows[-1].session.session_id)
    events = [json.loads(line) for line in said.stdout.splitlines()]
    numbers = {window.headers.get("crp-compliance-audit-trail-id"): window.number for window in windows}
    number_of = {e["window_id"]: numbers.get(e["data"].get("trail_id")) for e in events if e["event_type"] == SEALED}
    out.print(Text("\nRemedies on record:", style="bold"))
    for event in events:
        if event["event_type"] == "RE_DISPATCH":
            data = event["data"]
            where = f"window {number_of.get(event['window_id'])}, round {data['round']}"
            why = f"{', '.join(data['reason'])} at {data['original_risk']} risk"
            out.print(f"  {where}: {why}; {data['strategy']}, {data['temperature']}", markup=False)
    return sum(event["event_type"] == "DISPATCH_STARTED" for event in events)


def _verify(out: Console, mesh: DemoMesh, windows: list[DemoWindow]) -> list[str]:
    session_id = windows[-1].session.session_id
    out.print(Text(f"\n$ interlock audit verify {session_id}", style="bold"))
    said = mesh.command("audit", "verify", session_id)
    out.print(Text((said.stdout + said.stderr).rstrip()))
    valid = said.returncode == 0 and re.search(r"\bVALID\b", said.stdout)
    return [] if valid else ["audit verify did not find a valid chain"]


def _stay(out: Console, mesh: DemoMesh) -> None:
    """Open the console of the demonstration, and let it run until Ctrl-C."""
    said = mesh.command("console")
    if said.returncode:
        raise mesh.failed(said.stderr)
    link = said.stdout.strip()
    out.print(Text("\nThe console, with this conversation in it:", style="bold"))
    out.print(link, soft_wrap=True, markup=False, highlight=False)
    out.print("It runs until Ctrl-C.")
    webbrowser.open(link)
    with contextlib.suppress(KeyboardInterrupt):
        mesh.wait_for_end()
        raise mesh.failed("it ended by itself")


def _attach(out: Console, *, stays: bool) -> None:
    command = Path(sys.prefix) / "bin" / "interlock"
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    if not stays:
        out.print(Text("\nLook at it in the console:", style="bold"))
        out.print(f"{shown} demo --open", soft_wrap=True, markup=False)
    out.print(Text("\nYour own agent:", style="bold"))
    out.print(
        f"INTERLOCK_UPSTREAM_BASE_URL=https://api.openai.com/v1 {shown} serve   # then, for the agent: "
        "OPENAI_BASE_URL=http://127.0.0.1:7070/v1",
        soft_wrap=True,
        markup=False,
    )

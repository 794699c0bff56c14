"""The demonstration from its first line to its last."""

from __future__ import annotations

import re
import secrets
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
import httpx
import openai
from rich.console import Console
from rich.text import Text

from interlock.demo.agent import HALTED, Agent, Window
from interlock.demo.mesh import Mesh
from interlock.demo.promises import broken
from interlock.demo.provider import Replay, RunningProvider
from interlock.demo.recording import Recording, load
from interlock.demo.view import FULL_MICROS, show, summary

POLICY = "halt-on CRITICAL; warn-on HIGH"


@dataclass(frozen=True)
class Shown:
    """What a run showed."""

    windows: list[Window]
    broken: list[str]
    """A sentence for every promise that was not kept."""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs; texts of answers that were not released are not there."""
        return {"windows": [summary(window) for window in self.windows], "broken": self.broken}


def run(out: Console) -> Shown:
    """Show the whole demonstration on *out*."""
    recording, key = load(), secrets.token_hex(16)
    replay = Replay(recording, api_key=key)
    with tempfile.TemporaryDirectory(prefix="interlock-demo-") as folder, RunningProvider(replay) as provider:
        settings = {
            "INTERLOCK_UPSTREAM_BASE_URL": provider.base_url,
            "INTERLOCK_UPSTREAM_API_KEY": key,
            "INTERLOCK_DEFAULT_POLICY": POLICY,
            "INTERLOCK_MAX_WINDOWS": str(len(recording.turns) + 1),
        }
        _introduce(out, recording, provider)
        with Mesh(Path(folder), settings) as mesh:
            _wait(out, mesh)
            agent = Agent(mesh.base_url, mesh.grpc_address, api_key="demo-agent")
            try:
                windows = _converse(out, agent, recording)
                failures = _verdict(out, agent, windows, replay)
            except (openai.OpenAIError, grpc.RpcError, httpx.HTTPError) as error:
                raise mesh.failed(str(error)) from None
            finally:
                agent.close()
            failures += _verify(out, mesh, windows)
    _attach(out)
    return Shown(windows, failures)


def _introduce(out: Console, recording: Recording, provider: RunningProvider) -> None:
    out.print(Text("Interlock demonstration", style="bold"))
    out.print(f"An agent asks a model for {len(recording.turns)} {recording.title}.")
    out.print(f"Passage and answers are recorded data: {recording.citation},")
    out.print(f"{recording.licence}, with labels by people.")
    out.print("Only the questions are ours. [[...]] marks what the passage does not support.", markup=False)
    out.print(f"policy    {POLICY}")
    out.print(f"provider  {provider.base_url} replays {len(recording.turns)} recorded answers")


def _wait(out: Console, mesh: Mesh) -> None:
    """Show that something happens while the models load: a spinner in a terminal, a line per change in a pipe."""
    said: set[str] = set()
    with out.status("mesh      starting") as status:

        def progress(line: str) -> None:
            status.update(Text(f"mesh      {line}"))
            if not out.is_terminal and line not in said:
                said.add(line)
                out.print(Text(f"mesh      {line}"), no_wrap=True, overflow="ellipsis")

        seconds = mesh.wait_ready(progress)
    out.print(f"mesh      {mesh.base_url} ready after {seconds:.1f} s")


def _converse(out: Console, agent: Agent, recording: Recording) -> list[Window]:
    windows: list[Window] = []
    before = FULL_MICROS
    for window in agent.converse(recording.passage, recording.turns):
        windows.append(window)
        show(out, window, of=len(recording.turns), before_micros=before)
        before = window.budget_micros
    return windows


def _verdict(out: Console, agent: Agent, windows: list[Window], replay: Replay) -> list[str]:
    """Ask once more after the halt, then name every promise that was not kept."""
    failures: list[str] = []
    if windows[-1].breaker == "OPEN":
        calls = replay.calls
        status, body = agent.ask_once_more(windows[0].turn.question)
        out.print(f"\nOne more question in this session: {status} {body.get('crp_halt_reason', '')}.")
        if status != HALTED or replay.calls != calls:
            failures.append("a call after the breaker opened was not refused before the provider")
    out.print(f"The provider was called {replay.calls} times and saw {len(replay.crp_headers)} CRP headers.")
    return failures + list(broken(windows, provider_calls=replay.calls, crp_headers=replay.crp_headers))


def _verify(out: Console, mesh: Mesh, windows: list[Window]) -> list[str]:
    session_id = windows[-1].session.session_id
    out.print(Text(f"\n$ interlock audit verify {session_id}", style="bold"))
    said = mesh.command("audit", "verify", session_id)
    out.print(Text((said.stdout + said.stderr).rstrip()))
    valid = said.returncode == 0 and re.search(r"\bVALID\b", said.stdout)
    return [] if valid else ["audit verify did not find a valid chain"]


def _attach(out: Console) -> None:
    command = Path(sys.prefix) / "bin" / "interlock"
    shown = command.relative_to(Path.cwd()) if command.is_relative_to(Path.cwd()) else command
    out.print(Text("\nYour own agent:", style="bold"))
    out.print(
        f"INTERLOCK_UPSTREAM_BASE_URL=https://api.openai.com/v1 {shown} serve   # then, for the agent: "
        "OPENAI_BASE_URL=http://127.0.0.1:7070/v1",
        soft_wrap=True,
        markup=False,
    )

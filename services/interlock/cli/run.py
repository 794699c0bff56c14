"""``interlock run -- COMMAND``: a mesh of its own for one agent, and what was found at its end (SVC-2, ATT-9)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Annotated, Any

import typer

from interlock.cli.output import Format, Output, plain, print_json, refusals, table
from interlock.cli.session_list import listed_last, session_now
from interlock.domain.errors import Refused, invalid, unavailable
from interlock.runtime.clock import iso8601, system_clock
from interlock.runtime.settings.loading import load
from interlock.runtime.settings.model import Settings

PROVIDER = "https://api.openai.com/v1"
"""Where an agent of the openai SDK goes by itself."""

FREE_PORTS = ("SIDECAR_HTTP", "SIDECAR_GRPC", "OVERSIGHT", "OVERSIGHT_HTTP", "DECISION")
"""Ports that any free one will do for: the agent is told which one it is."""

SERVE = (sys.executable, "-c", "from interlock.cli.main import run; run()", "serve", "-o", "json")
END_S = 60
MOST_SHOWN = 1_000
NOT_FOUND, NOT_EXECUTABLE = 127, 126
_LAST_LINES = 12
_COLUMNS = ("session", "agent", "windows", "budget", "charged", "breaker", "status")
_FIELDS = ("session_id", "agent_type", "windows", "safety_budget", "charged", "breaker", "status")

COMMAND = Annotated[
    list[str], typer.Argument(help="The agent's command and its arguments, after --.", metavar="-- COMMAND")
]
UPSTREAM = Annotated[
    str,
    typer.Option(
        "--upstream",
        help=f"The model provider. Default: INTERLOCK_UPSTREAM_BASE_URL, else the agent's OPENAI_BASE_URL, else {PROVIDER}.",
    ),
]
PROFILE = Annotated[
    str, typer.Option("--profile", help="observe, enforce or regulated. Default: INTERLOCK_PROFILE, else observe.")
]


@dataclass(frozen=True)
class RunningMesh:
    """The mesh of one run: where its front for the agent is."""

    base_url: str


def run(command: COMMAND, upstream: UPSTREAM = "", profile: PROFILE = "", output: Output = Format.TEXT) -> None:
    """Start a mesh on free ports, run COMMAND with OPENAI_BASE_URL set to it, and say at its end what was found.

    The agent's output stays its own; the summary goes to standard error, with -o json to standard output. The state stays in
    INTERLOCK_STATE_DIR, so that `interlock session show` and `interlock audit verify` can be asked afterwards, with `interlock serve`.
    Exit: the agent's own code. 2: the mesh did not start.

    Example: interlock run --profile enforce -- python agent.py
    """
    with refusals(output):
        settings = load()
        environment = _environment(upstream, profile)
        began = iso8601(system_clock())
        with _mesh(environment) as mesh:
            code = _agent(command, {**os.environ, **_attached(settings, mesh.base_url)})
            sessions = _sessions(settings, began)
    if output is Format.JSON:
        print_json({"exit_code": code, "sessions": sessions})
    else:
        for line in _summary(sessions):
            typer.echo(plain(line).rstrip(), err=True)
    raise typer.Exit(code)


def _attached(settings: Settings, base_url: str) -> dict[str, str]:
    """Return the variables that bring the agent's calls to the mesh: those of the APIs that its provider is there for."""
    found = {"OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url}
    if settings.upstream_api == "messages":
        return {**found, "ANTHROPIC_BASE_URL": base_url.removesuffix("/v1")}
    if os.environ.get("ANTHROPIC_API_KEY"):
        hint = "INTERLOCK_UPSTREAM_API=messages --upstream https://api.anthropic.com/v1"
        typer.echo(
            f"interlock run: ANTHROPIC_API_KEY is set; calls to Anthropic are not governed. To govern them: {hint}",
            err=True,
        )
    return found


def _environment(upstream: str, profile: str) -> dict[str, str]:
    """Return the environment of the mesh. What is set there stays, but for what this command was told."""
    found = dict(os.environ)
    for name in FREE_PORTS:
        found.setdefault(f"INTERLOCK_{name}_PORT", "0")
    wanted = upstream or found.get("INTERLOCK_UPSTREAM_BASE_URL") or found.get("OPENAI_BASE_URL") or PROVIDER
    found["INTERLOCK_UPSTREAM_BASE_URL"] = wanted
    if profile:
        found["INTERLOCK_PROFILE"] = profile
    return found


@contextmanager
def _mesh(environment: Mapping[str, str]) -> Iterator[RunningMesh]:
    """Serve the mesh for as long as the block runs. Refused with MESH_NOT_STARTED, with the last lines that it wrote."""
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
        process = subprocess.Popen(  # noqa: S603 - our own command
            SERVE, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said, text=True,
            start_new_session=True,  # Ctrl-C is for the agent: the mesh ends after it
        )  # fmt: skip
        try:
            yield RunningMesh(_base_url(process, said))
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()


def _base_url(process: subprocess.Popen[str], said: IO[str]) -> str:
    """Wait for the line that tells the ports. A mesh that hangs is ended by its own start's bounds, and then this ends too."""
    assert process.stdout is not None
    why: dict[str, Any] = {}
    for line in process.stdout:
        told: dict[str, Any] = json.loads(line)
        if told.get("event") == "ready":
            return f"http://127.0.0.1:{told['ports']['sidecar_http']}/v1"
        why = told.get("error", why)
    if why:  # its refusal, which it prints where its answers go
        hint = str(why.get("metadata", {}).get("hint", ""))
        message = f"the mesh did not start: {why['reason']}: {why['message']}"
        raise unavailable("MESH_NOT_STARTED", message, retry_after_ms=0, **({"hint": hint} if hint else {}))
    said.seek(0)
    last = " | ".join(plain(line).strip() for line in said.read().splitlines()[-_LAST_LINES:])
    raise unavailable("MESH_NOT_STARTED", f"the mesh did not start: {last}", retry_after_ms=0)


def _agent(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run the agent to its end and return its exit code, as a shell would tell it. Ctrl-C reaches it by itself."""
    if not command:
        raise invalid("COMMAND_MISSING", "name the agent's command after --, such as: interlock run -- python agent.py")
    try:
        process = subprocess.Popen(command, env=environment)  # noqa: S603 - what the operator typed
    except OSError as error:
        code = NOT_FOUND if isinstance(error, FileNotFoundError) else NOT_EXECUTABLE
        typer.echo(f"interlock run: {command[0]}: {type(error).__name__}", err=True)
        return code
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    ended = signal.signal(signal.SIGTERM, lambda number, _frame: process.send_signal(number))
    try:
        code = process.wait()
    finally:
        signal.signal(signal.SIGINT, before)
        signal.signal(signal.SIGTERM, ended)
    return 128 - code if code < 0 else code


def _sessions(settings: Settings, began: str) -> list[dict[str, Any]]:
    """Return the sessions that began during the run, the first one first."""
    try:
        listed = [one for one in listed_last(settings, "", MOST_SHOWN) if one.created_at >= began]
        return [session_now(settings, one) for one in reversed(listed)]
    except Refused as refused:
        typer.echo(f"interlock run: the sessions cannot be listed: {refused.reason}", err=True)
        return []


def _summary(sessions: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    windows = sum(one["windows"] or 0 for one in sessions)
    yield ""
    yield f"interlock: {len(sessions)} sessions, {windows} judged answers"
    if not sessions:
        yield "no call came through: does the agent read OPENAI_BASE_URL?"
        return
    yield from table(
        [_COLUMNS, *(tuple("-" if one[name] is None else str(one[name]) for name in _FIELDS) for one in sessions)]
    )
    yield "look closer: interlock serve, then interlock console, interlock session show SESSION, interlock audit verify SESSION"

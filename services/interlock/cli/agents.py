"""``interlock agents``: the registry of agent types (SPEC-012 §7)."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import grpc
import typer

from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.cli.asking import asked
from interlock.cli.output import NEGATIVE, Format, Output, print_json, refusals
from interlock.domain.agents import DEEPEST, KEY_PREFIX, MOST_DELEGATIONS, AgentType, as_fields
from interlock.domain.errors import invalid
from interlock.policy import agents_file
from interlock.policy.agents import from_message
from interlock.runtime.settings.loading import load

if TYPE_CHECKING:
    from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceAsyncStub

app = typer.Typer(no_args_is_help=True, help="Register agent types: keys, limits, strategies, policies.")

NAME = typer.Argument(help="Name of the agent type, such as specialist_legal.")
CHECKED = typer.Argument(help="Registry to read, YAML as in SPEC-012 §7.1.")
FILE = typer.Option(None, "--file", help="Change this file instead of calling the policy service.")
KEYS = typer.Option(
    ..., "--api-key", help="sha256:<64 hex digits> of its API key, from `interlock agents hash-key`; repeatable."
)
DEPTH = typer.Option(
    None, "--max-loop-depth", min=0, max=DEEPEST, help="Levels of agents below it. Default: the deployment's limit."
)
DELEGATIONS = typer.Option(
    None, "--max-delegations", min=0, max=MOST_DELEGATIONS, help="Sub-agents per session. Default: no limit of its own."
)
STRATEGIES = typer.Option([], "--strategy", help="Dispatch strategy that it may use; repeatable. Default: all.")
POLICY = typer.Option("", "--policy", help="Safety policy that always applies to it.")
PLAIN_KEY_HELP = (
    "The key is read from standard input or a prompt without echo; other users could see it on a command line."
)


@app.command(name="list")
def list_(output: Output = Format.TEXT) -> None:
    """List the agent types in force in the policy service.

    Exit 0: listed. 1: listed, but the current file is not in force; the reason is printed. 2: no answer.
    """
    with refusals(output):
        settings = load()
        request = policy_pb2.ListAgentsRequest()
        found = asked("policy", settings, lambda c: _stub(c).ListAgents(request, timeout=settings.rpc_timeout_s))
    agents = [from_message(agent) for agent in found.agents]
    if output is Format.JSON:
        listed = {agent.name: as_fields(agent) for agent in agents}
        print_json({"agents": listed, "registry_hash": found.registry_hash or None, "fault": found.fault or None})
    else:
        _print(agents)
        if not found.registry_hash:
            typer.echo("no registry: set INTERLOCK_AGENTS_FILE")
        if found.fault:
            typer.echo(f"\nthe current file is not in force: {found.fault}")
    raise typer.Exit(NEGATIVE if found.fault else 0)


@app.command()
def check(file: Path = CHECKED, output: Output = Format.TEXT) -> None:
    """Read a registry like the service, and list its agent types.

    Exit 0: it is valid. 2: it is not; the place and the expected value are named.
    """
    with refusals(output):
        agents = list(agents_file.load(file).by_name.values())
    if output is Format.JSON:
        print_json({"agents": {agent.name: as_fields(agent) for agent in agents}})
    else:
        _print(agents)


@app.command(name="hash-key", help=f"Print the SHA-256 of an API key in the format of the registry. {PLAIN_KEY_HELP}")
def hash_key(output: Output = Format.TEXT) -> None:
    """Print the SHA-256 of an API key in the format of the registry."""
    with refusals(output):
        digest = KEY_PREFIX + hashlib.sha256(_key().encode()).hexdigest()
    if output is Format.JSON:
        print_json({"api_key": digest})
    else:
        typer.echo(digest)


@app.command()
def add(
    name: str = NAME,
    *,
    keys: list[str] = KEYS,
    max_loop_depth: int | None = DEPTH,
    max_delegations: int | None = DELEGATIONS,
    strategies: list[str] = STRATEGIES,
    policy: str = POLICY,
    file: Path | None = FILE,
    output: Output = Format.TEXT,
) -> None:
    """Add or replace an agent type, for every process that reads the registry file.

    Exit 0: added or replaced. 2: refused; nothing was changed.
    """
    with refusals(output):
        message = policy_pb2.Agent(
            agent_type=name,
            api_key_sha256=[_digest(key) for key in keys],
            max_loop_depth=max_loop_depth,
            max_delegations=max_delegations,
            allowed_strategies=strategies,
            safety_policy=policy,
        )
        agent = from_message(message)
        replaced = _registered(message) if file is None else agents_file.register(file, agent)
    _done(output, name, "replaced" if replaced else "added", replaced=replaced)


@app.command()
def remove(name: str = NAME, file: Path | None = FILE, output: Output = Format.TEXT) -> None:
    """Remove an agent type. Sessions that it started keep their terms.

    Exit 0: removed. 1: there was none. 2: refused.
    """
    with refusals(output):
        removed = _removed(name) if file is None else agents_file.remove(file, name)
    _done(output, name, "removed" if removed else "was not registered", removed=removed)
    raise typer.Exit(0 if removed else NEGATIVE)


def _registered(agent: policy_pb2.Agent) -> bool:
    settings, request = load(), policy_pb2.RegisterAgentRequest(agent=agent)
    answer = asked("policy", settings, lambda c: _stub(c).RegisterAgent(request, timeout=settings.rpc_timeout_s))
    return bool(answer.replaced)


def _removed(name: str) -> bool:
    settings, request = load(), policy_pb2.RemoveAgentRequest(agent_type=name)
    answer = asked("policy", settings, lambda c: _stub(c).RemoveAgent(request, timeout=settings.rpc_timeout_s))
    return bool(answer.removed)


def _stub(channel: grpc.aio.Channel) -> PolicyServiceAsyncStub:
    return policy_pb2_grpc.PolicyServiceStub(channel)


def _key() -> str:
    key: str = typer.prompt("API key", hide_input=True, err=True) if sys.stdin.isatty() else sys.stdin.readline()
    key = key.rstrip("\r\n")
    if not key or not all("!" <= char <= "~" for char in key):
        raise invalid("API_KEY_INVALID", "an API key has visible ASCII characters and no space")
    return key


def _digest(given: str) -> str:
    """Return the given hash. A plain key is refused before it is sent anywhere."""
    if not given.startswith(KEY_PREFIX):
        raise invalid(
            "AGENTS_INVALID", "--api-key: expected sha256:<64 hex digits>, never the key itself",
            hint="hash it with `interlock agents hash-key`",
        )  # fmt: skip
    return given.removeprefix(KEY_PREFIX)


def _print(agents: Sequence[AgentType]) -> None:
    for agent in agents:
        typer.echo(agent.name)
        for name, value in as_fields(agent).items():
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            typer.echo(f"  {name:<18} {shown}")


def _done(output: Format, name: str, what: str, **fields: Any) -> None:
    if output is Format.JSON:
        print_json({"agent_type": name, **fields})
    else:
        typer.echo(f"{name} {what}")

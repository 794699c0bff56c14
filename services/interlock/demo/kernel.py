"""``interlock demo --kernel``: five agents in five processes share 100; one is killed in the middle of a saga, and all are stopped."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from interlock.client import kernel as ours
from interlock.client.kernel.calls import KernelCalls, number
from interlock.client.kernel.saga import compensate
from interlock.demo.kernel_agents import BOOKING, BUDGET, WORK, booking, kernel_of
from interlock.demo.mesh import DemoMesh, MeshFailedError
from interlock.demo.run import wait

NAME, KEY = "team", "demo-team"
WORKERS = ("ann", "bob", "cid", "dot")
BOOKER = "eve"
PEER = "clampai"
MADE_UP_S = 60.0
LAST = 12


@dataclass
class KernelRun:
    """Result of a run."""

    told: list[Mapping[str, Any]] = field(default_factory=list)
    ledger: Mapping[str, Any] = field(default_factory=dict)
    trace: Sequence[str] = ()
    peer: str = ""
    broken: list[str] = field(default_factory=list)
    """A sentence for every broken promise."""

    def as_json(self) -> dict[str, Any]:
        """Return it for programs."""
        return {"told": self.told, "ledger": self.ledger, "trace": self.trace, "peer": self.peer, "broken": self.broken}


def run(out: Console) -> KernelRun:
    """Show the whole demonstration on *out*."""
    out.print(Text("Interlock demonstration: five agents, one kernel", style="bold"))
    out.print(
        f"{', '.join((*WORKERS, BOOKER))}: five processes that share {BUDGET:g}. Work costs {WORK:g}, a booking {BOOKING:g}."
    )
    shown = KernelRun()
    with ExitStack() as ends:
        folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix="interlock-demo-kernel-")))
        mesh = ends.enter_context(DemoMesh(folder / "mesh", {"INTERLOCK_UPSTREAM_BASE_URL": "http://127.0.0.1:9/v1"}))
        wait(out, mesh)
        calls = KernelCalls(mesh.base_url, api_key=KEY)
        ends.callback(calls.close)
        _act(out, mesh, calls, shown)
        kernel_id = _account(out, calls, shown)
        shown.broken += _verify(out, mesh, kernel_id, len(shown.trace))
    shown.peer = _peer()
    out.print(
        f"\nInterlock: five processes spent {_spent(shown):g} of {BUDGET:g}; the killed one's booking was made up for; all were stopped."
    )
    out.print(shown.peer)
    return shown


def _act(out: Console, mesh: DemoMesh, calls: KernelCalls, shown: KernelRun) -> None:
    """Let the agents act: one is killed, its booking is made up for, the others spend what there is and are stopped."""
    env = {**mesh.env, "OPENAI_BASE_URL": mesh.base_url, "OPENAI_API_KEY": KEY, "INTERLOCK_KERNEL": NAME}
    with _agents(env, "interlock.client.kernel") as agents:
        shown.told.append(_show(out, _heard(agents[BOOKER])))
        agents[BOOKER].kill()
        out.print(
            Text(f"\n{BOOKER}", style="bold").append(" was killed in the middle of its saga (SIGKILL)", style="default")
        )
        for name in WORKERS:
            _tell(agents[name])
        shown.told += [_show(out, _heard(agents[name])) for name in WORKERS]
        undone = _made_up(calls)
        out.print(
            f"\nIts saga was over 2 s later: rolled back by another process, and {undone} booking was made up for."
        )
        if undone != 1:
            shown.broken.append("the booking of the killed agent was not made up for once")
        kernel_of(ours, name=NAME, calls=calls).stop(ours.ActionSpec("leave", "Leave"))
        out.print(
            Text("\nemergency stop", style="bold red").append(
                ", free and allowed with nothing left: the breaker of the tree is open"
            )
        )
        for name in WORKERS:
            _tell(agents[name])
        after = [_show(out, _heard(agents[name])) for name in WORKERS]
        shown.told += after
        shown.broken += [f"{one['agent']} went on after the stop" for one in after if "stopped" not in one["why"]]


def _made_up(calls: KernelCalls) -> int:
    """Make up for the saga of a process that died, as any other process may; return for how many steps."""
    _, unbook = booking(ours)
    done: list[str] = []
    until = time.monotonic() + MADE_UP_S
    while not done and time.monotonic() < until:
        compensate(calls, NAME, {unbook.id: done.append}, lifetime_s=30.0)
        time.sleep(0.1)
    return len(done)


def _account(out: Console, calls: KernelCalls, shown: KernelRun) -> str:
    """Show ledger and trace, and hold them against what the agents said."""
    told = calls.describe(NAME)
    budget = told["resources"][0]
    figures = {name: number(budget[f"{name}_micros"]) for name in ("limit", "gross", "refunded", "leased", "remaining")}
    shown.ledger = {**figures, "steps": int(told["steps"]), "stopped": told["stopped"]}
    out.print(Text("\nThe ledger", style="bold"))
    out.print("  " + ", ".join(f"{name} {value}" for name, value in shown.ledger.items()))
    records = calls.trace(NAME)
    while more := calls.trace(NAME, int(records[-1]["sequence"])):
        records += more
    shown.trace = [one["type"] for one in records]
    counts = Counter(shown.trace)
    out.print(Text(f"\nThe trace: {len(records)} sealed records", style="bold"))
    out.print("  " + ", ".join(f"{count} {name}" for name, count in counts.items()), soft_wrap=True)
    for one in records[-LAST:]:
        out.print(Text(f"  {one['sequence']:>4}  {one['type']:<32} {json.loads(one['data_json']).get('action') or ''}"))
    done = sum(one["done"] for one in shown.told if one["event"] in {"refused", "ended"})
    if figures["gross"] != done * WORK + BOOKING:
        shown.broken.append(
            f"the ledger has {figures['gross']}, and the agents did {done} times {WORK:g} and a booking of {BOOKING:g}"
        )
    if figures["gross"] - figures["refunded"] > BUDGET or figures["remaining"] >= WORK:
        shown.broken.append("the budget was overspent, or not used up")
    if not told["stopped"]:
        shown.broken.append("the kernel is not stopped")
    return str(told["kernel_id"])


def _verify(out: Console, mesh: DemoMesh, kernel_id: str, records: int) -> list[str]:
    """Show the verified chain. It has no windows, so there is no HMAC of one to verify: hash, number and link of each event are."""
    out.print(Text(f"\n$ interlock audit verify {kernel_id}", style="bold"))
    said = mesh.command("audit", "verify", kernel_id)
    out.print(Text((said.stdout + said.stderr).rstrip()))
    found = json.loads(mesh.command("audit", "verify", kernel_id, "-o", "json").stdout)
    if said.returncode or found["faults"] or found["events"] < records:
        return ["audit verify found a fault in the chain, or too few events"]
    out.print(
        f"  hash, number and link of all {found['events']} events are as they were sealed (a kernel has no windows to verify)"
    )
    return []


def _peer() -> str:
    """Let the same five act on the peer's kernel; return the outcome in a line."""
    if importlib.util.find_spec(PEER) is None:
        return f"{PEER}: left out, it is not installed (pip install 'interlock[peer]')."
    env = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    with _agents(env, PEER) as agents:
        _heard(agents[BOOKER])
        agents[BOOKER].kill()
        for name in WORKERS:
            _tell(agents[name])
        spent = sum(_heard(agents[name])["done"] for name in WORKERS) * WORK + BOOKING
    return f"{PEER}: five processes spent {spent:g} of {BUDGET:g}, each its own; the killed one's booking is known to nobody; no stop reaches another process."


def _spent(shown: KernelRun) -> float:
    return float(shown.ledger["gross"]) - float(shown.ledger["refunded"])


@contextmanager
def _agents(env: Mapping[str, str], module: str) -> Iterator[dict[str, subprocess.Popen[str]]]:
    """Run the five, each a process; end them at the end."""
    roles = {**dict.fromkeys(WORKERS, "worker"), BOOKER: "booker"}
    started = {
        name: subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", "interlock.demo.kernel_agents", role, name, module],
            env=dict(env), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )
        for name, role in roles.items()
    }  # fmt: skip
    try:
        yield started
    finally:
        for one in started.values():
            one.kill()
            one.communicate()


def _tell(agent: subprocess.Popen[str]) -> None:
    assert agent.stdin is not None
    agent.stdin.write("go\n")
    agent.stdin.flush()


def _heard(agent: subprocess.Popen[str]) -> dict[str, Any]:
    assert agent.stdout is not None
    line = agent.stdout.readline()
    if not line:
        raise MeshFailedError("an agent ended without a word")
    told: dict[str, Any] = json.loads(line)
    return told


def _show(out: Console, told: dict[str, Any]) -> dict[str, Any]:
    text = Text(f"\n{told['agent']}", style="bold").append(f" {told['event']}", style="default")
    if "done" in told:
        text.append(f" after {told['done']} times: {told['why'].partition('Reasons: ')[2]}", style="default")
    out.print(text, soft_wrap=True)
    return told

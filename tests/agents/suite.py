"""Run agents through scenarios over a real mesh, and say what each conversation met."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx

from interlock.demo.mesh import DemoMesh
from interlock.runtime.settings.model import Settings
from tests.agents.catalogue import Agent
from tests.agents.provider import Script, text_of
from tests.agents.scenario import Fault, Scenario, load, names
from tests.agents.tap import Exchange, Served, Tap, same
from tests.support.servers.ports import free_ports

POLICY = "halt-on HIGH"
"""What the deployment asks for. The agents ask for nothing."""
RUN_S = 240.0
HALTED = 451
HOLDS = {"HELD_FOR_REVIEW", "HUMAN_REVIEW_REQUIRED"}


@dataclass(frozen=True)
class Stop:
    """An answer that did not reach its agent as the provider gave it, and why."""

    agent: str
    scenario: str
    turn: int
    what: str
    """halted, held, refused or rewritten."""
    reason: str
    question: str
    answer: str
    risk: str = ""
    report: Mapping[str, Any] = field(default_factory=dict)

    @property
    def place(self) -> tuple[str, int]:
        """Where it was: scenario and turn."""
        return self.scenario, self.turn

    @property
    def is_consequence(self) -> bool:
        """Whether the answer itself was free, or never asked for, and was stopped for what earlier ones had cost."""
        return self.risk == "LOW" and (self.what in {"halted", "held"} or self.reason.startswith("403"))


@dataclass
class Run:
    """What one conversation of one agent met."""

    agent: Agent
    scenario: Scenario
    fault: Fault | None
    turns: int
    """Turns that were had."""
    exchanges: list[Exchange]
    told: list[Mapping[str, Any]]
    """What the agent itself printed, one row per turn."""
    stops: list[Stop]
    charged: list[Stop]
    """Answers that were delivered and cost budget."""

    def count(self, what: str) -> int:
        """Return how many answers were stopped in this way."""
        return sum(stop.what == what for stop in self.stops)

    @property
    def calls(self) -> int:
        """Answers that the agent asked for."""
        return len(self.exchanges)

    @property
    def provider_calls(self) -> int:
        """Answers that the provider was asked for."""
        return sum(len(one.provided) for one in self.exchanges)

    @property
    def sessions(self) -> set[str]:
        """Sessions that the conversation was bound to."""
        return {found for one in self.exchanges if (found := one.headers.get("crp-context-session-id"))}

    @property
    def bindings(self) -> set[str]:
        """What bound the calls to their sessions, as the sidecar says."""
        return {found for one in self.exchanges if (found := one.headers.get("crp-session-binding"))}

    @property
    def spent(self) -> float:
        """Budget that the conversation spent, over all of its sessions."""
        lowest: dict[str, float] = {}
        for one in self.exchanges:
            session, budget = one.headers.get("crp-context-session-id"), one.headers.get("crp-agent-safety-budget")
            if session and budget:
                lowest[session] = min(lowest.get(session, 1.0), float(budget))
        return sum(1.0 - budget for budget in lowest.values())

    @property
    def lost(self) -> list[Mapping[str, Any]]:
        """Turns at which the agent failed."""
        return [row for row in self.told if "error" in row]

    def fault_is_stopped(self) -> bool:
        """Whether the planted fault was stopped, whatever was stopped before it."""
        assert self.fault
        return self.fault.turn in {stop.turn for stop in self.stops if stop.what in {"halted", "held"}}

    def stopped_at_fault(self) -> bool:
        """Whether the planted fault was stopped, and nothing before it."""
        assert self.fault
        return self.fault_is_stopped() and {stop.turn for stop in self.stops} == {self.fault.turn}


@dataclass
class Suite:
    """A mesh in enforce, the scripted provider behind it, and a tap in front of it."""

    script: Script
    tap: Tap
    base_url: str
    sidecar: str

    def run(self, agent: Agent, scenario: Scenario, fault: Fault | None = None) -> Run:
        """Have one conversation; with a *fault*, up to its turn.

        The clean conversations of an agent with ``one_key`` share a key, and so the envelope of their caller. Every other one has a
        key of its own, since what it costs its caller is no matter of the others.
        """
        alone = not agent.one_key or fault
        key = f"sk-{agent.name}" + (f"-{scenario.name}" if alone else "")
        key += f"-{scenario.faults.index(fault)}" if fault else ""
        if fault:
            self.script.planted[key] = fault
        case = scenario.case(upto=fault.turn if fault else None)
        before = len(self.tap.exchanges)
        told = self._have(agent, case, key)
        exchanges = self.tap.made_since(before)
        made = Run(agent, scenario, fault, len(case["turns"]), exchanges, told, [], [])
        for one in exchanges:
            self._judge(made, one)
        if not made.stops and _forgot(made):
            raise RuntimeError(f"{agent.name} keeps no history: {_forgot(made)!r} is not in its last request")
        return made

    def _have(self, agent: Agent, case: Mapping[str, Any], key: str) -> list[Mapping[str, Any]]:
        keep = {name: os.environ[name] for name in ("PATH", "HOME", "LANG") if name in os.environ}
        # Frameworks that report home would wait for a network that may not be there.
        quiet = {"OTEL_SDK_DISABLED": "true", "LANGSMITH_TRACING": "false", "HF_HUB_OFFLINE": "1", "NO_PROXY": "*"}
        told_where = {"OPENAI_BASE_URL": f"{self.base_url}/v1", "OPENAI_API_KEY": key}
        with tempfile.TemporaryDirectory() as folder:
            ended = subprocess.run(
                agent.command(), input=json.dumps(case), capture_output=True, text=True, timeout=RUN_S,
                env={**keep, **quiet, **told_where, "TMPDIR": folder}, cwd=folder, check=False,
            )  # fmt: skip
        rows = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith('{"turn"')]
        if len(rows) != len(case["turns"]):
            raise RuntimeError(f"{agent.name} ended with {ended.returncode}: {ended.stderr[-1500:]}")
        return rows

    def _judge(self, run: Run, one: Exchange) -> None:
        what, reason = _outcome(one)
        risk = one.headers.get("crp-safety-hallucination-risk", "LOW")
        if not what and risk == "LOW":
            return
        found = self.script.turn_of(one.request)
        question = found[1].user if found else ""
        answer = json.dumps(one.provided[-1], ensure_ascii=False) if one.provided else ""
        turn = found[1].number if found else 0
        stop = Stop(run.agent.name, run.scenario.name, turn, what, reason, question, answer, risk, self._report(one))
        (run.stops if what else run.charged).append(stop)

    def _report(self, one: Exchange) -> Mapping[str, Any]:
        """Return the report of an answer, as its caller may read it; empty where there is none."""
        window = one.headers.get("crp-context-window-id") or one.headers.get("crp-provenance-report-uri", "")
        path = window.rpartition("/")[2]
        if not path:
            return {}
        asked = {"authorization": f"Bearer {one.key}"}
        answer = httpx.get(f"{self.sidecar}/crp/v3/reports/{path}", headers=asked, trust_env=False)
        return answer.json() if answer.status_code == 200 else {"status": answer.status_code}


def _outcome(one: Exchange) -> tuple[str, str]:
    """Return what became of an answer, and the reason; two empty texts where it came as the provider gave it."""
    if one.status == 200:
        if one.provided and same(one.message, one.provided[-1]):
            return "", ""
        if told := _cut(one):
            return "halted", f"451 {told.get('reason')}, in the middle of a stream"
        return "rewritten", "the answer differs from what the provider said"
    try:
        told = json.loads(one.body)
        reason = str(told.get("crp_halt_reason") or told.get("reason") or "")
    except ValueError:
        reason = one.body[:200].decode(errors="replace")
    held = told.get("reason") in HOLDS or "held" in reason.lower()
    return ("held" if held else "halted" if one.status == HALTED else "refused"), f"{one.status} {reason}"


def _cut(one: Exchange) -> Mapping[str, Any]:
    """Return the error that ended a stream; empty where it ended as a stream does."""
    events = [line[6:] for line in one.body.splitlines() if line.startswith(b"data: ")]
    if not events or events[-1] == b"[DONE]":
        return {}
    told: Mapping[str, Any] = json.loads(events[-1])
    return told if "error" in told or told.get("type") == "error" else {}


def _forgot(run: Run) -> str:
    """Return what the user said and the last request of the conversation does not hold; empty where it holds all."""
    sent = json.dumps([text_of(one) for one in run.exchanges[-1].request["messages"]], ensure_ascii=False)
    said = [turn.user for turn in run.scenario.turns[: run.turns]]
    return next((text for text in said if json.dumps(text, ensure_ascii=False).strip('"') not in sent), "")


def settings() -> dict[str, Any]:
    """Return the settings of the mesh: enforced, with a policy that the deployment sets."""
    wanted: dict[str, Any] = {"default_policy": POLICY}
    if "profile" in Settings.model_fields:
        wanted["profile"] = "enforce"
    return wanted


def _port() -> int:
    """Return a free port without "429" in it: smolagents looks for that in an error's text, where the sidecar's address stands too."""
    return next(port for port in free_ports(20) if "429" not in str(port))


@contextmanager
def running(folder: Path, scenarios: list[str] | None = None, more: Mapping[str, Any] | None = None) -> Iterator[Suite]:
    """Start provider, mesh and tap for the time of the block."""
    script = Script([load(name) for name in scenarios or names()])
    with ExitStack() as ends:
        provider = ends.enter_context(Served(script.app()))
        given = {**settings(), "upstream_base_url": f"{provider.url}/v1", "sidecar_http_port": _port(), **(more or {})}
        # `interlock serve` as an operator starts it: what the settings do not name is as the profile has it.
        named = {f"INTERLOCK_{name.upper()}": str(value) for name, value in given.items()}
        mesh = ends.enter_context(DemoMesh(folder, named))
        mesh.wait_ready(lambda _line: None)
        sidecar = mesh.base_url.removesuffix("/v1")
        tap = Tap(sidecar, script)
        served = ends.enter_context(Served(tap.app()))
        yield Suite(script, tap, served.url, sidecar)

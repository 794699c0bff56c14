"""The seven tests of an agent: the four of SEED-5 §14, and isolation (§2), deadline and crash (§12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlock.cli.certification import judging
from interlock.cli.certification.agent_process import AgentProcess
from interlock.cli.certification.endpoint import KitEndpoint, bait
from interlock.cli.certification.judging import ScenarioAnswer
from interlock.cli.certification.scenarios import Scenario, scenarios
from interlock.decision.agents.desks import AgentTask
from interlock.domain.decision.agents import AgentDescriptor
from interlock.domain.decision.definition import ExperimentRules
from interlock.domain.decision.engine import snapshot_hash
from interlock.domain.decision.signals import admitted
from interlock.domain.errors import invalid
from interlock.runtime.clock import system_clock

TESTS = ("schema", "deterministic", "guards", "explainability", "isolation", "deadline", "crash")
KIT = "1"
CONNECT_S = 20
MOST_LATE = 2
"""After so many answers that came too late a run ends: it is clear by then."""
MOST_FINDINGS = 20


@dataclass(frozen=True)
class TestResult:
    """One test. *findings*: why it failed; *notes*: what else was seen."""

    __test__ = False

    name: str
    findings: Sequence[str] = ()
    notes: Sequence[str] = ()

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        found = [*self.findings][:MOST_FINDINGS]
        return {"test": self.name, "passed": self.passed, "findings": found, "notes": [*self.notes][:MOST_FINDINGS]}


@dataclass(frozen=True)
class KitReport:
    """What the kit found of one agent."""

    agent: AgentDescriptor
    rules_hash: str
    scenarios: int
    transcript: str
    results: Sequence[TestResult]
    output: str = field(default="", repr=False)

    @property
    def passed(self) -> bool:
        """Whether every test passed."""
        return all(one.passed for one in self.results)

    def told(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "kit": KIT, "agent": self.agent.told(), "rules_hash": self.rules_hash, "scenarios": self.scenarios,
            "transcript": self.transcript, "passed": self.passed, "tests": [one.told() for one in self.results],
        }  # fmt: skip


class ComplianceKit:
    """Certifies one agent: it starts *command* anew for each part and asks it over the wire."""

    def __init__(
        self, command: Sequence[str], agent: AgentDescriptor, rules: ExperimentRules, told: Mapping[str, Any], deadline_ms: int
    ) -> None:  # fmt: skip
        self._command, self._agent, self._rules, self._told = command, agent, rules, told
        self._deadline_ms = deadline_ms
        self._output = ""

    async def run(self) -> KitReport:
        """Run every test. Refused with CERTIFY_NOT_CONNECTED where the command opens no stream."""
        async with KitEndpoint() as endpoint:  # type: ignore[abstract]  # what an agent may not call has no method
            at_us = system_clock()
            tasks = scenarios(self._rules, self._agent, self._told, at_us=at_us, bait=bait(endpoint))
            first = await self._instance(endpoint, tasks, at_us)
            second = await self._instance(endpoint, tasks, at_us)
            crash = await self._crash(endpoint, tasks[1], at_us)
        found = judging.judged(self._rules, self._agent, first, at_us=system_clock())
        wrong = found.wrong
        results = [
            TestResult("schema", wrong["schema"], [f"{found.signals} signals, {found.proposals} proposals"]),
            TestResult("deterministic", _differences(first, second)),
            TestResult("guards", wrong["guards"], [f"blocked: {one}" for one in found.blocked]),
            TestResult(
                "explainability", [*wrong["explainability"], *self._silence(found.proposals, first)], found.warnings
            ),
            TestResult("isolation", [*wrong["isolation"], *dict.fromkeys(endpoint.trespasses)]),
            TestResult("deadline", _late(first, endpoint.faults)),
            crash,
        ]
        return KitReport(
            self._agent, self._rules.hash, len(tasks), judging.transcript(first), results, self._output
        )  # fmt: skip

    async def _instance(self, endpoint: KitEndpoint, tasks: Sequence[Scenario], at_us: int) -> list[ScenarioAnswer]:
        """Ask a fresh instance every scenario, in order."""
        answers: list[ScenarioAnswer] = []
        async with AgentProcess(self._command, endpoint.address, endpoint.ticket) as process:
            await self._connected(endpoint, process)
            for cycle, scenario in enumerate(tasks, 1):
                answers.append(await self._asked(endpoint, scenario, cycle, at_us))
                if sum(one.answer is None for one in answers) > MOST_LATE:
                    break
            self._output = process.output
        return answers

    async def _crash(self, endpoint: KitEndpoint, scenario: Scenario, at_us: int) -> TestResult:
        """Let the service go away, then kill the agent, and see that it works again each time."""
        findings: list[str] = []
        async with AgentProcess(self._command, endpoint.address, endpoint.ticket) as process:
            await self._connected(endpoint, process)
            endpoint.drop()
            if not await endpoint.connected(CONNECT_S):
                findings.append("its stream ended, and it opened no other")
            elif (await self._asked(endpoint, scenario, 1, at_us)).answer is None:
                findings.append("it answers nothing after its stream ended")
            await process.kill()
        if (await self._asked(endpoint, scenario, 2, at_us, deadline_ms=100)).answer is not None:
            findings.append("it was killed, and something goes on in its name")
        async with AgentProcess(self._command, endpoint.address, endpoint.ticket):
            if not await endpoint.connected(CONNECT_S):
                findings.append("it was killed, and a new instance does not come back")
            elif (await self._asked(endpoint, scenario, 3, at_us)).answer is None:
                findings.append("it was killed, and a new instance answers nothing")
        return TestResult("crash", findings)

    async def _asked(
        self, endpoint: KitEndpoint, scenario: Scenario, cycle: int, at_us: int, *, deadline_ms: int = 0
    ) -> ScenarioAnswer:
        types = [*self._rules.signals]
        signals = [admitted(one, self._rules, source="", types=types, now_us=at_us)[0] for one in scenario.signals]
        task = AgentTask(
            cycle=cycle, snapshot=scenario.text, snapshot_hash=snapshot_hash(scenario.text),
            signals=tuple(one for one in signals if one), deadline_ms=deadline_ms or self._deadline_ms,
        )  # fmt: skip
        arrival, answer = await endpoint.asked(task)
        return ScenarioAnswer(scenario, arrival, answer)

    async def _connected(self, endpoint: KitEndpoint, process: AgentProcess) -> None:
        waited = 0
        while not await endpoint.connected(1.0):
            waited += 1
            if waited < CONNECT_S and not process.has_ended:
                continue
            said = process.output.strip().splitlines()[-1:] or ["nothing"]
            message = f"no stream after {waited} s; the command {'ended' if process.has_ended else 'runs'} and said: {said[0][:200]}"
            hint = "the command reads INTERLOCK_DECISION_AT and INTERLOCK_DECISION_TICKET"
            raise invalid("CERTIFY_NOT_CONNECTED", message, hint=hint)

    def _silence(self, proposals: int, answers: Sequence[ScenarioAnswer]) -> list[str]:
        """An agent that may propose and never did was not shown to explain anything."""
        answered = all(one.answer is not None for one in answers)
        silent = self._agent.authority.proposes and answered and not proposals
        return ["it proposed nothing in any scenario: give one with --scenarios in which it does"] if silent else []


def _differences(first: Sequence[ScenarioAnswer], second: Sequence[ScenarioAnswer]) -> list[str]:
    one, other = judging.written(first), judging.written(second)
    return [f"{name}: a fresh instance answers otherwise" for name in one if one[name] != other.get(name)]


def _late(answers: Sequence[ScenarioAnswer], faults: Mapping[str, int]) -> list[str]:
    late = [f"{one.scenario.name}: {one.arrival}" for one in answers if one.answer is None]
    return [*late, *(f"{name} x{often}" for name, often in sorted(faults.items()))]

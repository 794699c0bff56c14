"""What the runs met, as text for the terminal and as docs/agents.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.agents.catalogue import AGENTS, Agent
from tests.agents.scenario import load, names
from tests.agents.suite import POLICY, Run

MOST_SPENT = 0.10
"""Budget that 100 clean turns may spend (issue 12)."""
SHOWN = 160


@dataclass
class Outcome:
    """All runs, and what was left out and why."""

    clean: list[Run] = field(default_factory=list)
    planted: list[Run] = field(default_factory=list)
    skipped: list[str] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    """Runs that ended in an error of the suite itself, such as an agent that did not start."""

    @property
    def turns(self) -> int:
        """Clean turns that were had."""
        return sum(run.turns for run in self.clean)

    @property
    def spent_by_100(self) -> float:
        """Budget that 100 clean turns spent, on average."""
        return 100 * sum(run.spent for run in self.clean) / self.turns if self.turns else 0.0

    @property
    def calls_by_answer(self) -> float:
        """Provider calls per answer that an agent asked for."""
        asked = sum(run.calls for run in self.clean)
        return sum(run.provider_calls for run in self.clean) / asked if asked else 0.0

    def harmed(self) -> list[Run]:
        """Return the clean runs in which an answer was stopped or changed, or in which the agent failed."""
        return [run for run in self.clean if run.stops or run.lost]

    def missed(self) -> list[Run]:
        """Return the runs whose planted fault was not stopped at its turn, or not alone."""
        return [run for run in self.planted if not run.stopped_at_fault()]


def summary(outcome: Outcome) -> list[str]:
    """Return the figures over all runs, one line each."""
    clean = outcome.clean
    planted, missed = outcome.planted, outcome.missed()
    late = sum(run.fault_is_stopped() for run in missed)
    return [
        f"clean turns: {outcome.turns} in {len(clean)} conversations of {len({r.agent.name for r in clean})} agents",
        f"false halts: {_sum(clean, 'halted')} · held: {_sum(clean, 'held')} · refused: {_sum(clean, 'refused')}",
        f"rewritten: {_sum(clean, 'rewritten')} · turns at which an agent failed: {sum(len(r.lost) for r in clean)}",
        f"answers that cost budget: {sum(len(r.charged) for r in clean)} of {sum(r.calls for r in clean)}",
        f"budget spent by 100 clean turns: {outcome.spent_by_100:.2f} (at most {MOST_SPENT:.2f})",
        f"provider calls per answer: {outcome.calls_by_answer:.2f}",
        f"planted faults stopped at their turn: {len(planted) - len(missed)} of {len(planted)}, and {late} after a false halt",
        *(f"left out: {text}" for text in outcome.skipped),
        *(f"broken: {text}" for text in outcome.broken),
    ]


def causes(outcome: Outcome) -> list[str]:
    """Return what went wrong where: one line per answer, with the claims that the report accuses."""
    lines = []
    for run in outcome.clean:
        for stop in [*run.stops, *run.charged]:
            what = stop.what or "charged"
            lines.append(
                f"{stop.agent} / {stop.scenario} turn {stop.turn}: {what} {stop.reason}: {stop.question[:60]!r}"
            )
            lines += [f"    {text}" for text in accused(stop.report)]
        lines += [f"{run.agent.name} / {run.scenario.name} turn {row['turn']}: {row['error']}" for row in run.lost]
    for run in outcome.missed():
        assert run.fault
        seen = [f"turn {stop.turn} {stop.what}" for stop in run.stops] or ["nothing"]
        fault = f"{run.fault.kind} at turn {run.fault.turn}"
        lines.append(f"{run.agent.name} / {run.scenario.name}: {fault} was missed; stopped: {', '.join(seen)}")
    return lines


def accused(report: Mapping[str, Any]) -> Iterable[str]:
    """Yield the claims of a report that are not grounded, with what they were judged by."""
    for claim in report.get("claims", ()):
        name = str(claim.get("attribution", "")).removeprefix("ATTRIBUTION_")
        if name not in {"CONTEXT_GROUNDED", ""}:
            entailed = claim.get("entailment")
            score = f" entailment {entailed:.2f}" if isinstance(entailed, float) else ""
            yield f"{name}{score}: {str(claim.get('text', ''))[:SHOWN]!r}"


def page(outcome: Outcome, *, full: bool) -> str:
    """Return docs/agents.md."""
    scenarios = [load(name) for name in names()]
    fields = ", ".join(f"{one.name} ({len(one.turns)} turns, {one.field})" for one in scenarios)
    kinds = ", ".join(sorted({fault.kind for one in scenarios for fault in one.faults}))
    lines = [
        "# Stock agents",
        "",
        "<!-- Written by `make agents FULL=1`, or by a shorter run with ARGS=--page. Do not edit. -->",
        "",
        "Unmodified agents of common frameworks talk through Interlock. They get a base URL and a key and know nothing else: no CRP",
        f"header, no token. The mesh runs in `enforce` with its own models, and the deployment's policy is `{POLICY}`. The provider",
        "answers from hand-written conversations with tools, retrieval, citations, follow-ups, code, JSON, tables, refusals, small",
        "talk and other languages. A clean conversation must arrive byte for byte as the provider gave it. In a planted one the",
        "provider gives one bad answer, and it must be stopped at its turn.",
        "",
        f"Conversations: {fields}.",
        "",
        f"Planted: {kinds}.",
        "",
        "The OpenAI Agents SDK is set to chat completions.",
        "",
        "## Over all" if full else "## Over all, of a part of the suite",
        "",
        *(f"- {line}" for line in summary(outcome)),
        "",
        "## By agent and conversation",
        "",
        "Spent is the budget that the whole conversation cost. A fault is a cell of its own: what was planted, and whether it was",
        "stopped at its turn.",
        "",
        "| agent | version | conversation | turns | false halts | held | refused | rewritten | spent | bound by | planted fault | stopped |",
        "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- | --- |",
        *_rows(outcome),
        "",
    ]
    return "\n".join(lines)


def _rows(outcome: Outcome) -> Iterable[str]:
    for agent in AGENTS:
        for name in names():
            clean = [run for run in outcome.clean if (run.agent, run.scenario.name) == (agent, name)]
            planted = [run for run in outcome.planted if (run.agent, run.scenario.name) == (agent, name)]
            if clean or planted:
                yield _row(agent, name, clean, planted)


def _row(agent: Agent, name: str, clean: Sequence[Run], planted: Sequence[Run]) -> str:
    counts = [_sum(clean, what) for what in ("halted", "held", "refused", "rewritten")] if clean else ["–"] * 4
    bound = ", ".join(sorted({text for run in clean for text in run.bindings})) or "–"
    faults = "; ".join(f"{run.fault.kind}, turn {run.fault.turn}" for run in planted if run.fault) or "–"
    stopped = "; ".join(map(stopped_in_words, planted)) or "–"
    turns = sum(run.turns for run in clean) or "–"
    spent = f"{sum(run.spent for run in clean):.2f}" if clean else "–"
    cells = [agent.framework, agent.version(), name, turns, *counts, spent, bound, faults, stopped]
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def stopped_in_words(run: Run) -> str:
    """Return whether the planted fault of a run was stopped, as a cell of the table."""
    if run.stopped_at_fault():
        return "yes"
    return "yes, after a false halt" if run.fault_is_stopped() else "**no**"


def _sum(runs: Sequence[Run], what: str) -> int:
    return sum(run.count(what) for run in runs)

"""Known gaps: what the judge still gets wrong in these conversations, as a list that may only shrink.

A clean answer that is stopped and a fault that passes fail the suite unless they are on the list. After a full run an entry that was
not seen any more fails it too, so that the list stays true. ``--accept`` writes it anew, and the difference is there to be reviewed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from tests.agents.suite import Run, Stop
from tests.agents.table import MOST_SPENT, Outcome, accused

FILE = Path(__file__).parent / "known_gaps.yaml"
HEAD = """\
# Known gaps of the judge in the conversations of the stock agents; written by `make agents FULL=1 ARGS=--accept`.
# harmed: clean answers that are stopped, and the claim that the report accuses. passed: planted faults that are not stopped.
# spent_by_100: budget that 100 clean turns may spend for now; 0.10 is the aim.
"""


@dataclass(frozen=True)
class Gaps:
    """The list."""

    harmed: Mapping[tuple[str, int], str] = field(default_factory=dict)
    """Scenario and turn → why."""
    passed: frozenset[tuple[str, int, str]] = frozenset()
    """Scenario, turn and kind of a fault."""
    spent_by_100: float = MOST_SPENT

    def new(self, runs: Iterable[Run]) -> Iterator[str]:
        """Yield what is wrong in *runs* and not on the list."""
        for run in runs:
            causes = [stop for stop in run.stops if not stop.is_consequence]
            if run.fault:
                yield from self._of_fault(run, causes)
                continue
            where = f"{run.agent.name} / {run.scenario.name}"
            unknown = [stop for stop in causes if stop.place not in self.harmed]
            yield from (f"{where} turn {stop.turn}: {stop.what} {stop.reason}" for stop in unknown)
            if not causes:
                yield from (f"{where} turn {stop.turn}: {stop.what} {stop.reason}" for stop in run.stops)
            if not run.stops:
                yield from (f"{where} turn {row['turn']}: the agent failed, {row['error']}" for row in run.lost)

    def _of_fault(self, run: Run, causes: list[Stop]) -> Iterator[str]:
        fault = run.fault
        assert fault
        known = (run.scenario.name, fault.turn, fault.kind) in self.passed
        earlier = any(stop.turn < fault.turn and stop.place in self.harmed for stop in causes)
        if not (run.stopped_at_fault() or known or earlier):
            where = f"{run.agent.name} / {run.scenario.name}"
            yield f"{where}: {fault.kind} at turn {fault.turn} was missed"

    def gone(self, outcome: Outcome) -> Iterator[str]:
        """Yield entries that a full run did not show any more."""
        seen = seen_in(outcome)
        yield from (f"harmed: {name} turn {turn}" for name, turn in self.harmed.keys() - seen.harmed.keys())
        yield from (f"passed: {name} turn {turn}, {kind}" for name, turn, kind in self.passed - seen.passed)


def load() -> Gaps:
    """Return the list; without its file there is no gap."""
    if not FILE.exists():
        return Gaps()
    told: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    harmed = {(one["scenario"], one["turn"]): one["why"] for one in told["harmed"]}
    passed = frozenset((one["scenario"], one["turn"], one["kind"]) for one in told["passed"])
    return Gaps(harmed, passed, told["spent_by_100"])


def seen_in(outcome: Outcome) -> Gaps:
    """Return the gaps that *outcome* shows."""
    harmed: dict[tuple[str, int], str] = {}
    for stop in (stop for run in outcome.clean for stop in run.stops if not stop.is_consequence):
        harmed.setdefault(stop.place, f"{stop.what}, {stop.risk}; {next(iter(accused(stop.report)), stop.reason)}")
    missed = {
        (run.scenario.name, run.fault.turn, run.fault.kind) for run in outcome.missed() if run.fault and not run.stops
    }
    return Gaps(harmed, frozenset(missed), outcome.spent_by_100)


def write(outcome: Outcome) -> None:
    """Write the list anew."""
    seen = seen_in(outcome)
    told = {
        "spent_by_100": round(max(MOST_SPENT, seen.spent_by_100 * 1.05), 2),
        "harmed": [{"scenario": n, "turn": t, "why": why} for (n, t), why in sorted(seen.harmed.items())],
        "passed": [{"scenario": n, "turn": t, "kind": kind} for n, t, kind in sorted(seen.passed)],
    }
    FILE.write_text(HEAD + yaml.safe_dump(told, sort_keys=False, allow_unicode=True, width=120), encoding="utf-8")

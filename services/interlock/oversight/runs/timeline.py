"""The time line of a run: a column for each cycle; a row for what was decided, for each agent and for each type of signal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from interlock.oversight.runs.run import ShownCycle, ShownRun

STEP, ROW, LEFT, TOP = 26, 24, 190, 28
"""Sizes of the time line, CSS pixels: of a cycle, of a row, of the names, of the numbers above."""


class Mark(NamedTuple):
    """One mark on the time line."""

    x: int
    y: int
    kind: str
    told: str


class TimelineRow(NamedTuple):
    """A row of the time line: its name and where it is."""

    name: str
    y: int


class Timeline(NamedTuple):
    """All that is drawn."""

    lines: Sequence[TimelineRow]
    marks: Sequence[Mark]
    numbers: Sequence[tuple[int, int]]
    """Cycles, and where each stands."""
    width: int
    height: int
    left: int = LEFT


def timeline(run: ShownRun) -> Timeline:
    """Return the time line."""
    lines = _lines(run)
    return Timeline(
        lines, _marks(run, lines), [(one.number, _x(place)) for place, one in enumerate(run.cycles)],
        width=LEFT + STEP * max(1, len(run.cycles)), height=TOP + ROW * len(lines),
    )  # fmt: skip


def _x(place: int) -> int:
    return LEFT + STEP * place + STEP // 2


def _lines(run: ShownRun) -> Sequence[TimelineRow]:
    names = ["decision", *run.agents, *run.signal_types]
    return [TimelineRow(name, TOP + ROW * place + ROW // 2) for place, name in enumerate(names)]


def _marks(run: ShownRun, lines: Sequence[TimelineRow]) -> Sequence[Mark]:
    decision, agents, types = lines[0], lines[1 : 1 + len(run.agents)], lines[1 + len(run.agents) :]
    marks: list[Mark] = []
    for place, cycle in enumerate(run.cycles):
        x = _x(place)
        kind = "kept" if cycle.trace["chosen"] is None else "decided"
        marks.append(Mark(x, decision.y, kind, f"cycle {cycle.number}: {cycle.outcome}"))
        marks += [Mark(x, line.y, *shown) for line in agents if (shown := _standing(cycle, line.name))]
        marks += [Mark(x, line.y, "signal", told) for line in types if (told := _heard(cycle, line.name))]
    return marks


def _standing(cycle: ShownCycle, name: str) -> tuple[str, str] | None:
    """Return what an agent was after a cycle, and what it did in it; ``None`` for one that was not there yet."""
    one = next((one for one in cycle.trace["agents"] if one["agent"] == name), None)
    if one is None:
        return None
    proposed = [shown for shown in cycle.proposals if shown.said["agent"] == name]
    verdict = (
        "accepted" if any(shown.outcome == "ACCEPTED" for shown in proposed) else "proposed" if proposed else "quiet"
    )
    status = str(one["status_after"])
    kind = verdict if status == "ACTIVE" else f"{status.lower()} {verdict}"
    return kind, f"cycle {cycle.number}: {name} {one['arrival']}, {status}, {len(proposed)} proposals"


def _heard(cycle: ShownCycle, kind: str) -> str:
    found = [one for one in cycle.signals if one["type"] == kind]
    sources = ", ".join(sorted({one["source"] for one in found}))
    return f"cycle {cycle.number}: {len(found)} {kind} of {sources}" if found else ""

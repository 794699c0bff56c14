"""The page of a run: one file without scripts, that loads nothing and shows hidden characters of what agents wrote."""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
from collections.abc import Sequence
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from interlock.cli.decision_report.run import ShownCycle, ShownRun
from interlock.oversight.markup import said
from interlock.runtime.clock import iso8601

STEP, ROW, LEFT, TOP = 26, 24, 190, 28
"""Sizes of the time line, CSS pixels: of a cycle, of a row, of the names, of the numbers above."""

_FOLDER = "interlock.cli.decision_report"
ENVIRONMENT = Environment(
    loader=PackageLoader(_FOLDER, "templates"), autoescape=True, undefined=StrictUndefined, auto_reload=False,
    trim_blocks=True, lstrip_blocks=True,
)  # fmt: skip


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


def page(run: ShownRun) -> str:
    """Return the page."""
    style = importlib.resources.files(_FOLDER).joinpath("templates", "run.css").read_text(encoding="utf-8")
    lines = _lines(run)
    return ENVIRONMENT.get_template("run.html").render(
        run=run, said=said, at=lambda cycle: iso8601(cycle.trace["inputs"]["at_us"])[:19].replace("T", " "), style=Markup(style),  # noqa: S704 - our own file
        policy=f"default-src 'none'; style-src '{_hash(style)}'; base-uri 'none'; form-action 'none'", lines=lines, marks=_marks(run, lines),
        numbers=[(one.number, _x(place)) for place, one in enumerate(run.cycles)],
        width=LEFT + STEP * max(1, len(run.cycles)), height=TOP + ROW * len(lines), left=LEFT,
    )  # fmt: skip


def _hash(style: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()


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

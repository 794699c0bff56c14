"""What ``interlock demo --decide`` shows: each cycle in a few lines, and the comparison at the end."""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Any

from optuna.trial import FrozenTrial
from rich.console import Console
from rich.table import Table
from rich.text import Text

from interlock.demo.decide_search import FOLDS, MOST, ROWS, SEEDS, TRIALS

WAYS = {"agents": "with agents", "random": "random alone", "tpe": "TPE alone"}
COLOURS = {"ACTIVE": "green", "DEGRADED": "yellow", "PROBATION": "yellow", "FAILED": "bold red"}


def definition(deadline_ms: int) -> dict[str, Any]:
    """Return the bundled profile with a deadline of the demonstration's own."""
    text = (resources.files("interlock.decision") / "profiles" / "ml.json").read_text(encoding="utf-8")
    told: dict[str, Any] = json.loads(text)
    return {**told, "limits": {**told["limits"], "deadline_ms": deadline_ms}}


def introduce(out: Console) -> None:
    """Say what is done."""
    out.print(Text("Interlock demonstration: agents propose, one engine decides", style="bold"))
    out.print(f"A support vector machine for handwritten digits: {ROWS} rows, {FOLDS} folds, C and gamma searched.")
    out.print(f"{TRIALS} trials are planned, {MOST} at the most. Four agents are processes of their own, over gRPC.")
    out.print(f"The same search runs without agents beside it, for {len(SEEDS)} seeds.\n")


def show(out: Console, trial: FrozenTrial, trace: Mapping[str, Any], *, best: float, shrunk: float) -> None:
    """Show one cycle."""
    value = "failed" if trial.value is None else f"{trial.value:.4f}"
    sampler = json.loads(trace["inputs"]["snapshot"])["search"]["sampler"]
    out.print(
        Text(
            f"trial {trial.number:2}  error {value}  best {best:.4f}  {sampler}, narrowed {shrunk:.0f} %", style="bold"
        )
    )
    for line, style in _lines(trace):
        out.print(Text(line, style=style), no_wrap=True, overflow="ellipsis")


def _lines(trace: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for one in trace["agents"]:
        if one["status_before"] != one["status_after"] or one["arrival"] != "ANSWERED":
            said = f"  agent     {one['agent']}: {one['arrival']}, {one['status_before']} -> {one['status_after']}"
            yield said, COLOURS[one["status_after"]]
    for agent in trace["inputs"]["agents"]:
        for one in agent["signals"]:
            if one["type"] != "trial_completed":
                yield (
                    f"  signal    {one['source']}: {one['type']} {float(one['confidence']):.2f} {_figures(one['payload_json'])}",
                    "",
                )
    for one in trace["proposals_considered"]:
        by = "" if one["by"] == "AGENT" else " (the rules of its role)"
        figures = f"{one['action_type']} {one['confidence_micros'] / 1e6:.2f}"
        yield f"  proposal  {one['agent']}{by}: {figures}: {one['rationale']}", ""
    for line in trace["guardrail_checks"]:
        place, _, said = line.partition(" ")
        yield f"  guard     {place.partition('/')[0]} {said}", "dim"
    for one in trace["rejected"]:
        yield f"  rejected  {one['agent']}: {one['outcome']} {one['reason']}", "yellow"
    if trace["chosen"]:
        yield f"  decided   {trace['outcome']} {json.dumps(trace['final_parameters'])}", "bold green"
        yield f"  trace     {trace['decision_id']}, snapshot {trace['snapshot_hash'][:12]}", "dim"


def _figures(payload: str) -> str:
    """Return the parts of a payload in a few characters."""
    return " ".join(
        f"{name}={one:.3g}" if isinstance(one, float) else f"{name}={one}" for name, one in json.loads(payload).items()
    )


def compare(out: Console, results: Mapping[str, Sequence[Mapping[str, Any]]]) -> None:
    """Show what each way of searching reached, by seed and on average."""
    table = Table(title="\naccuracy in the search / on rows held back / trials", title_justify="left")
    for name in ("seed", *(WAYS[way] for way in results)):
        table.add_column(name)
    for seed in SEEDS:
        table.add_row(str(seed), *(_cell(one) for way in results.values() for one in way if one["seed"] == seed))
    means = {
        way: {figure: _mean(found, figure) for figure in ("searched", "held_back", "trials")}
        for way, found in results.items()
    }
    table.add_row("mean", *(_cell(one) for one in means.values()), style="bold")
    out.print(table)
    for line in _honest(means):
        out.print(line)


def _honest(means: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Say in words what the means say, also where the agents do not help."""
    agents = means["agents"]
    for way in ("random", "tpe"):
        gained = 100 * (agents["held_back"] - means[way]["held_back"])
        word = "more" if gained > 0 else "less"
        fewer = means[way]["trials"] - agents["trials"]
        yield (
            f"Against {WAYS[way]}: {abs(gained):.2f} points {word} on rows held back, with "
            f"{abs(fewer):.1f} trials {'fewer' if fewer >= 0 else 'more'}."
        )
    yield f"{len(SEEDS)} seeds say little about differences of a point or less."


def _cell(one: Mapping[str, float]) -> str:
    return f"{one['searched']:.4f} / {one['held_back']:.4f} / {one['trials']:g}"


def _mean(results: Sequence[Mapping[str, Any]], figure: str) -> float:
    return statistics.fmean(float(one[figure]) for one in results)

"""Display of a window in a terminal, in words and ASCII marks, so that it is readable without colour."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from interlock.api.dpe.v1 import dpe_pb2
from interlock.demo.agent import DemoWindow

WIDTH = 80
FULL_MICROS = 1_000_000
WHOLE = 0.8
"""A claim that covers this share of its sentence counts as the whole sentence; its text is not repeated."""
COLOURS = {"LOW": "green", "MEDIUM": "yellow", "HIGH": "bold yellow", "CRITICAL": "bold red"}
BREAKER_COLOURS = {"CLOSED": "green", "HALF_OPEN": "yellow", "OPEN": "bold red"}


@dataclass(frozen=True)
class Highlight:
    """A stretch of an answer that its sources do not support, and why."""

    start: int
    end: int
    why: str


def console(*, stderr: bool = False) -> Console:
    """Return a console of at most 80 columns. It respects NO_COLOR and prints plain text to a pipe."""
    return Console(width=min(WIDTH, Console().width), highlight=False, emoji=False, stderr=stderr)


def marks(report: dpe_pb2.Report) -> list[Highlight]:
    """Return the unsupported stretches of the answer, in order; the claims of one sentence are one stretch."""
    reasons: dict[tuple[int, int], list[str]] = {}
    for claim in report.claims:
        why = list(_why(claim))
        if why:
            reasons.setdefault((claim.start, claim.end), []).extend(why)
    return [Highlight(start, end, "; ".join(dict.fromkeys(why))) for (start, end), why in sorted(reasons.items())]


def _why(claim: dpe_pb2.Claim) -> Iterator[str]:
    for one in claim.distortions:
        yield f"{one.type}: the source says {one.source_value!r}, the answer {one.claim_value!r}"
    if claim.fabrications:
        yield "not in the source: " + ", ".join(map(repr, claim.fabrications))
    part = f": {_short(claim.text)}" if len(claim.text) < WHOLE * (claim.end - claim.start) else ""
    if claim.attribution in {dpe_pb2.ATTRIBUTION_PARAMETRIC, dpe_pb2.ATTRIBUTION_UNVERIFIABLE}:
        yield f"no source supports it{part}"
    elif claim.attribution == dpe_pb2.ATTRIBUTION_MIXED:
        yield f"the source supports it only in part{part}"


def _short(text: str, limit: int = 60) -> str:
    return repr(text if len(text) <= limit else text[: limit - 1].rstrip() + "…")


def marked(answer: str, found: Iterable[Highlight]) -> Text:
    """Return *answer* with every mark between double brackets, numbered."""
    text, at = Text(), 0
    for number, mark in enumerate(found, 1):
        text.append(answer[at : mark.start])
        text.append(f"[[{answer[mark.start : mark.end]}]]{number}", style="red")
        at = mark.end
    text.append(answer[at:])
    return text


def bar(micros: int, width: int = 20) -> str:
    """Return the budget as a bar and a decimal, such as ``[#####-----] 0.50``."""
    filled = micros * width // FULL_MICROS
    return f"[{'#' * filled}{'-' * (width - filled)}] {micros / FULL_MICROS:.2f}"


def verdict(window: DemoWindow) -> Text:
    """Return the decision, with its reason."""
    if window.body is not None:
        return Text(f"HALTED, 451 {window.body.get('crp_halt_reason', '')}", style="bold red")
    warning = window.headers.get("crp-safety-budget-warning")
    return Text(f"DELIVERED, budget warning: {warning}" if warning else "DELIVERED", style="green")


def summary(window: DemoWindow) -> dict[str, Any]:
    """Return the summary of *window* for programs."""
    return {
        "window": window.number,
        "item": window.turn.item,
        "status": window.status,
        "risk": window.risk,
        "composite_score": window.report.composite_score,
        "safety_budget_micros": window.budget_micros,
        "breaker": window.breaker,
        "chain": window.chain,
        "remedied": window.remedied,
        "strategy": window.headers.get("crp-context-strategy", ""),
        "stages": [stage.number for stage in window.report.stages if stage.status == dpe_pb2.STAGE_STATUS_RAN],
        "models": [
            {"slot": model.slot, "name": model.name, "hash": model.hash, "runtime": model.runtime}
            for model in window.report.models
        ],
        "marks": [mark.why for mark in marks(window.report)],
        "halt": window.body,
    }


def stages(report: dpe_pb2.Report) -> str:
    """Return the stages that ran, and the other stages with the reason."""
    ran = [stage.number for stage in report.stages if stage.status == dpe_pb2.STAGE_STATUS_RAN]
    rest = [f"{stage.number} ({stage.detail})" for stage in report.stages if stage.number not in ran]
    return " ".join(ran) + (f"; not run: {', '.join(rest)}" if rest else "")


def quality(window: DemoWindow) -> str:
    """Return the findings of stages 6 to 9, from the headers."""
    named = (
        ("repetition", "crp-quality-repetition"), ("completeness", "crp-quality-completeness"),
        ("flow", "crp-quality-flow"), ("contradictions", "crp-safety-contradictions"), ("score", "crp-quality-score"),
        ("tier", "crp-context-quality-tier"),
    )  # fmt: skip
    return ", ".join(f"{name} {window.headers[header]}" for name, header in named if header in window.headers)


def asked(window: DemoWindow, calls: int) -> str:
    """Return how the answer was produced."""
    strategy = window.headers.get("crp-context-strategy", "")
    produced = f"{calls} model call{'s' if calls != 1 else ''}, {strategy} {window.headers.get('crp-agent-revision-round', '')}"
    return f"{produced}; REMEDIED: the first answer was not released" if window.remedied else produced


def rows(window: DemoWindow, before_micros: int, calls: int) -> Iterator[tuple[str, Text]]:
    """Yield label and text of every line about *window*."""
    report = window.report
    found = marks(report)
    label = "consistent" if window.turn.consistent else "inconsistent"
    yield "agent", Text(window.turn.question)
    if window.answer is None:
        yield "answer", Text("(not released; the report has its findings)", style="italic")
    else:
        yield "answer", marked(window.answer, found)
    for number, mark in enumerate(found, 1):
        yield f"  [{number}]", Text(mark.why, style="red")
    yield "recorded", Text(f"{window.turn.item}, labelled {label} by people", style="dim")
    yield "asked", Text(asked(window, calls), style="green" if window.remedied else "")
    yield "stages", Text(stages(report))
    if window_quality := quality(window):
        yield "quality", Text(window_quality)
    risk = Text(f"{window.risk} {report.composite_score:.2f}", style=COLOURS.get(window.risk, ""))
    grounding = f"{report.grounding_pct:.0%}" if report.HasField("grounding_pct") else "no checkable claim"
    yield "risk", risk.append(f"   grounding {grounding}", style="default")
    charge = (before_micros - window.budget_micros) / FULL_MICROS
    budget = Text(f"{bar(window.budget_micros)} (-{charge:.2f})   breaker ")
    yield "budget", budget.append(window.breaker, style=BREAKER_COLOURS.get(window.breaker, ""))
    yield "decision", verdict(window)
    first = " (the first window has no predecessor)" if window.chain == "UNVERIFIED" else ""
    yield "chain", Text(f"{window.chain}{first}   {window.headers.get('crp-provenance-hmac', '')[:23]}…")


def show_models(out: Console, report: dpe_pb2.Report) -> None:
    """Print the models that judged: name with version, hash, and runtime."""
    out.print(Text("\nJudged by:", style="bold"))
    for model in report.models:
        out.print(Text(f"  {model.slot:<9} {model.name}, {model.runtime}"))
        out.print(Text(f"    {model.hash}"))


def show(out: Console, window: DemoWindow, *, of: int, before_micros: int, calls: int) -> None:
    """Print *window*."""
    out.print(Text(f"\n--- window {window.number} of {of} ".ljust(out.width, "-"), style="bold"))
    table = Table.grid(padding=(0, 1))
    table.add_column(width=9, no_wrap=True, style="cyan")
    table.add_column(overflow="fold")
    for label, text in rows(window, before_micros, calls):
        table.add_row(label, text)
    out.print(table)
    if window.body is not None:
        out.print(Text("451 body", style="cyan"))
        out.print(Text(json.dumps(window.body, indent=2)), soft_wrap=True)

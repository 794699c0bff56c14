"""What was aimed at, beside what was measured here."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from bench.quality.metrics import Figure

Table = Mapping[str, Any]


def _at(result: Table, *path: str) -> Figure | None:
    found: Any = result
    for step in path:
        found = found.get(step) if isinstance(found, Mapping) else None
    return found if isinstance(found, Figure) and not math.isnan(found.value) else None


def _row(aim: str, target: float, found: Figure | None, *, most: bool = False, note: str = "") -> tuple[str, ...]:
    wanted = f"{'≤' if most else '≥'} {target:g}"
    if found is None:
        return aim, wanted, "not measured in this run", "–"
    met = found.value <= target if most else found.value >= target
    text = f"{found.value:.3f} ({found.low:.2f}–{found.high:.2f}), n {found.n}{note}"
    return aim, wanted, text, "yes" if met else "**no**"


def targets(result: Table) -> Iterator[tuple[str, ...]]:
    """Yield aim, target, measured, met."""
    trained = "; trained on"
    yield _row("SNLI accuracy", 0.82, _at(result, "pairs", "snli", "accuracy", "model"))
    yield _row("MNLI-matched accuracy", 0.72, _at(result, "pairs", "mnli", "accuracy", "model"), note=trained)
    for name in ("snli", "wiki_nli"):
        title = "SNLI" if name == "snli" else "Wiki NLI"
        yield _row(f"contradiction AUROC, {title}", 0.87, _at(result, "pairs", name, "contradiction", "model"))
    yield _row("BEGIN AUROC", 0.93, _at(result, "pairs", "begin", "auroc", "model"), note=trained)
    yield _row("WiCE AUROC", 0.80, _at(result, "pairs", "wice", "auroc", "model"), note=trained)
    for name in ("news", "qmsumm", "sales_email", "samsum"):
        found = _at(result, "responses", f"summedits_{name}", "balanced", "report")
        yield _row(f"SummEdits {name}, balanced accuracy by answer", 0.62, found, note=trained)
    for name, title in (("qags_cnndm", "QAGS CNN/DM"), ("qags_xsum", "QAGS XSum")):
        target = 0.72 if name == "qags_cnndm" else 0.75
        yield _row(f"{title} AUROC", target, _at(result, "responses", name, "aurocs", "report"))
    for kind in result["distortions"]:
        yield _row(f"{kind} found", 0.97, _at(result, "distortions", kind, "noticed"))
    for kind in result["clean"]:
        yield _row(f"accused, {kind}", 0.02, _at(result, "clean", kind, "accused"), most=True)
    yield _row(
        "faithful answers LOW, all sets", 0.90, _at(result, "together", "faithful_low"), note="; partly trained on"
    )
    for name, table in result["responses"].items():
        note = trained if table["trained"] else ""
        yield _row(
            f"faithful answers LOW, {table['title']}", 0.90, _at(result, "responses", name, "faithful_low"), note=note
        )
    yield _row("PII documents found", 0.92, _at(result, "pii", "recall"), note="; tuned on")
    yield _row("PII precision", 0.95, _at(result, "pii", "precision"), note="; tuned on")

"""What the suite has shown, as the file that docs/reliability.md is generated from."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.faults.play import Run
from tests.faults.runner import Row
from tests.faults.settles import Bulk

KEPT = Path(tempfile.gettempdir()) / "interlock-faults"
"""Where the history of a randomised run that failed is kept."""


def keep(run: Run, row: Row) -> None:
    """Keep the facts of a run that failed, to be read; its seed plays it again."""
    if row.held:
        return
    KEPT.mkdir(exist_ok=True)
    path = KEPT / f"{row.seed}.json"
    path.write_text(json.dumps({"row": row.as_json(), "facts": asdict(run.facts)}, indent=1, default=_plain))
    print(f"         kept in {path}; again: python -m tests.faults random --seed {row.seed} --runs 1", flush=True)


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, set | frozenset) else str(value)


def told(found: Mapping[str, Sequence[Row]], settled: Bulk | None) -> int:
    """Tell the sums; the exit code says whether everything held."""
    failed = 0
    for kind, rows in found.items():
        lost = [row for row in rows if not row.held]
        failed += len(lost)
        print(f"{kind}: {len(rows)} runs, {sum(row.settles for row in rows)} settlements, {len(lost)} failed")
        for row in lost:
            print(f"  {row.component}: {row.fault} (seed {row.seed}): {'; '.join(row.wrong)}")
    if settled is not None:
        failed += settled.wrong
        print(
            f"settles: {settled.settles} settlements, {settled.repeated} of them sent twice, {settled.kills} kills, "
            f"{settled.wrong} sessions wrong, {settled.seconds} s, seed {settled.seed}"
        )
    return 1 if failed else 0


def write(path: Path, found: Mapping[str, Sequence[Row]], settled: Bulk | None) -> None:
    """Bring the results file up to date; what was not played stays."""
    known: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    for kind, rows in found.items():
        if kind == "random":
            known[kind] = _summed(rows)
        else:
            known[kind] = merged(known.get(kind, []), [row.as_json() for row in rows])
    if settled is not None:
        known["settles"] = asdict(settled)
    path.write_text(json.dumps(known, indent=1, sort_keys=True, ensure_ascii=False) + "\n", encoding="utf-8")


def merged(before: Sequence[dict[str, Any]], now: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows of before with what was played again in its place."""
    fresh = {(row["component"], row["fault"]): row for row in now}
    kept = [fresh.pop((row["component"], row["fault"]), row) for row in before]
    return [*kept, *fresh.values()]


def _summed(rows: Sequence[Row]) -> dict[str, Any]:
    """Return what is kept of randomised runs: how many, of which seeds, and each that failed."""
    seeds = sorted(row.seed for row in rows)
    return {
        "runs": len(rows), "light": sum(row.component == "light" for row in rows),
        "seeds": [seeds[0], seeds[-1]] if seeds else [], "settles": sum(row.settles for row in rows),
        "calls": sum(row.calls for row in rows), "failed": [row.as_json() for row in rows if not row.held],
    }  # fmt: skip

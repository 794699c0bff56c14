"""How often everyday answers are judged right: pairs of a faithful answer and one with a single fact bent.

    python -m bench.everyday [--by-kind] [--pairs further|answers|prose|structured]

A pair is right when the faithful twin is LOW without a finding and the bent one is not LOW. Rows of ``dev`` were looked at when rules
were written; rows of ``held`` were not, so that their figures are those to quote. Prints figures only, never a row. ``--pairs further`` measures
``bench/further_pairs`` (other fields, fewer figures and more words), ``--pairs answers`` ``bench/answers_pairs`` (answers of several sentences, and
JSON, YAML, tables and code as answers), ``--pairs prose`` ``bench/prose_pairs`` (derived dates, polarity,
opposites, order and cause), ``--pairs structured`` settings, tables, lists of keys and code.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.settings.model import Settings

FOLDERS = {
    name: Path(__file__).parent / f"{name}_pairs" for name in ("everyday", "further", "answers", "prose", "structured")
}
FOLDER = FOLDERS["everyday"]
TARGETS = {"pairs right": 0.65, "faithful left alone": 0.88}


def is_clean(report: dpe_pb2.Report) -> bool:
    """Whether an answer is LOW and nothing was found in it."""
    found = report.fabrication_count + report.distortion_count + report.contradiction_count
    return report.risk_level == common_pb2.RISK_LEVEL_LOW and not (found or report.misattributions)


async def scored(files: Sequence[Path], pipeline: Any) -> tuple[Counter[str], dict[str, Counter[str]]]:
    """Return the counts over all rows, and those of the pairs by kind."""
    every: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = {}

    async def report(field: Mapping[str, Any], row: Mapping[str, Any], text: str) -> dpe_pb2.Report:
        sources = field["sources"][row["source"]]
        facts = tuple(Fact(f"f{number}", source, 0.5) for number, source in enumerate(sources, 1))
        found: dpe_pb2.Report = await pipeline.analyse(
            Request(outputs=(Output(0, text),), facts=facts, query=row["query"])
        )
        return found

    for file in files:
        field = json.loads(file.read_text(encoding="utf-8"))
        for row in field["pairs"]:
            clean = is_clean(await report(field, row, row["faithful"]))
            caught = (await report(field, row, row["bent"])).risk_level != common_pb2.RISK_LEVEL_LOW
            for counts in (every, kinds.setdefault(row["kind"].replace("_", " "), Counter())):
                counts.update({"pairs": 1, "clean": clean, "caught": caught, "right": clean and caught})
        for row in field["singles"]:
            found = await report(field, row, row["text"])
            good = is_clean(found) if row["faithful"] else found.risk_level != common_pb2.RISK_LEVEL_LOW
            what = "faithful singles" if row["faithful"] else "unfaithful singles"
            every.update({what: 1, f"{what} right": good})
    return every, kinds


def figures(name: str, counts: Counter[str]) -> dict[str, dict[str, object]]:
    """Return the figures of a half, as shares of its rows."""
    shares = {
        "pairs right": counts["right"] / counts["pairs"],
        "faithful left alone": counts["clean"] / counts["pairs"],
        "faults noticed": counts["caught"] / counts["pairs"],
    }
    for kind, what in (("faithful singles", "left alone"), ("unfaithful singles", "noticed")):
        if counts[kind]:
            shares[f"{kind} {what}"] = counts[f"{kind} right"] / counts[kind]
    return {
        f"{name}: {what}": {
            "value": round(share, 3),
            "target": TARGETS.get(what),
            "better": "higher",
            "unit": f"n {counts['pairs']}",
        }
        for what, share in shares.items()
    }


async def measure(*, by_kind: bool, pairs: str = "everyday") -> dict[str, dict[str, object]]:
    """Return the figures of both halves."""
    pipeline = open_pipeline(Settings())
    found: dict[str, dict[str, object]] = {}
    try:
        for half in ("dev", "held"):
            every, kinds = await scored(sorted((FOLDERS[pairs] / half).glob("*.json")), pipeline)
            found |= figures(f"{pairs}, {half}", every)
            for kind, counts in sorted(kinds.items()) if by_kind else ():
                print(f"{half:5} {kind:28} {dict(counts)}", file=sys.stderr)
    finally:
        pipeline.close()
    return found


if __name__ == "__main__":
    chosen = sys.argv[sys.argv.index("--pairs") + 1] if "--pairs" in sys.argv else "everyday"
    print(json.dumps(asyncio.run(measure(by_kind="--by-kind" in sys.argv, pairs=chosen))))

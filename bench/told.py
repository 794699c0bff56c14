"""How the judge takes claims in other words: python -m bench.told [--blocks 150] [--show SEED]

Blocks of scripts/nli_told that nothing was trained on: a source, claims that follow from it, claims that it contradicts, claims that it leaves
open, and for a part of them a twin of the source under which the same claims have other labels. Each claim is an answer of its own. They are
there to choose models and thresholds by; figures to quote are those of ``python -m bench.everyday``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.everyday import is_clean
from interlock.api.common.v1 import common_pb2
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.settings.model import Settings

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"
NAMES = {0: "faithful left alone", 1: "open noticed", 2: "contradicted noticed"}


async def measured(blocks: Sequence[Any], pipeline: Any, *, show: bool = False) -> Counter[tuple[int, bool]]:
    """Return how many claims of each label were judged right, and how many not; *show* prints the latter."""
    found: Counter[tuple[int, bool]] = Counter()
    for block in blocks:
        texts = [text for _, _, text in block.claims]
        own = [(block.source, label, text) for (label, _, _), text in zip(block.claims, texts, strict=True)]
        twins = [(block.twin, label, text) for label, text in zip(block.under_twin, texts, strict=False)]
        for source, label, text in own + twins:
            report = await pipeline.analyse(
                Request(outputs=(Output(0, text),), facts=(Fact("f1", source, 0.5),), query="")
            )
            right = is_clean(report) if label == 0 else report.risk_level != common_pb2.RISK_LEVEL_LOW
            found[label, right] += 1
            if show and not right:
                named = [f"{each.type} {each.source_value!r}" for claim in report.claims for each in claim.distortions]
                named += [f"from nowhere {text!r}" for claim in report.claims for text in claim.fabrications]
                print(f"{NAMES[label]}: no\n  {source!r}\n  {text}\n  {'; '.join(named) or 'nothing named'}")
    return found


async def run(count: int, show: int | None = None) -> dict[str, dict[str, object]]:
    """Judge *count* blocks and return the figures; *show* takes them from those that may be read, by this seed."""
    sys.path.insert(0, str(SCRIPTS))
    from nli_told import files_of

    blocks = [block for block in files_of(SCRIPTS / "nli_told") if block.held is (show is None)]
    random.Random(5 if show is None else show).shuffle(blocks)
    pipeline = open_pipeline(Settings())
    try:
        found = await measured(blocks[:count], pipeline, show=show is not None)
    finally:
        pipeline.close()
    figures = {}
    for label, name in NAMES.items():
        number = found[label, True] + found[label, False]
        share = round(found[label, True] / number, 3) if number else None
        figures[f"told: {name}"] = {"value": share, "target": None, "better": "higher", "unit": f"n {number}"}
    return figures


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=150)
    parser.add_argument(
        "--show", type=int, metavar="SEED", help="print what is judged wrong of blocks that may be read"
    )
    options = parser.parse_args()
    print(json.dumps(asyncio.run(run(options.blocks, options.show))))

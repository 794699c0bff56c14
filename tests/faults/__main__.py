"""The fault suite by hand: python -m tests.faults matrix|fixed|random|settles|all [--seed N] [--only TEXT] [--out FILE]

`all` is what `make fault` runs: the fixed list, the matrix, a hundred randomised runs and some settlements by the thousand.
A run is played again by its seed: python -m tests.faults random --seed SEED --runs 1
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging as stdlib_logging
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from interlock.runtime import logging
from tests.faults import fixed, results
from tests.faults.matrix import SHAPES, cells, kept, seen
from tests.faults.play import Run
from tests.faults.randomised import BLOCK, draw
from tests.faults.runner import Row, Stage, row_of, say
from tests.faults.settles import bulk
from tests.support.paths import ROOT

KINDS = ("fixed", "matrix", "random")


async def play_matrix(arguments: Any) -> list[Row]:
    """Play every cell, or those whose name holds --only."""
    stage, rows = Stage(), []
    try:
        for number, cell in enumerate(cells()):
            if arguments.only not in f"{cell.shape} {cell.name}" or not _mine(arguments, number):
                continue
            named = (cell.component, cell.fault, cell.promised)
            played = await stage.attempt(SHAPES[cell.shape], cell.faults, cell.plan(arguments.seed + number), named)
            if isinstance(played, Run):
                results.keep(played, row := row_of(*named, played, seen(played), kept(cell, played)))
                played = row
            rows.append(say(played))
    finally:
        await stage.close()
    return rows


async def play_fixed(arguments: Any) -> list[Row]:
    """Play the fixed list."""
    stage, rows = Stage(), []
    try:
        for number, scenario in enumerate(fixed.scenarios()):
            if arguments.only not in scenario.name or not _mine(arguments, number):
                continue
            named = ("fixed", scenario.name, scenario.tells)
            played = await stage.attempt(scenario.shape, scenario.faults, scenario.plan(arguments.seed + number), named)
            if isinstance(played, Run):
                results.keep(played, row := row_of(*named, played, seen(played), ()))
                played = row
            rows.append(say(played))
    finally:
        await stage.close()
    return rows


async def play_random(arguments: Any) -> list[Row]:
    """Play runs by their seeds, one after the other from --seed on; a block of them shares a cluster."""
    stage, rows = Stage(), []
    end = time.monotonic() + arguments.minutes * 60 if arguments.minutes else float("inf")
    try:
        for seed in range(arguments.seed, arguments.seed + arguments.runs):
            if not _mine(arguments, seed // BLOCK):
                continue
            if time.monotonic() > end:
                break
            drawn = draw(seed)
            faults = ", then ".join(fault.name for fault in drawn.faults)
            named = ("light" if drawn.shape.light else "processes", faults, "I1 to I14")
            played = await stage.attempt(drawn.shape, drawn.faults, drawn.plan, named)
            if isinstance(played, Run):
                results.keep(played, row := row_of(*named, played, seen(played), ()))
                played = row
            rows.append(say(played))
    finally:
        await stage.close()
    return rows


def _mine(arguments: Any, number: int) -> bool:
    """Tell whether a run is of this part of the work."""
    mine, parts = map(int, arguments.part.split("/"))
    return number % parts == mine


PLAY = {"matrix": play_matrix, "fixed": play_fixed, "random": play_random}


def one(kind: str, arguments: Any) -> list[Row]:
    """Play one kind of runs, spread over --jobs processes; each has clusters of its own."""
    if arguments.jobs == 1:
        return asyncio.run(PLAY[kind](arguments))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / str(n) for n in range(arguments.jobs)]
        given = {
            name: getattr(arguments, name) for name in ("seed", "runs", "minutes", "only") if getattr(arguments, name)
        }
        options = [part for name, value in given.items() for part in (f"--{name}", str(value))]
        children = [
            subprocess.Popen(
                [sys.executable, "-u", "-m", "tests.faults", kind, *options, "--jobs", "1", "--part", f"{n}/{arguments.jobs}", "--rows", path],
                cwd=ROOT,
            )
            for n, path in enumerate(files)
        ]  # fmt: skip
        for child in children:
            child.wait()
        return [Row(**row) for path in files if path.exists() for row in json.loads(path.read_text())]


def again(found: dict[str, list[Row]], arguments: argparse.Namespace) -> dict[str, list[Row]]:
    """Play runs that failed once more, if they are few, and return what counts: a shared machine can starve a process beyond every
    deadline; what breaks twice is broken.
    """
    failed = [(kind, row) for kind, rows in found.items() for row in rows if not row.held]
    if not 0 < len(failed) <= arguments.again:
        return found
    print(f"{len(failed)} failed, and are played once more", flush=True)
    for kind, row in failed:
        # Drawn runs are their seed; the others are played at another one.
        seed, only = (row.seed, "") if kind == "random" else (row.seed + 7919, _named(kind, row))
        more = {**vars(arguments), "seed": seed, "only": only, "runs": 1, "minutes": 0, "jobs": 1}
        second = one(kind, argparse.Namespace(**more)) or [row]  # what is not played again has failed
        found[kind] = [*(each for each in found[kind] if each is not row), *second]
    return found


def _named(kind: str, row: Row) -> str:
    return f"{row.component}: {row.fault}" if kind == "matrix" else row.fault


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*KINDS, "settles", "all"])
    parser.add_argument("--seed", type=int, default=0, help="of the first run; 0: drawn by the clock and printed")
    parser.add_argument("--runs", type=int, default=100, help="randomised runs")
    parser.add_argument(
        "--minutes", type=float, default=0, help="end the randomised runs after so many minutes; 0: when done"
    )
    parser.add_argument("--count", type=int, default=50_000, help="settlements by processes that are killed")
    parser.add_argument("--only", default="", help="only what has this in its name")
    parser.add_argument("--jobs", type=int, default=0, help="processes that play at the same time; 0: as many as pay")
    parser.add_argument("--again", type=int, default=0, help="so many failed runs at most are played once more")
    parser.add_argument("--part", default="0/1", help=argparse.SUPPRESS)
    parser.add_argument("--rows", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help="results file to bring up to date with what was played")
    arguments = parser.parse_args()
    logging.configure("error")  # of a mesh that is this process
    stdlib_logging.getLogger("uvicorn.error").setLevel("CRITICAL")  # the provider breaks its answers on purpose
    stdlib_logging.getLogger("interlock.decision").setLevel("CRITICAL")  # so do the agents of experiments
    few = arguments.only or arguments.rows or (arguments.what == "random" and arguments.runs <= BLOCK)
    # A run mostly waits: one more process than there are cores keeps them busy.
    arguments.jobs = arguments.jobs or (1 if few else (os.cpu_count() or 1) + 1)
    arguments.seed = arguments.seed or int(time.time()) % 1_000_000
    if not arguments.rows:
        print(f"seed {arguments.seed}", flush=True)
    kinds = KINDS if arguments.what == "all" else [kind for kind in KINDS if kind == arguments.what]
    found = again({kind: one(kind, arguments) for kind in kinds}, arguments)
    settled = asyncio.run(bulk(arguments.count, arguments.seed)) if arguments.what in {"all", "settles"} else None
    if arguments.rows:
        arguments.rows.write_text(json.dumps([row.as_json() for rows in found.values() for row in rows]))
        return 0
    if arguments.out:
        results.write(arguments.out, found, settled)
    return results.told(found, settled)


if __name__ == "__main__":
    sys.exit(main())

"""Measure the quality of the engine on labelled data, and write docs/quality.md.

    python -m bench quality --data DIR [--minutes 12 | --sample 100 | --full] [--sets snli,qags_xsum,distortions]

The data is a folder with one folder for each set (INTERLOCK_QUALITY_DATA, else ../shared/data). --sets names sets of
bench/quality/sets.py, or distortions, pii, claims, everyday. INTERLOCK_NLI_MODEL_DIR chooses the model that judges. Stopped half
way (Ctrl-C), it writes what it has measured. Prints JSON, the figures last.
"""

from __future__ import annotations

import argparse
import asyncio
import dataclasses
import json
import logging
import os
import platform
import signal
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

import structlog

from bench.quality import plan
from bench.quality.document import document
from bench.quality.engine import Engine, previous_model
from bench.quality.figures import figures, plain
from bench.quality.jobs import every_job
from bench.quality.plan import Job
from bench.quality.sets import BY_NAME
from interlock.dpe.inference.models import manifest

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_MINUTES = 24.0
WRITING_S = 15.0
PARTS = frozenset({"distortions", "pii", "claims", "everyday"})
PACKAGES = ("interlock", "onnxruntime", "tokenizers", "spacy", "nupunkt", "presidio-analyzer", "numpy")


def say(text: str) -> None:
    """Tell people how it goes; standard output is for the figures."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def options(arguments: list[str]) -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m bench quality", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    data = Path(os.environ.get("INTERLOCK_QUALITY_DATA") or ROOT.parent / "shared" / "data")
    parser.add_argument("--data", type=Path, default=data, help="folder of the labelled sets")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--minutes", type=float, default=DEFAULT_MINUTES, help="time to take (default: %(default)s)")
    size.add_argument("--sample", type=int, default=0, help="rows of each measurement, in place of a time")
    size.add_argument("--full", action="store_true", help="every row of every set: many hours")
    parser.add_argument("--sets", default="", help="names with commas; all without")
    parser.add_argument("--previous", type=Path, help="folder of the previous NLI model; out of git without")
    parser.add_argument("--out", type=Path, default=ROOT / "bench" / "out", help="folder for quality.json")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "quality.md", help="the page to write")
    parser.add_argument("--failures", type=Path, help="also write the wrong verdicts, with texts, as JSON lines here")
    found = parser.parse_args(arguments)
    found.sets = frozenset(filter(None, found.sets.split(",")))
    if unknown := found.sets - set(BY_NAME) - PARTS:
        parser.error(f"no set is called {', '.join(sorted(unknown))}; there are {', '.join([*BY_NAME, *PARTS])}")
    if not (found.data / "snli").is_dir():
        parser.error(
            f"no labelled data in {found.data}: give its folder with --data or INTERLOCK_QUALITY_DATA. It holds one "
            "folder for each set, such as snli/test.jsonl.gz; the sets are public, and docs/models.md tells their origins"
        )
    return found


def _description(engine: Engine, previous: Engine | None, given: argparse.Namespace) -> dict[str, Any]:
    """Return what a reader must know of a run."""
    size = f"sized for {given.minutes:g} minutes"
    if given.full or given.sample:
        size = "every row" if given.full else f"at most {given.sample} rows of each"
    old = next((m for m in previous.models() if m["slot"] == "nli"), None) if previous else None
    return {
        "models": engine.models(),
        "previous": f"{old['name']}, `{old['hash']}`" if old else "not to be had: left out",
        "method": "nli+values" if engine.pipeline.method == "nli" else str(engine.pipeline.method),
        "date": datetime.now(UTC).date().isoformat(),
        "size": size,
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, {platform.system()}",
        "versions": ", ".join([f"Python {platform.python_version()}", *(f"{p} {version(p)}" for p in PACKAGES)]),
        "partial": "",
        "minutes": 0.0,
        "refused": "",
    }


def write(given: argparse.Namespace, run: dict[str, Any], jobs: list[Job]) -> dict[str, Any]:
    """Write the page, the JSON and, if asked for, the failures; return the figures."""
    result = figures(jobs)
    given.out.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"run": run, **plain(result)}, indent=1, ensure_ascii=False) + "\n"
    (given.out / "quality.json").write_text(text, encoding="utf-8")
    given.page.parent.mkdir(parents=True, exist_ok=True)
    given.page.write_text(document(run, result), encoding="utf-8")
    if given.failures:
        with given.failures.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(one, ensure_ascii=False) + "\n" for one in failures(jobs))
    return result


def failures(jobs: list[Job]) -> list[dict[str, Any]]:
    """Return the rows that the engine judged wrong: faithful and not LOW, or not faithful and LOW."""
    wrong = []
    for job in jobs:
        for row, one in zip(job.done, job.results, strict=True):
            told = one.get("report") if isinstance(one, dict) else one
            if hasattr(told, "composite") and told.low != (row.label == 0):
                wrong.append({"job": job.name, **dataclasses.asdict(row), **dataclasses.asdict(told)})
    return wrong


async def measured(given: argparse.Namespace) -> dict[str, Any]:
    """Measure, write, and return the figures; a stop signal ends the measuring, not the writing."""
    began = time.monotonic()
    engine = Engine()
    folder = previous_model(given.previous, given.out / "previous")
    current = next(one["hash"] for one in engine.models() if one["slot"] == "nli")
    same = folder is not None and manifest("nli", folder).hash == current
    previous = Engine(folder, beside=engine) if folder and not same else None
    say("reading the data")
    jobs = every_job(given.data, engine, previous, given.sets)
    run = _description(engine, previous, given)
    if same:
        run["previous"] = "the same one: left out"
    work = asyncio.ensure_future(_work(given, jobs, began))
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, work.cancel)
    try:
        await work
    except asyncio.CancelledError:
        run["partial"] = "it was stopped"
    except Exception as error:  # what was measured is worth more than how it ended
        run["partial"] = f"{type(error).__name__} ended it"
        logging.getLogger(__name__).exception("quality.failed")
    run["minutes"] = (time.monotonic() - began) / 60
    if broken := [f"{job.name} ({job.failed})" for job in jobs if job.failed]:
        run["partial"] = "; ".join(filter(None, [run["partial"], f"failed: {', '.join(broken)}"]))
    counts = {reason: n for one in (engine, previous) if one for reason, n in one.refused.items()}
    run["refused"] = ", ".join(f"{reason} {n}" for reason, n in sorted(counts.items()))
    result = write(given, run, jobs)
    for one in (previous, engine):
        if one:
            one.close()
    return result


async def _work(given: argparse.Namespace, jobs: list[Job], began: float) -> None:
    if given.sample or given.full:
        for job in jobs:
            await job.run(given.sample or len(job.rows))
            say(f"{job.name}: {len(job.results)} rows")
    else:
        await plan.within(jobs, max(1.0, given.minutes * 60 - (time.monotonic() - began) - WRITING_S), say)


def headline(result: dict[str, Any]) -> dict[str, Any]:
    """Return the figures that the other benches' table shows."""
    from bench.quality.targets import targets

    shown = {}
    for aim, target, text, met in targets(result):
        if met != "–":
            better = "lower" if target.startswith("≤") else "higher"
            shown[f"quality: {aim}"] = {
                "value": float(text.split(" ")[0]), "target": float(target[2:]), "better": better, "unit": "share",
            }  # fmt: skip
    return shown


def main(arguments: list[str] | None = None) -> int:
    """Run and print the figures."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    given = options(sys.argv[1:] if arguments is None else arguments)
    result = asyncio.run(measured(given))
    say(f"written: {given.page}, {given.out / 'quality.json'}")
    print(json.dumps(headline(result), ensure_ascii=False))
    return 0


if __name__ == "__main__":
    sys.exit(main())

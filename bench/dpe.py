"""What the engine costs beside its models: the pipeline's time over the time of the bare model calls for the same texts.

python -m bench.dpe [--rounds N]

Every call of onnxruntime and spaCy that the pipeline makes is recorded, then made again alone: the same inputs, on the
same number of threads. The answers (dpe_answers.jsonl) are made from documents of SummEdits (Laban et al. 2023,
Apache-2.0). An answer and its bare calls are timed one after the other, and the median of their ratios counts. The target
is 1.25 or less, on the wall and in CPU time; the latter says the same on a machine that does other things too.

Each answer is then judged once more, as a session does that brings its sources and what was said again: that time is
held against the bare calls of the first one. The target is half of them.

A large answer of 50 claims over 30 facts is put together from them and held to one second. With INTERLOCK_TRITON_URL set
it is judged through that Triton too. Prints JSON, the figures last.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

from interlock.cli.dpe import parse_request
from interlock.dpe.inputs import DURATION
from interlock.dpe.pipeline import Pipeline
from interlock.dpe.request import Output, Request
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.memory import settle
from interlock.runtime.settings.model import Settings

ANSWERS = Path(__file__).with_name("dpe_answers.jsonl")


class Session:
    """An onnxruntime session that remembers what it was asked."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.calls: list[tuple[Any, Any]] = []

    def run(self, names: Any, feed: Any) -> Any:
        self.calls.append((self.session, feed))
        return self.session.run(names, feed)


class Nlp:
    """A spaCy pipeline that remembers what it was asked."""

    def __init__(self, nlp: Any) -> None:
        self.nlp = nlp
        self.calls: list[list[Any]] = []

    def pipe(self, texts: Any, **options: Any) -> Any:
        given = list(texts)
        self.calls.append(given)
        return self.nlp.pipe(given, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.nlp, name)


class Recorder:
    """The recorded model calls of one analysis, and how long they take alone."""

    def __init__(self, pipeline: Pipeline) -> None:
        inference = pipeline.inference
        models = (inference._nli, inference._embed, inference._ner)
        self.sessions = [Session(model._session) for model in models]
        for model, session in zip(models, self.sessions, strict=True):
            model._session = session
        self.nlp = Nlp(pipeline.language.nlp.nlp)
        pipeline.language.nlp.nlp = self.nlp

    def clear(self) -> None:
        for part in (*self.sessions, self.nlp):
            part.calls.clear()

    def replay(self, threads: int) -> dict[str, float]:
        """Return the seconds that the recorded calls take by themselves."""
        started = time.perf_counter()
        for texts in self.nlp.calls:
            for _ in self.nlp.nlp.pipe(texts, batch_size=16):
                pass
        parsed = time.perf_counter()
        for session in self.sessions:
            order = sorted(session.calls, key=lambda call: call[1]["input_ids"].size)
            with ThreadPoolExecutor(threads) as pool:
                list(pool.map(_run_all, [order[n::threads] for n in range(threads)]))
        return {"spacy_s": parsed - started, "onnx_s": time.perf_counter() - parsed}


def _run_all(calls: list[tuple[Any, Any]]) -> None:
    for session, feed in calls:
        session.run(None, feed)


async def measure(pipeline: Pipeline, recorder: Recorder, request: Request, threads: int) -> dict[str, float]:
    """Return one analysis beside its bare model calls."""
    recorder.clear()
    started, cpu = time.perf_counter(), time.process_time()
    report = await pipeline.analyse(request)
    total, cpu = time.perf_counter() - started, time.process_time() - cpu
    pairs = len(recorder.sessions[0].calls)
    bare_cpu = time.process_time()
    bare = recorder.replay(threads)
    bare_cpu = time.process_time() - bare_cpu
    again_cpu, again = time.process_time(), time.perf_counter()
    repeated = await pipeline.analyse(request)
    assert repeated == report, "what is remembered changed a report"
    return {
        "cpu_s": cpu,
        "bare_cpu_s": bare_cpu,
        "again_cpu_s": time.process_time() - again_cpu,
        "again_s": time.perf_counter() - again,
        "words": len(request.outputs[0].text.split()),
        "facts": len(request.facts),
        "claims": report.claims_total,
        "pairs": pairs,
        "total_s": total,
        "bare_s": sum(bare.values()),
        **bare,
    }


def stages() -> dict[str, float]:
    """Return the seconds spent in each stage so far."""
    return {
        sample.labels["stage"]: sample.value
        for metric in DURATION.collect()
        for sample in metric.samples
        if sample.name.endswith("_sum")
    }


def large(requests: list[Request], claims: int = 50, facts: int = 30) -> Request:
    """Return one answer of about so many claims over so many facts, from the answers of different documents."""
    parts = [request for request in requests if request.outputs[0].text]
    sentences = [line for request in parts for line in request.outputs[0].text.split("\n") if line.strip()]
    known = [replace(fact, id=f"f{n}") for n, fact in enumerate(f for request in parts for f in request.facts[:2])]
    text = " ".join(sentences).split(". ")
    return Request((Output(0, ". ".join(text[: claims - 4]) + "."),), tuple(known[:facts]), query=requests[0].query)


async def through_triton(request: Request, url: str, rounds: int) -> dict[str, Any]:
    """Return the large answer's time with the models behind Triton."""
    pipeline = open_pipeline(Settings(triton_url=url))
    times = []
    for number in range(rounds * 3):
        started = time.perf_counter()
        # Another id for each round, so that nothing is answered from memory.
        await pipeline.analyse(replace(request, outputs=(Output(0, f"Part {number}. {request.outputs[0].text}"),)))
        times.append(time.perf_counter() - started)
    pipeline.close()
    return figure(statistics.median(times), 1.0, "s")


def figure(value: float, target: float | None, unit: str) -> dict[str, Any]:
    return {"value": value, "target": target, "better": "lower", "unit": unit}


async def run(rounds: int) -> tuple[dict[str, Any], dict[str, dict[str, float]]]:
    settings = Settings(triton_url="")
    requests = [parse_request(json.loads(line)) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    rows: list[dict[str, float]] = []
    whole: list[dict[str, float]] = []
    spent: dict[str, float] = {}
    for _ in range(rounds):
        pipeline = open_pipeline(settings)  # a fresh one: nothing is remembered from the last round
        recorder = Recorder(pipeline)
        await pipeline.analyse(parse_request({"response": "Warm up.", "facts": [{"content": "It warms up."}]}))
        settle()  # as a service does once it has started
        before = stages()
        rows += [await measure(pipeline, recorder, request, settings.model_threads) for request in requests]
        whole.append(await measure(pipeline, recorder, large(requests), settings.model_threads))
        for stage, value in stages().items():
            spent[stage] = spent.get(stage, 0.0) + value - before.get(stage, 0.0)
        pipeline.close()
    times = sorted(row["total_s"] for row in rows)
    total = sum(times)
    detail = {
        "large": {key: round(statistics.median(row[key] for row in whole), 4) for key in whole[0]},
        "mean": {key: round(statistics.mean(row[key] for row in rows), 4) for key in rows[0]},
        "stage_seconds_over_total": {stage: round(value / total, 3) for stage, value in sorted(spent.items())},
    }
    figures = {
        "dpe pipeline over bare models, median of answers": figure(
            statistics.median(row["total_s"] / row["bare_s"] for row in rows), 1.25, "ratio"
        ),
        "dpe pipeline over bare models, CPU time": figure(
            statistics.median(row["cpu_s"] / row["bare_cpu_s"] for row in rows), 1.25, "ratio"
        ),
        "dpe pipeline over bare models, CPU time, repeated": figure(
            statistics.median(row["again_cpu_s"] / row["bare_cpu_s"] for row in rows), 0.5, "ratio"
        ),
        "dpe analysis, 217 words and 20 facts, p50": figure(statistics.median(times), None, "s"),
        "dpe analysis, 217 words and 20 facts, p95": figure(times[int(0.95 * (len(times) - 1))], None, "s"),
        "dpe analysis, 50 claims and 30 facts, embedded": figure(
            statistics.median(row["total_s"] for row in whole), 1.0, "s"
        ),
        "dpe analysis, 50 claims and 30 facts, over bare models": figure(
            statistics.median(row["total_s"] / row["bare_s"] for row in whole), 1.25, "ratio"
        ),
    }
    if url := os.environ.get("INTERLOCK_TRITON_URL"):
        figures["dpe analysis, 50 claims and 30 facts, through Triton"] = await through_triton(
            large(requests), url, rounds
        )
    return figures, detail


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    figures, detail = asyncio.run(run(parser.parse_args().rounds))
    print(json.dumps(detail))
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())

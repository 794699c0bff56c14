"""What it costs the judge that an answer is judged part by part: CPU over that of the whole answer judged once.

    python -m bench.parts

Parts are those that ``stream_release: sentences`` judges, of an answer that comes in word by word, and the whole at the end. The answers of
``bench.dpe``, of 217 words over 20 facts, and one of ten short sentences over themselves. Each form has processes of its own, in turns, so
that neither remembers what the other was asked. Prints JSON.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import subprocess
import sys
import time
from dataclasses import replace

from bench.dpe import ANSWERS, figure
from bench.streams import anew
from interlock.cli.dpe import parse_request
from interlock.dpe.request import Request
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.settings.model import Settings
from interlock.sidecar.streaming.parts import is_due
from interlock.sidecar.streaming.units import whole_until

ROUNDS, SHORT_ANSWERS = 3, 12
FORMS = ("parts", "whole")
USUAL, SHORT = "217 words, 20 facts", "66 words, 1 fact"


def in_parts(text: str) -> list[str]:
    """Return what is judged of a text, one after the other: the last is the text."""
    words, known, judged, found = text.split(" "), 0, 0, list[str]()
    for count in range(1, len(words)):
        so_far = " ".join(words[:count])
        known = whole_until(so_far, known)
        if is_due(known, judged, 0.0):
            judged = known
            found.append(so_far[:known])
    return [*found, text]


async def cpu_ms(form: str) -> dict[str, float]:
    """Judge every answer once, and return the CPU of each kind, milliseconds per answer."""
    pipeline = open_pipeline(Settings(triton_url=""))
    usual = [parse_request(json.loads(line)) for line in ANSWERS.read_text(encoding="utf-8").splitlines()]
    short = [_over_itself(anew(number)) for number in range(SHORT_ANSWERS)]
    found = {}
    for kind, requests in ((USUAL, usual), (SHORT, short)):
        used = [await _judged(form, request, pipeline) for request in requests]
        found[kind] = statistics.mean(used[2:])  # the first ones warm
    return found


def _over_itself(text: str) -> Request:
    return parse_request({"response": text, "facts": [{"content": text}], "query": "Tell me about France."})


async def _judged(form: str, request: Request, pipeline: object) -> float:
    output = request.outputs[0]
    began = time.process_time()
    for text in in_parts(output.text) if form == "parts" else [output.text]:
        await pipeline.analyse(replace(request, outputs=(replace(output, text=text),)))  # type: ignore[attr-defined]
    return (time.process_time() - began) * 1000


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--form", choices=FORMS, help="judge in this form alone and print its CPU, milliseconds per answer"
    )
    if form := parser.parse_args().form:
        print(json.dumps(asyncio.run(cpu_ms(form))))
        return 0
    found: dict[str, list[dict[str, float]]] = {form: [] for form in FORMS}
    for _ in range(ROUNDS):
        for form in FORMS:
            command = [sys.executable, "-m", "bench.parts", "--form", form]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            found[form].append(json.loads(done.stdout.splitlines()[-1]))
    figures = {}
    for kind, target in ((USUAL, 1.3), (SHORT, None)):
        parts, whole = (statistics.median(each[kind] for each in found[form]) for form in FORMS)
        figures[f"streams: CPU of judging in parts over whole, {kind}"] = figure(parts / whole, target, "times")
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())

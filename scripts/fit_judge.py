"""Fit the rule that turns P(entailment) into the support of a claim (interlock/dpe/grounding/support.py).

    python scripts/fit_judge.py --data DATA [--told scripts/nli_told] [--model DIR] [--rows 150] [--seed 3] [--threads 2]

DATA is the folder of labelled sets; only those whose licence lets a shipped model be trained on them are read. MODEL is
a folder with an NLI slot, the shipped one without it. TOLD holds the pairs written for the model (nli_told.py); those that no model
was trained on are one more set. Answers are judged by the pipeline's own parts, against the evidence
that it chooses. The weakest claim stands for its answer, labels weigh the same in each set, and each set weighs the same.
SLOPE and STRANGE are held near a prior and above zero; BASE is what puts nine of ten faithful answers above one half. The same
rows, model and seed give the same figures.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import io
import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from nli_distortions import ENTAILED
from nli_told import files_of

from interlock.dpe.claims.reading import OutputReader
from interlock.dpe.document import Fact
from interlock.dpe.grounding import attribution, envelope
from interlock.dpe.grounding.support import Vocabulary, certainty, far
from interlock.dpe.request import Output
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.settings.model import Settings

if TYPE_CHECKING:
    from interlock.dpe.pipeline import Pipeline

DOMAINS = ("news", "sales_email")  # of SummEdits; the others are there to check with
STEPS, RATE = 2000, 0.5
# The NLI model was trained on these sets too, and is surer on them than on new text: left to them, the fit trusts the
# model alone. So it is held near a prior, by a Gaussian penalty.
PRIOR, PENALTY = (0.70, 0.50), 1.0
LEFT_ALONE = 0.90
LONGEST_SOURCE = 12_000


@dataclass(frozen=True)
class Answer:
    """An answer, what it is to rest on, and whether it does."""

    source: str
    text: str
    faithful: bool


@dataclass(frozen=True)
class Judged:
    """One answer's claims: certainty and minus the distance of the strange words, a row each, as support.py has them."""

    rows: np.ndarray
    faithful: bool


def answers_of(data: Path, rows: int, chance: random.Random, told: Path | None = None) -> dict[str, list[Answer]]:
    """Return a sample of each licensed set."""
    sets = {f"summedits {name}": list(_summedits(data / "summedits" / f"{name}.jsonl.gz")) for name in DOMAINS}
    sets["wice"] = list(_wice(data / "wice" / "claim_dev.jsonl.gz"))
    sets["begin"] = [each for part in ("wow", "tc", "cmu") for each in _begin(data / "begin" / f"dev_{part}.tsv.gz")]
    if told is not None:
        held = [block for block in files_of(told) if block.held]
        sets["told"] = [Answer(b.source, text, label == ENTAILED) for b in held for label, _, text in b.claims]
    for answers in sets.values():
        chance.shuffle(answers)
    return {name: answers[:rows] for name, answers in sets.items()}


def _summedits(path: Path) -> Iterator[Answer]:
    for row in _lines(path):
        yield Answer(row["doc"], row["summary"], row["label"] == 1)


def _wice(path: Path) -> Iterator[Answer]:
    for row in _lines(path):
        source = "\n".join(row["evidence"])
        if len(source) <= LONGEST_SOURCE:
            yield Answer(source, row["claim"], row["label"] == "supported")


def _begin(path: Path) -> Iterator[Answer]:
    rows = csv.DictReader(io.StringIO(_text(path)), delimiter="\t", quoting=csv.QUOTE_NONE)
    for row in rows:
        if row["knowledge"] and row["response"] and row["begin_label"]:
            yield Answer(row["knowledge"], row["response"], row["begin_label"].strip().lower() == "fully attributable")


def _lines(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in _text(path).splitlines() if line.strip()]


def _text(path: Path) -> str:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return file.read()


async def judge(answer: Answer, parts: Pipeline) -> Judged | None:
    """Return what the model and the words say of an answer's claims; ``None`` when it makes none."""
    claim_room, room = attribution.limits(parts.inference)
    reader = OutputReader(parts.language, 10_000, claim_room, parts.inference.tokens)
    reading = reader.read([Output(0, answer.text)], lambda: False)[0]
    claims = [claim for claim in reading.checked if claim.claim_id not in reading.titles]
    if not claims:
        return None
    facts = (Fact("f1", answer.source, 0.5),)
    cut = envelope.cut(facts, limit=room, count=parts.inference.tokens, split=parts.language.split)
    vectors = await parts.inference.embed([*(unit.text for unit in cut.units), *cut.texts])
    base = envelope.Envelope(cut, vectors[: len(cut.units)], vectors[len(cut.units) :])
    sentences = {sentence.index: sentence.text for sentence in reading.sentences}
    found = await attribution.evidence(
        claims,
        await parts.inference.embed([claim.text for claim in claims]),
        base,
        parts.inference,
        titles=(),
        query="",
        sentences={claim.claim_id: sentences[claim.sentence_index] for claim in claims},
    )
    known = Vocabulary.of(cut.texts)
    rows = [
        (certainty(found[claim.claim_id].plain_scores.entailment), -far(known.strange(claim.text))) for claim in claims
    ]
    return Judged(np.array(rows), answer.faithful)


def fitted(sets: Sequence[Sequence[Judged]]) -> np.ndarray:
    """Return SLOPE and STRANGE by gradient descent on the logistic loss of the weakest claims."""
    weights, bias, prior = np.array(PRIOR), 0.0, np.array(PRIOR)
    counted = [(judged, sum(one.faithful for one in judged)) for judged in sets]
    for _ in range(STEPS):
        slope, shift = PENALTY * (weights - prior), 0.0
        for judged, faithful in counted:
            for one in judged:
                alike = faithful if one.faithful else len(judged) - faithful
                scores = one.rows @ weights
                weakest = int(scores.argmin())
                error = 1.0 / (1.0 + math.exp(-(scores[weakest] + bias))) - one.faithful
                slope = slope + error * one.rows[weakest] / (2 * alike * len(sets))
                shift += error / (2 * alike * len(sets))
        weights = np.maximum(0.0, weights - RATE * slope)
        bias -= RATE * shift
    return weights


def base_of(sets: Sequence[Sequence[Judged]], weights: np.ndarray) -> float:
    """Return what lifts nine of ten faithful answers above one half, each set weighing the same."""
    scores: list[tuple[float, float]] = []
    for judged in sets:
        faithful = [float((one.rows @ weights).min()) for one in judged if one.faithful]
        scores += [(score, 1.0 / len(faithful) / len(sets)) for score in faithful]
    below = 0.0
    for score, weight in sorted(scores):
        below += weight
        if below >= 1.0 - LEFT_ALONE:
            return -score
    raise ValueError("no faithful answer")


async def run(options: argparse.Namespace) -> None:
    """Judge the samples, fit, and print the figures for support.py."""
    parts = open_pipeline(Settings(nli_model_dir=options.model, dpe_threads=options.threads))
    try:
        samples = answers_of(options.data, options.rows, random.Random(options.seed), options.told)
        sets = []
        for name, answers in samples.items():
            judged = [one for answer in answers if (one := await judge(answer, parts)) is not None]
            print(f"{name}: {len(judged)} answers, {sum(one.faithful for one in judged)} faithful", flush=True)
            sets.append(judged)
    finally:
        parts.close()
    weights = fitted(sets)
    print(f"SLOPE, STRANGE, BASE = {weights[0]:.2f}, {weights[1]:.2f}, {base_of(sets, weights):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--told", type=Path)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--rows", type=int, default=150)
    parser.add_argument("--seed", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()

"""Score an NLI model on rows of scripts/prepare_nli.py: accuracy, macro F1, AUROC of entailment and of contradiction.

    python scripts/evaluate_nli.py --rows build/nli/eval [--model FOLDER] [--sample 500] [--only snli_test,cad_test]

FOLDER is a slot folder with a manifest.json; the bundled model where it is left out. Each pair runs alone, as it does
in the service: int8 activations are scaled over a batch, so that a batch would change the answers. Needs onnxruntime,
tokenizers and numpy, which the dpe extra brings.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from tokenizers import Tokenizer

LABELS = ("entailment", "neutral", "contradiction")
BUNDLED = Path(__file__).resolve().parents[1] / "services/interlock/dpe/models/nli"
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
NOT_ENTAILED = 3

Row = dict[str, Any]
Array = np.ndarray[Any, Any]


class Judge:
    """A three-class cross-encoder on one thread."""

    def __init__(self, model: Path, tokenizer: Path, *, labels: tuple[str, ...] = LABELS, longest: int = 256) -> None:
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self._inputs = [given.name for given in self._session.get_inputs()]
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(longest, strategy="longest_first")
        self._order = [labels.index(label) for label in LABELS]

    @staticmethod
    def of(folder: Path) -> Judge:
        """Return the judge of a slot folder."""
        told = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        labels = tuple(str(label).lower() for label in told["labels"])
        return Judge(folder / told["model"], folder / told["tokenizer"], labels=labels, longest=told["max_length"])

    def __call__(self, premise: str, hypothesis: str) -> Array:
        """Return the probabilities of entailment, neutral and contradiction."""
        encoded = self._tokenizer.encode(premise, hypothesis)
        columns = dict(zip(INPUTS, (encoded.ids, encoded.attention_mask, encoded.type_ids), strict=True))
        feed = {name: np.asarray([columns[name]], dtype=np.int64) for name in self._inputs}
        row = self._session.run(None, feed)[0][0].astype(np.float64)[self._order]
        weights: Array = np.exp(row - row.max())
        return weights / weights.sum()

    def all(self, rows: list[Row]) -> Array:
        """Return one row of probabilities for each pair."""
        return np.stack([self(row["p"], row["h"]) for row in rows])


def auroc(score: Array, positive: Array) -> float:
    """Return the chance that a positive scores above a negative; ties count half; NaN without both."""
    ones, zeros = int(positive.sum()), int((~positive).sum())
    if not ones or not zeros:
        return math.nan
    values, place = np.unique(score, return_inverse=True)
    ends = np.cumsum(np.bincount(place, minlength=len(values)))
    ranks = ends - (np.bincount(place, minlength=len(values)) - 1) / 2
    return float((ranks[place][positive].sum() - ones * (ones + 1) / 2) / (ones * zeros))


def macro_f1(told: Array, true: Array) -> float:
    """Return the mean F1 of the classes that occur."""
    scores = []
    for label in np.unique(true):
        hit = int(((told == label) & (true == label)).sum())
        scores.append(2 * hit / max(1, int((told == label).sum() + (true == label).sum())))
    return float(np.mean(scores))


def figures(rows: list[Row], given: Array) -> dict[str, float]:
    """Return what a set's rows let one say; sets of two classes have no accuracy over three."""
    true = np.array([row["y"] for row in rows])
    found = {"n": float(len(rows)), "auroc_entailment": auroc(given[:, 0], true == 0)}
    entailed = given[:, 0] >= 0.5
    if (true == 0).any() and (true != 0).any():
        found["balanced"] = float((entailed[true == 0].mean() + (~entailed[true != 0]).mean()) / 2)
    if not (true == NOT_ENTAILED).any():
        found["accuracy"] = float((given.argmax(axis=1) == true).mean())
        found["macro_f1"] = macro_f1(given.argmax(axis=1), true)
        found["auroc_contradiction"] = auroc(given[:, 2], true == LABELS.index("contradiction"))
    return {name: round(value, 4) for name, value in found.items() if not math.isnan(value)}


def sampled(path: Path, size: int) -> list[Row]:
    """Return the rows of a file, or *size* of them that only its name and the size decide."""
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return random.Random(path.stem).sample(rows, size) if 0 < size < len(rows) else rows


def main() -> None:
    """Print one line of JSON for each set."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, required=True, help="folder with one JSON-lines file for each set")
    parser.add_argument("--model", type=Path, default=BUNDLED, help="slot folder with a manifest.json")
    parser.add_argument("--sample", type=int, default=0, help="rows of each set; 0 takes all")
    parser.add_argument("--only", default="", help="names of sets, with commas")
    options = parser.parse_args()
    judge, only = Judge.of(options.model), set(filter(None, options.only.split(",")))
    for path in sorted(options.rows.glob("*.jsonl")):
        if only and path.stem not in only:
            continue
        rows, began = sampled(path, options.sample), time.monotonic()
        told = figures(rows, judge.all(rows))
        rate = round(len(rows) / (time.monotonic() - began), 1)
        print(json.dumps({"set": path.stem, **told, "pairs_per_s": rate}), flush=True)


if __name__ == "__main__":
    main()

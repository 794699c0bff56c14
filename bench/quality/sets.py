"""The labelled sets: what each is, what it may be used for, and whether the shipped model was trained on its rows."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from bench.quality import rows
from bench.quality.rows import Row

Level = Literal["pair", "response"]


@dataclass(frozen=True)
class LabelledSet:
    """A set. ``trained`` says whether rows like these were trained on; tiers B and C never are."""

    name: str
    title: str
    level: Level
    tier: str
    licence: str
    trained: bool
    load: Callable[[Path], list[Row]]
    unseen: str = ""

    @property
    def three_classes(self) -> bool:
        """Whether its labels are the three of NLI; tells nothing about a set that is not loaded, so it is fixed."""
        return self.name in _THREE


_THREE = frozenset(
    {"snli", "mnli", "taxinli", "wiki_nli", "cad_nli", "conjnli", "breaking_nli", "anli_r1", "anli_r2", "anli_r3",
     "healthver", "climate_fever"}
)  # fmt: skip


def _lines(pattern: str, source: str, text: str, label: str) -> Callable[[Path], list[Row]]:
    return lambda data: [
        row for path in sorted(data.glob(pattern)) for row in rows.pairs(rows.objects(path), source, text, label)
    ]


def _table(pattern: str, source: str, text: str, label: str) -> Callable[[Path], list[Row]]:
    return lambda data: [
        row for path in sorted(data.glob(pattern)) for row in rows.pairs(rows.table(path), source, text, label)
    ]


def _shaped(pattern: str, shape: Callable[[Any], Iterable[Row]]) -> Callable[[Path], list[Row]]:
    def load(data: Path) -> list[Row]:
        read = rows.table if ".tsv" in pattern or ".csv" in pattern else rows.objects
        return [row for path in sorted(data.glob(pattern)) for row in shape(read(path))]

    return load


def _from(share: float, load: Callable[[Path], list[Row]]) -> Callable[[Path], list[Row]]:
    """Return what was kept from training: the rows whose premise falls at *share* or above."""
    return lambda data: [row for row in load(data) if rows.share_of(row.source) >= share]


def _negation(data: Path) -> list[Row]:
    raw = json.loads(rows.text_of(data / "dnc" / "nli-negation.json.gz"))
    return [Row(r["context"], rows.clean(r["hypothesis"]), rows.LABELS[r["label"]]) for r in raw]


_SA4, _SA3 = "CC BY-SA 4.0", "CC BY-SA 3.0"
_SENTENCES = ("sentence1", "sentence2", "gold_label")
_PREMISE = ("premise", "hypothesis", "label")
_NONE = "none stated"

SETS = (
    LabelledSet("snli", "SNLI test", "pair", "A", _SA4, False, _lines("snli/test*", *_PREMISE)),
    LabelledSet("mnli", "MNLI matched dev, half", "pair", "A", "OANC, CC BY(-SA) 3.0", True,
                _lines("mnli/*.gz", *_PREMISE)),
    LabelledSet("wiki_nli", "Wiki NLI test", "pair", "A", _SA3, False, _lines("wiki_nli/*_test*", *_PREMISE),
                unseen="a third of its premises are in the trained part"),
    LabelledSet("cad_nli", "CAD-NLI test", "pair", "A", "Apache-2.0", False, _table("cad_nli/test*", *_SENTENCES)),
    LabelledSet("conjnli", "ConjNLI dev", "pair", "A", "MIT", False,
                _table("conjnli/conj_dev*", "Premise", "Hypothesis", "Label")),
    LabelledSet("taxinli", "TaxiNLI (MNLI train part)", "pair", "A", "C-UDA 1.0", True,
                _lines("taxinli/*.gz", *_PREMISE)),
    LabelledSet("breaking_nli", "Breaking NLI, kept part", "pair", "A", _SA4, False,
                _from(0.6, _lines("breaking_nli/*.gz", *_SENTENCES)), unseen="its word pairs are in the trained part"),
    LabelledSet("med", "MED, kept part", "pair", "A", _SA4, False, _from(0.7, _table("med/*.gz", *_SENTENCES))),
    LabelledSet("help", "HELP", "pair", "A", _SA4, True,
                _table("help/*.gz", "ori_sentence", "new_sentence", "gold_label")),
    LabelledSet("scone", "ScoNe test", "pair", "A", "CC0", False, _table("scone/test_*", *_SENTENCES),
                unseen="its sentence patterns are in the trained part"),
    LabelledSet("fever", "FEVER dev, kept part", "pair", "A", _SA3, False,
                _from(0.9, _lines("fever_rte/*.gz", *_PREMISE)), unseen="pairs were generated over its passages"),
    LabelledSet("fever_symmetric", "FEVER-Symmetric dev", "pair", "A", _SA3, True,
                _lines("fever_symmetric/*.gz", *_SENTENCES)),
    LabelledSet("fm2", "Fool-Me-Twice dev", "pair", "A", "Apache-2.0", True, _shaped("fm2/*.gz", rows.fm2)),
    LabelledSet("wice", "WiCE claims dev", "pair", "A", "ODC-BY", True, _shaped("wice/claim_dev*", rows.wice)),
    LabelledSet("wice_pages", "WiCE claims dev, whole pages", "pair", "A", "ODC-BY", True,
                _shaped("wice/claim_dev*", rows.wice_pages)),
    LabelledSet("begin", "BEGIN dev", "pair", "A", "per part", True, _shaped("begin/*.tsv.gz", rows.begin)),
    LabelledSet("climate_fever", "Climate-FEVER", "pair", "B", _NONE, False,
                _shaped("climate_fever/*.gz", rows.climate)),
    LabelledSet("healthver", "HealthVer dev", "pair", "B", _NONE, False,
                _table("healthver/*.gz", "evidence", "claim", "label")),
    LabelledSet("covidfact", "COVID-Fact", "pair", "B", _NONE, False, _shaped("covidfact/*.gz", rows.covid)),
    LabelledSet("monli", "MoNLI negated test", "pair", "B", _NONE, False, _lines("monli/nmonli_test*", *_SENTENCES)),
    LabelledSet("dnc_negation", "DNC negation", "pair", "B", _NONE, False, _negation),
    LabelledSet("rte", "RTE dev", "pair", "B", "research terms", False,
                _table("rte/dev*", "sentence1", "sentence2", "label")),
    *(LabelledSet(f"anli_r{n}", f"ANLI R{n} dev", "pair", "C", "CC BY-NC 4.0", False,
                  _table(f"anli/r{n}_dev*", "context", "statement", "gold_label")) for n in (1, 2, 3)),
    *(LabelledSet(f"summedits_{domain}", f"SummEdits {domain}", "response", "A", "Apache-2.0", True,
                  _shaped(f"summedits/{domain}.jsonl.gz", rows.summedits))
      for domain in ("news", "qmsumm", "sales_email", "samsum")),
    LabelledSet("qags_cnndm", "QAGS CNN/DM", "response", "B", _NONE, False,
                _shaped("qags/mturk_cnndm.jsonl.gz", rows.qags)),
    LabelledSet("qags_xsum", "QAGS XSum", "response", "B", _NONE, False,
                _shaped("qags/mturk_xsum.jsonl.gz", rows.qags), unseen="14 of its 239 articles are in FIB"),
    LabelledSet("faithbench", "FaithBench, shared half", "response", "C", "CC BY-NC-SA 4.0", False,
                _shaped("faithbench/*.jsonl.gz", rows.faithbench)),
    LabelledSet("bump", "BUMP half", "response", "A", "MIT", True, _shaped("bump/*.jsonl.gz", rows.bump)),
    LabelledSet("fib", "FIB (XSum)", "response", "A", "CC BY 4.0", True, _shaped("fib/*.jsonl.gz", rows.fib)),
)  # fmt: skip

BY_NAME = {one.name: one for one in SETS}


def sampled(found: LabelledSet, data: Path, size: int) -> list[Row]:
    """Return *size* rows in an order that only the set's name decides, so that a larger sample holds a smaller one."""
    every = list(dict.fromkeys(found.load(data)))
    random.Random(f"interlock quality {found.name}").shuffle(every)
    return every[:size] if size else every

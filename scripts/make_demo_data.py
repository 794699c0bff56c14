"""Cut the demonstrations' conversations out of the labelled data.

python scripts/make_demo_data.py --data FOLDER            write services/interlock/demo/conversation.json and its like
python scripts/make_demo_data.py --data FOLDER --check    exit 1 when a committed file differs

FOLDER holds ``summedits/sales_email.jsonl.gz`` of SummEdits (github.com/salesforce/factualNLG at 0da1dfa, Apache-2.0).
Each passage is an e-mail; each answer is a summary of it that a model wrote and that people then labelled consistent (1)
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

FOLDER = Path(__file__).resolve().parent.parent / "services" / "interlock" / "demo"
SET = "summedits/sales_email"
LICENCE = "Apache-2.0"

# Item and label as recorded, and the question that asks for one more summary of the same e-mail.
ONE_AGENT = (
    ("18", 1, "Summarise this e-mail for the CRM note."),
    ("9", 1, "Now the same for the weekly digest."),
    ("25", 0, "One more for the design team."),
    ("35", 0, "And one for the partner channel."),
    ("1", 0, "A version for the finance team, with the price."),
    ("6", 0, "Another for the hand-over to support."),
    ("37", 0, "A shorter opening for the newsletter."),
    ("36", 0, "Last one: the summary that goes to the customer."),
)
STORAGE = (
    ("3", 1, "Summarise the storage offer."),
    ("5", 1, "Summarise the storage offer for the facilities team."),
)
HEALTH = (
    ("29", 1, "Which offers are on the desk? Begin with the health one."),
    ("34", 1, "Summarise the health offer."),
    ("13", 1, "Summarise the health offer for the clinic."),
)
INVESTMENT = (
    ("13", 1, "Summarise the investment offer."),
    ("28", 0, "Summarise the investment offer for the board."),
    ("33", 0, "Summarise the investment offer for the auditors."),
    ("3", 0, "Summarise the investment offer for compliance."),
    ("24", 0, "Summarise the investment offer for the newsletter."),
    ("7", 0, "Summarise the investment offer for the client."),
    ("19", 0, "Summarise the investment offer once more."),
)
CONVERSATIONS = {
    "conversation": ("sales_email_6", "summaries of one sales e-mail", ONE_AGENT),
    "tree_storage": ("sales_email_13", "summaries of an offer for storage", STORAGE),
    "tree_health": ("sales_email_4", "summaries of an offer for a clinic", HEALTH),
    "tree_investment": ("sales_email_30", "summaries of an investment offer", INVESTMENT),
}
"""File to passage, title and turns: the first is one agent's, the others are a tree's."""


def rows(data: Path) -> dict[str, dict[str, Any]]:
    """Return the rows of the data set by id."""
    with gzip.open(data / f"{SET}.jsonl.gz", "rt", encoding="utf-8") as lines:
        return {row["id"]: row for row in map(json.loads, lines)}


def conversation(
    recorded: dict[str, dict[str, Any]], passage: str, title: str, wanted: tuple[tuple[str, int, str], ...]
) -> dict[str, Any]:
    """Return the conversation; SystemExit when the data is not what the tables above say."""
    turns = []
    for suffix, label, question in wanted:
        row = recorded[f"{passage}_{suffix}"]
        if row["label"] != label or row["doc"] != recorded[f"{passage}_og"]["doc"]:
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
        "title": title,
        "origin": "https://github.com/salesforce/factualNLG at 0da1dfa",
        "licence": LICENCE,
        "citation": "Laban et al. 2023, SummEdits, EMNLP",
        "passage_id": passage,
        "passage": recorded[f"{passage}_og"]["doc"],
        "turns": turns,
    }


def main() -> int:
    """Write or check the files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of the labelled data")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    options = parser.parse_args()
    recorded, stale = rows(options.data), []
    for name, (passage, title, turns) in CONVERSATIONS.items():
        target = FOLDER / f"{name}.json"
        text = json.dumps(conversation(recorded, passage, title, turns), indent=2, ensure_ascii=False) + "\n"
        if not options.check:
            target.write_text(text, encoding="utf-8")
        elif not target.exists() or target.read_text(encoding="utf-8") != text:
            stale.append(target.name)
    print(f"stale: {', '.join(stale)}" if stale else "demo data is fresh")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())

"""Write docs/judge-examples.md: twenty answers with what word overlap and the model alone say of them, and what the engine says.

    python -m bench.quality.examples

The engine and the models are the real ones. tests/unit/dpe/test_judge_examples.py judges the same answers anew.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.dpe.document import Fact
from interlock.dpe.request import Output, Request
from interlock.dpe.text.content_words import content_words

PAGE = Path(__file__).resolve().parents[2] / "docs" / "judge-examples.md"
EXAMPLES = (
    ("The notary paid the broker.", "The notary was paid by the broker."),
    ("The audit was carried out by the city of Bern and paid for by the operator, Lumo.", "Lumo ran the audit, and the city of Bern paid for it."),
    ("The court allowed the purchase of Bellini Foods by Ostra Capital in June.", "In June the court let Bellini Foods take over Ostra Capital."),
    ("Hale lent £3,000 to the choir, and the loan has to be repaid within a year.", "Hale received a loan of £3,000 from the choir."),
    ("Elmside Town beat Corby Vale at Mill Lane.", "Elmside Town lost to Corby Vale at Mill Lane."),
    ("A ride costs €3.10 for adults and €1.60 for children.", "A ride costs €3.10 for children."),
    ("The guests of the tower may not feed the falcons.", "The charter allows you to feed the falcons."),
    ("The paper division grew by 9% to £344 million, whereas the glass division shrank by 3% to £268 million.", "The paper division had sales of £268 million."),
    ("Gate 4 closes in 5 minutes, gate 7 in 15 minutes.", "You have 15 minutes to reach gate 4."),
    ("In 2024 fares rose 6% to €5.3 million, while fines fell 3% to €1.1 million.", "Fines grew to €1.1 million."),
    ("The rent was raised by 4% on 1 May, after the heating contract had expired.", "The rent was raised, and afterwards the heating contract ran out."),
    ("Call the assistance line before any admission to a hospital.", "Once you have been admitted to a hospital, call the assistance line."),
    ("The gel cools the skin; it does not heal a wound that has become infected.", "The gel does heal an infected wound."),
    ("The booking fee of €75 is waived for members and is not refunded if a booking is cancelled.", "Your €75 booking fee is refunded if you cancel the booking."),
    ("The winger limped off and may miss the final on 29 March.", "The winger will definitely miss the final on 29 March."),
    ("Most regulars of the library use the reading app.", "Hardly any regulars of the library use the reading app."),
    ("The night fare is only available to homes with a smart meter.", "You can choose the night fare with any type of meter."),
    ("The lease runs from 1 March 2021 to 28 February 2024.", "The lease runs for three years."),
    ("The choir has 12 sopranos, 9 altos, 7 tenors and 8 basses.", "The choir has 36 singers in all."),
    ("The notary paid the broker.", "The broker was paid by the notary."),
)  # fmt: skip
"""Each source with an answer; the last three follow from their source."""


@dataclass(frozen=True)
class Judged:
    """An example with what is said of it: the share of its words in the source, P(entailment), level and findings."""

    source: str
    answer: str
    overlap: float
    entailment: float
    level: str
    found: str

    @property
    def row(self) -> str:
        """The line of the page."""
        before = f"{self.overlap:.0%} of its words, P(entailment) {self.entailment:.2f}"
        return f"| {self.source} | {self.answer} | {before} | {self.level}{': ' + self.found if self.found else ''} |"


async def judged(pipeline: Any) -> list[Judged]:
    """Judge every example by words, by the model alone and by the engine."""
    alone = await pipeline.inference.nli([(source, answer) for source, answer in EXAMPLES])
    found = []
    for (source, answer), row in zip(EXAMPLES, alone, strict=True):
        request = Request(outputs=(Output(0, answer),), facts=(Fact("f1", source, 0.5),), query="")
        report = await pipeline.analyse(request)
        words = content_words(answer)
        level = common_pb2.RiskLevel.Name(report.risk_level).removeprefix("RISK_LEVEL_")
        overlap = len(words & content_words(source)) / max(1, len(words))
        found.append(Judged(source, answer, overlap, float(row[0]), level, _told(report)))
    return found


def _told(report: Any) -> str:
    bent = [one for claim in report.claims for one in claim.distortions]
    return "; ".join(dict.fromkeys(f"{one.type}{f', {one.slot}' if one.slot else ''}" for one in bent))


def page(told: Sequence[Judged]) -> str:
    """Return the page."""
    lines = [
        "# Twenty answers, before and after",
        "",
        "Written by `python -m bench.quality.examples`; do not edit. A test judges the same answers anew.",
        "",
        "*Before* is what word overlap and the bundled model say by themselves: nearly all words stand in the source, and the model hears",
        "the overlap. *Now* is the class of the engine and what it names: the type of SPEC-005 §5.3 and the slot that is filled otherwise.",
        "The last three answers follow from their sources. Made for this page; how often it holds on answers of others is in",
        "[quality.md](quality.md).",
        "",
        "| source | answer | before | now |",
        "|---|---|---|---|",
        *(one.row for one in told),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page."""
    from interlock.dpe.wiring import open_pipeline
    from interlock.runtime.settings.model import Settings

    pipeline = open_pipeline(Settings())
    try:
        PAGE.write_text(page(asyncio.run(judged(pipeline))), encoding="utf-8")
    finally:
        pipeline.close()


if __name__ == "__main__":
    main()

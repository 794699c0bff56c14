"""The same answer has the same report, whichever runtime judged it (DPE-18)."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import interlock.demo
from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.document import Fact
from interlock.dpe.pipeline import Pipeline
from interlock.dpe.request import Output, Request
from tests.support.dpe import pipeline
from tests.support.servers import triton

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-18")]

RECORDED = json.loads((Path(interlock.demo.__file__).parent / "conversation.json").read_text(encoding="utf-8"))
FACTS = tuple(
    Fact(f"f{n}", text.strip(), 0.5 + n % 5 / 10)
    for n, text in enumerate((p for p in RECORDED["passage"].split("\n") if p.strip()), 1)
)
TOWERS = (
    ("The {a} Tower is {n} metres tall.", "It was completed in {y} by the company of {b}."),
    ("Sales of {a} Ltd rose by {n}% in Q3 {y}.", "{b} became its chief executive in March {y}."),
    ("The bridge over the {a} opened on 4 May {y}.", "About {n} thousand cars cross it each day, says {b}."),
    ("{b} wrote to {a}@example.com in {y}.", "The parcel weighs {n} kg and did not arrive."),
)
NAMES = (("Berlin", "Karl Weber"), ("Rhone", "Anna Costa"), ("Delta", "Gustave Eiffel"), ("Kyoto", "Mary O'Neill"))
CHANGES = (
    lambda text: text,
    lambda text: text.replace("1", "7").replace("metres", "feet"),
    lambda text: text.replace(" is ", " is not ").replace(" rose ", " fell ").replace("opened", "closed"),
    lambda text: text + " Experts agree that nothing like it was ever seen on the Moon, in 12 countries.",
    lambda text: " ".join(reversed(text.split(". "))),
    lambda text: text.replace("It was", "Mark Price said it was") + " Rich Hall and Green Day paid for it.",
    lambda text: "Sure! " + text.replace(". ", ", and ") + " I hope this helps!",
)


def answers() -> Iterator[Request]:
    """Yield requests without end: the recorded answers first, then made ones, faithful and bent, of one to nine sentences."""
    for turn in RECORDED["turns"]:
        yield Request(outputs=(Output(0, turn["answer"]),), facts=FACTS, query=turn["question"])
    for number in itertools.count():
        texts = []
        for step in range(1 + number % 4):
            kind = (number + step) % len(TOWERS)
            a, b = NAMES[(number // 3 + step) % len(NAMES)]
            texts += [s.format(a=a, b=b, n=110 + 7 * number + step, y=1889 + number % 120) for s in TOWERS[kind]]
        change = CHANGES[number % len(CHANGES)]
        outputs = tuple(
            Output(n, change(" ".join(part))) for n, part in enumerate((texts, texts[:1])[: 1 + number % 2])
        )
        facts = tuple(Fact(f"f{n}", text, 0.9) for n, text in enumerate(texts[: number % 9], 1))
        yield Request(outputs=outputs, facts=facts, query=f"What about {NAMES[number % 4][0]}?", loop_depth=number % 3)


def told(report: dpe_pb2.Report) -> dpe_pb2.Report:
    """Return a report without where its models run."""
    bare = dpe_pb2.Report()
    bare.CopyFrom(report)
    for model in bare.models:
        model.runtime = ""
    return bare


async def compare(count: int) -> list[dpe_pb2.Report]:
    """Assert equal reports on *count* answers and return them."""
    embedded = pipeline()
    served: Pipeline = replace(embedded, inference=triton.client(triton.address()))
    reports = []
    try:
        for number, request in enumerate(itertools.islice(answers(), count)):
            mine, theirs = await embedded.analyse(request), await served.analyse(request)
            assert told(mine) == told(theirs), f"answer {number}"
            assert {m.runtime for m in theirs.models if m.slot in {"nli", "embed", "ner"}} == {"triton"}
            reports.append(theirs)
    finally:
        served.inference.close()
    return reports


async def test_embedded_and_triton_give_the_same_report():
    """Every field of the report, to the last bit, on recorded and made answers of every risk level."""
    reports = await compare(16)

    assert len({report.risk_level for report in reports}) >= 3
    assert {e.label for report in reports for claim in report.claims for e in claim.entities} >= {"PERSON", "LOC"}


@pytest.mark.long
async def test_embedded_and_triton_give_the_same_report_on_200_answers():
    """The same on 200 answers."""
    assert len(await compare(200)) == 200

"""What is measured: one job for each set and question, over rows in an order that its name decides."""

from __future__ import annotations

import asyncio
import gzip
import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.quality import baselines, distortions
from bench.quality.engine import AT_ONCE, Engine
from bench.quality.plan import Job
from bench.quality.rows import ENTAILED, Row, everyday, objects
from bench.quality.sets import SETS, LabelledSet, sampled
from interlock.dpe.pii.detection import PiiDetector

DIRECT = frozenset(
    {"EMAIL_ADDRESS", "PHONE_NUMBER", "CREDIT_CARD", "IBAN_CODE", "US_SSN", "IP_ADDRESS", "US_DRIVER_LICENSE",
     "STREET_ADDRESS"}
)  # fmt: skip
PAIR_WEIGHT, MINOR_WEIGHT, REPORT_WEIGHT, RESPONSE_WEIGHT, DISTORTION_WEIGHT = 400, 150, 60, 90, 80
MINOR = frozenset({"taxinli", "help", "scone", "conjnli", "breaking_nli", "med", "monli", "dnc_negation", "wice_pages"})
"""Sets of one phenomenon, or of sentences that were trained on: enough rows to see, not more."""
REPORTED = frozenset(
    {"snli", "wiki_nli", "fever", "fever_symmetric", "fm2", "wice", "begin", "healthver", "covidfact", "rte"}
)
"""Sets of pairs that look like a claim and its evidence: the whole engine is measured on them too."""
DISTORTION_CASES = 400
DIRECT_PII, NAME_ONLY = 1, 2
EVERYDAY = Path(__file__).parents[1] / "everyday_pairs" / "held"
EVERYDAY_WEIGHT = 500


@dataclass(frozen=True)
class Scores:
    """How alike a row and its source are by each way of telling; three classes from the models."""

    lexical: float
    cosine: float
    model: tuple[float, float, float]
    previous: tuple[float, float, float] | None = None


def _triple(row: Any) -> tuple[float, float, float]:
    return float(row[0]), float(row[1]), float(row[2])


def pair_job(found: LabelledSet, rows: Sequence[Row], engine: Engine, previous: Engine | None) -> Job:
    """The models alone on premise and hypothesis, beside the two baselines, on the same texts."""

    async def measure(part: Sequence[Row]) -> list[Scores]:
        short = engine.shortened(part)
        cosine = await engine.similarity([p for p, _ in short], [h for _, h in short])
        model = await engine.nli(short)
        old = await previous.nli(short) if previous else None
        return [
            Scores(baselines.overlap(*pair), float(cosine[n]), _triple(model[n]),
                   _triple(old[n]) if old is not None else None)
            for n, pair in enumerate(short)
        ]  # fmt: skip

    return Job(f"pairs:{found.name}", rows, measure, MINOR_WEIGHT if found.name in MINOR else PAIR_WEIGHT)


def report_job(name: str, rows: Sequence[Row], engine: Engine, weight: int) -> Job:
    """The whole engine on a text with its source."""

    async def measure(part: Sequence[Row]) -> list[Any]:
        done: list[Any] = []
        for at in range(0, len(part), AT_ONCE):
            done += await engine.judge(part[at : at + AT_ONCE])
        return done

    return Job(name, rows, measure, weight)


def response_job(found: LabelledSet, rows: Sequence[Row], engine: Engine, previous: Engine | None) -> Job:
    """The whole engine on an answer, with the current and the previous model, beside the two baselines."""

    async def one(row: Row) -> dict[str, Any]:
        judged = await engine.judge([row])
        old = await previous.judge([row]) if previous else [None]
        cosine = await baselines.weakest_similarity(row, engine.pipeline.inference)
        return {"report": judged[0], "previous": old[0], "lexical": baselines.weakest_overlap(row), "cosine": cosine}

    async def measure(part: Sequence[Row]) -> list[dict[str, Any]]:
        done: list[dict[str, Any]] = []
        for at in range(0, len(part), AT_ONCE):
            done += await asyncio.gather(*map(one, part[at : at + AT_ONCE]))
        return done

    return Job(f"responses:{found.name}", rows, measure, RESPONSE_WEIGHT)


def everyday_job(engine: Engine) -> Job:
    """The whole engine on the everyday answers that were held back: no rule was written on them."""
    rows = everyday(EVERYDAY)
    random.Random("interlock quality everyday").shuffle(rows)
    return report_job("everyday", rows, engine, EVERYDAY_WEIGHT)


def distortion_jobs(data: Path, engine: Engine) -> list[Job]:
    """Each type of distortion, and three kinds of clean paraphrase for the false alarms."""
    cases = {kind: distortions.bent(data, kind, DISTORTION_CASES) for kind in distortions.BENDS}
    clean = {
        "retold by rules": distortions.unbent(data, DISTORTION_CASES),
        "STS-B, rated the same": distortions.paraphrases(data, 0),
        "QAGS sentences, all annotators agree": distortions.agreed(data, 0),
    }
    return [
        *(report_job(f"distortions:{kind}", rows, engine, DISTORTION_WEIGHT) for kind, rows in cases.items()),
        *(report_job(f"clean:{kind}", rows, engine, 2 * DISTORTION_WEIGHT) for kind, rows in clean.items()),
    ]


def pii_job(data: Path, engine: Engine) -> Job:
    """The finder of personal data on the documents of presidio_synth.

    The label is 1 for a document with an identifier that stands alone, 2 for one with a person's name and no such
    identifier, 0 for the others.
    """
    with gzip.open(data / "presidio_synth" / "synth_dataset_v2.json.gz", "rt", encoding="utf-8") as file:
        documents = json.load(file)
    rows = []
    for one in documents:
        kinds = {span["entity_type"] for span in one["spans"]}
        rows.append(Row("", one["full_text"], DIRECT_PII if kinds & DIRECT else NAME_ONLY if "PERSON" in kinds else 0))
    random.Random("interlock quality pii").shuffle(rows)
    detector: PiiDetector = engine.pipeline.pii

    async def measure(part: Sequence[Row]) -> list[bool]:
        return [bool(await asyncio.to_thread(detector.find, row.text, "response")) for row in part]

    return Job("pii", rows, measure, 1500)


def claims_job(data: Path, engine: Engine) -> Job:
    """Claims of real answers, and whether every span that annotators marked lies in a claim that is checked."""
    raw = objects(data / "ragtruth_llama7b_test_responses" / "responses.jsonl.gz")
    spans = {each["response"]: [(s["start"], s["end"]) for s in each["labels"]] for each in raw}
    rows = [Row("", text, ENTAILED) for text in spans if text.strip()]
    random.Random("interlock quality claims").shuffle(rows)

    async def measure(part: Sequence[Row]) -> list[dict[str, int]]:
        return [_counted(await engine.report(row), row.text, spans[row.text]) for row in part]

    return Job("claims", rows, measure, 50)


def _counted(report: Any, text: str, spans: Sequence[tuple[int, int]]) -> dict[str, int]:
    """Return the counts of one answer. A span counts as covered when claims cover nine tenths of its letters."""
    covered = {at for claim in report.claims for at in range(claim.start, claim.end)}
    letters = [[at for at in range(start, min(end, len(text))) if text[at].isalnum()] for start, end in spans]
    inside = [sum(at in covered for at in each) >= 0.9 * len(each) for each in letters if each]
    return {
        "claims": report.claims_total,
        "checked": sum(claim.attribution != 0 for claim in report.claims),
        "words": len(text.split()),
        "spans": len(inside),
        "spans_covered": sum(inside),
        "opinions": report.claims_by_type.get("OPINION", 0),
    }


def every_job(data: Path, engine: Engine, previous: Engine | None, only: frozenset[str]) -> list[Job]:
    """Return the jobs in the order of what matters most; *only* names sets, or distortions, pii and claims."""
    jobs: list[Job] = []
    if not only or "everyday" in only:
        jobs.append(everyday_job(engine))
    if not only or "distortions" in only:
        jobs += distortion_jobs(data, engine)
    chosen = [one for one in SETS if not only or one.name in only]
    loaded = {one.name: sampled(one, data, 0) for one in chosen}
    jobs += [response_job(one, loaded[one.name], engine, previous) for one in chosen if one.level == "response"]
    if not only or "pii" in only:
        jobs.append(pii_job(data, engine))
    if not only or "claims" in only:
        jobs.append(claims_job(data, engine))
    jobs += [pair_job(one, loaded[one.name], engine, previous) for one in chosen if one.level == "pair"]
    jobs += [
        report_job(f"reports:{one.name}", loaded[one.name], engine, REPORT_WEIGHT)
        for one in chosen
        if one.name in REPORTED
    ]
    return jobs

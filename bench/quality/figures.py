"""The figures of a run: scores and reports against labels, thresholds carried over from other sets."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any

import numpy as np

from bench.quality import rules
from bench.quality.engine import Judged
from bench.quality.jobs import DIRECT_PII, NAME_ONLY
from bench.quality.metrics import (
    UNTOLD,
    Figure,
    auroc_figure,
    balanced_figure,
    best_threshold,
    share,
    wilson,
)
from bench.quality.plan import Job
from bench.quality.rows import CONTRADICTED, ENTAILED, Row
from bench.quality.sets import BY_NAME, LabelledSet

WAYS = ("lexical", "cosine", "previous", "model")
RESPONSE_WAYS = ("lexical", "cosine", "previous", "report")
LEAST_ROWS = 20
"""Below this a set is said to be too small to tell anything of."""
PAIR_THRESHOLD_FROM, PAIR_THRESHOLD_FALLBACK = "snli", "wiki_nli"

Table = dict[str, Any]


def entailment_of(results: Sequence[Any], way: str) -> list[float]:
    """Return what each way of telling takes for 'it follows'."""
    if way in {"lexical", "cosine"}:
        return [float(getattr(one, way)) for one in results]
    return [getattr(one, way)[0] for one in results]


def contradiction_of(results: Sequence[Any], way: str) -> list[float]:
    """Return what each way of telling takes for 'it contradicts': the baselines have only 'it is unlike'."""
    if way in {"lexical", "cosine"}:
        return [-float(getattr(one, way)) for one in results]
    return [getattr(one, way)[2] for one in results]


def ways_of(results: Sequence[Any]) -> list[str]:
    """Return the ways that there are results of."""
    return [way for way in WAYS if way != "previous" or (results and results[0].previous is not None)]


def pair_thresholds(jobs: Mapping[str, Job]) -> dict[str, dict[str, float]]:
    """Return the threshold that each set lends, by way: the best one on its own rows."""
    found: dict[str, dict[str, float]] = {}
    for name in (PAIR_THRESHOLD_FROM, PAIR_THRESHOLD_FALLBACK):
        job = jobs.get(f"pairs:{name}")
        if job is not None and len(job.results) >= LEAST_ROWS:
            truth = [row.label == ENTAILED for row in job.done]
            found[name] = {way: best_threshold(entailment_of(job.results, way), truth) for way in ways_of(job.results)}
    return found


def pair_figures(found: LabelledSet, job: Job, report: Job | None, lent: Mapping[str, Mapping[str, float]]) -> Table:
    """Return the figures of one set of pairs."""
    rows, results = job.done, job.results
    truth = np.array([row.label == ENTAILED for row in rows])
    against = np.array([row.label == CONTRADICTED for row in rows])
    lender = PAIR_THRESHOLD_FALLBACK if found.name == PAIR_THRESHOLD_FROM else PAIR_THRESHOLD_FROM
    table: Table = {"n": len(rows), "auroc": {}, "contradiction": {}, "balanced": {}, "accuracy": {}}
    for way in ways_of(results):
        score = entailment_of(results, way)
        table["auroc"][way] = auroc_figure(score, truth)
        table["balanced"][way] = balanced_figure(score, truth, lent.get(lender, {}).get(way, math.nan))
        if against.any() and not against.all():
            table["contradiction"][way] = auroc_figure(contradiction_of(results, way), against)
        if found.three_classes and way in {"previous", "model"}:
            said = np.array([getattr(one, way) for one in results]).argmax(axis=1)
            table["accuracy"][way] = share(said == np.array([row.label for row in rows]))
    if found.three_classes and rows:
        table["commonest"] = max(Counter(row.label for row in rows).values()) / len(rows)
    if report is not None:
        table["report"] = report_figures(report.done, report.results)
    return table


def report_figures(rows: Sequence[Row], results: Sequence[Judged | None]) -> Table:
    """Return what the reports say of rows: AUROC of the composite, and which answers are LOW."""
    both = [(row, one) for row, one in zip(rows, results, strict=True) if one is not None]
    truth = [row.label == ENTAILED for row, _ in both]
    faithful = [one for row, one in both if row.label == ENTAILED]
    unfaithful = [one for row, one in both if row.label != ENTAILED]
    return {
        "n": len(both),
        "refused": len(rows) - len(both),
        "auroc": auroc_figure([-one.composite for _, one in both], truth),
        "faithful_low": share([one.low for one in faithful]),
        "unfaithful_low": share([one.low for one in unfaithful]),
        "why_not_low": why(faithful),
    }


def why(faithful: Sequence[Judged]) -> dict[str, float]:
    """Return why faithful answers are not LOW: the share of all of them with each floor, and with none at all."""
    told = [one for one in faithful if not one.low]
    floors = Counter(floor for one in told for floor in one.floors)
    floors["no floor, claims not entailed"] = sum(not one.floors for one in told)
    return {name: round(count / max(1, len(faithful)), 4) for name, count in floors.most_common()}


def response_scores(job: Job, way: str) -> tuple[list[float], list[bool]]:
    """Return scores, higher is more faithful, and labels of the rows that have one."""
    scores, truth = [], []
    for row, one in zip(job.done, job.results, strict=True):
        if one[way] is not None:
            scores.append(-one[way].composite if way in {"report", "previous"} else float(one[way]))
            truth.append(row.label == ENTAILED)
    return scores, truth


def response_figures(jobs: Mapping[str, Job]) -> dict[str, Table]:
    """Return the figures of the sets of answers; the threshold comes from the SummEdits domains beside the measured."""
    tables: dict[str, Table] = {}
    lenders = [job for name, job in jobs.items() if name.startswith("responses:summedits")]
    for name, job in jobs.items():
        if not name.startswith("responses:") or len(job.results) < LEAST_ROWS:
            continue
        table = report_figures(job.done, [one["report"] for one in job.results])
        table |= {"balanced": {}, "aurocs": {}}
        for way in RESPONSE_WAYS:
            scores, truth = response_scores(job, way)
            if scores:
                table["aurocs"][way] = auroc_figure(scores, truth)
                threshold = _lent([other for other in lenders if other is not job], way)
                table["balanced"][way] = balanced_figure(scores, truth, threshold)
        found = BY_NAME[name.partition(":")[2]]
        tables[found.name] = _about(found) | table
    return tables


def together(jobs: Mapping[str, Job]) -> Table:
    """Return what the reports say of all answers of all sets, however few each set has."""
    found = [job for name, job in jobs.items() if name.startswith("responses:")]
    rows = [row for job in found for row in job.done]
    return report_figures(rows, [one["report"] for job in found for one in job.results]) if rows else {}


def _lent(lenders: Sequence[Job], way: str) -> float:
    scores: list[float] = []
    truth: list[bool] = []
    for job in lenders:
        more, labels = response_scores(job, way)
        scores += more
        truth += labels
    return best_threshold(scores, truth) if len(scores) >= LEAST_ROWS else math.nan


def distortion_figures(jobs: Mapping[str, Job]) -> tuple[dict[str, Table], dict[str, Table]]:
    """Return what is found of each type of distortion, and what is accused of clean paraphrases."""
    bent, clean = {}, {}
    for name, job in jobs.items():
        group, _, kind = name.partition(":")
        told = [one for one in job.results if one is not None]
        if group not in {"distortions", "clean"} or len(told) < LEAST_ROWS:
            continue
        table = {
            "n": len(told),
            "noticed": share([one.noticed for one in told]),
            "accused": share([one.accused for one in told]),
            "not_low": share([not one.low for one in told]),
        }
        if group == "clean":
            clean[kind] = table | {"why_not_low": why(told)}
        else:
            bent[kind] = table | {"type_named": share([kind in one.types for one in told])}
    return bent, clean


def pii_figures(job: Job | None) -> Table:
    """Return recall and precision over documents."""
    if job is None or len(job.results) < LEAST_ROWS:
        return {}
    both = list(zip(job.done, job.results, strict=True))
    hits = sum(found for row, found in both if row.label == DIRECT_PII)
    false = sum(found for row, found in both if row.label == 0)
    return {
        "n": len(both),
        "recall": wilson(hits, sum(row.label == DIRECT_PII for row, _ in both)),
        "precision": wilson(hits, hits + false),
        "names_flagged": share([found for row, found in both if row.label == NAME_ONLY]),
    }


def claim_figures(job: Job | None) -> Table:
    """Return what the claims of real answers look like."""
    if job is None or len(job.results) < LEAST_ROWS:
        return {}
    total = Counter[str]()
    for one in job.results:
        total.update(one)
    n = len(job.results)
    return {
        "n": n,
        "claims_per_answer": round(total["claims"] / n, 2),
        "words_per_claim": round(total["words"] / max(1, total["claims"]), 2),
        "checked": wilson(total["checked"], total["claims"]),
        "answers_without_claim": wilson(sum(not one["claims"] for one in job.results), n),
        "spans_covered": wilson(total["spans_covered"], total["spans"]),
    }


def _about(found: LabelledSet) -> Table:
    return {
        "title": found.title, "trained": found.trained, "tier": found.tier, "unseen": found.unseen,
        "licence": found.licence,
    }  # fmt: skip


def figures(jobs: Sequence[Job]) -> Table:
    """Return every figure of a run, whatever of it was done."""
    by_name = {job.name: job for job in jobs}
    lent, pairs = pair_thresholds(by_name), {}
    for name, job in by_name.items():
        if name.startswith("pairs:") and len(job.results) >= LEAST_ROWS:
            found = BY_NAME[name.partition(":")[2]]
            table = pair_figures(found, job, by_name.get(f"reports:{found.name}"), lent)
            pairs[found.name] = _about(found) | table
    bent, clean = distortion_figures(by_name)
    return {
        "pairs": pairs,
        "responses": response_figures(by_name),
        "together": together(by_name),
        "distortions": bent,
        "clean": clean,
        "everyday": report_figures(by_name["everyday"].done, by_name["everyday"].results)
        if "everyday" in by_name
        else {},
        "earning": rules.table(by_name),
        "pii": pii_figures(by_name.get("pii")),
        "claims": claim_figures(by_name.get("claims")),
        "rows": {job.name: [len(job.results), len(job.rows)] for job in jobs},
    }


def plain(value: Any) -> Any:
    """Return figures as JSON."""
    if isinstance(value, Figure):
        return value.json()
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value


__all__ = ["UNTOLD", "figures", "plain"]

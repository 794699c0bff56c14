"""``interlock dpe calibrate``: how each strictness does on an operator's own labelled answers, and which one to set (SPEC-014)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.errors import invalid
from interlock.domain.risk.risk import RiskLevel
from interlock.domain.risk.strictness import (
    LEAST_OF_EACH,
    LabelledVerdict,
    OperatingPoint,
    Share,
    operating_points,
    recommended,
    too_few,
)

LABELS = {"faithful": True, "unfaithful": False}


def labelled(raw: Mapping[str, Any], number: int) -> tuple[bool, dict[str, Any]]:
    """Return the label of a row and what the engine is asked; refused with INPUT_INVALID, which names the line and the field."""
    label, sources = raw.get("label"), raw.get("sources")
    if not isinstance(label, str) or label not in LABELS:
        raise invalid("INPUT_INVALID", f"line {number}: label must be faithful or unfaithful", field="label")
    if not isinstance(sources, list) or not sources:
        raise invalid("INPUT_INVALID", f"line {number}: sources must be a list with at least one text", field="sources")
    if not isinstance(raw.get("answer"), str):
        raise invalid("INPUT_INVALID", f"line {number}: answer must be a string", field="answer")
    facts = [{"content": each} if isinstance(each, str) else each for each in sources]
    return LABELS[label], {"response": raw["answer"], "facts": facts, "query": raw.get("query")}


def enough(verdicts: Sequence[bool]) -> None:
    """Refuse with TOO_FEW_ROWS where a label has too few answers for a share to say anything."""
    told = [LabelledVerdict(faithful, RiskLevel.LOW, cannot_tell=False) for faithful in verdicts]
    if missing := too_few(told):
        raise invalid(
            "TOO_FEW_ROWS", f"{missing} answers: {LEAST_OF_EACH} of each label are needed, better 100",
            hint="label more answers of your own traffic; with 30 of a label a share is known to about 15 points",
        )  # fmt: skip


def verdict(faithful: bool, report: dpe_pb2.Report) -> LabelledVerdict:
    """Return what a report says of one labelled answer."""
    return LabelledVerdict(faithful, RiskLevel(int(report.risk_level)), report.cannot_tell_count > 0)


def as_json(verdicts: Sequence[LabelledVerdict], most: float, refused: int) -> dict[str, Any]:
    """Return the operating points and the recommendation as JSON. ``recommended`` is null where no setting fits."""
    points = operating_points(verdicts)
    chosen = recommended(points, most)
    return {
        "answers": len(verdicts),
        "refused": refused,
        "most_false_alarms": most,
        "points": [_point(each) for each in points],
        "recommended": chosen.strictness.value if chosen else None,
    }


def as_text(verdicts: Sequence[LabelledVerdict], most: float, refused: int) -> str:
    """Return the operating points as a table, and the recommendation in words."""
    points = operating_points(verdicts)
    return "\n".join([*_table(points), "", *_advice(points, most), *_left_out(refused)]) + "\n"


def _point(point: OperatingPoint) -> dict[str, Any]:
    shares = {"recall": point.recall, "false_alarms": point.false_alarms}
    told = {name: {"value": one.value, "low": one.low, "high": one.high, "n": one.n} for name, one in shares.items()}
    return {"strictness": point.strictness.value, "settings": point.strictness.settings, **told}


def _table(points: Sequence[OperatingPoint]) -> Iterator[str]:
    yield f"{'strictness':10}  {'unfaithful acted upon':26}  {'faithful acted upon':26}  settings"
    for one in points:
        yield f"{one.strictness.value:10}  {_share(one.recall):26}  {_share(one.false_alarms):26}  {one.strictness.settings}"


def _share(found: Share) -> str:
    return (
        "none" if math.isnan(found.value) else f"{found.value:.1%} ({found.low:.0%} to {found.high:.0%}), n {found.n}"
    )


def _advice(points: Sequence[OperatingPoint], most: float) -> Iterator[str]:
    chosen = recommended(points, most)
    if chosen is None:
        least = min(points, key=lambda one: one.false_alarms.value)
        yield (
            f"recommended: none. The least that any setting acts on is {least.false_alarms.value:.1%} of the faithful answers, above "
            f"{most:.0%}. Watch only (observe), and look at what is found there."
        )
        return
    yield f"recommended: {chosen.strictness.value} ({chosen.strictness.settings})"
    if chosen.false_alarms.high > most:
        yield (
            f"The interval of its false alarms ends at {chosen.false_alarms.high:.0%}, above {most:.0%}: with more labelled answers "
            "it may prove too strict."
        )


def _left_out(refused: int) -> Iterator[str]:
    if refused:
        yield f"{refused} answers were refused by the engine and are left out."

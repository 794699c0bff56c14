"""A-40: NaN, infinities, negative zero and numbers out of range in an analysis never read as a good value."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import FieldDescriptor

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.budget import micros
from interlock.domain.errors import Refused
from interlock.domain.headers import headers
from tests.support.sidecar.sidecar import a_report, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)

FLOATS = {FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT}
NUMBERS = FLOATS | {
    FieldDescriptor.TYPE_INT32, FieldDescriptor.TYPE_INT64, FieldDescriptor.TYPE_UINT32, FieldDescriptor.TYPE_UINT64,
}  # fmt: skip
BAD_FLOATS = [math.nan, math.inf, -0.5, 1.5]
STRICT = {
    "crp-safety-policy": "halt-on HIGH; require-grounding 0.80; require-entailment 0.80; require-flow 0.50; "
    "require-completeness 0.50; block-fabrication; block-repetition; max-repetition NONE"
}
SCORES = ("grounding_pct", "entailment_score", "flow_score", "completeness_score", "composite_score")
GOOD = {"flow_score": 0.9, "completeness_score": 0.9, "completeness_level": "COMPLETE", "repetition_level": "NONE"}
RAN = [
    dpe_pb2.Stage(number=n, status=dpe_pb2.STAGE_STATUS_RAN)
    for n in ("1", "2", "3a", "3b", "3c", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13")
]


def fields(kinds) -> Iterator[str]:
    """Every numeric field of a report's own level."""
    yield from (
        field.name
        for field in dpe_pb2.Report.DESCRIPTOR.fields
        if field.type in kinds and not field.is_repeated and not field.message_type
    )


def good(**changed) -> dpe_pb2.Report:
    report = a_report("LOW", **GOOD)
    del report.stages[:]
    report.stages.extend(RAN)
    for name, value in changed.items():
        setattr(report, name, value)
    return report


def test_a40_the_report_has_numbers_to_try():
    """The descriptor names them; the scores that a policy asks for are among them."""
    assert set(SCORES) <= set(fields(FLOATS))
    assert len(list(fields(NUMBERS))) > 15


@pytest.mark.req("POL-3", "SVC-9")
async def test_a40_no_score_that_is_none_passes_a_policy(tmp_path, upstream, provider):
    """Each score that a directive asks for, as NaN, infinite or out of range: nothing is released."""
    async with running_sidecar(tmp_path, upstream=upstream, remediation="none") as sidecar:
        sidecar.dpe.report = good()
        fine = await sidecar.chat(headers=STRICT)
        released = []
        for name in SCORES:
            for value in BAD_FLOATS:
                sidecar.dpe.report = good(**{name: value})
                answer = await sidecar.chat(headers=STRICT)
                if answer.status_code not in {451, 503}:
                    released.append((name, value, answer.status_code))

    assert fine.status_code == 200, fine.text
    assert released == []


@pytest.mark.req("HDR-4", "SVC-9")
async def test_a40_no_field_makes_a_defect_or_a_header_of_nonsense(tmp_path, upstream, provider):
    """Every float and every integer of a report at its ends: an answer or a refusal with a reason, headers of their grammar."""
    odd = []
    async with running_sidecar(tmp_path, upstream=upstream, remediation="none", max_dag_nodes=1000) as sidecar:
        cases = [(name, value) for name in fields(FLOATS) for value in (math.nan, 1e308)]
        cases += [(name, value) for name in set(fields(NUMBERS)) - set(fields(FLOATS)) for value in (-1, 2**31 - 1)]
        for name, value in cases:
            report = good()
            try:
                setattr(report, name, value)
            except ValueError:  # an unsigned field holds no -1
                continue
            sidecar.dpe.report = report
            answer = await sidecar.chat()
            values = " ".join(value for header, value in answer.headers.items() if header.startswith("crp-")).lower()
            if answer.status_code not in {200, 451, 503} or {"nan", "inf", "1e+308"} & set(values.split()):
                odd.append((name, value, answer.status_code, values))

    assert odd == []


@pytest.mark.req("HDR-4", "BUD-2")
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, -0.1, 1.0000001, 1e308])
def test_a40_a_number_that_is_none_is_written_nowhere(value):
    """A score outside 0 to 1 has no header; money that is no finite number is refused."""
    assert headers.fraction(value) is None
    if not math.isfinite(value):
        with pytest.raises(Refused) as refused:
            micros(value)
        assert refused.value.reason == "NOT_MICROS"


def test_a40_negative_zero_is_zero():
    """It is a number, and is written like one."""
    assert headers.fraction(-0.0) in {"0.000", "-0.000"}
    assert headers.admissible({"CRP-Safety-Grounding-Pct": headers.fraction(-0.0)}) in (
        {"CRP-Safety-Grounding-Pct": "0.000"},
        {},
    )
    assert micros(-0.0) == 0

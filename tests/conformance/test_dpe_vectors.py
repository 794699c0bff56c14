"""The DPE vectors of SPEC-014 §2.3, as printed, through Analyze."""

from __future__ import annotations

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.dpe.servicer import DpeServicer
from interlock.runtime.rpc.channel import LocalContext
from tests.support.dpe import pipeline

pytestmark = pytest.mark.models


async def analyze(llm_response: str, envelope_facts: list[dict[str, str]]) -> dpe_pb2.Report:
    servicer = DpeServicer(pipeline(), timeout_s=60, workers=1)
    answer = await servicer.Analyze(
        dpe_pb2.AnalyzeRequest(
            facts=[common_pb2.Fact(id=f["fact_id"], content=f["content"], importance=0.5) for f in envelope_facts],
            outputs=[dpe_pb2.Output(text=llm_response)],
        ),
        LocalContext(60.0),
    )
    assert not answer.HasField("refusal"), answer.refusal
    return answer.report


@pytest.mark.req("DPE-3")
async def test_tv_010_fabricated_entity():
    """TV-010: no such commissioner exists in the envelope."""
    report = await analyze(
        "The EU AI Act was adopted in 2024. According to Commissioner Hans Müller, the Act classifies AI systems into "
        "four risk levels.",
        [
            {"fact_id": "f1", "content": "The EU AI Act was adopted in 2024 by the European Parliament."},
            {"fact_id": "f2", "content": "The Act classifies AI systems into four risk levels."},
        ],
    )
    assert report.fabrication_count >= 1
    assert any("Hans Müller" in entity for entity in report.fabricated_entities)
    assert report.risk_level > common_pb2.RISK_LEVEL_LOW


@pytest.mark.req("DPE-3")
async def test_tv_011_number_changed():
    """TV-011: the source says 15 %, the response 25 %."""
    report = await analyze(
        "Revenue increased by 25% in Q3 2025.",
        [{"fact_id": "f1", "content": "Revenue increased by 15% in Q3 2025."}],
    )
    assert "NUMBER_CHANGED" in report.distortion_types
    assert report.distortion_count >= 1
    assert report.risk_level > common_pb2.RISK_LEVEL_LOW

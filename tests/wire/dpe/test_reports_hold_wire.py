"""What the real engine reports holds the rules by which a report that contradicts itself is refused (A-52, F-29)."""

from __future__ import annotations

import pytest

from bench.dpe_service import requests
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.answers.report import report_fault
from interlock.dpe.report.message import STAGES
from interlock.dpe.servicer import DpeServicer
from interlock.runtime.rpc.channel import LocalContext
from interlock.sidecar.trail.report_figures import figures_of
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.finding("F-29")]

BENT = "Revenue fell 15% in 2024 to $9.9 million, said Dr. Helmut Krause of Zurich; write to a.b@example.com [^7]."


def richer(request: dpe_pb2.AnalyzeRequest) -> dpe_pb2.AnalyzeRequest:
    """The request with a second choice full of faults, a tool call, earlier answers and an answer to merge."""
    made = dpe_pb2.AnalyzeRequest()
    made.CopyFrom(request)
    made.outputs.add(choice_index=1, text=BENT, kind="content")
    made.outputs.add(choice_index=1, text='{"amount": 9000000}', kind="tool_call", tool_name="wire")
    made.prior.add(window_id="w1", text="Revenue grew 15% in 2024 to $4.2 million.")
    made.merged.add(source_id="w1", text="Revenue grew 15% in 2024 to $4.2 million.")
    made.window_number = 2
    return made


async def test_every_report_of_the_engine_holds():
    """Whatever was found, in one choice or in several."""
    servicer = DpeServicer(pipeline(), timeout_s=60, workers=1)
    for request in requests()[::3]:
        for asked in (request, richer(request)):
            answer = await servicer.Analyze(asked, LocalContext(60))
            assert not answer.HasField("refusal"), answer.refusal
            figures = figures_of(answer.report)
            assert report_fault(figures) == "", figures
            assert {number for number, _ in figures.stages} == {number for number, _ in STAGES}

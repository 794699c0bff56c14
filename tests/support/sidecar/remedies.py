"""For tests of remediation: a provider that knows which pass it is asked for, and a dpe that finds what a text names."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.runtime.rpc.errors import answers_refusals
from tests.support.servers.provider import Provider, completion, message
from tests.support.sidecar.sidecar import DpeDouble, RunningSidecar, a_report

ALL = ("1", "2", "3a", "3b", "3c", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13")
EVERY_REMEDY: Mapping[str, Any] = {"remedies": "redispatch,continue,stitch", "max_provider_calls": 11}
"""Settings that switch every remedy on, with as many provider calls as all of them can take."""
NO_ISSUES = '{"issues": []}'
Reply = str | int | Mapping[str, Any] | Callable[[], Any]


def step_of(body: Mapping[str, Any]) -> str:
    """The pass that a request is for, by its printed text."""
    last = body["messages"][-1]["content"]
    starts = {
        "Review the following response": "verify", "Revise the following response": "refine",
        "Write a 1-2 sentence bridge": "stitch", "Continue.": "continue",
    }  # fmt: skip
    return next((step for start, step in starts.items() if str(last).startswith(start)), "generate")


def cut_off(text: str) -> dict[str, Any]:
    """A completion that the provider's own limit has ended."""
    cut = completion(message(text))
    cut["choices"][0]["finish_reason"] = "length"
    return cut


class Script(Provider):
    """Answers each pass with what was written for it, the next of a list each time; the last one stays.

    A number is a status that it fails with, an object a whole completion, a callable makes one of them.
    """

    def plays(self, **steps: list[Reply]) -> None:
        defaults: dict[str, list[Reply]] = {
            "generate": ["The answer is fine."], "verify": [NO_ISSUES], "refine": ["The refined answer is fine."],
            "stitch": ["A bridge leads on."], "continue": ["The rest is fine."],
        }  # fmt: skip
        waiting = {step: list(replies) for step, replies in {**defaults, **steps}.items()}

        def reply(_request: Request) -> Response:
            replies = waiting[step_of(self.received[-1].body)]
            said = replies.pop(0) if len(replies) > 1 else replies[0]
            said = said() if callable(said) else said
            if isinstance(said, int):
                return JSONResponse({"error": {"message": "no"}}, said)
            return JSONResponse(said if isinstance(said, Mapping) else completion(message(said)))

        self._reply = reply

    @property
    def steps(self) -> list[str]:
        """The passes asked for so far, in order."""
        return [step_of(one.body) for one in self.received]

    def body(self, step: str, number: int = 0) -> dict[str, Any]:
        """The body of the pass's request of that number."""
        return [one.body for one in self.received if step_of(one.body) == step][number]

    def system(self, step: str, number: int = 0) -> str:
        """What the system messages of a request say."""
        return "\n".join(m["content"] for m in self.body(step, number)["messages"] if m["role"] == "system")


def full_report(risk: str = "LOW", **more: Any) -> dpe_pb2.Report:
    """A report of thirteen stages with nothing found in them."""
    values: dict[str, Any] = {
        "stages": [dpe_pb2.Stage(number=number, status=dpe_pb2.STAGE_STATUS_RAN) for number in ALL],
        "repetition_level": "NONE", "repetition_overlap": 0.0, "semantic_repetition": 0.0, "completeness_score": 1.0,
        "completeness_level": "COMPLETE", "sub_queries": [sub_query("the first topic")], "quality_score": 0.95,
        "envelope_tier": "A", "eu_ai_act_class": "LIMITED", "nist_tier": "TIER-2", "controls_met": 4,
        "controls_total": 5, "iso_42001_controls": ["A.6.2", "A.9.4"], "coherence_score": 1.0,
    }  # fmt: skip
    return a_report(risk, **{**values, **more})


def sub_query(text: str, *, covered: bool = True) -> dpe_pb2.SubQuery:
    return dpe_pb2.SubQuery(text=text, token=text.replace(" ", "-"), relevance=0.9 if covered else 0.1, covered=covered)


FOUND: dict[str, dict[str, Any]] = {
    "REPEATS": {
        "repetition_level": "SEVERE", "repetition_overlap": 0.8, "semantic_repetition": 0.9,
        "repeated_sentences": [dpe_pb2.RepeatedSentence(text="It REPEATS this.", window_id="w", similarity=0.99)],
    },
    "CONTRADICTS": {
        "contradiction_count": 1, "contradiction_scope": "cross-window",
        "contradictions": [dpe_pb2.Contradiction(claim_id="c1", scope="cross-window", severity="CRITICAL",
                                                 other_text="Revenue was $4.2M.", window_id="w")],
    },
    "JUMPS": {"flow_score": 0.2},
    "FLOWS": {"flow_score": 0.8},
    "PARTIAL": {
        "completeness_score": 0.5, "completeness_level": "PARTIAL",
        "sub_queries": [sub_query("the first topic"), sub_query("the second topic", covered=False)],
    },
}  # fmt: skip
"""What is found in an answer that says the word."""


@dataclass
class Judge(DpeDouble):
    """Finds what an answer names; a bridge mends a jump and a continuation a gap, as they are to do."""

    texts: list[str] = field(default_factory=list)

    @answers_refusals(dpe_pb2.AnalyzeResponse)
    async def Analyze(self, request, _context):
        self.asked.append(request)
        if self.failure is not None and len(self.asked) > 1:
            raise self.failure
        said = " ".join(output.text for output in request.outputs)
        self.texts.append(said)
        found: dict[str, Any] = {}
        for word, values in FOUND.items():
            if (
                word in said
                and not (word == "JUMPS" and "bridge" in said)
                and not (word == "PARTIAL" and "rest" in said)
            ):
                found |= values
        risk = next((risk for risk in ("CRITICAL", "HIGH", "MEDIUM") if f"{risk} risk" in said), "LOW")
        report = full_report(risk, flow_remediation=request.flow_remediation or None, **found)
        for index in sorted({output.choice_index for output in request.outputs}):
            report.choices.add(choice_index=index, composite_score=report.composite_score, risk_level=report.risk_level)
        return dpe_pb2.AnalyzeResponse(report=report)


async def told(sidecar: RunningSidecar, session_id: str) -> list[tuple[str, dict[str, Any]]]:
    """Type and fields of every event of a session, after its chain was verified."""
    verified = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))
    assert not verified.HasField("refusal"), verified
    assert not verified.faults, verified
    return [
        (event.event_type, json.loads(event.data_json) | ({"window_id": event.window_id} if _seals(event) else {}))
        for event in await sidecar.events(session_id)
    ]


def _seals(event: Any) -> bool:
    return event.event_type == "WINDOW_SEALED"


def fields_of(events: list[tuple[str, dict[str, Any]]], kind: str) -> list[dict[str, Any]]:
    return [fields for name, fields in events if name == kind]

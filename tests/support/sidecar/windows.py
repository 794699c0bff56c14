"""For tests of windows that fan out and in: a provider that answers what it is asked, a dpe that checks summaries."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.runtime.rpc.errors import answers_refusals
from tests.support.servers.provider import Provider, completion, message
from tests.support.sidecar.remedies import NO_ISSUES
from tests.support.sidecar.sidecar import DpeDouble, RunningSidecar, token_of

PLAN = "1. What of law?\n2. What of money?"


def step_of(body: Mapping[str, Any]) -> str:
    """The pass that a request is for, by its printed text."""
    first, last = str(body["messages"][0]["content"]), str(body["messages"][-1]["content"])
    starts = {
        "Review the following": "verify",
        "Revise the following": "refine",
        "Summarise the following": "summarise",
    }
    if first.startswith("Decompose the user's request") and not last.startswith(tuple(starts)):
        return "plan"
    return next((step for start, step in starts.items() if last.startswith(start)), "generate")


@dataclass
class Answering(Provider):
    """Answers a question by its last message: with what was written for it, else with the question turned into an answer.

    A number is a status that it fails with. Requests come in any order, side by side.
    """

    by_question: dict[str, Any] = field(default_factory=dict)
    by_step: dict[str, Any] = field(default_factory=dict)
    together: int = 0
    """Requests that were under way at the same time, at most."""
    expected: int = 1
    """How many of them the provider waits for, a second at most, before it answers."""
    _now: int = 0

    def reset(self) -> None:
        super().reset()
        self.by_question, self.together, self.expected = {}, 0, 1
        self.by_step = {"plan": PLAN, "verify": NO_ISSUES, "summarise": "A summary."}
        self._reply = self._answer

    async def _answer(self, _request: Request) -> Response:
        body = self.received[-1].body
        self._now += 1
        self.together = max(self.together, self._now)
        for _ in range(50):  # long enough for the other requests to arrive
            await asyncio.sleep(0.02)
            if self.together >= self.expected:
                break
        self._now -= 1
        question, step = str(body["messages"][-1]["content"]), step_of(body)
        said = self.by_step.get(step, f"This answers it. {question}")
        said = self.by_question.get(question, said) if step == "generate" else said
        said = said(body) if callable(said) else said
        if isinstance(said, int):
            return JSONResponse({"error": {"message": "no"}}, said)
        return JSONResponse(said if isinstance(said, Mapping) else completion(message(said)))

    def bodies(self, step: str) -> list[dict[str, Any]]:
        return [one.body for one in self.received if step_of(one.body) == step]

    def request(self, question: str) -> dict[str, Any]:
        """The request that ended in that question."""
        return next(one.body for one in self.received if one.body["messages"][-1]["content"] == question)

    def context(self, question: str) -> str:
        """What the system messages of that request say."""
        return "\n".join(m["content"] for m in self.request(question)["messages"] if m["role"] == "system")


@dataclass
class Merger(DpeDouble):
    """The dpe double, with summaries: every one is as faithful as the test says."""

    fidelity: float | Exception = 0.9
    summaries: list[tuple[str, str]] = field(default_factory=list)

    @answers_refusals(dpe_pb2.CheckSummaryResponse)
    async def CheckSummary(self, request, _context):
        self.summaries.append((request.source, request.summary))
        if isinstance(self.fidelity, Exception):
            raise self.fidelity
        return dpe_pb2.CheckSummaryResponse(fidelity_score=self.fidelity, claims=1)

    def of(self, response: Any) -> dpe_pb2.AnalyzeRequest:
        """The last analysis of the window that a response is of."""
        window_id = response.headers["crp-provenance-report-uri"].rpartition("/")[2]
        return [one for one in self.asked if one.window_id == window_id][-1]


def onward(response: Any, strategy: str | None = None, **more: str) -> dict[str, str]:
    """Headers that continue from a response."""
    named = {f"crp-{name.replace('_', '-')}": value for name, value in more.items()}
    continued = {"crp-context-continuation-id": response.headers["crp-context-continuation-id"]}
    return {**continued, **({"crp-context-strategy": strategy} if strategy else {}), **named}


def window_of(response: Any) -> str:
    """The window that a response is of."""
    return response.headers["crp-provenance-report-uri"].rpartition("/")[2]


async def fan_out(sidecar: RunningSidecar, root: Any, *questions: str, **more: Any) -> list[Any]:
    """Ask all questions at once, each in a child window of the root's."""
    return await asyncio.gather(
        *(sidecar.chat(one, token=token_of(root), headers=onward(root, "fan-out"), **more) for one in questions)
    )


async def fan_in(sidecar: RunningSidecar, children: list[Any], question: str = "All in all?", **more: Any) -> Any:
    """Merge the windows of some responses."""
    pointers = ", ".join(one.headers["crp-context-continuation-id"] for one in children)
    sent = {"crp-context-continuation-id": pointers, "crp-context-strategy": "fan-in", **more.pop("headers", {})}
    return await sidecar.chat(question, token=token_of(children[-1]), headers=sent, **more)


async def dag(sidecar: RunningSidecar, response: Any) -> dict[str, session_pb2.Window]:
    """The windows of a response's session by id."""
    request = session_pb2.GetSessionRequest(session_id=response.headers["crp-context-session-id"])
    found = await sidecar.mesh.session.GetSession(request)
    assert not found.HasField("refusal"), found
    return {one.window_id: one for one in found.session.windows}


async def budget(sidecar: RunningSidecar, response: Any) -> int:
    request = session_pb2.GetSessionRequest(session_id=response.headers["crp-context-session-id"])
    return (await sidecar.mesh.session.GetSession(request)).session.safety_budget_micros


async def report(sidecar: RunningSidecar, response: Any) -> dict[str, Any]:
    """The sealed report of a response's window."""
    found = await sidecar.mesh.audit.GetReport(audit_pb2.GetReportRequest(window_id=window_of(response)))
    return json.loads(found.report_json)


Reply = Callable[[Mapping[str, Any]], Any]


async def delegated(sidecar: RunningSidecar, parent: Any, question: str, **more: Any) -> Any:
    """Delegate from a response's session, and ask the sub-agent a question in its own."""
    granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(parent)})
    assert granted.status_code == 200, granted.text
    return await sidecar.chat(question, headers=granted.json()["headers"], **more)


def result_of(response: Any, **more: str) -> dict[str, str]:
    """How an orchestrator names a sub-agent's answer."""
    named = {"session_id": response.headers["crp-context-session-id"], "hmac": response.headers["crp-provenance-hmac"]}
    return {**named, **more}

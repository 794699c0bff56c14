"""Results of sub-agents that an answer is made from: verified by the session service, read from the sub-agent's own sealed
content (SPEC-012 §8.1, §10.2; PRV-3, AGT-4).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from google.protobuf import json_format

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind, Refused, conflict, forbidden
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.peers import Peers
from interlock.sidecar.call.results import NamedResult


@dataclass(frozen=True)
class AnswerSource:
    """An earlier answer that a window can be made from: of a window that it continues, or of a sub-agent."""

    source_id: str
    """Window id of a parent; of a sub-agent the session id, or the window id where two of its results are named."""
    text: str
    deferred: tuple[common_pb2.Fact, ...] = ()
    """What did not fit into that window; of a sub-agent nothing, for its context is its own."""
    label: str = ""
    sub_query: str = ""
    judged: dpe_pb2.ConsumedAnswer | None = None
    """How it was judged itself; ``None`` where nothing of it is used."""


@dataclass(frozen=True)
class Results:
    """Verified results: their texts, and what the report and the audit trail say of them."""

    sources: tuple[AnswerSource, ...]
    linked: tuple[dpe_pb2.LinkedResult, ...]


NO_RESULTS = Results((), ())


async def fetched(
    peers: Peers, opened: session_pb2.OpenedWindow, named: Sequence[NamedResult], deadline: Deadline
) -> Results:
    """Return the results that a window names, or refuse the call.

    Refused with RESULT_NOT_LINKED for one that is of no child of this session, RESULT_NOT_AVAILABLE for one whose text is
    not there: it was halted or held, or its content was dropped.
    """
    if not named:
        return NO_RESULTS
    request = session_pb2.VerifyResultsRequest(
        session_id=opened.session_id,
        root_session_id=opened.root_session_id,
        results=[session_pb2.SubAgentResult(session_id=one.session_id, hmac=one.hmac) for one in named],
    )
    verified = await peers.session.verify_results(request, deadline)
    _check_answer(named, verified)
    repeated = len({one.session_id for one in verified}) != len(verified)
    sources = []
    for one, asked in zip(verified, named, strict=True):
        text = await _text(peers, one, deadline)
        source_id = one.window_id if repeated else one.session_id
        judged = await judged_as(peers, one.session_id, one.window_id)
        sources.append(AnswerSource(source_id, text, label=one.agent_type, sub_query=asked.sub_query, judged=judged))
    return Results(tuple(sources), tuple(_linked(one) for one in verified))


def _check_answer(named: Sequence[NamedResult], verified: Sequence[session_pb2.SubAgentResult]) -> None:
    """Refuse an answer that speaks of other results than those that were asked about: nothing is taken on trust."""
    asked = [(one.session_id, one.hmac) for one in named]
    if [(one.session_id, one.hmac) for one in verified] != asked or not all(one.window_id for one in verified):
        raise forbidden("RESULT_NOT_LINKED", "the session service did not vouch for every result that was named")


async def _text(peers: Peers, one: session_pb2.SubAgentResult, deadline: Deadline) -> str:
    for content in await peers.audit.get_contents(one.session_id, [one.window_id], deadline):
        if content.window_id == one.window_id and content.text.strip():
            return content.text
    raise gone(session_id=one.session_id, window_id=one.window_id)


async def judged_as(peers: Peers, session_id: str, window_id: str) -> dpe_pb2.ConsumedAnswer:
    """Return how an earlier answer was judged, by its sealed report (requirements.md, reading 16).

    Refused with RESULT_NOT_AVAILABLE where there is no such report: what nobody judged is no source.
    """
    try:
        found = await peers.audit.get_report(window_id=window_id)
    except Refused as refused:
        if refused.kind is not Kind.NOT_FOUND:
            raise
        raise gone(session_id=session_id, window_id=window_id) from None
    if found.session_id != session_id:
        raise gone(session_id=session_id, window_id=window_id)
    report = json_format.Parse(found.report_json, dpe_pb2.Report(), ignore_unknown_fields=True)
    return dpe_pb2.ConsumedAnswer(
        window_id=window_id,
        composite_score=report.composite_score,
        grounding_pct=report.grounding_pct if report.HasField("grounding_pct") else None,
        attribution=report.attribution_dominant,
    )


def gone(**where: str) -> Refused:
    """Return the refusal for an answer that can no longer be used as a source."""
    return conflict(
        "RESULT_NOT_AVAILABLE",
        "that answer was not released, or its text was dropped; nothing can be made from it",
        **where,
    )


def _linked(one: session_pb2.SubAgentResult) -> dpe_pb2.LinkedResult:
    return dpe_pb2.LinkedResult(
        session_id=one.session_id,
        window_id=one.window_id,
        hmac=one.hmac,
        chain_tip=one.chain_tip,
        agent_type=one.agent_type,
    )

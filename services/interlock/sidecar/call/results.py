"""Results of sub-agents that an answer is made from: named by the caller, verified by the session service, read from the
sub-agent's own sealed content (SPEC-012 §8.1, §10.2; PRV-3, AGT-4). A caller's own words for them are never taken.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain import ids
from interlock.domain.errors import Refused, conflict, forbidden, invalid
from interlock.runtime.rpc.client import call_service
from interlock.runtime.rpc.mesh import Mesh
from interlock.sidecar.call.deadline import Deadline, retry_idempotent

MOST_RESULTS = 100
"""Results of one call (session.proto)."""

LONGEST_SUB_QUERY = 2048
"""Characters."""

_HMAC = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII)
_FIELDS = {"session_id", "hmac", "sub_query"}


@dataclass(frozen=True)
class NamedResult:
    """A result as the caller names it, by two headers of the sub-agent's response."""

    session_id: str
    hmac: str
    sub_query: str


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


@dataclass(frozen=True)
class Results:
    """Verified results: their texts, and what the report and the audit trail say of them."""

    sources: tuple[AnswerSource, ...]
    linked: tuple[dpe_pb2.LinkedResult, ...]


NO_RESULTS = Results((), ())


def read(place: str, given: Any) -> tuple[NamedResult, ...]:
    """Return the results that the list *given* names. Refused with INVALID_PARAMETER, naming the place."""
    if not isinstance(given, list) or not all(isinstance(item, dict) for item in given):
        raise _bad(place, "must be a list of objects")
    return checked(place, [_named(f"{place}[{number}]", item) for number, item in enumerate(given)])


def of_messages(given: Iterable[sidecar_pb2.SubAgentResult]) -> tuple[NamedResult, ...]:
    """Return the results that a gRPC message names."""
    return checked("sub_agent_results", [NamedResult(one.session_id, one.hmac, one.sub_query) for one in given])


def checked(place: str, named: Sequence[NamedResult]) -> tuple[NamedResult, ...]:
    """Return *named* when every one is well formed and none is there twice."""
    if len(named) > MOST_RESULTS:
        raise _bad(place, f"must name at most {MOST_RESULTS} results")
    for number, one in enumerate(named):
        ids.check("crp_sess_", one.session_id)
        if not _HMAC.fullmatch(one.hmac):
            raise _bad(f"{place}[{number}].hmac", "must be CRP-Provenance-HMAC of the sub-agent's answer")
        if len(one.sub_query) > LONGEST_SUB_QUERY:
            raise _bad(f"{place}[{number}].sub_query", f"must be at most {LONGEST_SUB_QUERY} characters")
    if len({(one.session_id, one.hmac) for one in named}) != len(named):
        raise invalid("DUPLICATE_RESULT", "a result is named twice", param=place)
    return tuple(named)


def sub_queries(place: str, given: Any) -> tuple[str, ...]:
    """Return the sub-queries of a list. Refused with INVALID_PARAMETER."""
    if not isinstance(given, list | tuple) or len(given) > MOST_RESULTS:
        raise _bad(place, f"must be a list of at most {MOST_RESULTS} strings")
    for number, one in enumerate(given):
        if not isinstance(one, str) or not one.strip() or len(one) > LONGEST_SUB_QUERY:
            raise _bad(f"{place}[{number}]", f"must be a string of 1 to {LONGEST_SUB_QUERY} characters")
    return tuple(given)


def _named(place: str, item: dict[str, Any]) -> NamedResult:
    values = {name: item.get(name, "") for name in _FIELDS}
    if item.keys() - _FIELDS or not all(isinstance(value, str) for value in values.values()):
        raise _bad(place, "must be an object of the strings session_id, hmac and sub_query")
    return NamedResult(**values)


def _bad(param: str, expected: str) -> Refused:
    return invalid("INVALID_PARAMETER", f"{param} {expected}", param=param)


async def fetched(
    mesh: Mesh, opened: session_pb2.OpenedWindow, named: Sequence[NamedResult], deadline: Deadline, timeout_s: float
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
    timeout = deadline.within(timeout_s)
    verified = (await call_service("session", mesh.session.VerifyResults(request, timeout=timeout))).results
    _check_answer(named, verified)
    repeated = len({one.session_id for one in verified}) != len(verified)
    sources = []
    for one, asked in zip(verified, named, strict=True):
        text = await _text(mesh, one, deadline, timeout_s)
        source_id = one.window_id if repeated else one.session_id
        sources.append(AnswerSource(source_id, text, label=one.agent_type, sub_query=asked.sub_query))
    return Results(tuple(sources), tuple(_linked(one) for one in verified))


def _check_answer(named: Sequence[NamedResult], verified: Sequence[session_pb2.SubAgentResult]) -> None:
    """Refuse an answer that speaks of other results than those that were asked about: nothing is taken on trust."""
    asked = [(one.session_id, one.hmac) for one in named]
    if [(one.session_id, one.hmac) for one in verified] != asked or not all(one.window_id for one in verified):
        raise forbidden("RESULT_NOT_LINKED", "the session service did not vouch for every result that was named")


async def _text(mesh: Mesh, one: session_pb2.SubAgentResult, deadline: Deadline, timeout_s: float) -> str:
    request = audit_pb2.GetContentsRequest(session_id=one.session_id, window_ids=[one.window_id])
    found = await retry_idempotent(
        lambda: call_service("audit", mesh.audit.GetContents(request, timeout=deadline.within(timeout_s)))
    )
    for content in found.contents:
        if content.window_id == one.window_id and content.text.strip():
            return content.text
    raise gone(session_id=one.session_id, window_id=one.window_id)


def gone(**where: str) -> Refused:
    """Return the refusal of an answer that nothing can be made from any more."""
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

"""Events of what went into an answer and what it asks for: facts, passes, tools. Ids, hashes and numbers, no text (I11)."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.trail.events import DEBUG, INFO, LONGEST_LIST, WARN, event

MOST_TOOL_CALLS = 64
"""Tool calls of one window that have an event; the sealed answer's hash covers all of them."""

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:/-]{0,63}", re.ASCII)


def facts_retrieved(facts: Sequence[common_pb2.Fact], report: dpe_pb2.Report) -> Iterator[audit_pb2.NewEvent]:
    """Yield the facts of a window's envelope, one event for all; the relevance is the best similarity of a claim with it."""
    relevance: dict[str, float] = {}
    for claim in report.claims:
        if claim.fact_id and math.isfinite(claim.similarity):
            relevance[claim.fact_id] = max(relevance.get(claim.fact_id, 0.0), claim.similarity)
    listed = [
        {"fact_id": _name(fact.id)}
        | ({"relevance_score": round(relevance[fact.id], 4)} if fact.id in relevance else {})
        for fact in facts[:LONGEST_LIST]
    ]
    if facts:
        yield event("FACT_RETRIEVED", DEBUG, facts=listed, fact_count=len(facts))


def _name(given: str) -> str:
    """Return a caller's name for a fact where it is one word; a name that could be a text is replaced by its hash."""
    return given if _ID.fullmatch(given) else hash_of(given)


def unjudged_media(report: dpe_pb2.Report) -> Iterator[audit_pb2.NewEvent]:
    """Yield what was passed on of a window without anybody judging it, one event for each direction and kind."""
    for one in report.unjudged_media:
        yield event(
            "UNJUDGED_MEDIA",
            WARN,
            direction=one.direction,
            kind=one.kind,
            count=one.count,
            content_hash=one.content_hash,
        )


def loop_iteration(phase: str, iteration: int, budget: Micros) -> audit_pb2.NewEvent:
    """A loop enters a phase, a reflexive answer its next pass; its possible cost comes from this budget (SPEC-008 §5, §6)."""
    return event("AGENT_LOOP_ITERATION", INFO, phase=phase, iteration=iteration, budget_remaining=as_decimal(budget))


def tool_calls(answer: Completion, body: Mapping[str, Any]) -> list[audit_pb2.NewEvent]:
    """Return an event for each tool result that a request brings, and for each tool that its answer calls."""
    declared = {one["name"] for one in _functions(body)}
    found = [*_results(body.get("messages") or (), declared), *_called(answer, declared)]
    return found[:MOST_TOOL_CALLS]


def _functions(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the functions that a request declares; ``functions`` is how older clients do."""
    yield from (tool["function"] for tool in body.get("tools") or ())
    yield from body.get("functions") or ()


def _results(
    messages: Sequence[Mapping[str, Any]], declared: frozenset[str] | set[str]
) -> Iterator[audit_pb2.NewEvent]:
    """Yield what came back since the model last spoke; earlier results belong to an earlier window."""
    spoke = max((at for at, message in enumerate(messages) if message["role"] == "assistant"), default=-1)
    if spoke < 0:
        return
    asked = {call["id"]: call["function"] for call in messages[spoke].get("tool_calls") or ()}
    for message in messages[spoke + 1 :]:
        if message["role"] == "tool" and (function := asked.get(message["tool_call_id"])):
            yield event(
                "TOOL_CALL", INFO, **_tool(function["name"], declared), input_hash=hash_of(function["arguments"]),
                output_hash=hash_of(_text(message.get("content"))), call_hash=hash_of(message["tool_call_id"]),
            )  # fmt: skip


def _called(answer: Completion, declared: frozenset[str] | set[str]) -> Iterator[audit_pb2.NewEvent]:
    for choice in answer.choices if answer.completion else ():
        for call in choice["message"].get("tool_calls") or ():
            function = call["function"]
            yield event(
                "TOOL_CALL", INFO, **_tool(function["name"], declared), input_hash=hash_of(function["arguments"]),
                call_hash=hash_of(call["id"]),
            )  # fmt: skip
        if function := choice["message"].get("function_call"):
            yield event(
                "TOOL_CALL", INFO, **_tool(function["name"], declared), input_hash=hash_of(function["arguments"])
            )


def refused_actions(report: dpe_pb2.Report) -> list[audit_pb2.NewEvent]:
    """Return an event for each tool call that the caller's kernel would reject (KRN-11). Its name is that of a registered action."""
    return [
        event(
            "ACTION_REFUSED",
            WARN,
            tool_name=one.action,
            checks=list(one.checks),
            charge_micros=report.actions.charge_micros,
        )
        for one in report.actions.refused
    ]


def _tool(name: str, declared: Iterable[str]) -> dict[str, str]:
    """Return the name of a tool that the caller declared; one that the model made up is a text of the model."""
    return {"tool_name": name} if name in declared else {"tool_name": "undeclared", "tool_name_hash": hash_of(name)}


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "".join(str(part.get("text", "")) for part in content or () if isinstance(part, Mapping))


def hash_of(text: str) -> str:
    """Return ``sha256:<hex>`` of a text."""
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

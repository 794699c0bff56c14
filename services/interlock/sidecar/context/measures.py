"""What is measured of a window's context, as headers (SPEC-002 §4, §8.4, §9.1, §11.2; SPEC-003 §9, §15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.api.dpe.v1 import dpe_pb2
from interlock.domain.dag import saturation as filling
from interlock.domain.dag.transfer import tokens
from interlock.domain.headers import headers
from interlock.domain.headers.headers import ANY
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.call import Call
from interlock.sidecar.context.packing import Packed
from interlock.sidecar.openai import media
from interlock.sidecar.openai.completion import Completion

ACTIVE, HOT = "0", "1"
"""Memory tiers: what the request itself carries, and what earlier windows of the session gave (SPEC-002 §9.1)."""


def measured(report: dpe_pb2.Report, call: Call, answer: Completion, settings: Settings) -> dpe_pb2.Report:
    """Return *report* with the token budget of the envelope, its saturation, and the media that nobody judged; all are sealed with it."""
    told = dpe_pb2.Report()
    told.CopyFrom(report)
    told.token_budget = token_budget(call, report, answer, settings)
    told.saturation = filling.saturation(report.envelope_tokens, told.token_budget)
    given = media.answered(answer.choices) if answer.completion else media.NO_MEDIA
    for direction, each in (("request", call.media), ("answer", given)):
        told.unjudged_media.extend(
            dpe_pb2.UnjudgedMedia(direction=direction, kind=kind, count=each.count(kind), content_hash=each.digest)
            for kind in media.KINDS
            if each.count(kind)
        )
    return told


def of_context(report: dpe_pb2.Report, packed: Packed, answer: Completion, call: Call) -> dict[str, str | None]:
    """Return the headers of the context that an answer was made from."""
    if_match, told = call.asked.if_match, call.reply.headers.get("CRP-Context-Cache-Status", "")
    received = bool(packed.linked) or any(edge.transfer_type for edge in packed.edges)
    return {
        "CRP-Context-Cache-Status": cache_status(if_match, report.envelope_etag, told, received=received),
        "CRP-Context-Facts-Used": f"{report.facts_total}/{report.facts_total + packed.left_out}",
        "CRP-Context-Saturation": headers.fraction(report.saturation),
        "CRP-Memory-Tier-Hit": HOT if received else ACTIVE,
        "CRP-LLM-Grounding-Mode": report.grounding_mode or None,
        "CRP-Agent-Tool-Calls": tool_calls(call, packed.body, answer),
    }


def cache_status(if_match: str | None, etag: str, told: str, *, received: bool) -> str:
    """Return whether the context of an answer was made anew (SPEC-002 §4.11): what earlier windows gave is a part of it.

    Of a conditional call it says why the answer that was named does not stand.
    """
    if if_match not in {None, ANY, etag}:
        return told if told == "MISS; reason=no-cache" else "MISS; reason=facts-updated"
    if if_match is not None:
        return told or "MISS; reason=several-windows"
    return "PARTIAL; reason=earlier-windows" if received else "MISS"


def token_budget(call: Call, report: dpe_pb2.Report, answer: Completion, settings: Settings) -> int:
    """Return the tokens that the envelope may take: of the call's own ``token_budget``, else of the model's window.

    The request is counted by the provider where it says so, else as three bytes a token.
    """
    evidence = call.envelope
    inside = sum(tokens(fact.content) for fact in evidence.facts if fact.content in evidence.prompt)
    own = max(0, tokens(evidence.prompt or evidence.query) - inside)
    if evidence.wanted.token_budget is not None:
        return filling.token_budget(evidence.wanted.token_budget, request=own, response=0, margin=0)
    counted = answer.usage.get("prompt_tokens") if answer.completion else None
    request = max(0, counted - report.envelope_tokens) if type(counted) is int and counted > 0 else own
    limit = call.body.get("max_completion_tokens") or call.body.get("max_tokens") or filling.EXPECTED_RESPONSE
    return filling.token_budget(settings.model_context_tokens, request=request, response=int(limit))


def tool_calls(call: Call, body: Mapping[str, Any], answer: Completion) -> str | None:
    """Return how many tools the answer calls; ``None`` where none was offered or called, but in an agentic loop 0."""
    called = (
        sum(len(choice["message"].get("tool_calls") or ()) for choice in answer.choices) if answer.completion else 0
    )
    return str(called) if called or body.get("tools") or call.phases else None

"""Facts that a caller gives apart from its messages, told to the model where the grounding mode asks for context (F-06).

In the modes context-strict and context-preferred (SPEC-002 §11.2) an answer is to rest on the provided context, so the model
must have it. In open they stay evidence for the analysis alone. A fact is told once: not where the caller's own messages have
it, nor where the mesh packs the context by a token budget and tells them itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from interlock.domain.dag.transfer import tokens
from interlock.domain.errors import not_found
from interlock.domain.headers.headers import FAN_IN, PULL, RequestHeaders
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.envelope import CallEvidence, checked_text
from interlock.sidecar.provider import prompts
from interlock.sidecar.trail.response_headers import ResponseHeaders

AUTO, STRICT, PREFERRED, OPEN = "auto", "context-strict", "context-preferred", "open"


def require_context(asked: RequestHeaders, evidence: CallEvidence, reply: ResponseHeaders) -> None:
    """Refuse with NO_CONTEXT, before anything is begun, a call that wants to be dispatched with sources only and has none (only-if-ckf).

    A call that takes over context of earlier windows may have some: what they gave is read once its window is open.
    """
    takes_over = asked.strategy == FAN_IN or evidence.wanted.results or evidence.wanted.transfer not in {None, "none"}
    if not asked.only_if_known or evidence.facts or takes_over:
        return
    reply.set({"CRP-Context-Cache-Status": "MISS; reason=no-context"})
    message = "the call gives no source, and only-if-ckf allows no answer without one"
    raise not_found("NO_CONTEXT", message, header="crp-context-cache")


def forced(asked: RequestHeaders) -> RequestHeaders:
    """Return what a call asks for with the mode that its strategy forces: pull rests on the context alone (SPEC-008 §4.2)."""
    return replace(asked, grounding_mode=STRICT) if asked.strategy == PULL else asked


def extracting(asked: RequestHeaders, body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the request with the prompt of the strategy pull, which is to reproduce its sources (SPEC-008 §4.3)."""
    if asked.strategy != PULL:
        return body
    return {**body, "messages": [_system(prompts.EXTRACTION), *body["messages"]]}


def mode_of(asked: str | None, evidence: CallEvidence, settings: Settings) -> str:
    """Return the grounding mode of a call: its own, else the deployment's; auto prefers facts that are given apart."""
    mode = asked or settings.grounding_mode
    if mode != AUTO:
        return mode
    return PREFERRED if evidence.untold else OPEN


def told(
    body: Mapping[str, Any], evidence: CallEvidence, mode: str, settings: Settings
) -> tuple[Mapping[str, Any], CallEvidence]:
    """Return the request and its evidence with the given facts in the prompt, where *mode* wants context."""
    texts = fitting(evidence, settings)
    if mode == OPEN or evidence.wanted.token_budget is not None or not texts:
        return body, evidence
    message = prompts.provided(texts)
    prompt = checked_text("context", f"{message}\n{evidence.prompt}", settings)
    return {**body, "messages": [_system(message), *body["messages"]]}, replace(evidence, prompt=prompt)


def fitting(evidence: CallEvidence, settings: Settings) -> list[str]:
    """Return the facts that the prompt lacks, the most important first, as many as ``context_tokens`` holds.

    The others stay evidence: nothing that a caller gave is dropped.
    """
    left, chosen = settings.context_tokens, []
    for fact in sorted(evidence.untold, key=lambda fact: -fact.importance):
        size = tokens(fact.content)
        if size <= left:
            chosen.append(fact.content)
            left -= size
    return chosen


def _system(text: str) -> dict[str, str]:
    return {"role": "system", "content": text}

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
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.envelope import CallEvidence, checked_text
from interlock.sidecar.provider import prompts

AUTO, PREFERRED, OPEN = "auto", "context-preferred", "open"


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

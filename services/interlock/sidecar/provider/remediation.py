"""What a remedy asks of the provider, and how its answer joins the one before (SPEC-005 §10.3, §11.5, §19.2)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.domain.policy.continuation import LENGTH, adds, is_cut_off, joined
from interlock.sidecar.call.envelope import CallEvidence
from interlock.sidecar.openai import completion
from interlock.sidecar.openai.chat import GROUNDING
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.provider import prompts
from interlock.sidecar.provider.strategies import review_request

TEMPERATURE = 0.2
"""Of a re-dispatch and of a bridge (§19.2, §11.5)."""

LONGEST_BRIDGE = 1000
"""Characters; what is longer is no bridge of one or two sentences."""

AUGMENTED, STITCHED = "prompt-augmented", "stitched"

NAMES: Mapping[int, str] = {
    policy_pb2.REMEDY_UPGRADE: "upgrade",
    policy_pb2.REMEDY_CONTEXT_CORRECTION: "context-correction",
    policy_pb2.REMEDY_ANTI_REPETITION: "anti-repetition",
    policy_pb2.REMEDY_FLOW_AUGMENTATION: "flow-augmentation",
}

CONTINUE, STITCH = "continue", "stitch"
"""Passes of a continuation and of a bridge; the remedies are called the same."""

_LIMITS = ("max_tokens", "max_completion_tokens")
_WORD = re.compile(r"[^\W_]{3,}")


def named(decision: policy_pb2.Decision) -> list[str]:
    """Return the remedies of a decision by name."""
    if decision.action == policy_pb2.ACTION_REDISPATCH:
        return [NAMES[remedy] for remedy in decision.remedies if remedy in NAMES]
    return [CONTINUE if decision.action == policy_pb2.ACTION_CONTINUE else STITCH]


@dataclass(frozen=True)
class Grounds:
    """What the model may rest on: whether there is anything, and the facts that the prompt lacks."""

    exists: bool
    untold: tuple[str, ...] = ()


@dataclass
class Instructions:
    """The instructions of a window's re-dispatches. A later round keeps those of an earlier one."""

    by_remedy: dict[int, str] = field(default_factory=dict)

    def learn(
        self,
        remedies: Sequence[int],
        report: dpe_pb2.Report,
        prior: Sequence[dpe_pb2.PriorWindow],
        grounds: Grounds,
    ) -> None:
        """Add what *remedies* call for, after *report*."""
        for remedy in remedies:
            if told := _instruction(remedy, report, prior, grounds):
                self.by_remedy[remedy] = told

    @property
    def text(self) -> str:
        """All of them as one system message."""
        return "\n\n".join([*(self.by_remedy[remedy] for remedy in sorted(self.by_remedy)), prompts.QUOTATIONS])


def _instruction(remedy: int, report: dpe_pb2.Report, prior: Sequence[dpe_pb2.PriorWindow], grounds: Grounds) -> str:
    """Return the text of a remedy. An upgrade keeps to the context (SPEC-006 §3.4) where there is one, and gives all of it."""
    if remedy == policy_pb2.REMEDY_UPGRADE:
        told = [prompts.PROVIDED.format(facts=prompts.facts(grounds.untold))] if grounds.untold else []
        return "\n\n".join([GROUNDING["context-strict"], *told]) if grounds.exists else ""
    if remedy == policy_pb2.REMEDY_CONTEXT_CORRECTION:
        return prompts.correction(report)
    if remedy == policy_pb2.REMEDY_ANTI_REPETITION:
        return prompts.anti_repetition(prior, report.repeated_sentences)
    return prompts.flow(prior)


def redispatch(body: Mapping[str, Any], instructions: Instructions, *, seed: int) -> dict[str, Any]:
    """Return the caller's request, asked again: cooler, with another seed and the instructions (§19.2)."""
    told = [{"role": "system", "content": instructions.text}] if instructions.by_remedy else []
    return {**body, "messages": [*told, *body["messages"]], "temperature": TEMPERATURE, "seed": seed}


def seed_of(window_id: str, round_number: int, original: Any) -> int:
    """Return the seed of a round: 31 bits out of the window's id, and never the original one."""
    digest = hashlib.sha256(f"{window_id}:{round_number}".encode()).digest()
    seed = int.from_bytes(digest[:4]) >> 1
    return seed if seed != original else seed ^ 1


def joinable(answer: Completion, body: Mapping[str, Any]) -> str | None:
    """Return the text that a bridge may be joined to; ``None`` where joining would spoil it.

    That is one finished choice of plain text: not tool calls, not several choices, not JSON, not a text that the caller's
    own limit or a filter has cut.
    """
    text = _only_text(answer, body)
    return text if text is not None and answer.choices[0]["finish_reason"] == "stop" else None


def cut_off(answer: Completion, body: Mapping[str, Any]) -> bool:
    """Tell whether an answer is one text that was cut off and may go on: not by the caller's own limit or stop sequence."""
    text = _only_text(answer, body)
    if text is None:
        return False
    reason = answer.choices[0]["finish_reason"]
    own = _LIMITS if reason == LENGTH else ("stop",)
    return reason in {LENGTH, "stop"} and not any(body.get(name) for name in own) and is_cut_off(text, reason)


def _only_text(answer: Completion, body: Mapping[str, Any]) -> str | None:
    wanted = body.get("response_format") or {}
    if len(answer.choices) != 1 or wanted.get("type", "text") != "text":
        return None
    return completion.plain_text(answer.choices[0])


def continuation(body: Mapping[str, Any], text: str, report: dpe_pb2.Report, envelope: CallEvidence) -> dict[str, Any]:
    """Return the request for what is left to address, with the facts of the context that concern it first."""
    told = f"{prompts.continuation(report, _concerning(report, envelope))}\n\n{prompts.QUOTATIONS}"
    said = [{"role": "assistant", "content": text}, {"role": "user", "content": "Continue."}]
    kept = {name: value for name, value in body.items() if name != "n"}
    if "tools" in kept:
        kept["tool_choice"] = "none"
    return {**kept, "messages": [{"role": "system", "content": told}, *body["messages"], *said]}


def _concerning(report: dpe_pb2.Report, envelope: CallEvidence) -> list[str]:
    """Return the facts that share words with an uncovered sub-query, most first.

    Only those that stand in the prompt: what a caller gave for the analysis alone does not reach the provider.
    """
    wanted = _words(" ".join(one.text for one in report.sub_queries if not one.covered))
    sent = [fact for fact in envelope.facts if fact.content in envelope.prompt]

    def shared(fact: common_pb2.Fact) -> int:
        return len(_words(fact.content) & wanted)

    return [fact.content for fact in sorted(sent, key=shared, reverse=True) if shared(fact)]


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)}


def continued(before: Completion, more: Completion) -> Completion | None:
    """Return both answers as one; ``None`` when the second adds nothing. Refused when it is no text."""
    added = completion.plain_text(more.choices[0])
    if added is None:
        raise malformed("NO_TEXT")
    first = before.choices[0]
    text = first["message"]["content"]
    if not adds(text, added):
        return None
    choice = completion.rewritten(first, joined(text, added), more.choices[0]["finish_reason"])
    return completion.assembled(before.completion, [choice], before.usage)


def bridge_request(
    body: Mapping[str, Any], text: str, prior: Sequence[dpe_pb2.PriorWindow], *, seed: int
) -> dict[str, Any]:
    """Return the stitch call: the printed prompt alone, so that nothing else can end up in the bridge."""
    messages = [
        {"role": "system", "content": prompts.QUOTATIONS},
        {"role": "user", "content": prompts.stitch(prior, text)},
    ]
    kept = {
        name: value for name, value in review_request(body, messages).items() if name not in {"tools", "tool_choice"}
    }
    return {**kept, "temperature": TEMPERATURE, "seed": seed}


def bridge_of(answer: Completion) -> str:
    """Return the bridge; refused when the model gave none or a text that is not one."""
    text = (completion.plain_text(answer.choices[0]) or "").strip()
    if not text or len(text) > LONGEST_BRIDGE:
        raise malformed("NO_BRIDGE")
    return text


def stitched(before: Completion, bridge: str) -> Completion:
    """Return the answer behind its bridge."""
    first = before.choices[0]
    choice = completion.rewritten(first, f"{bridge}\n\n{first['message']['content']}", first["finish_reason"])
    return completion.assembled(before.completion, [choice], before.usage)

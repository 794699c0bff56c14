"""Transferring an earlier answer into a window's context: whole, a checked summary, or its result (SPEC-004 §8, §12).

The model makes a summary, and the dpe checks it before anything rests on it. A summary that distorts its source, could not be
checked, or never came is not used: the source's own concluding sentences are (§12.3, §17.5).
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import structlog
from prometheus_client import Counter

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from interlock.domain.dag.transfer import Transfer, conclusion, is_faithful, select, summary_size, tokens
from interlock.domain.errors import Refused, exhausted
from interlock.sidecar.call.roles import sentences
from interlock.sidecar.context.linked_results import AnswerSource
from interlock.sidecar.openai import completion
from interlock.sidecar.openai.faults import malformed
from interlock.sidecar.provider import prompts
from interlock.sidecar.provider.strategies import Pass, review_request
from interlock.sidecar.trail import events

log = structlog.get_logger()

SUMMARIES = Counter("interlock_summaries", "Summaries begun, by whether they were used.", ["used"])

SUMMARISE = "summarise"
"""The pass that makes a summary."""

TEMPERATURE = 0.1
"""Of a summary (§12.2)."""

Check = Callable[[str, str], Awaitable[float]]
"""Tells how faithful a summary, the second text, is to the first (§12.3)."""

_ASKED: Mapping[str, Transfer] = {
    "full": Transfer.FULL_CONTEXT,
    "summary": Transfer.SUMMARY,
    "facts": Transfer.FACTS_ONLY,
    "result": Transfer.RESULT_ONLY,
}


@dataclass(frozen=True)
class Transferred:
    """What a window received from one source."""

    source: AnswerSource
    kind: Transfer
    text: str = ""
    facts: tuple[common_pb2.Fact, ...] = ()
    """The source's deferred facts that came along."""
    summary_hash: str = ""

    @property
    def tokens(self) -> int:
        """Tokens of the source in the window's context."""
        return tokens(self.text) + weight(self.facts)


def weight(facts: Sequence[common_pb2.Fact]) -> int:
    """Return the tokens of *facts*."""
    return sum(tokens(fact.content) for fact in facts)


@dataclass(frozen=True)
class Transfers:
    """Makes the transfers of one window. *noted* gets what is written down about them."""

    make: Pass
    check: Check
    body: Mapping[str, Any]
    noted: list[audit_pb2.NewEvent]

    async def of(self, source: AnswerSource, mode: str, share: int, *, merging: bool) -> Transferred:
        """Return what *source* gives to a context that has *share* tokens for it.

        *mode* auto chooses by §8.2; any other word is what the caller demanded. A fan-in gets a conclusion where facts
        alone would say nothing of the answer that is merged (§8.1). Refused with TRANSFER_TOO_LARGE when a whole answer
        was demanded that the context has no room for.
        """
        size, deferred = tokens(source.text), weight(source.deferred)
        wanted = summary_size(size, share)
        kind = _ASKED.get(mode) or select(response=size, deferred=deferred, summary=wanted, available_budget=share)
        if kind is Transfer.SUMMARY:
            return await self._summarised(source, wanted, share, demanded=mode != "auto")
        if kind is Transfer.FACTS_ONLY and merging and mode == "auto":
            kind = Transfer.RESULT_ONLY
        if kind is Transfer.FULL_CONTEXT and size + deferred > share:
            raise exhausted(
                "TRANSFER_TOO_LARGE",
                f"a whole earlier answer was asked for, of {size + deferred} tokens; there is room for {share}",
                limit=str(share),
                attempted=str(size + deferred),
            )
        return transferred(source, kind, share)

    async def _summarised(self, source: AnswerSource, wanted: int, share: int, *, demanded: bool) -> Transferred:
        """Return a summary of *source* when there is a faithful one that fits, else its result."""
        text = await self._summary(source, wanted)
        room = tokens(text) + weight(source.deferred)
        if not text or (room * 100 > share * 60 and not demanded) or room > share:
            return transferred(source, Transfer.RESULT_ONLY, share)
        return Transferred(source, Transfer.SUMMARY, text, source.deferred, _hash(text))

    async def _summary(self, source: AnswerSource, wanted: int) -> str:
        """Return a summary that the dpe found faithful; empty when there is none. It is counted, but never charged."""
        text, fidelity, fault = "", None, None
        try:
            if not wanted:
                raise malformed("NO_ROOM")
            answer = await self.make(SUMMARISE, summary_request(self.body, source.text, wanted))
            text = (completion.plain_text(answer.choices[0]) or "").strip()
            if not text:
                raise malformed("NO_TEXT")
            fidelity = await self.check(source.text, text)
            fault = None if is_faithful(fidelity) else "UNFAITHFUL"
        except Refused as failed:
            fault = failed.reason
            log.info("summary.failed", reason=failed.reason)
        SUMMARIES.labels("no" if fault else "yes").inc()
        self.noted.append(
            events.summarised(
                source.source_id, requested=wanted, tokens=tokens(text), summary_hash=_hash(text) if text else None,
                fidelity=fidelity, fault=fault,
            )
        )  # fmt: skip
        return "" if fault else text


def transferred(source: AnswerSource, kind: Transfer, share: int) -> Transferred:
    """Return what a transfer of that kind gives, where nothing has to be made for it."""
    if kind is Transfer.FULL_CONTEXT:
        return Transferred(source, kind, source.text, source.deferred)
    if kind is Transfer.FACTS_ONLY:
        return Transferred(source, kind, "", source.deferred)
    return Transferred(source, Transfer.RESULT_ONLY, conclusion(sentences(source.text), share * 60 // 100))


def summary_request(body: Mapping[str, Any], text: str, size: int) -> dict[str, Any]:
    """Return the request for a summary: the printed prompt alone, so that nothing else can end up in it (§12.2)."""
    messages = [
        {"role": "system", "content": prompts.QUOTATIONS},
        {"role": "user", "content": prompts.summarisation(text, size)},
    ]
    kept = {
        name: value for name, value in review_request(body, messages).items() if name not in {"tools", "tool_choice"}
    }
    return {**kept, "temperature": TEMPERATURE}


def _hash(text: str) -> str:
    return "sha256:" + hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()

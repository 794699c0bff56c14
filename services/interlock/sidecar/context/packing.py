"""The context of a window: which facts go in, what came from earlier windows, and what is left for later ones.

Three things, in this order (SPEC-004 §4.2, §5.3, §8; SPEC-003 §5):

* what was transferred from earlier windows and from sub-agents, as facts and as a message of the prompt;
* the caller's facts. Without a token budget they are evidence, every one, and reach the provider only where the caller's
  own messages hold them. With one the mesh packs them: facts that windows of the session had are left out, the most
  important of the rest fill the budget and are put into the prompt, and what does not fit is deferred;
* deferred facts, sealed with the window, for those that continue it.

What is left out here is no evidence either: the answer is held against what the model was given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.dag import transfer as sizes
from interlock.domain.dag.transfer import Transfer, tokens
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call.envelope import FACT_LIMIT, ID_LIMIT, NEUTRAL, CallEvidence, checked_facts, checked_text
from interlock.sidecar.context.linked_results import AnswerSource
from interlock.sidecar.context.transfer import Transferred, weight
from interlock.sidecar.provider import prompts
from interlock.sidecar.trail.events import FAN_IN

APART = frozenset({"FAN_OUT", "BRANCH"})
"""Patterns whose windows have siblings: what those had is not in this one's context."""

MOST_USED = 4096
"""Facts of one window that the session remembers; one that it does not is merely packed again."""

_TITLES: Mapping[Transfer, str] = {
    Transfer.FULL_CONTEXT: "Response of an earlier step",
    Transfer.SUMMARY: "Summary of the response of an earlier step",
    Transfer.RESULT_ONLY: "Conclusion of the response of an earlier step",
}


@dataclass(frozen=True)
class Packed:
    """What a window is dispatched with and analysed against."""

    body: Mapping[str, Any]
    envelope: CallEvidence
    edges: tuple[session_pb2.Edge, ...] = ()
    deferred: tuple[common_pb2.Fact, ...] = ()
    facts_used: tuple[str, ...] = ()
    merged: tuple[dpe_pb2.MergedAnswer, ...] = ()
    linked: tuple[dpe_pb2.LinkedResult, ...] = ()
    consumed: tuple[dpe_pb2.ConsumedAnswer, ...] = ()
    """The earlier answers whose words are among the facts, as they were judged."""
    left_out: int = 0
    """The caller's facts that are not in the context: deferred, or in an earlier window's."""


@dataclass(frozen=True)
class TransferredContext:
    """What a window was given of earlier answers."""

    parents: tuple[Transferred, ...]
    """Of each window that it continues, in the order of their ids."""
    results: tuple[Transferred, ...]
    linked: tuple[dpe_pb2.LinkedResult, ...]


def room(envelope: CallEvidence, settings: Settings) -> int:
    """Return the tokens that the request leaves for context: of its own budget, or of ``context_tokens`` (§8.2)."""
    budget = envelope.wanted.token_budget or settings.context_tokens
    query, told = tokens(envelope.query), tokens(envelope.prompt)
    return sizes.available(budget, query=query, system=told - query if envelope.query in envelope.prompt else told)


def digest(fact: common_pb2.Fact) -> str:
    """Return the name of a fact's content in ``facts_seen``; what a caller calls it does not matter."""
    return hashlib.sha256(fact.content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def evidence(sources: Iterable[AnswerSource]) -> tuple[Transferred, ...]:
    """Return whole answers as evidence alone: a completion that the caller brings is not dispatched again."""
    return tuple(Transferred(source, Transfer.NONE, source.text) for source in sources)


def pack(
    body: Mapping[str, Any],
    envelope: CallEvidence,
    opened: session_pb2.OpenedWindow,
    given: TransferredContext,
    settings: Settings,
) -> Packed:
    """Return the context. Refused with TOO_MANY_FACTS or TEXT_TOO_LARGE where all of it together is too much."""
    received = (*given.parents, *given.results)
    sources = [one.source for one in (received if opened.pattern == FAN_IN else given.results)]
    inherited, waiting = _inherited(given.parents, envelope.facts, opened)
    texts = [fact for one in received for fact in _as_facts(one)]
    plain = Packed(
        body, envelope, edges=_edges(opened, given.parents), deferred=tuple(waiting[: settings.max_facts]),
        merged=tuple(_merged(source) for source in sources), linked=given.linked,
    )  # fmt: skip
    if not (texts or inherited or envelope.wanted.token_budget):
        return plain
    packed, deferred, new = _packed(envelope, opened, [*texts, *inherited], settings)
    facts = checked_facts(_named_apart([*texts, *inherited, *packed]), settings)
    message = _message(received, [*inherited, *new], merging=len(sources) > 1) if body else ""
    prompt = checked_text("context", f"{message}\n{envelope.prompt}" if message else envelope.prompt, settings)
    used = packed if envelope.wanted.token_budget else ()
    return replace(
        plain,
        body=with_context(body, message),
        envelope=replace(envelope, facts=facts, prompt=prompt),
        deferred=(*deferred, *waiting)[: settings.max_facts],
        consumed=_consumed(received, facts),
        facts_used=tuple(dict.fromkeys(digest(fact) for fact in (*inherited, *used)))[:MOST_USED],
        left_out=len(envelope.facts) - len(packed),
    )


def _consumed(received: Sequence[Transferred], facts: Sequence[common_pb2.Fact]) -> tuple[dpe_pb2.ConsumedAnswer, ...]:
    """Return the answers that were received, each with the ids of its facts: theirs are the first, in their order."""
    found, left = [], [fact.id for fact in facts]
    for one in received:
        ids = [left.pop(0) for _ in _as_facts(one)]
        if ids and one.source.judged is not None:
            judged = dpe_pb2.ConsumedAnswer(fact_ids=ids)
            judged.MergeFrom(one.source.judged)
            found.append(judged)
    return tuple(found)


def _message(received: Sequence[Transferred], facts: Sequence[common_pb2.Fact], *, merging: bool) -> str:
    """Return the provider's message about earlier steps; empty when there are none."""
    entries = [
        prompts.entry(_TITLES[one.kind], one.text, one.source.sub_query) for one in received if one.kind in _TITLES
    ]
    if facts:
        entries.append(prompts.facts(fact.content for fact in facts))
    return prompts.context(entries, merging=merging) if entries else ""


def with_context(body: Mapping[str, Any], message: str) -> Mapping[str, Any]:
    """Return *body* with a system message before the caller's own."""
    if not message:
        return body
    return {**body, "messages": [{"role": "system", "content": message}, *body["messages"]]}


def _packed(
    envelope: CallEvidence, opened: session_pb2.OpenedWindow, received: Sequence[common_pb2.Fact], settings: Settings
) -> tuple[Sequence[common_pb2.Fact], Sequence[common_pb2.Fact], Sequence[common_pb2.Fact]]:
    """Return the caller's facts that are in the context, those that are deferred, and those that the prompt lacks."""
    if envelope.wanted.token_budget is None:
        return envelope.facts, (), ()
    left = room(envelope, settings) - weight(received)
    seen = frozenset() if opened.pattern in APART else frozenset(opened.facts_seen)
    told = [fact for fact in envelope.facts if fact.content in envelope.prompt]
    new = [fact for fact in envelope.facts if fact.content not in envelope.prompt and digest(fact) not in seen]
    chosen: list[common_pb2.Fact] = []
    deferred: list[common_pb2.Fact] = []
    for fact in sorted(new, key=lambda fact: -fact.importance):
        fits = tokens(fact.content) <= left
        left -= tokens(fact.content) if fits else 0
        (chosen if fits else deferred).append(fact)
    return [*told, *chosen], deferred, chosen


def _inherited(
    parents: Sequence[Transferred], own: Sequence[common_pb2.Fact], opened: session_pb2.OpenedWindow
) -> tuple[list[common_pb2.Fact], list[common_pb2.Fact]]:
    """Return the parents' deferred facts that came along, and those that still wait; each once."""
    if not any(one.source.deferred for one in parents):
        return [], []
    had = {digest(fact) for fact in own} | set(opened.facts_seen)
    came: dict[str, common_pb2.Fact] = {}
    for fact in (fact for one in parents for fact in one.facts):
        came.setdefault(digest(fact), fact)
    waiting: dict[str, common_pb2.Fact] = {}
    for fact in (fact for one in parents for fact in one.source.deferred):
        if digest(fact) not in came:
            waiting.setdefault(digest(fact), fact)
    return (
        [fact for name, fact in came.items() if name not in had],
        [fact for name, fact in waiting.items() if name not in had],
    )


def _as_facts(one: Transferred) -> list[common_pb2.Fact]:
    """Return a transferred text as facts: a summary weighs 0.95 (§12.2), what was merely said is not weighed."""
    importance = sizes.SUMMARY_IMPORTANCE if one.kind is Transfer.SUMMARY else NEUTRAL
    name = one.source.source_id
    return [
        common_pb2.Fact(id=f"{name}#{number}" if number else name, content=piece, importance=importance)
        for number, piece in enumerate(_pieces(one.text))
    ]


def _pieces(text: str) -> Iterator[str]:
    """Cut *text* between words, where it is too long for one fact."""
    while len(text) > FACT_LIMIT:
        end = text.rfind(" ", 1, FACT_LIMIT) + 1 or FACT_LIMIT
        yield text[:end]
        text = text[end:]
    if text.strip():
        yield text


def _named_apart(facts: Iterable[common_pb2.Fact]) -> list[common_pb2.Fact]:
    """Return *facts* with a number behind each id that an earlier one has: windows name their facts as they like."""
    taken: set[str] = set()
    found = []
    for fact in facts:
        name, number = fact.id, 2
        while name in taken:
            name, number = f"{fact.id[: ID_LIMIT - 8]}~{number}", number + 1
        taken.add(name)
        found.append(
            fact if name == fact.id else common_pb2.Fact(id=name, content=fact.content, importance=fact.importance)
        )
    return found


def _edges(opened: session_pb2.OpenedWindow, parents: Sequence[Transferred]) -> tuple[session_pb2.Edge, ...]:
    """Return what came from each parent, nothing where the caller's messages carry what it wants to carry (§8.3)."""
    received = {one.source.source_id: one for one in parents if one.kind is not Transfer.NONE}
    return tuple(_edge(source_id, opened.window_id, received.get(source_id)) for source_id in opened.parent_ids)


def _edge(source_id: str, target_id: str, one: Transferred | None) -> session_pb2.Edge:
    if one is None:
        return session_pb2.Edge(source_id=source_id, target_id=target_id)
    return session_pb2.Edge(
        source_id=source_id,
        target_id=target_id,
        transfer_type=cast("Any", one.kind.value),
        transferred_tokens=one.tokens,
        summary_hash=one.summary_hash,
    )


def _merged(source: AnswerSource) -> dpe_pb2.MergedAnswer:
    return dpe_pb2.MergedAnswer(
        source_id=source.source_id, text=source.text, label=source.label, sub_query=source.sub_query
    )

"""The evidence of a call: facts given by the caller, or cut from the context that the request carries (reading 10)."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.domain.errors import Kind, Refused, invalid
from interlock.runtime.settings.model import Settings
from interlock.sidecar.call import results as sub_agents
from interlock.sidecar.call import roles
from interlock.sidecar.openai.chat import Chat

FACT_LIMIT = roles.FACT_LIMIT
"""Longest fact that is made here, characters."""
LARGEST_FACT = 262_144
"""Longest fact that the caller gives, such as a whole document, characters (common.proto)."""

ID_LIMIT = 128
NEUTRAL = roles.NEUTRAL
"""Importance of a sentence without a weight of its own: below 0.70, so that leaving it out is no omission (SPEC-005 §12)."""

TRANSFERS = ("auto", "full", "summary", "facts", "result", "none")
"""What a call may ask to be transferred from the windows that it continues (SPEC-004 §8)."""

MOST_TOKENS = 10_000_000
_ASKED = {"facts", "query", "sub_agent_results", "sub_queries", "token_budget", "transfer"}


@dataclass(frozen=True)
class ContextOptions:
    """What a call asks for besides its question: results of sub-agents, and context of earlier windows."""

    results: tuple[sub_agents.NamedResult, ...] = ()
    sub_queries: tuple[str, ...] = ()
    """What the task was decomposed into; empty: not stated."""
    token_budget: int | None = None
    """Tokens of the window's context. Given, the mesh packs the facts: see ``packing``. Absent: none are left out."""
    transfer: str | None = None
    """One of ``TRANSFERS``; absent: auto for a fan-in, none otherwise."""


@dataclass(frozen=True)
class CallEvidence:
    """What an answer may rest on and what it answers."""

    facts: tuple[common_pb2.Fact, ...]
    query: str
    prompt: str
    """Every text of the request, for the search for personal data."""
    wanted: ContextOptions = ContextOptions()
    given: bool = False
    """Whether the caller gave facts apart from its messages."""

    @property
    def untold(self) -> tuple[common_pb2.Fact, ...]:
        """Facts that were given apart and that no text of the request has: the model does not see them."""
        return tuple(fact for fact in self.facts if fact.content not in self.prompt) if self.given else ()

    said: tuple[dpe_pb2.SaidText, ...] = ()
    """Texts that are no sources but show what was asked for (ATT-5)."""
    tools: tuple[dpe_pb2.DeclaredTool, ...] = ()
    """Functions that the model may call."""
    earlier_facts: tuple[str, ...] = ()
    """Ids of the facts that stood in the conversation before the user's last words."""


def of_chat(
    chat: Chat,
    settings: Settings,
    *,
    facts: Sequence[common_pb2.Fact] = (),
    query: str = "",
    results: Sequence[sidecar_pb2.SubAgentResult] = (),
    sub_queries: Sequence[str] = (),
) -> CallEvidence:
    """Return the envelope of a chat request; what is given next to it wins over its interlock object.

    Refused with INVALID_FACT, TOO_MANY_FACTS, FACT_TOO_LARGE, TEXT_TOO_LARGE, INVALID_PARAMETER, INVALID_ID or
    DUPLICATE_RESULT; nothing is dropped to make it fit.
    """
    given_facts, given_query = _interlock(chat.interlock)
    chosen = checked_facts(facts, settings) or checked_facts(given_facts, settings)
    prompt = checked_text("messages", "\n".join(_all_texts(chat.messages)), settings)
    tools = roles.declared(chat.body)
    read = roles.read(chat.messages, most_facts=settings.max_facts, tools={tool.name for tool in tools})
    return CallEvidence(
        facts=chosen or checked_facts(read.facts, settings),
        query=checked_text("query", query or given_query or read.question, settings),
        prompt=prompt,
        wanted=_beside(_wanted(chat.interlock), results, sub_queries),
        given=bool(chosen),
        said=(*read.said, *(roles.shown(read.facts) if chosen else ())),
        tools=tools,
        earlier_facts=() if chosen else read.earlier,
    )


def of_text(
    settings: Settings,
    *,
    facts: Sequence[common_pb2.Fact],
    query: str,
    results: Sequence[sidecar_pb2.SubAgentResult] = (),
    sub_queries: Sequence[str] = (),
) -> CallEvidence:
    """Return the envelope of a completion that the caller brings."""
    return CallEvidence(
        facts=checked_facts(facts, settings),
        query=checked_text("query", query, settings),
        prompt="",
        wanted=_beside(ContextOptions(), results, sub_queries),
    )


def _beside(
    wanted: ContextOptions, named: Sequence[sidecar_pb2.SubAgentResult], sub_queries: Sequence[str]
) -> ContextOptions:
    """Return *wanted* with what a gRPC message names besides the request."""
    return replace(
        wanted,
        results=sub_agents.of_messages(named) or wanted.results,
        sub_queries=sub_agents.sub_queries("sub_queries", list(sub_queries)) or wanted.sub_queries,
    )


def context_hash(evidence: CallEvidence) -> str:
    """Return ``sha256:<hex>`` of what an answer was held against: the facts in order, what was said, and the question."""
    rows = [[fact.id, fact.content, fact.importance] for fact in evidence.facts]
    said = [[one.kind, one.text] for one in evidence.said]
    told = json.dumps([rows, said, evidence.query], ensure_ascii=False)
    return "sha256:" + hashlib.sha256(told.encode("utf-8", "surrogatepass")).hexdigest()


def checked_text(what: str, text: str, settings: Settings) -> str:
    """Return *text*; refused with TEXT_TOO_LARGE above ``max_text_bytes``, before any model is called."""
    if len(text.encode()) > settings.max_text_bytes:
        raise _too_large("TEXT_TOO_LARGE", f"{what} exceeds {settings.max_text_bytes} bytes", settings.max_text_bytes)
    return text


def checked_facts(facts: Iterable[common_pb2.Fact], settings: Settings) -> tuple[common_pb2.Fact, ...]:
    """Return the facts when ids are unique and every field is within its bounds."""
    checked = tuple(facts)
    if len(checked) > settings.max_facts:
        raise _too_large("TOO_MANY_FACTS", f"more than {settings.max_facts} facts", settings.max_facts)
    for i, fact in enumerate(checked):
        _check_fact(f"facts[{i}]", fact)
    if len({fact.id for fact in checked}) != len(checked):
        raise invalid("INVALID_FACT", "two facts have the same id", param="facts")
    if sum(len(fact.content.encode()) for fact in checked) > settings.max_text_bytes:
        raise _too_large("TEXT_TOO_LARGE", f"the facts exceed {settings.max_text_bytes} bytes", settings.max_text_bytes)
    return checked


def _check_fact(place: str, fact: common_pb2.Fact) -> None:
    if not 1 <= len(fact.id) <= ID_LIMIT or not fact.id.isprintable() or "\u241f" in fact.id:
        raise invalid("INVALID_FACT", f"{place}.id must be 1 to {ID_LIMIT} printable characters", param=f"{place}.id")
    if not fact.content.strip():
        raise invalid("INVALID_FACT", f"{place}.content must not be empty", param=f"{place}.content")
    if len(fact.content) > LARGEST_FACT:
        raise _too_large("FACT_TOO_LARGE", f"{place}.content exceeds {LARGEST_FACT} characters", LARGEST_FACT)
    if not 0.0 <= fact.importance <= 1.0:
        raise invalid("INVALID_FACT", f"{place}.importance must be from 0.0 to 1.0", param=f"{place}.importance")


def _too_large(reason: str, message: str, limit: int) -> Refused:
    return Refused(Kind.EXHAUSTED, reason, message, metadata={"limit": str(limit)})


def _interlock(given: Mapping[str, Any]) -> tuple[list[common_pb2.Fact], str]:
    """Read ``extra_body={"interlock": {"facts": [...], "query": ...}}``."""
    if given.keys() - _ASKED:
        raise invalid("UNKNOWN_PARAMETER", f"interlock holds {', '.join(sorted(_ASKED))} only", param="interlock")
    listed, query = given.get("facts") or [], given.get("query") or ""
    if not isinstance(listed, list) or not isinstance(query, str):
        raise invalid("INVALID_FACT", "interlock.facts must be a list and interlock.query a string", param="interlock")
    return [_fact(f"interlock.facts[{i}]", item) for i, item in enumerate(listed)], query


def _wanted(given: Mapping[str, Any]) -> ContextOptions:
    """Read what the interlock object asks for besides facts and query; ``null`` is the same as nothing."""
    budget, transfer = given.get("token_budget"), given.get("transfer")
    if budget is not None and (type(budget) is not int or not 1 <= budget <= MOST_TOKENS):
        raise _bad("interlock.token_budget", f"must be an integer from 1 to {MOST_TOKENS}")
    if transfer is not None and transfer not in TRANSFERS:
        raise _bad("interlock.transfer", "must be one of " + ", ".join(TRANSFERS))
    return ContextOptions(
        results=sub_agents.read("interlock.sub_agent_results", _or_none(given, "sub_agent_results")),
        sub_queries=sub_agents.sub_queries("interlock.sub_queries", _or_none(given, "sub_queries")),
        token_budget=budget,
        transfer=transfer,
    )


def _or_none(given: Mapping[str, Any], name: str) -> Any:
    """Return a list of the object, an empty one for ``null``; what is no list is for its reader to refuse."""
    return [] if given.get(name) is None else given[name]


def _bad(param: str, expected: str) -> Refused:
    return invalid("INVALID_PARAMETER", f"{param} {expected}", param=param)


def _fact(place: str, item: Any) -> common_pb2.Fact:
    if not isinstance(item, dict) or item.keys() - {"id", "content", "importance"}:
        raise invalid("INVALID_FACT", f"{place} must be an object of id, content and importance", param=place)
    name, content, importance = item.get("id"), item.get("content"), item.get("importance", NEUTRAL)
    if not isinstance(name, str) or not isinstance(content, str):
        raise invalid("INVALID_FACT", f"{place}: id and content must be strings", param=place)
    if not isinstance(importance, int | float) or isinstance(importance, bool):
        raise invalid("INVALID_FACT", f"{place}.importance must be a number", param=f"{place}.importance")
    return common_pb2.Fact(id=name, content=content, importance=importance)


def _all_texts(messages: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    for message in messages:
        yield roles.content_text(message)
        yield from (message[name] for name in ("refusal", "reasoning_content") if name in message)
        yield from (call["function"]["arguments"] for call in message.get("tool_calls", ()))
        if "function_call" in message:
            yield message["function_call"]["arguments"]

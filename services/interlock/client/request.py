"""The body of a chat request: OpenAI's parameters, plus ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from interlock.client.answer import Answer

Result = Answer | Mapping[str, str]
"""A sub-agent's answer to consume: the answer itself, or its reference from ``as_result`` or ``result_of``."""


def body_of(
    messages: Sequence[Mapping[str, Any]] | str,
    parameters: Mapping[str, Any],
    *,
    facts: Sequence[Mapping[str, Any]] = (),
    results: Sequence[Result] = (),
    sub_queries: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the body; a plain string is one user message."""
    said = [{"role": "user", "content": messages}] if isinstance(messages, str) else list(messages)
    body = {**parameters, "messages": said}
    ours: dict[str, Any] = dict(parameters.get("interlock") or {})
    if facts:
        ours["facts"] = list(facts)
    if results:
        ours["sub_agent_results"] = [_named(result) for result in results]
    if sub_queries:
        ours["sub_queries"] = list(sub_queries)
    return {**body, "interlock": ours} if ours else body


def _named(result: Result) -> dict[str, str]:
    return result.as_result() if isinstance(result, Answer) else dict(result)

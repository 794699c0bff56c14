"""What the vendors' clients make of a streamed answer of each front: the text as it comes, how it ended, the error if one was raised."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anthropic
import openai

QUESTION = "What is it?"
MESSAGES: Any = [{"role": "user", "content": QUESTION}]
Said = Callable[[str], Awaitable[None]]


@dataclass
class Heard:
    """One stream, as a client saw it."""

    text: str = ""
    thought: str = ""
    arguments: str = ""
    ended: str | None = None
    """How it ended, in the words of its API; ``None``: it did not."""
    kinds: list[str] = field(default_factory=list)
    """Types of its events, where its API has such."""
    events: list[Any] = field(default_factory=list)
    error: Exception | None = None


Reads = Callable[[Heard, Any], None]


async def listened(
    path: str, http: str, *, said: Said | None = None, headers: Mapping[str, str] | None = None, **more: Any
) -> Heard:
    """Ask the front at *path* by its vendor's client and listen to the end. *said* is awaited with the text, each time that it grew."""
    heard, (opened, reads) = Heard(), FRONTS[path]
    try:
        async for event in opened(http, dict(headers or {}), more):
            before = heard.text
            heard.events.append(event)
            reads(heard, event)
            if said and heard.text != before:
                await said(heard.text)
    except (openai.APIError, anthropic.APIError) as error:
        heard.error = error
    return heard


def _openai(http: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{http}/v1", api_key="sk-client", max_retries=0)


async def _chat(http: str, headers: dict[str, str], more: dict[str, Any]) -> AsyncIterator[Any]:
    async with _openai(http) as client:
        asked = {"model": "m", "messages": MESSAGES, **more}
        async for one in await client.chat.completions.create(**asked, stream=True, extra_headers=headers):
            yield one


async def _completions(http: str, headers: dict[str, str], more: dict[str, Any]) -> AsyncIterator[Any]:
    async with _openai(http) as client:
        asked = {"model": "m", "prompt": QUESTION, **more}
        async for one in await client.completions.create(**asked, stream=True, extra_headers=headers):
            yield one


async def _responses(http: str, headers: dict[str, str], more: dict[str, Any]) -> AsyncIterator[Any]:
    async with _openai(http) as client:
        asked = {"model": "m", "input": QUESTION, **more}
        async for one in await client.responses.create(**asked, stream=True, extra_headers=headers):
            yield one


async def _messages(http: str, headers: dict[str, str], more: dict[str, Any]) -> AsyncIterator[Any]:
    async with anthropic.AsyncAnthropic(base_url=http, api_key="sk-client", max_retries=0) as client:
        asked = {"model": "m", "max_tokens": 100, "messages": MESSAGES, **more}
        async for one in await client.messages.create(**asked, stream=True, extra_headers=headers):
            yield one


def _read_chat(heard: Heard, event: Any) -> None:
    for choice in event.choices:
        heard.text += choice.delta.content or ""
        heard.thought += (choice.delta.model_extra or {}).get("reasoning_content") or ""
        heard.arguments += "".join(one.function.arguments or "" for one in choice.delta.tool_calls or ())
        heard.ended = choice.finish_reason or heard.ended


def _read_completions(heard: Heard, event: Any) -> None:
    for choice in event.choices:
        heard.text += choice.text
        heard.ended = choice.finish_reason or heard.ended


def _read_responses(heard: Heard, event: Any) -> None:
    heard.kinds.append(event.type)
    match event.type:
        case "response.output_text.delta":
            heard.text += event.delta
        case "response.reasoning_text.delta":
            heard.thought += event.delta
        case "response.function_call_arguments.delta":
            heard.arguments += event.delta
        case "response.completed" | "response.incomplete" | "response.failed":
            heard.ended = event.type.removeprefix("response.")


def _read_messages(heard: Heard, event: Any) -> None:
    heard.kinds.append(event.type)
    if event.type == "content_block_delta":
        heard.text += getattr(event.delta, "text", "")
        heard.thought += getattr(event.delta, "thinking", "")
        heard.arguments += getattr(event.delta, "partial_json", "")
    elif event.type == "message_delta":
        heard.ended = event.delta.stop_reason


FRONTS: Mapping[str, tuple[Callable[..., AsyncIterator[Any]], Reads]] = {
    "/v1/chat/completions": (_chat, _read_chat),
    "/v1/completions": (_completions, _read_completions),
    "/v1/messages": (_messages, _read_messages),
    "/v1/responses": (_responses, _read_responses),
}
"""By path: the vendor's client, and how its events are read. A front that streams has its row here."""

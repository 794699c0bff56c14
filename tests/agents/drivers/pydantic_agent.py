"""pydantic-ai's Agent over chat completions, with its own tool for structured answers."""

from __future__ import annotations

from typing import Any

from _conversation import MODEL, Say, converse, functions
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel


def make(system: str, tools: dict[str, Any]) -> Say:
    agent = Agent(OpenAIChatModel(MODEL), instructions=system, tools=functions(tools))
    history: list[Any] = []

    async def say(text: str, answer: Any) -> str:
        result = await agent.run(text, message_history=history, **({"output_type": answer} if answer else {}))
        history[:] = result.all_messages()
        said = result.output
        return said if isinstance(said, str) else said.model_dump_json()

    return say


converse(make)

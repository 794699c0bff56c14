"""LlamaIndex's FunctionAgent, which streams, with a memory that keeps the history."""

from __future__ import annotations

from typing import Any

from _conversation import MODEL, Say, base_url, converse, functions
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.memory import Memory
from llama_index.llms.openai import OpenAI


def make(system: str, tools: dict[str, Any]) -> Say:
    model = OpenAI(model=MODEL, api_base=base_url())
    agent = FunctionAgent(tools=functions(tools), llm=model, system_prompt=system)
    memory = Memory.from_defaults(session_id="1", token_limit=100_000)

    async def say(text: str, _answer: Any) -> str:
        return str(await agent.run(text, memory=memory))

    return say


converse(make)

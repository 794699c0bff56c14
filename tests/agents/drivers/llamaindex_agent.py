"""LlamaIndex's FunctionAgent, which streams, with a context that keeps the history."""

from __future__ import annotations

from typing import Any

from _conversation import MODEL, Say, base_url, converse, functions
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.workflow import Context
from llama_index.llms.openai import OpenAI


def make(system: str, tools: dict[str, Any]) -> Say:
    model = OpenAI(model=MODEL, api_base=base_url())
    agent = FunctionAgent(tools=functions(tools), llm=model, system_prompt=system)
    context = Context(agent)

    async def say(text: str, _answer: Any) -> str:
        return str(await agent.run(text, ctx=context))

    return say


converse(make)

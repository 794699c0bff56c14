"""smolagents' ToolCallingAgent: every answer, small talk too, is a call of its tool ``final_answer``."""

from __future__ import annotations

import asyncio
from typing import Any

from _conversation import MODEL, Say, base_url, converse, functions
from smolagents import LogLevel, OpenAIModel, ToolCallingAgent, tool


def make(system: str, tools: dict[str, Any]) -> Say:
    import os

    model = OpenAIModel(MODEL, api_base=base_url(), api_key=os.environ["OPENAI_API_KEY"])
    made = [tool(one) for one in functions(tools)]
    agent = ToolCallingAgent(made, model, instructions=system, verbosity_level=LogLevel.OFF, max_steps=6)

    async def say(text: str, _answer: Any) -> str:
        said = await asyncio.to_thread(agent.run, text, reset=False)
        # A step that failed is only noted by the framework; the user sees no answer.
        errors = [step.error for step in agent.memory.steps if getattr(step, "error", None)]
        if errors and not said:
            raise RuntimeError(str(errors[-1]))
        return str(said)

    return say


converse(make)

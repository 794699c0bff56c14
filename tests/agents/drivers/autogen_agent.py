"""AutoGen's AssistantAgent, which keeps its own history."""

from __future__ import annotations

from typing import Any

from _conversation import MODEL, Say, converse, functions
from autogen_agentchat.agents import AssistantAgent
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient


def make(system: str, tools: dict[str, Any]) -> Say:
    made = [FunctionTool(one, description=tools[one.__name__]["description"]) for one in functions(tools)]
    agent = AssistantAgent(
        "assistant",
        OpenAIChatCompletionClient(model=MODEL),
        tools=made,
        system_message=system,
        reflect_on_tool_use=True,
        max_tool_iterations=5,
    )

    async def say(text: str, _answer: Any) -> str:
        result = await agent.run(task=text)
        return str(result.messages[-1].to_text())

    return say


converse(make)

"""The OpenAI Agents SDK with a session that keeps the history: over its default API, or set to chat completions with --chat."""

from __future__ import annotations

import sys
from typing import Any

from _conversation import MODEL, Say, converse, functions
from agents import Agent, Runner, SQLiteSession, function_tool, set_default_openai_api, set_tracing_disabled

if "--chat" in sys.argv:
    set_default_openai_api("chat_completions")
set_tracing_disabled(True)  # traces go to OpenAI, which is not there


def make(system: str, tools: dict[str, Any]) -> Say:
    made = [function_tool(one) for one in functions(tools)]
    session = SQLiteSession("1")

    async def say(text: str, answer: Any) -> str:
        agent = Agent(name="assistant", instructions=system, model=MODEL, tools=made, output_type=answer)
        result = await Runner.run(agent, text, session=session)
        said = result.final_output
        return said if isinstance(said, str) else said.model_dump_json()

    return say


converse(make)

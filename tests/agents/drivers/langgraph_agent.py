"""LangGraph's agent (``langchain.agents.create_agent``) with langchain-openai and a checkpointer."""

from __future__ import annotations

from typing import Any

from _conversation import MODEL, Say, converse, functions
from langchain.agents import create_agent
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver


def make(system: str, tools: dict[str, Any]) -> Say:
    model = ChatOpenAI(model=MODEL)
    agent = create_agent(model, functions(tools), system_prompt=system, checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "1"}}

    async def say(text: str, answer: Any) -> str:
        if answer:
            # A structured answer over the same thread, as an application takes one at the end of a step.
            state = await agent.aget_state(config)
            asked = [("system", system), *state.values.get("messages", []), ("user", text)]
            found = await model.with_structured_output(answer).ainvoke(asked)
            said = found.model_dump_json()
            await agent.aupdate_state(config, {"messages": [("user", text), ("assistant", said)]})
            return str(said)
        state = await agent.ainvoke({"messages": [("user", text)]}, config)
        return str(state["messages"][-1].text)

    return say


converse(make)

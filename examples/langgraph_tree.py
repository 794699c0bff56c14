"""The same tree as a LangGraph: each node talks through the httpx client of its own governed session.

Needs langgraph and langchain-openai; environment as in plain.py.
"""

import operator
import os
from typing import Annotated, Any, TypedDict

from langchain_openai import ChatOpenAI
from langgraph.graph import END, START, StateGraph
from sources import SYNTHESIS, TASKS

from interlock.client import Session


class State(TypedDict):
    """The state that the nodes pass on."""

    results: Annotated[list[dict[str, str]], operator.add]
    answer: str


def chat_model(session: Session, *, api_key: str, **parameters: Any) -> ChatOpenAI:
    """Return a LangChain model whose calls are *session*'s."""
    return ChatOpenAI(
        model=os.environ["OPENAI_MODEL"],
        base_url=os.environ["OPENAI_BASE_URL"],
        api_key=api_key,
        http_client=session.http_client(),
        max_retries=0,
        **parameters,
    )


def specialist(session: Session, agent_type: str) -> Any:
    """Return the node of one specialist."""
    source, question = TASKS[agent_type]
    key = os.environ[f"{agent_type.upper()}_API_KEY"]

    def node(_: State) -> dict[str, Any]:
        with session.delegate(agent_type, api_key=key) as child:
            said = chat_model(child, api_key=key).invoke([("system", source), ("user", question)])
            print(f"{agent_type:<13} {said.content}")
            return {"results": [child.result(question)]}

    return node


def synthesis(session: Session) -> Any:
    """Return the node that merges the specialists' answers into one."""

    def node(state: State) -> dict[str, Any]:
        ours = {"interlock": {"sub_agent_results": state["results"]}}
        model = chat_model(session, api_key=os.environ["OPENAI_API_KEY"], extra_body=ours)
        return {"answer": model.invoke([("user", SYNTHESIS)]).content}

    return node


def main() -> None:
    """Build the graph, run it and print the tree."""
    with Session() as session:
        session.chat("Name the two questions that a landlord asks about a tenant.")
        graph = StateGraph(State)
        for agent_type in TASKS:
            graph.add_node(agent_type, specialist(session, agent_type))
            graph.add_edge(START, agent_type)
        graph.add_node("synthesis", synthesis(session))
        graph.add_edge(list(TASKS), "synthesis")
        graph.add_edge("synthesis", END)
        done = graph.compile().invoke({"results": [], "answer": ""})
        print(f"orchestrator  {done['answer']}")
        print(session.dag("text", tree=True))


if __name__ == "__main__":
    main()

"""The same tree with the OpenAI Agents SDK: each agent's model talks through the httpx client of its own governed session.

Needs openai-agents; environment as in plain.py.
"""

import asyncio
import os

from agents import Agent, ModelSettings, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from openai import AsyncOpenAI
from sources import SYNTHESIS, TASKS

from interlock.client import AsyncSession


def sdk_model(session: AsyncSession, api_key: str) -> OpenAIChatCompletionsModel:
    """Return an SDK model whose calls are *session*'s."""
    client = AsyncOpenAI(
        base_url=os.environ["OPENAI_BASE_URL"], api_key=api_key, http_client=session.http_client(), max_retries=0
    )
    return OpenAIChatCompletionsModel(model=os.environ["OPENAI_MODEL"], openai_client=client)


async def ask_specialist(session: AsyncSession, agent_type: str) -> dict[str, str]:
    """Run one specialist in a child session and return the reference to its result."""
    source, question = TASKS[agent_type]
    key = os.environ[f"{agent_type.upper()}_API_KEY"]
    async with await session.delegate(agent_type, api_key=key) as child:
        run = await Runner.run(Agent(name=agent_type, instructions=source, model=sdk_model(child, key)), question)
        print(f"{agent_type:<13} {run.final_output}")
        return child.result(question)


async def main() -> None:
    """Ask both specialists at once, merge and print the tree."""
    set_tracing_disabled(disabled=True)  # traces would go to OpenAI; these stay local
    async with AsyncSession() as session:
        await session.chat("Name the two questions that a landlord asks about a tenant.")
        results = await asyncio.gather(*(ask_specialist(session, agent_type) for agent_type in TASKS))
        orchestrator = Agent(
            name="orchestrator",
            model=sdk_model(session, os.environ["OPENAI_API_KEY"]),
            model_settings=ModelSettings(extra_body={"interlock": {"sub_agent_results": results}}),
        )
        run = await Runner.run(orchestrator, SYNTHESIS)
        print(f"orchestrator  {run.final_output}")
        print(await session.dag("text", tree=True))


if __name__ == "__main__":
    asyncio.run(main())

"""A tree of agents with nothing but interlock.client: one orchestrator, two specialists, one merged answer.

OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL name the sidecar, the orchestrator's key and the model; LEGAL_API_KEY and
FINANCE_API_KEY are the specialists'. See README.md in this folder.
"""

import os

from sources import SYNTHESIS, TASKS

from interlock.client import Session


def main() -> None:
    """Delegate, merge and print."""
    with Session() as session:
        plan = session.chat("Name the two questions that a landlord asks about a tenant.")
        print(f"orchestrator  {plan.risk}, budget {plan.budget}")
        results = []
        for agent_type, (source, question) in TASKS.items():
            with session.delegate(agent_type, api_key=os.environ[f"{agent_type.upper()}_API_KEY"]) as child:
                answer = child.chat([{"role": "system", "content": source}, {"role": "user", "content": question}])
                print(f"{agent_type:<13} {answer.risk}, budget {answer.budget}: {answer.text}")
                results.append(answer.as_result(question))
        answer = session.chat(SYNTHESIS, results=results)
        print(f"orchestrator  {answer.risk}, budget {answer.budget}: {answer.text}")
        print(session.dag("text", tree=True))


if __name__ == "__main__":
    main()

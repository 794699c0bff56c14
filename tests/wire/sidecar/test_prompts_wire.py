"""Prompts of frameworks over real HTTP: their documents reach the judge as sources, at every front (ATT-5)."""

from __future__ import annotations

import httpx
import pytest

from tests.support.sidecar import prompts

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("ATT-5")

SENT = {
    **{
        name: prompts.filled(prompts.FRAMEWORKS[name])
        for name in ("llamaindex, refine", "langchain4j", "open webui", "dspy, passages as text")
    },
    **{
        name: prompts.filled(template, documents=documents, question=question)
        for name in ("german, no label", "chinese, elements", "russian, context")
        for template, question, documents in (prompts.LANGUAGES[name],)
    },
}
FRONTS = {
    "/v1/chat/completions": lambda messages: {"messages": messages},
    "/v1/responses": lambda messages: {"input": messages},
    "/v1/messages": lambda messages: {"messages": messages, "max_tokens": 100},
}


@pytest.mark.parametrize("front", FRONTS)
async def test_the_documents_of_a_prompt_reach_the_judge(sidecar, front):
    """Each as a fact, and neither the question nor an earlier answer among them."""
    missed = []
    async with httpx.AsyncClient(
        base_url=sidecar.http, trust_env=False, headers={"authorization": "Bearer sk-one"}
    ) as client:
        for name, prompt in SENT.items():
            answer = await client.post(front, json={"model": "test-model", **FRONTS[front](list(prompt.messages))})
            facts = " ".join(fact.content for fact in sidecar.dpe.asked[-1].facts)
            assert answer.status_code == 200, answer.text
            missed += [name for document in prompt.documents if document not in facts]
            missed += [name for text in (prompt.question, *prompt.never) if text in facts]

    assert missed == []

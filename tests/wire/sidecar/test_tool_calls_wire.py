"""Tool calls of an answer are tried as actions of the caller's kernel before it is released (KRN-11)."""

from __future__ import annotations

import pytest

from tests.support.kernels import UNIT, KernelClient
from tests.support.servers.provider import Provider, RunningProvider, completion, message, tool_call
from tests.support.sidecar.sidecar import running_sidecar

ALICE = {"authorization": "Bearer alice"}
TOOLS = ("small", "mail", "leave", "unheard")
DECLARED = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in TOOLS]


class Calling(Provider):
    """Calls tools."""

    def call(self, *names: str) -> None:
        calls = [tool_call(name, "{}", f"call_{number}") for number, name in enumerate(names)]
        self.completes(completion(message("I will.", tool_calls=calls)))


@pytest.fixture
def provider():
    return Calling()


@pytest.fixture
async def sidecar(tmp_path, provider):
    with RunningProvider(provider) as upstream:
        async with running_sidecar(tmp_path, upstream=upstream.base_url, tool_kernel="team") as running:
            yield running


@pytest.fixture
async def team(sidecar):
    """Alice's kernel: one small action is affordable, then none."""
    kernel = KernelClient(sidecar.client, "team", key="alice")
    await kernel.open(resources=[{"name": "usd", "limit_micros": UNIT, "min_cost_micros": UNIT}, {"name": "mails"}])
    return kernel


@pytest.mark.req("KRN-11")
@pytest.mark.parametrize("stream", [False, True])
async def test_an_answer_whose_tool_call_would_be_rejected_is_not_released(sidecar, provider, team, stream):
    """Refused with the action and its checks; trying spends nothing; what would be approved, or is no action, is released."""
    for names in (["small"], ["unheard"], ["leave"]):
        provider.call(*names)
        assert (await sidecar.chat(headers=ALICE, tools=DECLARED)).status_code == 200, names
    provider.call("small", "mail")
    assert (await team.spent()) == 0
    refused = await sidecar.chat(headers=ALICE, tools=DECLARED, **({"stream": True} if stream else {}))
    assert "KERNEL_ACTION_REFUSED" in refused.text
    assert "I will" not in refused.text
    assert refused.status_code == 403
    told = refused.json()["metadata"]
    assert (told["action"], told["checks"]) == ("mail", "BUDGET_EXCEEDED")
    assert "mails" in told["for_model"]
    assert refused.headers["crp-kernel-decision"] == "refused"

    await team.execute("small", "spent")
    provider.call("small")
    assert (await sidecar.chat(headers=ALICE, tools=DECLARED)).status_code == 403
    provider.call("leave")
    assert (await sidecar.chat(headers=ALICE, tools=DECLARED)).status_code == 200, (
        "an emergency action is always allowed"
    )


@pytest.mark.req("KRN-11")
async def test_another_caller_has_no_such_kernel(sidecar, provider, team):
    """Tools are actions for the caller whose kernel it is, and for no one else."""
    await team.execute("small", "spent")
    provider.call("small")
    assert (await sidecar.chat(headers=ALICE, tools=DECLARED)).status_code == 403
    assert (await sidecar.chat(headers={"authorization": "Bearer bob"}, tools=DECLARED)).status_code == 200

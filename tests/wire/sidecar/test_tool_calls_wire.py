"""Tool calls of an answer are tried as actions of the caller's kernel before it is released (KRN-11)."""

from __future__ import annotations

import json

import pytest

from tests.support.kernels import UNIT, KernelClient
from tests.support.servers.provider import Provider, RunningProvider, completion, message, tool_call
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

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


@pytest.mark.req("KRN-11", "BUD-1")
async def test_a_rejected_tool_call_costs_the_session_and_is_on_record(sidecar, provider, team):
    """One charge for the answer beside its risk, sealed with its window; the budget says so and the session goes on."""
    refused = await _refused(sidecar, provider)
    assert (refused.status_code, reason_of(refused)) == (403, "KERNEL_ACTION_REFUSED")
    assert refused.headers["crp-agent-safety-budget"] == "0.95"
    events = await sidecar.events(refused.headers["crp-context-session-id"])
    told = [json.loads(one.data_json) for one in events if one.event_type == "ACTION_REFUSED"]
    assert told == [{"tool_name": "mail", "checks": ["BUDGET_EXCEEDED"], "charge_micros": 50_000}]
    sealed = [json.loads(one.data_json) for one in events if one.event_type == "WINDOW_SEALED"]
    assert [(one["charge_micros"], one["status"]) for one in sealed] == [(50_000, "HALTED")]
    provider.call("leave")
    again = await sidecar.chat(headers=ALICE, tools=DECLARED, token=token_of(refused))
    assert (again.status_code, again.headers["crp-agent-safety-budget"]) == (200, "0.95")


@pytest.mark.req("KRN-11", "POL-1")
async def test_a_policy_halts_on_a_rejected_tool_call(sidecar, provider, team):
    """halt-on-action makes it a breach of the policy: a 451 that names the directive, and a violation on record."""
    halted = await _refused(sidecar, provider, **{"crp-safety-policy": "halt-on-action"})
    assert (halted.status_code, halted.json()["crp_halt_reason"]) == (451, "ACTION_REFUSED")
    assert halted.json()["metadata"]["directive"] == "halt-on-action"
    events = await sidecar.events(halted.headers["crp-context-session-id"])
    told = [json.loads(one.data_json) for one in events if one.event_type == "POLICY_VIOLATION"]
    assert "halt-on-action" in json.dumps(told)
    provider.call("leave")
    assert (
        await sidecar.chat(headers=ALICE | {"crp-safety-policy": "halt-on-action"}, tools=DECLARED)
    ).status_code == 200


@pytest.mark.req("KRN-11")
async def test_halt_on_action_without_a_kernel_lets_no_tool_call_through(tmp_path, provider):
    """What nobody tried is not known to be allowed: the directive is broken by the missing signal (I10)."""
    with RunningProvider(provider) as upstream:
        async with running_sidecar(tmp_path, upstream=upstream.base_url) as bare:
            provider.call("small")
            policy = {"crp-safety-policy": "halt-on-action"}
            halted = await bare.chat(headers=policy, tools=DECLARED)
            assert (halted.status_code, halted.json()["crp_halt_reason"]) == (451, "SIGNAL_NOT_AVAILABLE")
            provider.answers("The answer is fine.")
            assert (await bare.chat(headers=policy, tools=DECLARED)).status_code == 200


@pytest.mark.req("KRN-11")
@pytest.mark.parametrize(("key", "tool"), [("alice", "unheard"), ("bob", "small")])
async def test_halt_on_action_lets_no_tool_call_through_that_the_kernel_does_not_know(
    sidecar, provider, team, key, tool
):
    """No such action, or no such kernel of the caller: a key of its own is no way around the directive (I10)."""
    provider.call(tool)
    headers = {"authorization": f"Bearer {key}", "crp-safety-policy": "halt-on-action"}
    halted = await sidecar.chat(headers=headers, tools=DECLARED)
    assert (halted.status_code, halted.json()["crp_halt_reason"]) == (451, "SIGNAL_NOT_AVAILABLE")
    provider.call("mail", "unheard")
    both = await sidecar.chat(headers=ALICE | {"crp-safety-policy": "halt-on-action"}, tools=DECLARED)
    assert (both.status_code, both.json()["crp_halt_reason"]) == (451, "ACTION_REFUSED")


async def _refused(sidecar, provider, **headers: str):
    provider.call("mail")
    return await sidecar.chat(headers=ALICE | headers, tools=DECLARED)

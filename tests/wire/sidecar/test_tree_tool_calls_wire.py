"""Tool calls of an answer are tried in the kernels of the session's tree too, whoever opened them above (KRN-11, KRN-6)."""

from __future__ import annotations

import asyncio

import httpx
import pytest

from interlock.domain.errors import unavailable
from tests.support.kernels import UNIT, KernelClient
from tests.support.policy import agents
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of
from tests.wire.sidecar.test_tool_calls_wire import ALICE, DECLARED, Calling

pytestmark = pytest.mark.req("KRN-11", "KRN-6")
BOB, CAROL = {"authorization": "Bearer bob"}, {"authorization": "Bearer carol"}
POOR = [{"name": "usd", "limit_micros": 0}, {"name": "mails", "limit_micros": 0}]
RICH = [{"name": "usd", "limit_micros": 90 * UNIT}, {"name": "mails", "limit_micros": 90 * UNIT}]


@pytest.fixture
def provider():
    made = Calling()
    made.call("small")
    return made


@pytest.fixture
async def sidecar(tmp_path, provider):
    with RunningProvider(provider) as upstream:
        async with running_sidecar(tmp_path, upstream=upstream.base_url, tool_kernel="team") as running:
            yield running


class Chain:
    """One session of a caller; it goes on with the token of its last answer."""

    def __init__(self, sidecar, headers) -> None:
        self.sidecar, self.headers, self.token = sidecar, headers, ""

    async def chat(self, **more) -> httpx.Response:
        answer = await self.sidecar.chat(headers=self.headers, token=self.token or None, **more)
        self.token = token_of(answer) if "crp-set-session" in answer.headers else self.token
        return answer

    async def asked(self) -> tuple[int, str, str]:
        """Status, failed checks and whose kernel it was, of the next answer, which may call a tool."""
        answer = await self.chat(tools=DECLARED)
        told = answer.json().get("metadata") or {} if answer.status_code == 403 else {}
        return answer.status_code, told.get("checks", ""), told.get("kernel_of", "")

    async def below(self, provider, headers, **body) -> Chain:
        """A sub-agent's session under this one."""
        sent = {**self.headers, "crp-session-token": self.token}
        granted = await self.sidecar.client.post("/crp/v3/delegations", json=body, headers=sent)
        made = await begun(self.sidecar, provider, headers, **granted.json()["headers"])
        made.headers = headers
        return made


async def begun(sidecar, provider, headers=ALICE, **more: str) -> Chain:
    """A session with one answer, which calls no tool."""
    provider.answers("The answer is fine.")
    made = Chain(sidecar, {**headers, **more})
    answer = await made.chat()
    assert answer.status_code == 200, answer.text
    provider.call("small")
    return made


async def opened(sidecar, resources, *, key: str = "alice", token: str = "", **more) -> KernelClient:
    kernel = KernelClient(sidecar.client, "team", key=key, token=token)
    await kernel.open(resources=resources, **more)
    return kernel


async def test_a_kernel_of_the_tree_holds_for_its_sessions_and_no_others(sidecar, provider):
    """A call with the token is tried in the kernel that was opened with it; one without, of the same caller, is not."""
    session, other = await begun(sidecar, provider), Chain(sidecar, ALICE)
    await opened(sidecar, POOR, token=session.token)

    assert await session.asked() == (403, "BUDGET_EXCEEDED", "tree")
    assert await other.asked() == (200, "", "")


async def test_a_call_that_is_bound_to_a_session_is_tried_in_its_tree(sidecar, provider):
    """No token is needed to be held to it: what binds the call names the session."""
    first = await begun(sidecar, provider, **{"x-session-id": "chat-42"})
    await opened(sidecar, POOR, token=first.token)

    assert await Chain(sidecar, {**ALICE, "x-session-id": "chat-42"}).asked() == (403, "BUDGET_EXCEEDED", "tree")
    assert await Chain(sidecar, {**ALICE, "x-session-id": "chat-43"}).asked() == (200, "", "")


@pytest.mark.parametrize(
    ("tree", "own", "expected"),
    [
        (RICH, RICH, (200, "", "")),
        (POOR, RICH, (403, "BUDGET_EXCEEDED", "tree")),
        (RICH, POOR, (403, "BUDGET_EXCEEDED", "caller")),
        (POOR, POOR, (403, "BUDGET_EXCEEDED", "tree")),
    ],
)
async def test_each_kernel_that_there_is_has_to_allow_it(sidecar, provider, tree, own, expected):
    """A rich kernel of the tree is no way around the caller's poor one, nor the other way round."""
    session = await begun(sidecar, provider)
    await opened(sidecar, tree, token=session.token)
    await opened(sidecar, own)

    assert await session.asked() == expected


async def test_a_sub_agent_with_a_key_of_its_own_is_held_to_the_kernel_above_it(sidecar, provider):
    """Its key opens no kernel of the orchestrator's, and its tool calls are tried there all the same; figures are not told to it."""
    root = await begun(sidecar, provider)
    team = await opened(sidecar, [{"name": "usd", "limit_micros": 2 * UNIT}, {"name": "mails"}], token=root.token)
    child = await root.below(provider, BOB)
    lowest = await child.below(provider, CAROL)

    assert await child.asked() == (200, "", "")
    for number in range(2):
        assert (await team.execute("small", f"k{number}"))["verdict"]["approved"]
    refused = await child.chat(tools=DECLARED)
    assert (refused.status_code, reason_of(refused)) == (403, "KERNEL_ACTION_REFUSED")
    told = refused.json()["metadata"]
    assert (told["action"], told["checks"], told["kernel_of"]) == ("small", "BUDGET_EXCEEDED", "tree")
    assert told["for_model"].startswith("ACTION REJECTED: small")
    assert "usd" not in refused.text, "what another caller's kernel holds is not this one's to know"
    assert await lowest.asked() == (403, "BUDGET_EXCEEDED", "tree")
    own = await root.chat(tools=DECLARED)
    assert "it costs 1 usd, and 0 is left" in own.json()["metadata"]["for_model"]


async def test_a_kernel_in_the_middle_holds_below_it_alone(sidecar, provider):
    """What a sub-agent opened with its own key and token holds for it and for those below, and not for its orchestrator."""
    root = await begun(sidecar, provider)
    child = await root.below(provider, BOB)
    lowest = await child.below(provider, CAROL)
    await opened(sidecar, POOR, key="bob", token=child.token)

    assert await child.asked() == (403, "BUDGET_EXCEEDED", "tree")
    assert await lowest.asked() == (403, "BUDGET_EXCEEDED", "tree")
    assert await root.asked() == (200, "", "")


async def test_the_part_of_an_agents_type_is_what_is_asked(tmp_path, provider):
    """In a kernel with a child named as the type of the agent, its limits hold for that agent, and those of the kernel for all."""
    told = {"orchestrator": agents.fields("key-o", max_delegations=5), "legal": agents.fields("key-l")}
    path = agents.write(tmp_path / "agents.yaml", {"agents": told})
    chief, legal = {"authorization": "Bearer key-o"}, {"authorization": "Bearer key-l"}
    with RunningProvider(provider) as upstream:
        options = {"upstream": upstream.base_url, "tool_kernel": "team", "agents_file": path}
        async with running_sidecar(tmp_path, **options) as sidecar:
            root = await begun(sidecar, provider, chief)
            team = await opened(sidecar, RICH, key="key-o", token=root.token)
            limits = [{"resource": "usd", "micros": 0}]
            assert (await team.post("open-child", child="legal", limits=limits, key="c")).status_code == 200
            child = await root.below(provider, legal, agent_type="legal")

            assert await root.asked() == (200, "", "")
            assert await child.asked() == (403, "BUDGET_EXCEEDED", "tree")
            provider.call("unheard")
            assert await child.asked() == (200, "", "")


async def test_halt_on_action_wants_every_kernel_to_know_the_tool(sidecar, provider):
    """A tool that one kernel there knows, and another does not, was not allowed by that one: a new kernel is no way around it (I10)."""
    session = await begun(sidecar, provider, **{"crp-safety-policy": "halt-on-action"})
    await opened(sidecar, RICH, token=session.token)
    assert await session.asked() == (200, "", "")

    await opened(sidecar, RICH, actions=[])
    halted = await session.chat(tools=DECLARED)
    assert (halted.status_code, halted.json()["crp_halt_reason"]) == (451, "SIGNAL_NOT_AVAILABLE")


async def test_what_is_above_and_cannot_be_read_allows_nothing(tmp_path, provider):
    """Where nobody can say whose the tree is, an answer with a tool call is refused, and one without is released."""
    broken = asyncio.Event()

    async def refuse(request):
        if broken.is_set() and not request.scope:
            raise unavailable("SESSION_BROKEN_BY_TEST", "not now")

    def wrap(services):
        return {**services, "session": Hooked(services["session"], GetSession=refuse)}

    with RunningProvider(provider) as upstream:
        options = {"upstream": upstream.base_url, "tool_kernel": "team", "wrap": wrap}
        async with running_sidecar(tmp_path, **options) as sidecar:
            child = await (await begun(sidecar, provider)).below(provider, BOB)
            provider.answers("The answer is fine.")
            broken.set()
            assert await child.asked() == (200, "", "")
            provider.call("small")
            assert (await child.asked())[0] == 503

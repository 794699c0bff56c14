"""The registry of agent types and reviewers' approvals over real gRPC, on files that change while the service runs."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from interlock.domain.errors import Refused
from interlock.policy.wiring import open_service
from interlock.runtime.settings.model import Settings
from tests.support.policy.agents import (
    APPROVAL,
    NOW_S,
    REVIEWER,
    SESSION,
    SPECIFICATION,
    approved,
    digest,
    fields,
    private_key,
    reviewers,
    write,
)

ORCHESTRATOR, LEGAL = digest("crp_gw_prod_orch_1"), digest("crp_gw_prod_legal_1")


@contextlib.asynccontextmanager
async def serving(**settings) -> AsyncIterator[PolicyServiceStub]:
    service = await open_service(Settings(**settings), clock=lambda: NOW_S * 1_000_000)
    server = grpc.aio.server()
    service.register(service.servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield PolicyServiceStub(channel)
    await server.stop(None)
    await service.close()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return write(tmp_path / "agents.yaml", SPECIFICATION)


@pytest.fixture
async def policy(file: Path) -> AsyncIterator[PolicyServiceStub]:
    async with serving(agents_file=file) as stub:
        yield stub


def identify(stub, digest_: str):
    return stub.IdentifyAgent(policy_pb2.IdentifyAgentRequest(api_key_sha256=digest_))


async def listed(stub) -> policy_pb2.ListAgentsResponse:
    return await stub.ListAgents(policy_pb2.ListAgentsRequest())


async def until(stub, holds) -> policy_pb2.ListAgentsResponse:
    """Ask until *holds* does; the test's own time limit ends it otherwise."""
    while not holds(found := await listed(stub)):
        await asyncio.sleep(0.05)
    return found


@pytest.mark.req("AGT-1")
async def test_a_key_is_identified_by_its_hash(policy):
    """With its limits, strategies and canonical policy."""
    found = await identify(policy, LEGAL)

    assert found.agent == policy_pb2.Agent(
        agent_type="specialist_legal",
        api_key_sha256=[LEGAL],
        max_loop_depth=1,
        max_delegations=0,
        allowed_strategies=["push", "reflexive"],
        safety_policy="halt-on HIGH; require-grounding 0.90; block-fabrication",
    )
    assert found.agent.HasField("max_delegations")
    assert found.unregistered_allowed


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize("key", ["", digest("another")])
async def test_no_agent_is_an_answer(policy, key):
    """A caller whose key is of no agent type, or that has none."""
    found = await identify(policy, key)

    assert not found.HasField("agent")
    assert not found.HasField("refusal")


@pytest.mark.parametrize("key", ["x", LEGAL.upper(), "sha256:" + LEGAL, LEGAL + "\n"])
async def test_a_hash_that_is_none_is_refused(policy, key):
    """It is the caller's hash, in one form."""
    assert (await identify(policy, key)).refusal.reason == "INVALID_HASH"


@pytest.mark.req("AGT-1")
async def test_unregistered_callers_may_be_shut_out(file):
    """``require_registered_agents`` is told with every answer."""
    async with serving(agents_file=file, require_registered_agents=True) as stub:
        assert not (await identify(stub, digest("another"))).unregistered_allowed


@pytest.mark.req("AGT-1")
async def test_a_changed_file_comes_into_force_without_a_restart(policy, file):
    """A bad one is told and not followed, the next good one is."""
    first = await listed(policy)
    file.write_text("agents:\n  x: {api_key: crp_gw_plain}\n")
    bad = await until(policy, lambda found: found.fault)
    kept = await identify(policy, ORCHESTRATOR)
    write(file, {"agents": {"other": fields("k")}})
    good = await until(policy, lambda found: not found.fault)

    assert (bad.agents, bad.registry_hash) == (first.agents, first.registry_hash)
    assert bad.fault.startswith("AGENTS_INVALID: agents.x.api_key: expected sha256:")
    assert kept.agent.agent_type == "orchestrator"
    assert [agent.agent_type for agent in good.agents] == ["other"]
    assert not (await identify(policy, ORCHESTRATOR)).HasField("agent")


@pytest.mark.req("AGT-1")
async def test_an_agent_that_is_registered_is_in_force_at_once_and_everywhere(policy, file):
    """In the service that was asked, in the file, and in another service on that file."""
    tax = policy_pb2.Agent(agent_type="specialist_tax", api_key_sha256=[digest("tax")], max_delegations=0)
    async with serving(agents_file=file) as other:
        first = await policy.RegisterAgent(policy_pb2.RegisterAgentRequest(agent=tax))
        again = await policy.RegisterAgent(policy_pb2.RegisterAgentRequest(agent=tax))
        assert (first.replaced, again.replaced) == (False, True)
        assert (await identify(policy, digest("tax"))).agent == tax
        await until(other, lambda found: len(found.agents) == 3)

        removed = [
            await policy.RemoveAgent(policy_pb2.RemoveAgentRequest(agent_type="specialist_tax")) for _ in range(2)
        ]
        assert [answer.removed for answer in removed] == [True, False]
        assert not (await identify(policy, digest("tax"))).HasField("agent")
        await until(other, lambda found: len(found.agents) == 2)


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize(
    ("changes", "kind", "reason"),
    [
        ({"agent_type": ""}, common_pb2.REFUSAL_KIND_INVALID, "AGENTS_INVALID"),
        ({"agent_type": "a b"}, common_pb2.REFUSAL_KIND_INVALID, "AGENTS_INVALID"),
        ({"api_key_sha256": []}, common_pb2.REFUSAL_KIND_INVALID, "AGENTS_INVALID"),
        ({"api_key_sha256": ["crp_gw_plain"]}, common_pb2.REFUSAL_KIND_INVALID, "AGENTS_INVALID"),
        ({"api_key_sha256": [ORCHESTRATOR]}, common_pb2.REFUSAL_KIND_CONFLICT, "AGENT_KEY_TAKEN"),
        ({"max_loop_depth": -1}, common_pb2.REFUSAL_KIND_INVALID, "AGENTS_INVALID"),
        ({"allowed_strategies": ["pushy"]}, common_pb2.REFUSAL_KIND_INVALID, "AGENTS_INVALID"),
        ({"safety_policy": "halt-on"}, common_pb2.REFUSAL_KIND_INVALID, "AGENTS_INVALID"),
    ],
)
async def test_a_bad_agent_is_refused_and_nothing_is_written(policy, file, changes, kind, reason):
    """By the rules of the file."""
    before = file.read_bytes()
    agent = policy_pb2.Agent(**{"agent_type": "x", "api_key_sha256": [digest("x")], **changes})

    answer = await policy.RegisterAgent(policy_pb2.RegisterAgentRequest(agent=agent))

    assert (answer.refusal.kind, answer.refusal.reason) == (kind, reason)
    assert file.read_bytes() == before


async def test_without_a_registry_nothing_can_be_registered():
    """And nobody is registered."""
    async with serving() as stub:
        agent = policy_pb2.Agent(agent_type="x", api_key_sha256=[digest("x")])
        added = await stub.RegisterAgent(policy_pb2.RegisterAgentRequest(agent=agent))
        removed = await stub.RemoveAgent(policy_pb2.RemoveAgentRequest(agent_type="x"))

        assert added.refusal.reason == removed.refusal.reason == "AGENTS_FILE_NOT_CONFIGURED"
        assert added.refusal.kind == common_pb2.REFUSAL_KIND_FORBIDDEN
        assert not (await identify(stub, digest("x"))).HasField("agent")
        assert (await listed(stub)).registry_hash == ""


@pytest.mark.req("AGT-1")
@pytest.mark.parametrize("setting", ["agents_file", "reviewers_file"])
@pytest.mark.parametrize("text", ["agents: [", None])
async def test_a_bad_file_refuses_to_start(tmp_path, setting, text):
    """Naming the setting; a file that is not there is one too."""
    path = tmp_path / "file.yaml"
    if text is not None:
        path.write_text(text)

    with pytest.raises(Refused) as refused:
        await open_service(Settings(**{setting: path}))

    assert refused.value.metadata["setting"] == setting
    assert f"INTERLOCK_{setting.upper()}" in refused.value.message


async def test_agents_that_must_be_registered_need_a_registry():
    """Without one nobody could do anything, and nobody would know why."""
    with pytest.raises(Refused) as refused:
        await open_service(Settings(require_registered_agents=True))

    assert refused.value.reason == "SETTINGS_INVALID"


@pytest.mark.req("AGT-1", "POL-6")
async def test_an_agent_types_policy_tightens_and_never_relaxes(policy):
    """Over a parent's policy and over a request's own; a looser one is no violation."""
    tighter, looser = "halt-on MEDIUM; block-pii", "halt-on CRITICAL; require-grounding 0.10"
    base = "halt-on HIGH; require-grounding 0.80"

    inherited = await policy.Resolve(policy_pb2.ResolveRequest(base_text=base, agent_text=tighter))
    unchanged = await policy.Resolve(policy_pb2.ResolveRequest(base_text=base, agent_text=looser))
    explicit = await policy.Resolve(
        policy_pb2.ResolveRequest(
            base_text=base, policy_texts=["halt-on HIGH; require-grounding 0.90"], agent_text=tighter
        )
    )
    root = await policy.Resolve(policy_pb2.ResolveRequest(policy_texts=["warn-on HIGH"], agent_text=tighter))
    relaxed = await policy.Resolve(
        policy_pb2.ResolveRequest(
            base_text=base, policy_texts=["halt-on CRITICAL; require-grounding 0.80"], agent_text=tighter
        )
    )

    assert inherited.policy_text == "halt-on MEDIUM; require-grounding 0.80; block-pii"
    assert unchanged.policy_text == base
    assert explicit.policy_text == "halt-on MEDIUM; require-grounding 0.90; block-pii"
    assert root.policy_text == "halt-on MEDIUM; warn-on HIGH; block-pii"
    assert relaxed.refusal.reason == "SAFETY_POLICY_INHERITANCE_VIOLATION"


# --- approvals


def asking(token: str, **changes) -> policy_pb2.VerifyApprovalRequest:
    asked = {"token": token, "action": "delegate", "session_id": SESSION, "agent_type": "specialist_legal"}
    return policy_pb2.VerifyApprovalRequest(**{**asked, **changes})


@pytest.mark.req("OVR-3", "BRK-2")
async def test_an_approval_is_verified_with_its_reviewer(tmp_path):
    """Its id, for the session service to use it once; whose it is; until when."""
    async with serving(reviewers_file=write(tmp_path / "reviewers.yaml", reviewers())) as stub:
        found = await stub.VerifyApproval(asking(approved()))

    assert found == policy_pb2.VerifyApprovalResponse(
        approval_id=APPROVAL, reviewer_id=REVIEWER, expires_at="2026-05-25T10:15:00.000000Z"
    )


@pytest.mark.req("OVR-3")
@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        (asking(approved(), session_id="crp_sess_" + "3" * 32), "APPROVAL_MISMATCH"),
        (asking(approved(), agent_type=""), "APPROVAL_MISMATCH"),
        (asking(approved(), action="release"), "APPROVAL_MISMATCH"),
        (asking(approved(issued_at=NOW_S - 1000, expires_at=NOW_S)), "APPROVAL_EXPIRED"),
        (asking(approved(key=private_key(7))), "APPROVAL_INVALID"),
        (asking(approved(reviewer="someone@else.com")), "APPROVAL_INVALID"),
        (asking("approved:sha256:abc"), "APPROVAL_INVALID"),
        (asking(""), "APPROVAL_INVALID"),
    ],
)
async def test_an_approval_that_does_not_hold_is_refused(tmp_path, asked, reason):
    """For something else, expired, forged, by nobody: 401 each."""
    async with serving(reviewers_file=write(tmp_path / "reviewers.yaml", reviewers())) as stub:
        answer = await stub.VerifyApproval(asked)

    assert (answer.refusal.kind, answer.refusal.reason) == (common_pb2.REFUSAL_KIND_UNAUTHENTICATED, reason)


@pytest.mark.req("OVR-3")
async def test_a_reviewer_who_is_removed_approves_no_longer(tmp_path):
    """Without a restart."""
    path = write(tmp_path / "reviewers.yaml", reviewers())
    async with serving(reviewers_file=path) as stub:
        assert (await stub.VerifyApproval(asking(approved()))).approval_id
        write(path, reviewers(another=private_key(2)))
        while not (answer := await stub.VerifyApproval(asking(approved()))).HasField("refusal"):
            await asyncio.sleep(0.05)

    assert answer.refusal.reason == "APPROVAL_INVALID"


async def test_without_reviewers_nothing_is_approved():
    """Fail closed."""
    async with serving() as stub:
        assert (await stub.VerifyApproval(asking(approved()))).refusal.reason == "APPROVAL_INVALID"

"""Agent types as the sidecar sees them: asked of policy, kept for a few seconds, and what they allow."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest

from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceServicer
from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceServicer
from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from interlock.api.session.v1 import session_pb2
from interlock.api.session.v1.session_pb2_grpc import SessionServiceServicer
from interlock.domain.errors import Kind, Refused, unavailable
from interlock.runtime.keys.api_keys import ApiKeys
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.errors import answers_refusals
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission import agents
from interlock.sidecar.admission.agents import CallerAgents

CALLER = ApiKeys(None).caller(["Bearer orch-key"])
OTHER = ApiKeys(None).caller(["Bearer legal-key"])


@dataclass
class Registry(policy_pb2_grpc.PolicyServiceServicer):
    """Policy's answer about agents, as a test sets it."""

    by_key: dict[str, policy_pb2.Agent] = field(default_factory=dict)
    unregistered_allowed: bool = True
    failure: Exception | None = None
    asked: list[str] = field(default_factory=list)

    @answers_refusals(policy_pb2.IdentifyAgentResponse)
    async def IdentifyAgent(self, request, _context):
        self.asked.append(request.api_key_sha256)
        if self.failure:
            raise self.failure
        return policy_pb2.IdentifyAgentResponse(
            agent=self.by_key.get(request.api_key_sha256), unregistered_allowed=self.unregistered_allowed
        )


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def known_to(registry: Registry, clock: Clock, **settings) -> CallerAgents:
    others = {"session": SessionServiceServicer(), "dpe": DpeServiceServicer(), "audit": AuditServiceServicer()}
    limits = Settings(**settings)
    return CallerAgents(limits, Peers.over(Mesh.local(policy=registry, **others), limits).policy, clock)


def orchestrator(**more) -> policy_pb2.Agent:
    return policy_pb2.Agent(agent_type="orchestrator", **more)


@pytest.mark.req("AGT-1")
async def test_an_agent_type_is_asked_once_and_again_after_a_few_seconds():
    """The registry is asked by the key's hash; a change holds everywhere after agent_cache_s."""
    registry, clock = Registry({CALLER.known_by[0]: orchestrator()}), Clock()
    found = known_to(registry, clock, agent_cache_s=3)
    first = await found.of(CALLER, Deadline(5))
    registry.by_key[CALLER.known_by[0]] = orchestrator(max_delegations=0)
    clock.now += 2.9
    kept = await found.of(CALLER, Deadline(5))
    clock.now += 0.2
    changed = await found.of(CALLER, Deadline(5))

    assert (first.agent_type, kept.HasField("max_delegations"), changed.max_delegations) == ("orchestrator", False, 0)
    assert changed.HasField("max_delegations")
    assert registry.asked == [CALLER.known_by[0]] * 2
    assert "orch-key" not in str(registry.asked)


@pytest.mark.req("AGT-1", "SVC-9")
async def test_a_registry_that_cannot_be_asked_lets_nobody_in():
    """What is not known is not guessed, and not kept either: the next call asks again."""
    registry, clock = Registry(failure=unavailable("AGENTS_UNREADABLE", "no good registry was ever read")), Clock()
    found = known_to(registry, clock)
    with pytest.raises(Refused) as caught:
        await found.of(CALLER, Deadline(5))
    registry.failure = None

    assert (caught.value.kind, caught.value.reason) == (Kind.UNAVAILABLE, "AGENTS_UNREADABLE")
    assert (await found.of(CALLER, Deadline(5))).agent_type == ""


@pytest.mark.req("AGT-1", "SVC-9")
async def test_an_answer_that_is_too_old_is_not_used_when_the_registry_is_down():
    """A key that may have been revoked meanwhile is refused, not waved through."""
    registry, clock = Registry({CALLER.known_by[0]: orchestrator()}), Clock()
    found = known_to(registry, clock, agent_cache_s=3)
    await found.of(CALLER, Deadline(5))
    registry.failure = unavailable("POLICY_UNAVAILABLE", "down")
    clock.now += 4

    with pytest.raises(Refused, match="POLICY_UNAVAILABLE"):
        await found.of(CALLER, Deadline(5))


@pytest.mark.req("AGT-1")
async def test_where_only_registered_agents_may_call_others_are_refused():
    """require_registered_agents: a key of no type is 403, on the first call and from memory."""
    registry = Registry({CALLER.known_by[0]: orchestrator()}, unregistered_allowed=False)
    found = known_to(registry, Clock())

    assert (await found.of(CALLER, Deadline(5))).agent_type == "orchestrator"
    for _ in range(2):
        with pytest.raises(Refused) as caught:
            await found.of(OTHER, Deadline(5))
        assert (caught.value.kind, caught.value.reason) == (Kind.FORBIDDEN, "AGENT_NOT_REGISTERED")
    assert registry.asked.count(OTHER.known_by[0]) == 1


async def test_a_flood_of_keys_does_not_grow_without_bound():
    """Callers that nobody knows push one another out, not the process over."""
    registry = Registry()
    found = known_to(registry, Clock())
    for number in range(agents.MOST_KEPT + 10):
        await found.of(ApiKeys(None).caller([f"Bearer key-{number}"]), Deadline(5))

    assert len(found._kept) == agents.MOST_KEPT


def test_a_caller_without_a_key_has_no_hash():
    """Anonymous callers are of no type; a key's hash is the registry's."""
    assert ApiKeys(None).caller([]).known_by == ("",)
    assert len(CALLER.known_by[0]) == 64


@pytest.mark.req("AGT-2")
def test_limits_that_are_not_set_stay_unset():
    """0 delegations is a limit, and no entry is none: the session service is told which."""
    bound = agents.terms_of(orchestrator(max_delegations=0, allowed_strategies=["push"]))
    free = agents.terms_of(orchestrator())

    assert (bound.HasField("max_delegations"), bound.max_delegations) == (True, 0)
    assert not free.HasField("max_delegations")
    assert not free.HasField("max_loop_depth")
    assert list(bound.allowed_strategies) == ["push"]


@pytest.mark.req("AGT-2")
@pytest.mark.parametrize(
    ("registered", "session", "allowed"),
    [([], [], None), (["push"], [], {"push"}), ([], ["push"], {"push"}), (["push", "fan-in"], ["push"], {"push"}),
     (["push"], ["fan-in"], set())],
)  # fmt: skip
def test_what_registry_and_session_both_allow_is_allowed(registered, session, allowed):
    """A registry that was tightened meanwhile holds, and so do the terms that a session began with."""
    terms = session_pb2.AgentTerms(allowed_strategies=session)

    assert agents.allowed_by(orchestrator(allowed_strategies=registered), terms) == allowed


@pytest.mark.req("AGT-2")
def test_a_strategy_that_is_not_allowed_is_named_with_the_list():
    """403 STRATEGY_NOT_ALLOWED says which, and what is allowed; a forced one is refused just so."""
    with pytest.raises(Refused) as caught:
        agents.check_strategy("fan-out", {"push", "reflexive"})
    with pytest.raises(Refused, match="STRATEGY_NOT_ALLOWED"):
        agents.check_strategy("reflexive", {"push"}, forced=True)

    assert (caught.value.kind, caught.value.reason) == (Kind.FORBIDDEN, "STRATEGY_NOT_ALLOWED")
    assert caught.value.metadata == {"name": "allowed_strategies", "limit": "push,reflexive", "attempted": "fan-out"}
    assert agents.check_strategy("push", None) == "push"


@pytest.mark.req("AGT-1")
def test_a_session_of_a_type_that_its_key_has_lost_is_refused():
    """A key that is taken out of the registry cannot go on as what it was."""
    terms = session_pb2.AgentTerms(agent_type="orchestrator")
    agents.check_type(orchestrator(), terms)
    agents.check_type(orchestrator(), session_pb2.AgentTerms())
    with pytest.raises(Refused, match="AGENT_TYPE_MISMATCH"):
        agents.check_type(agents.NOBODY, terms)

"""The effective policy of a call: asked of policy, and kept for a second for the same question (POL-5)."""

from __future__ import annotations

import pytest

from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceServicer
from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceServicer
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1.session_pb2_grpc import SessionServiceServicer
from interlock.domain.errors import Refused, unavailable
from interlock.domain.headers import headers
from interlock.domain.policy.directives import NOTHING
from interlock.domain.policy.policy_text import parse
from interlock.policy.servicer import PolicyServicer
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.rpc.mesh import Mesh
from interlock.runtime.rpc.peers import Peers
from interlock.runtime.settings.model import Settings
from interlock.sidecar.admission import policies
from interlock.sidecar.admission.policies import Policies
from interlock.sidecar.trail.response_headers import ResponseHeaders

pytestmark = pytest.mark.req("POL-5")

NOBODY = policy_pb2.Agent()


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Counted(PolicyServicer):
    """The policy service, which counts what it is asked."""

    asked = 0
    failure: Exception | None = None

    async def Resolve(self, request, context):
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        return await super().Resolve(request, context)


def asking(service: Counted, clock: Clock, keep_s: float = 3.0) -> Policies:
    others = {"session": SessionServiceServicer(), "dpe": DpeServiceServicer(), "audit": AuditServiceServicer()}
    peer = Peers.over(Mesh.local(policy=service, **others), Settings()).policy
    return Policies(peer, keep_s=keep_s, now=clock)


async def resolved(asked: Policies, line: str = "", base: str | None = None) -> tuple[str, ResponseHeaders]:
    reply = ResponseHeaders()
    given = headers.read([("crp-safety-policy", line)] if line else [])
    return (await asked.resolve(given, base, NOBODY, reply, Deadline(5))).policy_text, reply


async def test_the_same_question_is_asked_once_in_a_second():
    """The answer is the same one, and each call is told it."""
    service, clock = Counted(parse("halt-on CRITICAL")), Clock()
    asked = asking(service, clock)
    first, _ = await resolved(asked)
    clock.now += 0.9
    second, reply = await resolved(asked)

    assert (first, second, service.asked) == ("halt-on CRITICAL", "halt-on CRITICAL", 1)
    assert reply.headers["CRP-Safety-Policy-Applied"] == "halt-on CRITICAL"


async def test_a_policy_service_with_another_default_is_followed_after_a_second():
    """However long agent types are kept."""
    service, clock = Counted(parse("halt-on CRITICAL")), Clock()
    asked = asking(service, clock, keep_s=3600)
    await resolved(asked)
    service._default = parse("halt-on HIGH")
    clock.now += 1.1

    assert (await resolved(asked))[0] == "halt-on HIGH"


async def test_every_other_question_is_asked():
    """Another line, another session's policy and no session are three questions."""
    service, clock = Counted(parse("halt-on CRITICAL")), Clock()
    asked = asking(service, clock)
    told = [
        (await resolved(asked, *question))[0] for question in [(), ("halt-on HIGH",), ("", "halt-on HIGH"), ("", "")]
    ]

    assert service.asked == 4
    assert told[1] == told[2] == "halt-on HIGH"


async def test_a_policy_that_relaxes_is_refused_also_where_the_session_s_own_is_known():
    """What is kept is one question's answer: a call that loosens asks another one."""
    service, clock = Counted(NOTHING), Clock()
    asked = asking(service, clock)
    await resolved(asked, "halt-on HIGH", "halt-on HIGH")
    with pytest.raises(Refused, match="SAFETY_POLICY_INHERITANCE_VIOLATION"):
        await resolved(asked, "halt-on CRITICAL", "halt-on HIGH")


async def test_a_refusal_is_not_kept_and_an_old_answer_not_used():
    """Where policy cannot answer, the call is refused; the next one asks again."""
    service, clock = Counted(NOTHING), Clock()
    asked = asking(service, clock)
    await resolved(asked)
    clock.now += 1.1
    service.failure = unavailable("POLICY_UNAVAILABLE", "down")
    with pytest.raises(Refused, match="POLICY_UNAVAILABLE"):
        await resolved(asked)
    service.failure = None
    await resolved(asked)

    assert service.asked == 3


async def test_who_keeps_agent_types_for_less_keeps_policies_for_less():
    """One setting says how old an answer of policy may be."""
    service, clock = Counted(NOTHING), Clock()
    asked = asking(service, clock, keep_s=0.1)
    await resolved(asked)
    clock.now += 0.2
    await resolved(asked)

    assert service.asked == 2


async def test_answers_to_many_questions_do_not_fill_the_memory(monkeypatch):
    """The oldest goes first."""
    monkeypatch.setattr(policies, "MOST_KEPT", 2)
    service, clock = Counted(NOTHING), Clock()
    asked = asking(service, clock)
    for line in ("halt-on CRITICAL", "halt-on HIGH", "warn-on HIGH", "warn-on HIGH", "halt-on CRITICAL"):
        await resolved(asked, line)

    assert (service.asked, len(asked._kept)) == (4, 2)

"""A-09: names that a caller chooses, guesses or copies, to be bound to a session that is not its own."""

from __future__ import annotations

import secrets

import pytest

from interlock.api.session.v1 import session_pb2 as pb
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.runtime.rpc.channel import LocalChannel
from interlock.runtime.settings.model import Settings
from interlock.session.wiring import open_service
from tests.support.session.bindings import RANKS, Talker, speaking
from tests.support.session.session_client import MASTER, POLICY, Client, sha

pytestmark = pytest.mark.req("ATT-3")

VICTIM, ATTACKER = "key_of_the_victim", "key_of_the_attacker"
ANSWER = "The contract ends in March of next year."


@pytest.fixture(params=["memory", "valkey"])
async def client(request, tmp_path):
    url = "memory://" if request.param == "memory" else request.getfixturevalue("redis_url")
    service = await open_service(Settings(redis_url=url, state_dir=tmp_path, master_key=MASTER.hex()))
    yield Client(SessionServiceStub(LocalChannel(SessionService=service.servicer)))
    await service.close()


async def test_a09_a_name_is_fixed_for_nobody_else(client):
    """An attacker starts a session under a name and lures the victim into it: the victim's call begins one of its own."""
    attacker, victim = Talker(client, ATTACKER), Talker(client, VICTIM)
    planted = await attacker.settle(await attacker.begin(hint="shared", body="shared"), ANSWER, cookie="c", trace="t")

    for given in ({"hint": "shared"}, {"body": "shared"}, {"cookie": "c"}, {"trace": "t"}):
        refused = await victim.refused(ANSWER, **given)
        assert refused.reason == "SESSION_NOT_BOUND"
        assert planted.session_id not in str(refused.metadata)
    begun = await victim.begin(hint="shared", body="shared")
    assert begun.session_id != planted.session_id


@pytest.mark.parametrize("kind", sorted(RANKS))
async def test_a09_the_victims_own_evidence_is_nothing_without_its_key(client, kind):
    """Even the digests themselves, taken off the wire, bind nothing in another scope, and start nothing in its name."""
    victim = Talker(client, VICTIM)
    window = await victim.settle(await victim.begin(), ANSWER, **{kind: "mine"})
    stolen = speaking(ANSWER, scope=VICTIM, **{kind: "mine"})
    stolen.scope = ATTACKER

    refused = await client.refused("OpenWindow", stolen)
    assert refused.reason in {"SESSION_NOT_BOUND", "RESPONSE_NOT_FOUND"}
    assert window.session_id not in str(refused.metadata)
    request = pb.StartSessionRequest(
        scope=ATTACKER, policy_text=POLICY, policy_hash=sha(POLICY), names=stolen.evidence.names
    )
    await client.call("StartSession", request)
    assert (await victim.open(ANSWER, **{kind: "mine"})).session_id == window.session_id


async def test_a09_guessed_digests_lead_nowhere(client):
    """A thousand random names and answers beside a living session find nothing."""
    victim = Talker(client, VICTIM)
    await victim.conversation(ANSWER, hint="mine")

    for _ in range(16):
        guesses = pb.BindingEvidence(
            names=[pb.BoundName(rank=pb.BINDING_RANK_COOKIE, digest=secrets.token_hex(16)) for _ in range(8)],
            turns=[pb.BoundTurn(digest=secrets.token_hex(16)) for _ in range(64)],
        )
        refused = await client.refused("OpenWindow", pb.OpenWindowRequest(scope=VICTIM, evidence=guesses))
        assert refused.reason == "SESSION_NOT_BOUND"


async def test_a09_a_name_is_no_way_out_of_a_halt(client):
    """A halted caller cannot begin anew under the name, the answer or the response that bound it."""
    attacker = Talker(client, ATTACKER)
    window = await attacker.settle(await attacker.begin(hint="h"), ANSWER, cost=500_000, response="r")
    await attacker.settle(await attacker.open(ANSWER, hint="h"), "", cost=500_000)

    for history, given in (
        ((), {"hint": "h"}),
        ((ANSWER,), {}),
        ((), {"response": "r"}),
        ((ANSWER,), {"cookie": "new"}),
    ):
        refused = await attacker.refused(*history, **given)
        assert (refused.reason, refused.metadata["session_id"]) == ("BUDGET_DEPLETED", window.session_id)

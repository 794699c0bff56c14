"""Trees of sessions over real gRPC on a real Valkey: grants, children, cascades, windows side by side, results."""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import secrets
from typing import Any

import pytest
from prometheus_client import REGISTRY

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2 as pb
from interlock.domain.errors import Kind, Refused
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.settings.model import Settings
from interlock.session.ledger import Ledger
from interlock.session.servicer import SessionServicer
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.terms import rules_of
from tests.support.session.session_client import MASTER, POLICY, SCOPE, Client, Clock, asking, payload, serving, sha

CHILD = "key_fedcba9876543210fedcba98"


@pytest.fixture
def settings(redis_url, tmp_path):
    return Settings(redis_url=redis_url, state_dir=tmp_path, master_key=MASTER.hex(), session_port=0)


@pytest.fixture
async def client(settings):
    async with serving(settings) as address, asking(address) as made:
        yield made


@pytest.fixture
async def timed(settings):
    """A servicer of the same parts whose clock the test moves, asked as a function."""
    clock = Clock()
    store = RedisStore(Batcher(parse(settings.redis_url)), token_lifetime_s=settings.token_lifetime_s)
    ledger = Ledger(store, Keyring({1: MASTER}), rules_of(settings), clock=clock, entropy=secrets.token_bytes)
    servicer = SessionServicer(ledger)

    class Direct:
        def __getattr__(self, method: str):
            return lambda request, timeout: getattr(servicer, method)(request, None)

    yield Client(Direct()), clock
    await ledger.close()


async def grant(client: Client, token: str, **fields: Any) -> str:
    answer = await client.call("Delegate", pb.DelegateRequest(**{"token": token, "scope": SCOPE, **fields}))
    return answer.grant


async def child(client: Client, granted: str, **fields: Any) -> pb.StartSessionResponse:
    given = {"grant": granted, "scope": CHILD, "parent_policy_hash": sha(POLICY), **fields}
    return await client.start(**given)


async def child_of(client: Client, token: str, **fields: Any) -> pb.StartSessionResponse:
    return await child(client, await grant(client, token), **fields)


async def no_child(client: Client, granted: str, **fields: Any) -> Refused:
    with pytest.raises(Refused) as caught:
        await child(client, granted, **fields)
    return caught.value


async def window(client: Client, token: str, charge: int, *, scope: str = CHILD, **fields: Any) -> Any:
    opened = await client.open(token, scope=scope)
    given = {"pattern": opened.pattern, "ancestor_session_ids": opened.ancestor_session_ids, "charge_micros": charge}
    return await client.settle(opened, **{**given, **fields})


async def session(client: Client, started: Any) -> pb.Session:
    return await client.session(session_id=started.session.session_id, root_session_id=started.session.root_session_id)


# Delegation


@pytest.mark.req("AGT-2", "BUD-7", "HDR-1", "POL-5")
async def test_a_grant_tells_what_a_child_inherits_and_the_child_has_it(client):
    """Budget, policy, depth, safety mode and residency come from the parent's state, through ReadGrant and StartSession."""
    root = await client.start(safety_mode="strict", data_residency="EU")
    token = (await client.line(150_000, token=root.token)).token
    granted = await grant(client, token, agent_type="specialist_legal")
    told = (
        await client.call("ReadGrant", pb.ReadGrantRequest(grant=granted, agent_type="specialist_legal"))
    ).delegation
    started = await child(client, granted, agent=pb.AgentTerms(agent_type="specialist_legal", max_loop_depth=1))
    below = started.session
    parent = await session(client, root)

    assert (told.parent_session_id, told.root_session_id) == (root.session.session_id,) * 2
    assert (told.loop_depth, told.safety_budget_micros, told.strategy) == (1, 850_000, "")
    assert (told.policy_text, told.policy_hash, told.safety_mode, told.data_residency) == (
        POLICY,
        sha(POLICY),
        "strict",
        "EU",
    )
    assert (below.parent_session_id, below.root_session_id) == (root.session.session_id,) * 2
    assert (below.loop_depth, below.safety_budget_micros, below.scope) == (1, 850_000, CHILD)
    assert (below.safety_mode, below.data_residency, below.agent.agent_type) == ("strict", "EU", "specialist_legal")
    assert list(parent.child_session_ids) == [below.session_id]
    assert payload(started.token)["sb"] == 0.85


@pytest.mark.req("AGT-2")
async def test_a_grant_is_good_once(client):
    """Replayed: 409, and the second child is not there."""
    root = await client.start()
    granted = await grant(client, root.token)
    await child(client, granted)
    no = await no_child(client, granted)

    assert (no.kind, no.reason) == (Kind.CONFLICT, "GRANT_ALREADY_USED")
    assert len((await session(client, root)).child_session_ids) == 1


@pytest.mark.req("AGT-2", "BUD-8")
async def test_of_sixteen_who_present_one_grant_one_gets_the_child(client):
    """Used in the same step that creates the child."""
    root = await client.start()
    granted = await grant(client, root.token)
    answers = await asyncio.gather(*(child(client, granted) for _ in range(16)), return_exceptions=True)

    assert sorted(each.reason for each in answers if isinstance(each, Refused)) == ["GRANT_ALREADY_USED"] * 15
    assert len((await session(client, root)).child_session_ids) == 1


@pytest.mark.req("AGT-2")
async def test_siblings_race_for_the_last_delegations(client):
    """Three of twelve win; the others are told the limit, its value and what was attempted; nobody is half there."""
    root = await client.start(agent=pb.AgentTerms(agent_type="orchestrator", max_delegations=3))
    granted = [await grant(client, root.token) for _ in range(12)]
    answers = await asyncio.gather(*(child(client, each) for each in granted), return_exceptions=True)
    lost = [each for each in answers if isinstance(each, Refused)]
    tree = await client.call("GetDag", pb.GetDagRequest(session_id=root.session.session_id, tree=True))

    assert {(each.kind, each.reason) for each in lost} == {(Kind.FORBIDDEN, "MAX_DELEGATIONS_EXCEEDED")}
    assert lost[0].metadata == {"name": "max_delegations", "limit": "3", "attempted": "4"}
    assert (len(lost), len(tree.sessions)) == (9, 4)
    no = await client.refused("Delegate", pb.DelegateRequest(token=root.token, scope=SCOPE))
    assert no.reason == "MAX_DELEGATIONS_EXCEEDED"


@pytest.mark.req("AGT-2", "AGT-3")
@pytest.mark.parametrize(("depths", "limit"), [((None, None, None), 3), ((1, None, None), 1), ((None, 1, 5), 2)])
async def test_the_depth_is_held_to_the_deployment_and_to_every_agent_above(settings, depths, limit):
    """One level too deep is refused when the grant is minted: max_loop_depth counts from the agent that has it."""
    async with serving(settings.model_copy(update={"max_loop_depth": 3})) as address, asking(address) as client:
        started, scope = await client.start(agent=pb.AgentTerms(max_loop_depth=depths[0])), SCOPE
        for level in range(limit):
            granted = await grant(client, started.token, scope=scope)
            terms = pb.AgentTerms(max_loop_depth=depths[level + 1] if level + 1 < len(depths) else None)
            started, scope = await child(client, granted, agent=terms), CHILD
        no = await client.refused("Delegate", pb.DelegateRequest(token=started.token, scope=CHILD))

    assert started.session.loop_depth == limit
    assert (no.kind, no.reason) == (Kind.FORBIDDEN, "MAX_LOOP_DEPTH_EXCEEDED")
    assert no.metadata == {"name": "max_loop_depth", "limit": str(limit), "attempted": str(limit + 1)}


@pytest.mark.req("AGT-2")
async def test_a_forged_or_foreign_grant_starts_nothing(client, settings, tmp_path):
    """Each changed character, another master key, another agent type, another parent, another depth: refused by name."""
    root = await client.start()
    granted = await grant(client, root.token, agent_type="specialist_legal")
    legal = pb.AgentTerms(agent_type="specialist_legal")
    for at in (0, len(granted) // 2, len(granted) - 1):
        forged = granted[:at] + ("A" if granted[at] != "A" else "B") + granted[at + 1 :]
        assert (await no_child(client, forged, agent=legal)).kind is Kind.UNAUTHENTICATED
    assert (await no_child(client, root.token, agent=legal)).reason == "GRANT_MALFORMED"
    assert (await no_child(client, granted)).reason == "GRANT_AGENT_MISMATCH"
    other = settings.model_copy(update={"master_key": None, "state_dir": tmp_path / "other"})
    async with serving(other) as address, asking(address) as stranger:
        assert (await no_child(stranger, granted, agent=legal)).reason == "GRANT_SIGNATURE_INVALID"
    for named, kind, reason in (
        ({"parent_session_id": "crp_sess_" + "0" * 32}, Kind.CONFLICT, "GRANT_PARENT_MISMATCH"),
        ({"loop_depth": 0}, Kind.CONFLICT, "LOOP_DEPTH_MISMATCH"),
    ):
        request = pb.ReadGrantRequest(grant=granted, agent_type="specialist_legal", **named)
        no = await client.refused("ReadGrant", request)
        assert (no.kind, no.reason) == (kind, reason)

    assert not (await session(client, root)).child_session_ids
    await child(client, granted, agent=legal)


@pytest.mark.req("AGT-2")
async def test_a_grant_with_an_edited_payload_is_not_ours(client):
    """A higher budget, another depth or another parent under the old signature."""
    root = await client.start()
    part, mac = (await grant(client, root.token)).split(".")
    said = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    for edit in (
        {"sb": 999_999},
        {"dep": 2},
        {"typ": "x"},
        {"exp": said["exp"] + 1000},
        {"gid": "0" * 32},
        {"apr": "a"},
    ):
        text = json.dumps({**said, **edit}, separators=(",", ":")).encode()
        forged = base64.urlsafe_b64encode(text).rstrip(b"=").decode() + "." + mac
        no = await no_child(client, forged)
        assert no.kind is Kind.UNAUTHENTICATED
        assert no.reason in {"GRANT_SIGNATURE_INVALID", "GRANT_AGENT_MISMATCH"}


@pytest.mark.req("AGT-2")
async def test_a_grant_expires(timed):
    """A second after its life it is a 401, and the parent has no child."""
    client, clock = timed
    root = await client.start()
    granted = await grant(client, root.token, lifetime_s=30)
    clock.go_on(30)
    await child(client, granted)
    late = await grant(client, root.token, lifetime_s=30)
    clock.go_on(31.5)

    assert (await no_child(client, late)).reason == "GRANT_EXPIRED"


@pytest.mark.req("BRK-2")
async def test_a_half_open_breaker_delegates_only_with_an_approval_and_each_once(client):
    """0.50: refused by name; with an approval id the child starts and is forced to reflexive; the approval is used up."""
    token = (await client.line(350_000, 150_000)).token
    no = await client.refused("Delegate", pb.DelegateRequest(token=token, scope=SCOPE))
    first = await grant(client, token, approval_id="apr-1")
    second = await grant(client, token, approval_id="apr-1")
    told = (await client.call("ReadGrant", pb.ReadGrantRequest(grant=first))).delegation
    started = await child(client, first)

    assert (no.kind, no.reason) == (Kind.FORBIDDEN, "DELEGATION_NEEDS_APPROVAL")
    assert told.strategy == "reflexive"
    assert (started.session.safety_budget_micros, payload(started.token)["str"]) == (500_000, "reflexive")
    assert (await no_child(client, second)).reason == "APPROVAL_ALREADY_USED"


@pytest.mark.req("BRK-2", "BRK-3")
async def test_a_breaker_that_moves_between_grant_and_child_counts_as_it_is_then(client):
    """Minted at 1.00: refused at 0.50 without approval, halted at 0.10."""
    root = await client.start()
    granted = await grant(client, root.token)
    token = (await client.line(350_000, 150_000, token=root.token)).token
    half = await no_child(client, granted)
    await client.line(350_000, 50_000, token=token)
    spent = await no_child(client, granted)

    assert (half.kind, half.reason) == (Kind.FORBIDDEN, "DELEGATION_NEEDS_APPROVAL")
    assert (spent.kind, spent.reason) == (Kind.HALTED, "BUDGET_DEPLETED")


@pytest.mark.finding("F-11")
@pytest.mark.req("AGT-2", "BUD-7")
async def test_a_parent_that_ended_delegates_nothing_and_its_children_end_with_it(client):
    """What is in flight settles, lowers the ended parent and is told not to be released; nothing is opened after it."""
    root = await client.start()
    granted, late = await grant(client, root.token), await grant(client, root.token)
    started = await child(client, granted)
    opened = await client.open(started.token, scope=CHILD)
    await client.call("TerminateSession", pb.TerminateSessionRequest(token=root.token, scope=SCOPE))
    done = await client.settle(opened, charge_micros=150_000, ancestor_session_ids=opened.ancestor_session_ids)
    next_one = await client.refused("OpenWindow", pb.OpenWindowRequest(token=done.token, scope=CHILD))
    parent = await session(client, root)
    minted = await client.refused("Delegate", pb.DelegateRequest(token=root.token, scope=SCOPE))

    assert (await no_child(client, late)).reason == minted.reason == "PARENT_ENDED"
    assert done.session_budget_micros == 850_000
    assert (parent.safety_budget_micros, parent.status) == (850_000, pb.SESSION_STATUS_TERMINATED)
    assert [(each.safety_budget_micros, each.terminated) for each in done.ancestors] == [(850_000, True)]
    assert (done.ancestor_halt.reason, done.ancestor_halt.session_id) == ("ANCESTOR_ENDED", root.session.session_id)
    assert (next_one.reason, next_one.metadata["ancestor_session_id"]) == ("ANCESTOR_ENDED", root.session.session_id)


@pytest.mark.req("POL-6", "POL-8")
async def test_a_child_resolved_against_an_older_policy_of_its_parent_does_not_start(client):
    """The parent tightened meanwhile: 409, and the same grant is good for another try under the new policy."""
    tighter = "halt-on HIGH"
    root = await client.start()
    granted = await grant(client, root.token)
    await client.settle(await client.open(root.token), policy_text=tighter, policy_hash=sha(tighter))
    no = await no_child(client, granted)
    unsaid = await no_child(client, granted, parent_policy_hash="")
    started = await child(
        client, granted, policy_text=tighter, policy_hash=sha(tighter), parent_policy_hash=sha(tighter)
    )

    assert (no.kind, no.reason, unsaid.reason) == (Kind.CONFLICT, "PARENT_POLICY_CHANGED", "PARENT_POLICY_CHANGED")
    assert started.session.policy_text == tighter


@pytest.mark.req("BUD-7", "BUD-4")
@pytest.mark.parametrize(("asked", "budget"), [(None, 850_000), (1_000_000, 850_000), (600_000, 600_000)])
async def test_a_child_cannot_raise_its_budget_by_what_it_says(client, asked, budget):
    """A ceiling above the parent's budget changes nothing; one below lowers."""
    token = (await client.line(150_000)).token
    started = await child_of(client, token, ceiling_micros=asked)

    assert started.session.safety_budget_micros == budget


@pytest.mark.parametrize(
    "fields",
    [
        {"ceiling_micros": -1},
        {"ceiling_micros": 1_000_001},
        {"ceiling_micros": 2**62},
        {"parent_policy_hash": "sha256:1"},
        {"data_residency": "eu"},
        {"safety_mode": "STRICT"},
        {"agent": pb.AgentTerms(agent_type="a b")},
        {"agent": pb.AgentTerms(agent_type="a" * 65)},
        {"agent": pb.AgentTerms(max_delegations=-1)},
        {"agent": pb.AgentTerms(allowed_strategies=["improvise"])},
    ],
)
async def test_a_child_with_a_wrong_field_uses_nothing_up(client, fields):
    """Bad figures and names are 400; the same grant is good afterwards."""
    granted = await grant(client, (await client.start()).token)
    no = await no_child(client, granted, **fields)

    assert no.kind is Kind.INVALID
    assert (await child(client, granted)).session.loop_depth == 1


@pytest.mark.req("HDR-1")
async def test_data_residency_cannot_be_changed_below(client):
    """The tree's jurisdiction is inherited; another one is 403."""
    root = await client.start(data_residency="EU")
    granted = await grant(client, root.token)
    no = await no_child(client, granted, data_residency="US")

    assert (no.kind, no.reason) == (Kind.FORBIDDEN, "DATA_RESIDENCY_VIOLATION")
    assert (await child(client, granted, data_residency="EU")).session.data_residency == "EU"


@pytest.mark.req("TOK-5")
async def test_the_token_of_a_child_is_enough_to_find_it(client):
    """Open, read, delegate and end by token alone; by its id alone for operators, by id and root too."""
    root = await client.start()
    started = await child_of(client, root.token)
    session_id = started.session.session_id
    grandchild = await child(client, await grant(client, started.token, scope=CHILD))
    request = pb.TerminateSessionRequest(token=grandchild.token, scope=CHILD)

    assert (await window(client, started.token, 0)).session_budget_micros == 1_000_000
    assert (await client.session(token=started.token)).session_id == session_id
    assert (await client.session(session_id=session_id)).parent_session_id == root.session.session_id
    assert (await session(client, started)).session_id == session_id
    assert grandchild.session.root_session_id == root.session.session_id
    assert (await client.call("TerminateSession", request)).changed


# Cascades


@pytest.mark.req("OVR-1", "BUD-7", "BRK-2", "BRK-4", "BRK-5")
async def test_the_walk_to_0_28(client):
    """Parent at 0.63, child halts on CRITICAL: 0.63 - 0.35 = 0.28, the child has 0.28, so min is 0.28 (SPEC-012 §6.1)."""
    steps = ("interlock_breaker_transitions_total", {"from": "CLOSED", "to": "HALF_OPEN"})
    root = await client.start()
    token = (await client.line(150_000, 150_000, 70_000, token=root.token)).token
    started = await child_of(client, token)
    before = REGISTRY.get_sample_value(*steps) or 0
    opened = await client.open(started.token, scope=CHILD)
    fields = {
        "ancestor_session_ids": opened.ancestor_session_ids,
        "charge_micros": 350_000,
        "parent_charge_micros": 350_000,
        "status": "HALTED",
        "risk_level": common_pb2.RISK_LEVEL_CRITICAL,
    }
    done = await client.settle(opened, **fields)
    again = await client.settle(opened, **fields)
    (above,) = done.ancestors
    (step,) = above.transitions
    next_window = await client.open(token)

    assert started.session.safety_budget_micros == 630_000
    assert (done.session_budget_micros, above.before_micros, above.safety_budget_micros) == (280_000, 630_000, 280_000)
    assert (step.session_id, step.from_state, step.to_state) == (root.session.session_id, 1, 2)
    assert above.session_id == root.session.session_id
    assert again.duplicate
    assert list(again.ancestors) == list(done.ancestors)
    assert REGISTRY.get_sample_value(*steps) == before + 2  # the child's and the parent's, once each
    assert (next_window.safety_budget_micros, next_window.session_budget_micros) == (280_000, 280_000)
    assert (next_window.breaker, next_window.strategy) == (2, "reflexive")


@pytest.mark.req("BUD-6", "BUD-7", "BRK-4")
async def test_the_figures_of_three_sub_agents(client):
    """From 0.85 three children end at 0.62, 0.31 and 0.80; the orchestrator has 0.31 (SPEC-004 §15.2)."""
    root = await client.start()
    token = (await client.line(150_000, token=root.token)).token
    agents = [await child_of(client, token) for _ in range(3)]
    done = [await window(client, agents[0].token, 230_000)]
    done.append(await window(client, agents[1].token, 350_000))
    done.append(await window(client, done[1].token, 190_000))
    done.append(await window(client, agents[2].token, 50_000))
    synthesis = await client.open(token)

    assert [each.session.safety_budget_micros for each in agents] == [850_000] * 3
    assert [each.session_budget_micros for each in done] == [620_000, 500_000, 310_000, 800_000]
    assert [[above.safety_budget_micros for above in each.ancestors] for each in done] == [
        [620_000],
        [500_000],
        [310_000],
        [],
    ]
    assert (synthesis.safety_budget_micros, synthesis.breaker) == (310_000, 2)


@pytest.mark.req("BRK-3", "BRK-4", "BRK-5", "BUD-7")
async def test_a_depleted_leaf_halts_the_whole_chain_in_one_step(client):
    """Five levels: all of them OPEN and halted by one settle, each with both of its steps, from the parent up."""
    root = await client.start()
    chain, token, scope = [root], root.token, SCOPE
    for _ in range(5):
        chain.append(await child(client, await grant(client, token, scope=scope)))
        token, scope = chain[-1].token, CHILD
    done = await window(client, token, 0, ceiling_micros=100_000)
    states = [await session(client, each) for each in chain]

    assert [above.session_id for above in done.ancestors] == [each.session.session_id for each in reversed(chain[:-1])]
    assert [[step.to_state for step in above.transitions] for above in done.ancestors] == [[2, 3]] * 5
    assert {(each.safety_budget_micros, each.status) for each in states} == {(100_000, pb.SESSION_STATUS_HALTED)}


@pytest.mark.req("BUD-9", "BUD-7")
async def test_a_lost_ancestor_settles_nothing(client, settings, valkey):
    """The root's key is gone: SESSION_STATE_LOST, and neither the child nor its parent is charged."""
    root = await client.start()
    middle = await child_of(client, root.token)
    leaf = await child(client, await grant(client, middle.token, scope=CHILD))
    root_id = root.session.session_id
    with valkey.client() as store:
        store.delete(f"il:{{{root_id}}}:s:{root_id}")
    with pytest.raises(Refused) as no:
        await window(client, leaf.token, 150_000)
    states = [await session(client, each) for each in (middle, leaf)]

    assert no.value.reason == "SESSION_STATE_LOST"
    assert [(each.safety_budget_micros, len(each.windows)) for each in states] == [(1_000_000, 0)] * 2


@pytest.mark.req("BUD-7")
async def test_a_settle_that_leaves_its_ancestors_out_is_refused(client):
    """Whoever names other ancestors than the stored ones would spare them: 409 and no charge."""
    root = await client.start()
    started = await child_of(client, root.token)
    opened = await client.open(started.token, scope=CHILD)
    for wrong in ([], ["crp_sess_" + "0" * 32], [*opened.ancestor_session_ids, "crp_sess_" + "0" * 32]):
        with pytest.raises(Refused) as no:
            await client.settle(opened, ancestor_session_ids=wrong)
        assert no.value.reason == "ANCESTORS_MISMATCH"

    assert (await session(client, root)).safety_budget_micros == 1_000_000


@pytest.mark.req("BUD-10", "BUD-8")
async def test_costs_add_up_where_a_deployment_says_so(settings):
    """accumulate: sum: three children that each cost 0.15 leave 0.55 to the root, and a parallel window counts too."""
    summed = settings.model_copy(update={"budget_accumulate": "sum"})
    async with serving(summed) as address, asking(address) as client:
        root = await client.start()
        agents = [await child_of(client, root.token) for _ in range(3)]
        await asyncio.gather(*(window(client, each.token, 150_000) for each in agents))
        after_agents = (await session(client, root)).safety_budget_micros
        first = await client.line(50_000, token=root.token)
        branches = [await client.open(first.token, pattern="FAN_OUT") for _ in range(2)]
        for each in branches:
            await client.settle(each, pattern="FAN_OUT", charge_micros=50_000, ceiling_micros=1_000_000)
        state = await session(client, root)

    assert (after_agents, first.session_budget_micros) == (550_000, 500_000)
    assert (state.safety_budget_micros, state.accumulate_sum) == (400_000, True)


# Results


@pytest.mark.req("AGT-4", "PRV-3")
async def test_results_of_own_children_are_linked_and_no_others(client):
    """Window, chain tip, agent and budget of the child come back; whatever is not a completed window of a child is refused."""
    root, stranger = await client.start(), await client.start()
    mine = await child_of(client, root.token)
    first = await client.open(mine.token, scope=CHILD)
    above = {"ancestor_session_ids": first.ancestor_session_ids}
    done = await client.settle(first, charge_micros=50_000, **above)
    halted = await client.open(done.token, scope=CHILD)
    await client.settle(halted, charge_micros=50_000, status="HALTED", **above)
    nephew = await child(client, await grant(client, mine.token, scope=CHILD))
    theirs = await child_of(client, stranger.token)
    for each in (nephew, theirs):
        await window(client, each.token, 0, hmac=sha(each.session.session_id))

    def asked(*results: tuple[str, str], session: str = root.session.session_id) -> pb.VerifyResultsRequest:
        named = [pb.SubAgentResult(session_id=child_id, hmac=hmac) for child_id, hmac in results]
        return pb.VerifyResultsRequest(session_id=session, root_session_id=root.session.root_session_id, results=named)

    good = (mine.session.session_id, sha(first.window_id))
    (told,) = (await client.call("VerifyResults", asked(good))).results
    causes = {}
    for name, bad in {
        "halted": [(mine.session.session_id, sha(halted.window_id))],
        "unknown window": [(mine.session.session_id, sha("x"))],
        "nephew": [(nephew.session.session_id, sha(nephew.session.session_id))],
        "foreign": [(theirs.session.session_id, sha(theirs.session.session_id))],
        "unknown": [("crp_sess_" + "0" * 32, sha("x"))],
        "itself": [(root.session.session_id, sha("x"))],
        "twice": [good, good],
    }.items():
        no = await client.refused("VerifyResults", asked(*bad))
        assert (no.kind, no.reason, no.metadata["session_id"]) == (Kind.FORBIDDEN, "RESULT_NOT_LINKED", bad[0][0])
        causes[name] = no.metadata["cause"]

    assert (told.window_id, told.chain_tip) == (first.window_id, sha(halted.window_id))
    assert (told.safety_budget_micros, told.risk_level) == (900_000, common_pb2.RISK_LEVEL_HIGH)
    assert causes == {
        "halted": "HALTED",
        "unknown window": "UNKNOWN_WINDOW",
        "nephew": "NOT_A_CHILD",
        "foreign": "NOT_A_CHILD",
        "unknown": "NOT_A_CHILD",
        "itself": "NOT_A_CHILD",
        "twice": "DUPLICATE",
    }
    nobody = asked(good, session="crp_sess_" + "0" * 32)
    assert (await client.refused("VerifyResults", nobody)).reason == "SESSION_NOT_FOUND"
    assert (await client.refused("VerifyResults", asked(*[good] * 101))).reason == "TOO_MANY_RESULTS"


@pytest.mark.req("DAG-12")
async def test_a_tree_is_read_whole_each_session_after_its_parent(client):
    """Root, two children, one grandchild; without tree only the session that was named."""
    root = await client.start()
    first, second = [await child_of(client, root.token) for _ in range(2)]
    grandchild = await child(client, await grant(client, first.token, scope=CHILD))
    whole = await client.call("GetDag", pb.GetDagRequest(token=root.token, scope=SCOPE, tree=True))
    alone = await client.call("GetDag", pb.GetDagRequest(token=root.token, scope=SCOPE))
    order = [each.session.session_id for each in (root, first, second, grandchild)]

    assert [each.session_id for each in whole.sessions] == order
    assert [each.session_id for each in alone.sessions] == order[:1]
    assert [each.loop_depth for each in whole.sessions] == list(itertools.chain([0], [1, 1], [2]))

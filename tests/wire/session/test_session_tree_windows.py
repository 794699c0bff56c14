"""Windows side by side over real gRPC on a real Valkey: patterns, tokens, failures, policies, and what is refused."""

from __future__ import annotations

import asyncio
import json

import pytest

from interlock.api.session.v1 import session_pb2 as pb
from interlock.domain.errors import Kind
from interlock.runtime.settings.model import Settings
from interlock.session.terms import terms_from_json, terms_to_json
from tests.support.session.session_client import MASTER, POLICY, asking, opening, payload, serving, settling, sha
from tests.support.session.sessions import new_state


@pytest.fixture
def settings(redis_url, tmp_path):
    return Settings(redis_url=redis_url, state_dir=tmp_path, master_key=MASTER.hex(), session_port=0)


@pytest.fixture
async def client(settings):
    async with serving(settings) as address, asking(address) as made:
        yield made


async def settled(client, opened, charge=0, **fields):
    return await client.settle(opened, **{"pattern": opened.pattern, "charge_micros": charge, **fields})


@pytest.mark.req("DAG-3", "DAG-11", "TOK-2", "BUD-6")
async def test_one_token_fans_out_and_several_pointers_meet(client):
    """Three children with one token, one fan-in: patterns, parents, lineage, token field and budget."""
    root = await client.line(0)
    leases = await asyncio.gather(*(client.open(root.token, pattern="FAN_OUT") for _ in range(3)))
    children = [await settled(client, each, cost) for each, cost in zip(leases, (0, 50_000, 350_000), strict=True)]
    pointers = [each.continuation_id for each in children]
    merged = await client.open(children[0].token, pattern="FAN_IN", continuation_ids=pointers)
    facts = ["00000000000000aa"]
    edges = [pb.Edge(source_id=merged.parent_ids[0], transfer_type="TRANSFER_TYPE_SUMMARY", transferred_tokens=9)]
    done = await settled(client, merged, facts_used=facts, edges=edges)
    session = await client.session(token=done.token)
    further = await client.open(done.token)

    assert {each.window_number for each in leases} == {2}
    assert (merged.window_number, merged.pattern, merged.safety_budget_micros) == (3, "FAN_IN", 650_000)
    assert list(merged.parent_ids) == sorted(each.window_id for each in leases)
    assert [each.hmac for each in merged.parents] == list(merged.parent_hmacs)
    assert [payload(each.token)["dag"] for each in (*children, done)] == ["FAN_OUT"] * 3 + ["FAN_IN"]
    bracket = ", ".join(
        each.window_id for each in sorted(leases, key=lambda one: list(done.lineage).index(one.window_id))
    )
    assert done.lineage_text == f"{done.lineage[0]} -> [{bracket}] -> {merged.window_id}"
    assert done.quality_text == "B,[B,B,B],B"
    assert list(session.leaf_ids) == [merged.window_id]
    assert [edge.transfer_type for edge in session.windows[-1].edges] == [2, 0, 0]
    assert list(further.facts_seen) == facts


@pytest.mark.req("DAG-3", "AGT-3")
async def test_ten_thousand_pointers_are_refused_before_any_is_looked_at(client):
    """The limit and the attempt are named, and the session goes on."""
    root = await client.line(0)
    pointers = [f"crp_cont_{n:032x}" for n in range(10_000)]
    no = await client.refused("OpenWindow", opening(root.token, pattern="FAN_IN", continuation_ids=pointers))

    assert (no.kind, no.reason) == (Kind.FORBIDDEN, "MAX_FAN_OUT_EXCEEDED")
    assert no.metadata == {"name": "max_fan_out", "limit": "10", "attempted": "10000"}
    assert (await client.open(root.token)).window_number == 2


@pytest.mark.req("DAG-3")
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"pattern": "CIRCLE"}, "INVALID_FIELD"),
        ({"pattern": "FAN_IN", "continuation_ids": ["crp_cont_*", "x"]}, "INVALID_ID"),
        ({"pattern": "FAN_IN", "continuation_id": "crp_cont_" + "0" * 32}, "INVALID_FIELD"),
        ({"continuation_ids": ["crp_cont_" + "0" * 32]}, "INVALID_FIELD"),
        ({"pattern": "FAN_OUT", "partial": True}, "INVALID_FIELD"),
        ({"pattern": "FAN_IN"}, "FAN_IN_TOO_FEW"),
    ],
)
async def test_a_pattern_that_does_not_fit_its_pointers_is_refused(client, fields, reason):
    """Each shape of request has its own pointers."""
    root = await client.line(0)

    assert (await client.refused("OpenWindow", opening(root.token, **fields))).reason == reason


@pytest.mark.parametrize(
    "fields",
    [
        {"pattern": "CIRCLE"},
        {"facts_used": ["x"]},
        {"facts_used": ["0" * 16] * 5000},
        {"edges": [pb.Edge(source_id="crp_win_" + "0" * 32)]},
        {"edges": [pb.Edge(source_id="x")]},
        {"parent_charge_micros": -1},
        {"parent_charge_micros": 500_001},
        {"ancestor_session_ids": ["x"]},
        {"ancestor_session_ids": ["crp_sess_" + "0" * 32] * 2},
    ],
)
async def test_a_settle_with_a_wrong_field_charges_nothing(client, fields):
    """Patterns, digests, edges, charges and ancestors are held to their shapes."""
    opened = await client.open((await client.start()).token)
    no = await client.refused("CommitWindow", settling(opened, **fields))

    assert no.kind is Kind.INVALID
    assert (await client.settle(opened)).session_budget_micros == 850_000


@pytest.mark.req("DAG-9")
async def test_a_failed_child_is_told_and_left_out(client):
    """FailWindow once and again; require-all names it, partial leaves it out."""
    root = await client.line(0)
    leases = [await client.open(root.token, pattern="FAN_OUT") for _ in range(3)]
    children = [await settled(client, each) for each in leases[:2]]
    request = pb.FailWindowRequest(
        session_id=leases[2].session_id,
        root_session_id=leases[2].root_session_id,
        window_id=leases[2].window_id,
        reason="UPSTREAM_TIMEOUT",
    )
    failed = [(await client.call("FailWindow", request)).failed for _ in range(2)]
    asked = {"pattern": "FAN_IN", "continuation_ids": [each.continuation_id for each in children]}
    no = await client.refused("OpenWindow", opening(children[0].token, **asked))
    merged = await client.open(children[0].token, **asked, partial=True)
    (kept,) = [one for one in (await client.session(token=root.token)).windows if one.status == "FAILED"]

    assert failed == [True, False]
    assert (no.reason, no.metadata["missing"]) == ("FAN_IN_INCOMPLETE", leases[2].window_id)
    assert list(merged.left_out_ids) == [kept.window_id] == [leases[2].window_id]
    assert (kept.hmac, kept.charge_micros, kept.risk_level, kept.continuation_id) == ("", 0, 0, "")
    request.reason = "because it\nfailed"
    assert (await client.refused("FailWindow", request)).reason == "INVALID_FIELD"


@pytest.mark.req("POL-8", "TOK-3")
async def test_tightenings_side_by_side_add_up_and_every_branch_goes_on(client):
    """Two children tighten different directives and a third none: all hold, and tokens of before are still good."""
    root = await client.line(0)
    leases = [await client.open(root.token, pattern="FAN_OUT") for _ in range(4)]
    wanted = ["halt-on HIGH", "halt-on CRITICAL; require-grounding 0.80", POLICY]
    children = [
        await settled(client, each, policy_text=text, policy_hash=sha(text))
        for each, text in zip(leases, wanted, strict=False)
    ]
    both = "halt-on HIGH; require-grounding 0.80"
    last = await client.open(children[0].token)
    pointers = [each.continuation_id for each in children[1:]]
    merged = await client.open(children[1].token, pattern="FAN_IN", continuation_ids=pointers, partial=True)

    assert [payload(each.token)["pol"] for each in children] == [sha("halt-on HIGH"), sha(both), sha(both)]
    assert {each.policy_text for each in (last, merged)} == {both}


@pytest.mark.req("TOK-3", "POL-8")
async def test_a_looser_policy_in_the_store_is_still_refused(client, valkey):
    """Whoever can write to the store, the replaced policies included, still cannot loosen what the token was signed for."""
    token = (await client.line(0)).token
    session = payload(token)["sid"]
    looser = "warn-on CRITICAL"
    with valkey.client() as store:
        changed = {"policy": looser, "policy_hash": sha(looser), f"o:{sha(POLICY)}": POLICY}
        store.hset(f"il:{{{session}}}:s:{session}", mapping=changed)
    no = await client.refused("OpenWindow", opening(token))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "POLICY_HASH_MISMATCH")


def test_terms_of_before_can_still_be_read():
    """Stored by a writer that knew of no trees: what it left out has its default, and nothing is delegated by it."""
    written = json.loads(terms_to_json(new_state().terms))
    for later in (
        "ancestors",
        "agent",
        "deepest",
        "max_delegations",
        "accumulate",
        "residency",
        "safety_mode",
        "aware",
    ):
        del written[later]
    del written["limits"]["max_fan_out"]
    terms = terms_from_json(json.dumps(written).encode())

    assert (terms.session_id, terms.ancestors, terms.parent_session_id) == (new_state().terms.session_id, (), None)
    assert (terms.limits.max_fan_out, terms.deepest, terms.max_delegations) == (10, 0, 0)

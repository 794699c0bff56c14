"""What the guard asks the services about windows of any pattern: settlement, seal, analysis, events, plans and batches."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros
from interlock.domain.errors import Refused
from interlock.domain.headers import headers
from interlock.domain.held import unpacked
from interlock.runtime.keys.api_keys import ANONYMOUS, Caller
from interlock.sidecar import requests
from interlock.sidecar.admission.admission import Admitted
from interlock.sidecar.call.call import Call
from interlock.sidecar.call.envelope import CallEvidence, ContextOptions
from interlock.sidecar.context.packing import Packed
from interlock.sidecar.fronts import batch, hierarchy
from interlock.sidecar.fronts.batch import Item
from interlock.sidecar.fronts.hierarchy import token_in
from interlock.sidecar.openai.completion import Completion
from interlock.sidecar.provider import strategies
from interlock.sidecar.requests import DecidedAnswer
from interlock.sidecar.trail import events, response_headers
from interlock.sidecar.trail.response_headers import ResponseHeaders
from tests.support.sidecar.sidecar import a_report

DECREMENTS = session_pb2.Decrements(low_micros=0, medium_micros=50_000, high_micros=150_000, critical_micros=350_000)
ANSWER = Completion(b"x", {}, (dpe_pb2.Output(choice_index=0, text="x", kind="content"),), None)
ACTIONS = policy_pb2.Action.Value
FACT = common_pb2.Fact(id="f", content="It is.", importance=0.5)
LINKED = dpe_pb2.LinkedResult(session_id="s2", window_id="w2", hmac="h2", chain_tip="t2", agent_type="legal")


def a_call(shape: str = "", **asked) -> Call:
    fields = [(name.replace("_", "-"), value) for name, value in asked.items()]
    dispatch = events.Dispatch("host", "m", "push", None, None, None, 1)
    return Call("http", Caller(ANONYMOUS, None), headers.read(fields), CallEvidence((), "", ""), dispatch, {"model": "m"},
                None, ResponseHeaders(), shape=shape)  # fmt: skip


def an_admitted(budget: int = 1_000_000, **more) -> Admitted:
    opened = session_pb2.OpenedWindow(
        **{"window_id": "w", "window_number": 2, "safety_budget_micros": 1_000_000, "decrements": DECREMENTS, **more}
    )
    return Admitted(opened, policy_pb2.ResolveResponse(), Micros(budget))


def judged(risk: str = "LOW", action: str = "ACTION_DELIVER", context: Packed | None = None) -> DecidedAnswer:
    context = context or Packed({}, CallEvidence((), "", ""), deferred=(FACT,), facts_used=("ab" * 8,))
    return DecidedAnswer(ANSWER, "push", a_report(risk), policy_pb2.Decision(action=ACTIONS(action)), context)


@pytest.mark.req("BRK-4", "BUD-7")
@pytest.mark.parametrize(
    ("risk", "action", "above", "cost"),
    [
        ("CRITICAL", "ACTION_HALT", ["p", "root"], 350_000),
        ("CRITICAL", "ACTION_HALT", [], 0),
        ("CRITICAL", "ACTION_HOLD", ["p"], 0),
        ("CRITICAL", "ACTION_DELIVER", ["p"], 0),
        ("HIGH", "ACTION_HALT", ["p"], 0),
    ],
)
def test_a_halted_critical_of_a_sub_agent_costs_its_parent_one_critical(risk, action, above, cost):
    """Reading 5: once, for the direct parent, and only for what was halted at CRITICAL."""
    commit = requests.to_settle(an_admitted(ancestor_session_ids=above), a_call(), judged(risk, action))

    assert (commit.parent_charge_micros, list(commit.ancestor_session_ids)) == (cost, above)


@pytest.mark.req("BUD-6")
def test_a_fan_out_child_settles_from_its_own_path():
    """What a sibling spent lowers the session's budget, which the decision sees; the path keeps the parent's (reading 7)."""
    commit = requests.to_settle(an_admitted(500_000, safety_budget_micros=850_000), a_call(), judged())
    lowered = requests.to_settle(an_admitted(), a_call(crp_agent_safety_budget="0.4"), judged())

    assert (commit.ceiling_micros, lowered.ceiling_micros) == (850_000, 400_000)


@pytest.mark.req("DAG-3", "DAG-6")
def test_the_settlement_says_how_the_window_hangs_together():
    """Pattern, edges and facts go into the same write as the charge."""
    edge = session_pb2.Edge(source_id="w1", target_id="w")
    context = Packed({}, CallEvidence((), "", ""), edges=(edge,), facts_used=("ab" * 8,))
    commit = requests.to_settle(an_admitted(pattern="FAN_OUT"), a_call("batch"), judged(context=context))

    assert (commit.pattern, list(commit.edges), list(commit.facts_used)) == ("FAN_OUT", [edge], ["ab" * 8])
    assert (commit.strategy, commit.accumulate) == ("batch", True)


@pytest.mark.req("DAG-6")
@pytest.mark.parametrize("action", ["ACTION_HALT", "ACTION_REJECT_QUALITY"])
def test_an_answer_that_nobody_got_leaves_no_facts_behind(action):
    """Its facts count as unseen, so that asking once more packs them again; its deferred ones are not kept."""
    admitted, kept_back = an_admitted(), judged("HIGH", action)
    commit = requests.to_settle(admitted, a_call(), kept_back)
    record = requests.to_seal(admitted, kept_back, commit, [])

    assert (list(commit.facts_used), list(record.deferred_facts), record.content) == ([], [], "")


@pytest.mark.req("OVR-2", "DAG-6")
def test_an_answer_that_is_held_is_kept_with_what_it_says():
    """A reviewer may still give it away; its facts count as unseen until then."""
    admitted, held = an_admitted(), judged("HIGH", "ACTION_HOLD")
    commit = requests.to_settle(admitted, a_call(), held)
    hold = requests.to_hold(admitted, a_call(), held, seconds=60)
    record = requests.to_seal(admitted, held, commit, [], hold)

    assert (list(commit.facts_used), list(record.deferred_facts), record.content) == ([], [FACT], "x")
    assert (unpacked(record.held).body, record.hold_s) == (held.answer.body, 60)
    assert requests.to_hold(admitted, a_call(), judged("HIGH", "ACTION_HALT"), seconds=60) == {}


def test_the_seal_keeps_the_pattern_and_what_was_deferred():
    """The audit log checks the pattern; the windows that continue read the facts back."""
    admitted = an_admitted(pattern="FAN_IN")
    record = requests.to_seal(admitted, judged(), requests.to_settle(admitted, a_call(), judged()), [])

    assert (record.pattern, list(record.deferred_facts)) == ("FAN_IN", [FACT])


@pytest.mark.req("PRV-3")
def test_the_sealed_report_names_the_results_that_were_verified_here():
    """Whatever the analysis echoes: none, another, or the same; what another part made is not changed."""
    context = Packed({}, CallEvidence((), "", ""), linked=(LINKED,))
    silent, forged = a_report(), a_report(linked_results=[dpe_pb2.LinkedResult(session_id="other")])

    assert [list(requests.with_links(one, context).linked_results) for one in (silent, forged)] == [[LINKED], [LINKED]]
    assert list(silent.linked_results) == []
    assert list(requests.with_links(forged, Packed({}, CallEvidence((), "", ""))).linked_results) == []


@pytest.mark.req("DPE-19")
def test_the_analysis_gets_what_was_merged_and_the_sub_queries():
    """Coherence and completeness are told between them."""
    merged = dpe_pb2.MergedAnswer(source_id="w1", text="It is.")
    context = Packed(
        {}, CallEvidence((), "", "", ContextOptions(sub_queries=("a?", "b?"))), merged=(merged,), linked=(LINKED,)
    )
    asked = requests.to_analyse(an_admitted(), context, ANSWER.outputs, prior=(), domain="", flow_remediation="")

    assert (list(asked.merged), list(asked.sub_queries), list(asked.linked_results)) == (
        [merged],
        ["a?", "b?"],
        [LINKED],
    )


@pytest.mark.parametrize(
    ("pattern", "continues"), [("LINEAR", True), ("BRANCH", True), ("FAN_OUT", False), ("FAN_IN", False)]
)
def test_only_a_window_that_goes_on_must_flow_from_the_one_before(pattern, continues):
    """A part of a task does not read on from its plan (SPEC-005 §11.3)."""
    asked = headers.read([("crp-context-continuation-id", "crp_cont_" + "0" * 32)])
    tried = requests.RemedyState(remediable=True, redispatches=0, continuations=0, stitched=False)
    request = requests.to_decide(an_admitted(pattern=pattern), asked, a_report(), tried=tried, strategy="push")

    assert request.continues is continues


def told(opened: session_pb2.OpenedWindow) -> dict[str, dict]:
    noted = events.of_window(
        opened=opened, continuation_id=None, noted=[events.sub_agent_result(LINKED)], report=a_report(),
        decision=policy_pb2.Decision(action=policy_pb2.ACTION_DELIVER), report_uri="u",
    )  # fmt: skip
    return {event.event_type: json.loads(event.data_json) for event in noted}


@pytest.mark.req("AUD-1", "DAG-3")
def test_a_window_of_a_fan_tells_of_it():
    """SPEC-011 §1.7: FAN_OUT_CREATED of each child, FAN_IN_MERGED of the synthesis with the budget it begins with."""
    child = told(session_pb2.OpenedWindow(window_id="c", window_number=2, pattern="FAN_OUT", parent_ids=["p"]))
    merged = told(
        session_pb2.OpenedWindow(
            window_id="m", window_number=3, pattern="FAN_IN", parent_ids=["a", "b"], left_out_ids=["c"],
            safety_budget_micros=310_000,
        )
    )  # fmt: skip

    assert child["FAN_OUT_CREATED"] == {"parent_window_id": "p", "child_count": 1, "child_ids": ["c"]}
    assert merged["FAN_IN_MERGED"] == {"parent_ids": ["a", "b"], "left_out_ids": ["c"], "merged_budget": "0.31"}
    assert not {"FAN_OUT_CREATED", "FAN_IN_MERGED"} & told(session_pb2.OpenedWindow(window_number=2)).keys()


@pytest.mark.req("PRV-3", "AUD-1")
def test_a_consumed_result_is_told_with_its_link():
    """SPEC-012 §8.1: the sub-agent's session, window, HMAC and chain tip."""
    assert told(session_pb2.OpenedWindow(window_number=1))["SUB_AGENT_RESULT"] == {
        "sub_agent_session_id": "s2", "sub_agent_window_id": "w2", "sub_agent_hmac": "h2", "sub_agent_chain_tip": "t2",
        "agent_type": "legal",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "shape"),
    [
        (a_call(), ""), (a_call(crp_context_strategy="push"), ""), (a_call(crp_context_strategy="fan-out"), "fan-out"),
        (a_call("batch", crp_context_strategy="fan-out"), "batch"), (a_call("hierarchical"), "hierarchical"),
    ],
)  # fmt: skip
def test_a_window_is_told_by_what_it_is_a_part_of(call, shape):
    """A batch item is a child of a fan-out only in its pattern."""
    assert strategies.shape_of(call) == shape


@pytest.mark.parametrize(
    ("plan", "sub_queries"),
    [
        (
            "1. What does the Act say?\n2) What does the GDPR say?",
            ["What does the Act say?", "What does the GDPR say?"],
        ),
        ("Here is the plan:\n\n- One?\n* Two?\n(3) Three?\nThat is all.", ["One?", "Two?", "Three?"]),
        ("1. One?\n2. One?", ["One?"]),
        ("1. " + "x" * 2049 + "\n2. Two?", ["Two?"]),
        ("I cannot plan this.", []),
        ("3.5 million people", []),
        ("1. a\n2. b\n3. c\n4. d", ["a", "b", "c"]),
    ],
)
def test_a_plan_is_a_list_and_no_more_of_it_than_may_fan_out(plan, sub_queries):
    """Anything else that the model wrote is no sub-query."""
    assert hierarchy.listed(plan, 3) == sub_queries
    assert hierarchy.listed(hierarchy.numbered(sub_queries), 3) == sub_queries


def test_a_part_is_asked_in_place_of_the_question():
    """Context, tools' answers and earlier turns stay."""
    messages = [
        {"role": "system", "content": "c"},
        {"role": "user", "content": "All?"},
        {"role": "tool", "content": "t"},
    ]

    assert [m["content"] for m in hierarchy.asking(messages, "Part?")] == ["c", "Part?", "t"]
    assert hierarchy.asking([], "Part?") == [{"role": "user", "content": "Part?"}]


@pytest.mark.parametrize(
    ("ids", "more", "reason"),
    [
        ([], {}, "INVALID_BATCH"), (["a", "a"], {}, "INVALID_BATCH"), (["a b"], {}, "INVALID_BATCH"), ([""], {}, "INVALID_BATCH"),
        (["é"], {}, "INVALID_BATCH"), (["a" * 65], {}, "INVALID_BATCH"), (["a", "b", "c"], {}, "MAX_FAN_OUT_EXCEEDED"),
        (["a"], {"crp-context-strategy": "push"}, "INVALID_BATCH"), (["a"], {"crp-session-action": "branch"}, "INVALID_BATCH"),
    ],
)  # fmt: skip
@pytest.mark.req("AGT-3")
async def test_a_batch_is_checked_before_any_of_it_begins(ids, more, reason):
    """Ids, their number, and headers that would mean something else."""
    front = SimpleNamespace(settings=SimpleNamespace(max_fan_out=2))
    items = [Item(one, None) for one in ids]
    with pytest.raises(Refused) as caught:
        await batch.govern_batch(
            front, Caller(ANONYMOUS, None), headers.read(list(more.items())), items, ResponseHeaders()
        )

    assert caught.value.reason == reason


@pytest.mark.parametrize(("wished", "next_one"), [("hierarchical, reflexive", "reflexive"), ("hierarchical", None)])
def test_a_wish_that_may_not_be_granted_gives_way_to_the_next(wished, next_one):
    """In the session that began for it, whose grant is used up."""
    call = a_call(crp_accept_strategy=wished, crp_agent_delegation_grant="g")
    call.reply.headers["CRP-Set-Session"] = "token=abc; Signed"
    onward = hierarchy._without_preference(call).asked

    assert (onward.strategy, onward.session_token, onward.grant) == (next_one, "abc", None)


def test_a_token_is_read_from_the_header_that_carries_it():
    """A first item that failed has begun the session all the same; the next goes on in it."""
    known = ResponseHeaders(headers={"CRP-Set-Session": "token=abc.def; Path=/; Signed"})

    assert (token_in(known), token_in(ResponseHeaders())) == ("abc.def", "")


@pytest.mark.req("ATT-8")
@pytest.mark.parametrize(
    ("policy", "required"), [("", False), ("halt-on CRITICAL", False), ("require-grounding 0.75", True)]
)
def test_the_analysis_gets_the_mode_and_what_the_policy_requires(policy, required):
    """Of the request's header and of the policy that applies."""
    admitted = replace(an_admitted(), policy=policy_pb2.ResolveResponse(policy_text=policy))
    asked = requests.to_analyse(
        admitted, Packed({}, CallEvidence((), "", "")), ANSWER.outputs, grounding_mode="open", prior=(), domain="",
        flow_remediation="",
    )  # fmt: skip

    assert (asked.grounding_mode, asked.grounding_required) == ("open", required)


@pytest.mark.req("ATT-8")
def test_the_answer_says_what_its_risk_rests_on():
    """A LOW without sources is told from one that was judged."""
    told = response_headers.of_report(dpe_pb2.Report(basis="no-sources"))

    assert headers.admissible(told)["CRP-Safety-Grounding-Basis"] == "no-sources"

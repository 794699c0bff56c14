"""The client's session without input or output: what it sends, what it learns, when it tries again."""

from __future__ import annotations

import json
from collections.abc import Sequence

import pytest

from interlock.client import Conflict, Delegation, Forbidden, SafetyHalt, Unavailable, core, result_of
from interlock.client.core import Ask, Pause, Reply, State
from interlock.client.request import body_of

BODY = {"model": "m", "messages": [{"role": "user", "content": "?"}]}
COMPLETION = {"choices": [{"message": {"role": "assistant", "content": "Yes."}}]}
HMAC = "sha256:" + "a" * 64
SESSION = "crp_sess_" + "b" * 32


def good(number: int = 1, **more: str) -> Reply:
    """A released answer that sets token *number*."""
    headers = {
        "crp-set-session": f"token=t{number}; Path=/; Signed",
        "crp-context-session-id": SESSION,
        "crp-context-continuation-id": f"crp_cont_{number:032d}",
        "crp-provenance-hmac": HMAC,
        **more,
    }
    return Reply(200, headers, json.dumps(COMPLETION).encode())


def bad(status: int, reason: str, **headers: str) -> Reply:
    body = {"error": {"message": "no", "code": reason.lower()}, "reason": reason, "metadata": {"limit": "3"}}
    return Reply(status, {name.replace("_", "-"): value for name, value in headers.items()}, json.dumps(body).encode())


def drive(steps, *replies: Sequence[Reply] | Reply):
    """Run *steps* on scripted replies; return its value, or raise, and what it asked for."""
    waiting, asked = list(replies), []
    try:
        wanted = next(steps)
        while True:
            asked.append(wanted)
            if isinstance(wanted, Pause):
                wanted = next(steps)
                continue
            reply = waiting.pop(0)
            wanted = steps.send(reply if isinstance(reply, list) else [reply])
    except StopIteration as end:
        return end.value, asked


def sent(asked) -> list[Ask]:
    return [one for each in asked if not isinstance(each, Pause) for one in each]


def test_the_token_of_each_answer_goes_with_the_next_call():
    """A session is its token: the first call has none, each later one the latest."""
    state = State()
    _, first = drive(core.chat(state, BODY, {}), good(1))
    _, second = drive(core.chat(state, BODY, {}), good(2))

    assert "CRP-Session-Token" not in sent(first)[0].headers
    assert "t1" == sent(second)[0].headers["CRP-Session-Token"]
    assert ("t2", SESSION) == (state.token, state.session_id)


@pytest.mark.req("HDR-1")
def test_the_headers_of_a_delegation_go_with_the_first_call_alone():
    """A grant is used once; later calls are the child's own."""
    state = State(first={"CRP-Agent-Delegation-Grant": "g"})
    _, first = drive(core.chat(state, BODY, {}), good(1))
    _, second = drive(core.chat(state, BODY, {}), good(2))

    assert "g" == sent(first)[0].headers["CRP-Agent-Delegation-Grant"]
    assert "CRP-Agent-Delegation-Grant" not in sent(second)[0].headers


def test_a_refusal_that_brings_a_token_is_gone_on_from_once():
    """An answer that was charged and lost leaves a newer token; the question is asked again with that one."""
    state = State(token="t1")
    lost = bad(409, "WINDOW_ALREADY_SETTLED", crp_set_session="token=t2; Path=/")
    answer, asked = drive(core.chat(state, BODY, {}), lost, good(3))

    assert "Yes." == answer.text
    assert ["t1", "t2"] == [one.headers["CRP-Session-Token"] for one in sent(asked)]
    with pytest.raises(Conflict):
        drive(core.chat(State(token="t1"), BODY, {}), lost, lost)


def test_a_replayed_token_is_not_tried_again():
    """Another conflict is the caller's to resolve."""
    with pytest.raises(Conflict) as raised:
        drive(core.chat(State(token="t1"), BODY, {}), bad(409, "TOKEN_REPLAYED"))

    assert "TOKEN_REPLAYED" == raised.value.reason


@pytest.mark.parametrize("status", [409, 429, 503])
def test_a_call_is_made_again_after_the_time_that_the_server_names(status):
    """Waiting is the server's advice; without it nothing is repeated."""
    answer, asked = drive(core.chat(State(), BODY, {}), bad(status, "BUSY", retry_after="2"), good())

    assert "Yes." == answer.text
    assert [Pause(2.0)] == [each for each in asked if isinstance(each, Pause)]
    with pytest.raises((Unavailable, Conflict)):
        drive(core.chat(State(), BODY, {}), bad(status, "BUSY"))


def test_retries_end():
    """A server that stays busy is reported as it is."""
    busy = bad(503, "BUSY", retry_after="1")
    with pytest.raises(Unavailable) as raised:
        drive(core.chat(State(retries=2), BODY, {}), busy, busy, busy)

    assert ("BUSY", 503, 1.0) == (raised.value.reason, raised.value.status, raised.value.retry_after_s)


def test_a_halt_names_its_reason_and_keeps_the_token():
    """What was halted was charged, and the session may go on."""
    state = State(token="t1")
    body = {"error": {"message": "halted"}, "reason": "SAFETY_HALT", "crp_halt_reason": "RISK_ABOVE_HALT"}
    halt = Reply(
        451, {"crp-set-session": "token=t2", "crp-safety-hallucination-risk": "CRITICAL"}, json.dumps(body).encode()
    )
    with pytest.raises(SafetyHalt) as raised:
        drive(core.chat(state, BODY, {}), halt)

    assert ("RISK_ABOVE_HALT", "CRITICAL") == (raised.value.halt_reason, raised.value.risk)
    assert "t2" == state.token


def test_a_limit_comes_with_its_figures():
    """A program reads the limit from the metadata."""
    with pytest.raises(Forbidden) as raised:
        drive(core.delegate(State(), "a", lifetime_s=0, approval=""), bad(403, "MAX_DELEGATIONS_EXCEEDED"))

    assert {"limit": "3"} == raised.value.metadata


@pytest.mark.req("DAG-3")
def test_a_fan_out_presents_one_token_several_times_and_keeps_it():
    """Siblings follow the same window; the session itself stays where it was."""
    state = State(token="t1", session_id=SESSION)
    results, asked = drive(core.fan_out(state, [BODY, BODY]), [good(2), bad(451, "SAFETY_HALT")])

    assert ["t1", "t1"] == [one.headers["CRP-Session-Token"] for one in sent(asked)]
    assert {"fan-out"} == {one.headers["CRP-Context-Strategy"] for one in sent(asked)}
    assert ("t2", SafetyHalt) == (results[0].token, type(results[1]))
    assert "t1" == state.token


@pytest.mark.req("DAG-3")
def test_a_fan_in_names_every_pointer_and_goes_on_from_the_merged_window():
    """The pointers are the answers'; the token is one of theirs."""
    state = State(token="t1", session_id=SESSION)
    answers = [drive(core.chat(State(), BODY, {}), good(n))[0] for n in (2, 3)]
    _, asked = drive(core.fan_in(state, answers, BODY, partial=True), good(4))
    headers = sent(asked)[0].headers

    assert f"crp_cont_{2:032d}, crp_cont_{3:032d}" == headers["CRP-Context-Continuation-Id"]
    assert ("fan-in", "partial", "t2") == tuple(
        headers[name] for name in ("CRP-Context-Strategy", "CRP-Agent-Fan-In-Policy", "CRP-Session-Token")
    )
    assert "t4" == state.token


def test_a_fan_in_of_a_last_window_is_refused_before_it_is_sent():
    """A window without a pointer cannot be continued."""
    answer, _ = drive(core.chat(State(), BODY, {}), Reply(200, {}, json.dumps(COMPLETION).encode()))
    with pytest.raises(ValueError, match="continued"):
        drive(core.fan_in(State(), [answer], BODY, partial=False))


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b"{}"])
def test_what_is_no_json_object_is_an_error_of_the_status(body):
    """A proxy's page between client and sidecar is not taken for an answer."""
    with pytest.raises(Unavailable) as raised:
        drive(core.chat(State(), BODY, {}), Reply(502, {}, body))

    assert "HTTP_502" == raised.value.reason


def test_a_body_has_our_object_only_where_something_is_in_it():
    """Without facts, results or sub-queries the request is OpenAI's alone."""
    named = {"session_id": SESSION, "hmac": HMAC}
    body = body_of("?", {"model": "m"}, results=[named], sub_queries=["a"])

    assert BODY == body_of("?", {"model": "m"})
    assert {"sub_agent_results": [named], "sub_queries": ["a"]} == body["interlock"]


@pytest.mark.req("HDR-1", "HDR-3")
def test_a_delegation_takes_the_downstream_set_and_nothing_else():
    """What a request brings beside it, a session token above all, stays behind."""
    came = [
        ("crp-agent-session-parent", SESSION),
        ("crp-agent-delegation-grant", "abc.def"),
        ("crp-agent-loop-depth", "1"),
        ("crp-session-token", "stolen"),
        ("x-other", "1"),
    ]
    delegation = Delegation.received(came)

    assert delegation is not None
    assert {"CRP-Agent-Session-Parent", "CRP-Agent-Delegation-Grant", "CRP-Agent-Loop-Depth"} == set(delegation.headers)
    assert Delegation.received([("crp-agent-loop-depth", "1")]) is None
    assert delegation.headers == Delegation.received_grpc(delegation.grpc_metadata()).headers
    assert delegation.headers == Delegation.received_mcp(delegation.mcp_meta()).headers
    assert delegation.headers == Delegation.received_a2a(delegation.a2a_metadata()).headers


@pytest.mark.req("HDR-2", "HDR-3")
def test_a_result_is_named_by_the_headers_that_go_upstream():
    """An answer's upstream set names it for the orchestrator; its token never goes along."""
    answer, _ = drive(core.chat(State(), BODY, {}), good(1))
    upstream = answer.upstream()

    assert {"CRP-Context-Session-Id", "CRP-Provenance-HMAC"} == set(upstream)
    assert {"session_id": SESSION, "hmac": HMAC, "sub_query": "q"} == result_of(upstream.items(), "q")

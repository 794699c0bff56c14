"""What names a session in a call, and what a caller is told of it: headers, cookies, events, figures, refusals."""

from __future__ import annotations

import asyncio
import json

import pytest
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from interlock.api.sidecar.v1 import sidecar_pb2
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("ATT-1")

TRACE = "00-" + "4b" * 16 + "-" + "00f0" * 4 + "-01"
NAMES = {
    "hint": {"headers": {"x-session-id": "chat-42"}},
    "trace": {"headers": {"traceparent": TRACE}},
    "body": {"metadata": {"session_id": "chat-42"}},
}


def session(response) -> str:
    return response.headers["crp-context-session-id"]


def binding(response) -> str:
    return response.headers["crp-session-binding"]


def cookie_in(response) -> str:
    return response.headers["set-cookie"].partition(";")[0]


def counted(name: str, **labels: str) -> float:
    return REGISTRY.get_sample_value(f"{name}_total", labels) or 0.0


async def bound_events(sidecar, of) -> list[dict]:
    found = [event for event in await sidecar.events(session(of)) if event.event_type == "SESSION_BOUND"]
    return [json.loads(event.data_json) for event in found]


@pytest.mark.parametrize("rank", NAMES)
async def test_a_name_leads_back_to_its_session(sidecar, rank):
    """The first call with it begins the session, the next one goes on in it, another name begins another."""
    first, second = await sidecar.chat(**NAMES[rank]), await sidecar.chat("And?", **NAMES[rank])
    other = await sidecar.chat(headers={"x-session-id": "another"})

    assert binding(first) == ("caller" if rank == "trace" else rank)
    assert (binding(second), session(second)) == (rank, session(first))
    assert second.headers["crp-context-window"] == "2/200"
    assert session(other) != session(first)


async def test_the_specified_header_names_a_session_by_its_id(sidecar):
    """SPEC-002 §4.7: the session's own id, alone; its window is the session's next."""
    first = await sidecar.chat()
    second = await sidecar.chat(headers={"crp-context-session-id": session(first)})

    assert (binding(second), session(second), second.headers["crp-context-window"]) == ("hint", session(first), "2/200")


async def test_a_name_in_the_specified_header_begins_a_session(sidecar):
    """An id that the client made itself, in the form that §4.7 allows, is a name like any other."""
    sent = {"crp-context-session-id": "crp_sess_" + "Agent7Run00000042"}
    first, second = await sidecar.chat(headers=sent), await sidecar.chat(headers=sent)

    assert [binding(first), binding(second)] == ["hint", "hint"]
    assert session(first) == session(second) != sent["crp-context-session-id"]


@pytest.mark.parametrize("value", ["crp_sess_';--", "", "x" * 2000, "crp_sess_é"])
async def test_a_malformed_session_header_is_refused(sidecar, value):
    """As every header of the protocol is."""
    answer = await sidecar.chat(headers={"crp-context-session-id": value.encode()})

    assert answer.status_code in {400, 431}
    assert reason_of(answer) in {"INVALID_HEADER", "HEADER_TOO_LARGE"}


async def test_an_earlier_answer_names_its_window(sidecar, provider):
    """previous_response_id is an answer's own id; it is ours, another for each answer, and never sent to the provider."""
    first, second = await sidecar.chat(), await sidecar.chat("Else?")
    ids = [answer.json()["id"] for answer in (first, second)]
    after = await sidecar.chat("And?", previous_response_id=ids[0])
    beside = await sidecar.chat("Or?", previous_response_id=ids[0])
    unknown = await sidecar.chat("And?", previous_response_id="chatcmpl-" + "0" * 32)
    both = await sidecar.chat("And?", previous_response_id=ids[0], conversation={"id": "conv_1"})

    assert ids[0] != ids[1]
    assert all(len(one) == len("chatcmpl-") + 32 for one in ids)
    assert (binding(after), session(after)) == ("response", session(first))
    assert beside.headers["crp-provenance-window-lineage"].count("->") == 1
    assert (unknown.status_code, reason_of(unknown)) == (404, "RESPONSE_NOT_FOUND")
    assert (both.status_code, reason_of(both)) == (400, "INVALID_PARAMETER")
    assert all("previous_response_id" not in one.body for one in provider.received)


async def test_the_stronger_name_decides_and_the_weaker_is_told(sidecar):
    """A hint for one session, a field for another: the hint's, and an event and a figure say what disagreed."""
    one = await sidecar.chat(headers={"x-session-id": "one"})
    await sidecar.chat(metadata={"session_id": "two"})
    before = counted("interlock_binding_evidence", rank="body", outcome="disagreeing")
    both = await sidecar.chat(headers={"x-session-id": "one"}, metadata={"session_id": "two"})
    events = await bound_events(sidecar, both)

    assert (session(both), binding(both)) == (session(one), "hint")
    assert events[-1] == {"rank": "hint", "disagreeing": ["body"], "begins_conversation": True}
    assert counted("interlock_binding_evidence", rank="body", outcome="disagreeing") == before + 1
    assert (await bound_events(sidecar, await sidecar.chat(metadata={"session_id": "two"})))[-1]["rank"] == "body"


async def test_a_new_name_beside_a_known_one_begins_a_session(sidecar):
    """The stronger name is new: it begins a session, and the trail says that the weaker one spoke for another."""
    await sidecar.chat(metadata={"session_id": "two"})
    fresh = await sidecar.chat(headers={"x-session-id": "three"}, metadata={"session_id": "two"})

    assert binding(fresh) == "hint"
    assert (await bound_events(sidecar, fresh))[-1]["disagreeing"] == ["body"]


async def test_a_token_wins_over_every_name(sidecar):
    """The token's session; what names another one is told. A name that is new is learnt."""
    one, other = await sidecar.chat(), await sidecar.chat()
    sent = {"crp-context-session-id": session(other), "x-session-id": "learnt"}
    second = await sidecar.chat(token=token_of(one), headers=sent)
    third = await sidecar.chat(headers={"x-session-id": "learnt"})

    assert (binding(second), session(second)) == ("token", session(one))
    assert (await bound_events(sidecar, second))[0]["disagreeing"] == ["hint"]
    assert (binding(third), session(third)) == ("hint", session(one))
    assert "set-cookie" not in second.headers


async def test_what_bound_a_call_is_counted_and_in_its_line(sidecar):
    """A metric by rank, and a field of the access line; the name itself is in neither."""
    await sidecar.chat(headers={"x-session-id": "secret-name"})
    before = counted("interlock_session_bindings", rank="hint")
    with capture_logs() as lines:
        answer = await sidecar.chat(headers={"x-session-id": "secret-name"})
    events = await sidecar.events(session(answer))

    assert counted("interlock_session_bindings", rank="hint") == before + 1
    assert [line["binding"] for line in lines if line["event"] == "call.governed"] == ["hint"]
    assert "secret-name" not in str(lines) + str(events) + str(answer.headers)


async def test_the_cookie_follows_the_session(sidecar, provider):
    """It is set where the caller does not have it, also with a halt, and it is another one for another session."""
    first = await sidecar.chat(headers={"x-session-id": "one"})
    known = await sidecar.chat(headers={"x-session-id": "one", "cookie": cookie_in(first)})
    moved = await sidecar.chat(headers={"x-session-id": "two", "cookie": cookie_in(first)})
    provider.answers("CRITICAL nonsense")
    halted = await sidecar.chat(headers={"crp-safety-policy": "halt-on CRITICAL", "x-session-id": "three"})
    provider.answers("It is fine again.")
    after = await sidecar.chat(headers={"cookie": cookie_in(halted)})

    assert "set-cookie" not in known.headers
    assert cookie_in(moved) != cookie_in(first)
    assert (halted.status_code, session(after), binding(after)) == (451, session(halted), "cookie")


async def test_starting_anew_with_the_cookie_is_no_way_out(sidecar, provider):
    """A client that knows nothing but its cookie jar spends one budget, and is halted for good when it is spent."""
    provider.answers("CRITICAL nonsense")
    jar, statuses = {}, []
    for number in range(6):
        answer = await sidecar.chat(f"Question {number}?", headers=jar)
        jar = {"cookie": cookie_in(answer)} if "set-cookie" in answer.headers else jar
        statuses.append(answer.status_code)
    refused = answer.json()

    assert statuses[3:] == [451] * 3
    assert refused["reason"] == "BUDGET_DEPLETED"
    assert refused["session_id"].startswith("crp_sess_")
    assert answer.headers["crp-context-session-id"] == refused["session_id"]


async def test_used_up_windows_lead_on_into_a_linked_session(tmp_path, upstream, provider):
    """The conversation goes on with what is left of its budget and under its policy; the trail says what it goes on from."""
    provider.answers("MEDIUM, which is what this answer says in so many words.")
    names = {"x-session-id": "long"}
    policy = {"crp-safety-policy": "halt-on CRITICAL"}
    async with running_sidecar(tmp_path, upstream=upstream, max_windows=2) as sidecar:
        answers = [await sidecar.chat(headers={**names, **policy})]
        answers += [await sidecar.chat(f"Turn {number}?", headers=names) for number in range(4)]
        linked = await bound_events(sidecar, answers[2])

    sessions = [session(answer) for answer in answers]
    assert sessions[0] == sessions[1] != sessions[2] == sessions[3] != sessions[4]
    assert [answer.headers["crp-agent-safety-budget"] for answer in answers] == ["0.95", "0.90", "0.85", "0.80", "0.75"]
    assert {answer.headers["crp-safety-policy-applied"] for answer in answers} == {"halt-on CRITICAL"}
    assert {binding(answer) for answer in answers} == {"hint"}
    assert linked[0]["continues_session_id"] == sessions[0]


class SetBack:
    """A session service whose store shows, for two looks, a session as it was before its first window."""

    def __init__(self, service):
        self._inner, self.looks = service.servicer, 0

    def __getattr__(self, name):
        return getattr(self._inner, name)

    async def GetSession(self, request, context):
        answer = await self._inner.GetSession(request, context)
        self.looks += 1
        if self.looks <= 2:
            answer.session.safety_budget_micros = 1_000_000
            del answer.session.windows[:]
        return answer


@pytest.mark.req("BUD-4")
async def test_a_store_that_was_set_back_refills_no_linked_session(tmp_path, upstream, provider):
    """What is left of the earlier session is what its chain bears out."""
    provider.answers("MEDIUM, which is what this answer says in so many words.")
    parts = {}

    def wrap(services):
        parts["session"] = SetBack(services["session"])
        return {**services, **parts}

    async with running_sidecar(tmp_path, upstream=upstream, max_windows=2, wrap=wrap) as sidecar:
        answers = [await sidecar.chat(f"Turn {number}?", headers={"x-session-id": "long"}) for number in range(3)]

    assert parts["session"].looks == 3
    assert session(answers[2]) != session(answers[1])
    assert [answer.headers["crp-agent-safety-budget"] for answer in answers] == ["0.95", "0.90", "0.85"]


async def test_a_session_without_budget_leads_nowhere(tmp_path, upstream, provider):
    """Its last window spent it: there is no linked session, for a linked one has what is left."""
    provider.answers("CRITICAL nonsense")
    async with running_sidecar(tmp_path, upstream=upstream, max_windows=3) as sidecar:
        answers = [await sidecar.chat(f"{number}?", headers={"x-session-id": "one"}) for number in range(5)]

    assert [answer.status_code for answer in answers[2:]] == [451] * 3
    assert reason_of(answers[-1]) == "BUDGET_DEPLETED"


async def test_grpc_reads_metadata_and_the_conversation(sidecar):
    """The same names as metadata; a gRPC answer sets no cookie. A text has no history, but it has names."""
    chat = {"model": "m", "messages": [{"role": "user", "content": "Where does it rise?"}]}
    sent = (("x-session-id", "over-grpc"), ("authorization", "Bearer k"))
    request = sidecar_pb2.DispatchRequest(chat_request=json.dumps(chat).encode())
    first = await sidecar.stub.Dispatch(request, metadata=sent)
    text = await sidecar.stub.Check(sidecar_pb2.CheckRequest(text="It rises in the mountains."), metadata=sent)
    http = await sidecar.chat(headers=dict(sent))

    assert first.outcome.session_id == text.outcome.session_id == session(http)
    assert text.outcome.headers["CRP-Session-Binding"] == binding(http) == "hint"


async def test_a_batch_and_a_plan_belong_to_the_session_of_their_name(sidecar, provider):
    """All items of a batch, and all windows of a plan; what bound the first one bound the whole."""
    first = await sidecar.chat(headers={"x-session-id": "one"})
    items = [{"id": str(n), "body": {"model": "m", "messages": [{"role": "user", "content": "?"}]}} for n in range(2)]
    batch = await sidecar.client.post("/crp/v3/batch", json={"items": items}, headers={"x-session-id": "one"})
    provider.in_turn(["1. What is it?\n2. Where is it?", "It is a river that is long.", "It is there, in the north."])
    plan = await sidecar.chat(headers={"x-session-id": "plan", "crp-context-strategy": "hierarchical"})

    assert {result["headers"]["CRP-Context-Session-Id"] for result in batch.json()["results"]} == {session(first)}
    assert [binding(batch), binding(plan)] == ["hint", "hint"]


async def test_calls_that_begin_at_once_under_one_name_share_its_session(sidecar):
    """One begins it; the others find it, or are told that a window is in flight. None gets a second session of that name."""
    answers = await asyncio.gather(*(sidecar.chat(f"{n}?", headers={"x-session-id": "one"}) for n in range(5)))
    after = await sidecar.chat(headers={"x-session-id": "one"})

    assert {answer.status_code for answer in answers} <= {200, 409}
    assert {reason_of(answer) for answer in answers if answer.status_code == 409} <= {"WINDOW_IN_FLIGHT"}
    assert {session(answer) for answer in answers if answer.status_code == 200} == {session(after)}


@pytest.mark.parametrize("rank", ["trace", "cookie", "body"])
async def test_conversations_of_one_client_do_not_wait_for_each_other(sidecar, rank):
    """While one has a window in flight, the others begin sessions of their own: none of them is refused."""
    first = await sidecar.chat(**NAMES.get(rank, {}))
    names = NAMES.get(rank) or {"headers": {"cookie": cookie_in(first)}}
    answers = await asyncio.gather(*(sidecar.chat(f"{n}?", **names) for n in range(4)))

    assert [answer.status_code for answer in answers] == [200] * 4
    assert session(first) in {session(answer) for answer in answers}


async def test_ranks_can_be_switched_off(tmp_path, upstream):
    """A rank that is not in the setting binds nothing, and sets nothing."""
    async with running_sidecar(tmp_path, upstream=upstream, bindings="trace,caller") as sidecar:
        sent = {"headers": {"x-session-id": "one"}, "metadata": {"session_id": "one"}}
        first, second = await sidecar.chat(**sent), await sidecar.chat(**sent)
        traced = [await sidecar.chat(headers={"traceparent": TRACE}) for _ in range(2)]

    assert session(first) != session(second)
    assert "set-cookie" not in first.headers
    assert session(traced[0]) == session(traced[1])


async def test_a_deployment_may_want_every_session_named(tmp_path, upstream, provider):
    """Without caller in the setting, nothing begins that no name leads back to."""
    async with running_sidecar(tmp_path, upstream=upstream, bindings="hint,conversation") as sidecar:
        refused = await sidecar.chat()
        named = await sidecar.chat(headers={"x-session-id": "one"})

    assert (refused.status_code, reason_of(refused)) == (401, "SESSION_BINDING_REQUIRED")
    assert len(provider.received) == 1
    assert named.status_code == 200


async def test_fields_that_many_share_bind_by_setting_alone(tmp_path, upstream):
    """user and its like are read where a deployment says so."""
    async with running_sidecar(tmp_path / "off", upstream=upstream) as sidecar:
        apart = [await sidecar.chat(user="u-1") for _ in range(2)]
    async with running_sidecar(tmp_path / "on", upstream=upstream, binding_fields="user") as sidecar:
        joined = [await sidecar.chat(user="u-1") for _ in range(2)]

    assert session(apart[0]) != session(apart[1])
    assert (session(joined[0]), binding(joined[1])) == (session(joined[1]), "body")


async def test_a_session_that_its_client_ended_is_not_gone_on_with(sidecar):
    """Its names begin another one."""
    first = await sidecar.chat(headers={"x-session-id": "one"})
    await sidecar.client.delete(f"/crp/v3/session/{session(first)}", headers={"crp-session-token": token_of(first)})
    second = await sidecar.chat(headers={"x-session-id": "one", "cookie": cookie_in(first)})

    assert session(second) != session(first)
    assert (binding(second), second.headers["crp-context-window"]) == ("hint", "1/200")

"""A-37: two keys that send the same evidence have two sessions, whatever the evidence is."""

from __future__ import annotations

import pytest

from interlock.domain.binding.rank import NAMES, Rank
from tests.support.sidecar.sidecar import reason_of

pytest_plugins = ("tests.support.sidecar.fronts",)
pytestmark = pytest.mark.req("ATT-3", "ATT-1")

ALICE, BOB = {"authorization": "Bearer alice-key"}, {"authorization": "Bearer bob-key"}
ANSWER = "Alices secret figure is 31415, and it is written on the third page."
TRACE = "00-" + "4b" * 16 + "-" + "00f0" * 4 + "-01"


def session(response) -> str:
    return response.headers["crp-context-session-id"]


def evidence(rank: Rank, first) -> dict:
    """What Alice's next call would bring to be bound by *rank* after her *first* answer."""
    history = [
        {"role": "user", "content": "What is it?"},
        {"role": "assistant", "content": ANSWER},
        {"role": "user", "content": "What is it?"},
    ]
    return {
        Rank.HINT: {"headers": {"x-session-id": "chat-42"}},
        Rank.COOKIE: {"headers": {"cookie": first.headers["set-cookie"].partition(";")[0]}},
        Rank.RESPONSE: {"previous_response_id": first.json()["id"]},
        Rank.TRACE: {"headers": {"traceparent": TRACE, "baggage": "session.id=chat-42"}},
        Rank.BODY: {"metadata": {"session_id": "chat-42"}},
        Rank.CONVERSATION: {"messages": history},
    }[rank]


async def call(sidecar, caller, *, headers=None, messages=None, **body):
    messages = messages or [{"role": "user", "content": "What is it?"}]
    sent = {"model": "m", "messages": messages, **body}
    return await sidecar.client.post("/v1/chat/completions", json=sent, headers={**caller, **(headers or {})})


@pytest.mark.parametrize("rank", sorted(NAMES | {Rank.CONVERSATION}))
async def test_a37_the_same_evidence_of_two_keys_is_two_sessions(sidecar, provider, rank):
    """Alice is bound by it to her session; Bob, with the very same bytes, is not, and sees nothing of hers."""
    provider.answers(ANSWER)
    begun = {Rank.HINT: ["hint"], Rank.BODY: ["body"]}.get(rank, ["caller"])
    names = {} if rank in {Rank.COOKIE, Rank.RESPONSE, Rank.CONVERSATION} else evidence(rank, await call(sidecar, BOB))
    first = await call(sidecar, ALICE, **names)
    same = evidence(rank, first)
    hers = await call(sidecar, ALICE, **same)
    provider.answers("Something else.")
    his = await call(sidecar, BOB, **same)
    again = await call(sidecar, BOB, **same) if rank in {Rank.HINT, Rank.BODY, Rank.TRACE} else his

    assert (session(hers), hers.headers["crp-session-binding"]) == (session(first), rank.word)
    if rank is Rank.RESPONSE:
        assert (his.status_code, reason_of(his)) == (404, "RESPONSE_NOT_FOUND")
        return
    assert session(his) == session(again) != session(first)
    assert [his.headers["crp-session-binding"]] == begun
    assert his.headers["crp-context-window"] == "1/200"
    assert his.headers["crp-agent-safety-budget"] == "1.00"
    assert "31415" not in his.text


async def test_a37_another_keys_session_id_is_not_found(sidecar):
    """Not hers, not a new one under her id, and no telling whether there is one of that id."""
    alices = session(await call(sidecar, ALICE))
    his = await call(sidecar, BOB, headers={"crp-context-session-id": alices})
    nobodys = await call(sidecar, BOB, headers={"crp-context-session-id": "crp_sess_" + "0" * 32})

    assert (his.status_code, reason_of(his)) == (nobodys.status_code, reason_of(nobodys)) == (404, "SESSION_NOT_FOUND")
    assert his.json()["error"]["message"] == nobodys.json()["error"]["message"]
    assert "set-cookie" not in his.headers


async def test_a37_what_bob_begins_under_a_name_does_not_take_it_from_alice(sidecar):
    """Whoever comes first: the name stays each one's own."""
    name = {"x-session-id": "chat-42"}
    bobs = [session(await call(sidecar, BOB, headers=name)) for _ in range(2)]
    alices = [session(await call(sidecar, ALICE, headers=name)) for _ in range(2)]
    after = session(await call(sidecar, BOB, headers=name))

    assert (len(set(bobs)), len(set(alices))) == (1, 1)
    assert after == bobs[0] != alices[0]

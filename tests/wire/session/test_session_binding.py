"""Calls without a token over real gRPC: each finds the session that what it brings speaks for (ATT-1, ATT-3)."""

from __future__ import annotations

import pytest

from interlock.api.session.v1 import session_pb2 as pb
from interlock.runtime.settings.model import Settings
from tests.support.session.bindings import Talker, names, speaking
from tests.support.session.session_client import MASTER, POLICY, SCOPE, Client, asking, opening, serving, sha

pytestmark = pytest.mark.req("ATT-1")

PARIS = "Paris is the capital of France."
RIVER = "It lies on the river Seine."
TOWER = "The Eiffel Tower was built in 1889."
METRO = "The metro has sixteen lines today."


@pytest.fixture
async def client(redis_url, tmp_path):
    settings = Settings(
        redis_url=redis_url, state_dir=tmp_path, master_key=MASTER.hex(), session_port=0, max_windows=20
    )
    async with serving(settings) as address, asking(address) as made:
        yield made


@pytest.fixture
def talker(client: Client) -> Talker:
    return Talker(client)


async def test_a_resent_history_goes_on_in_its_session(talker):
    """The plain client: each call carries all earlier answers, and all of them are one session in a line."""
    first, second, third = await talker.conversation(PARIS, RIVER, TOWER)

    assert {first.session_id} == {second.session_id, third.session_id}
    assert [window.window_number for window in (first, second, third)] == [1, 2, 3]
    assert list(third.parent_ids) == [second.window_id]
    assert third.pattern == "LINEAR"
    assert third.binding.rank == pb.BINDING_RANK_CONVERSATION
    assert list(third.binding.known_window_ids) == [first.window_id, second.window_id]
    assert not third.binding.begins_conversation


async def test_an_edited_history_branches_from_the_last_known_answer(talker):
    """What the edit replaced stays in the session, beside the new line."""
    first, second = await talker.conversation(PARIS, RIVER)

    window = await talker.open(PARIS, "What the client made of it since.")
    assert (window.session_id, list(window.parent_ids)) == (first.session_id, [first.window_id])
    assert window.pattern == "BRANCH"
    assert window.window_id != second.window_id


@pytest.mark.parametrize("kept", [[RIVER, TOWER], [TOWER], ["A summary of all that was said.", TOWER]])
async def test_a_history_that_was_cut_is_found_by_what_it_kept(talker, kept):
    """A sliding window, and a summary in the place of what was dropped."""
    *_, last = await talker.conversation(PARIS, RIVER, TOWER)

    window = await talker.open(*kept)
    assert (window.session_id, list(window.parent_ids)) == (last.session_id, [last.window_id])


async def test_a_history_that_begins_with_nothing_known_binds_nothing(talker):
    """A new conversation, and one that this deployment never gave an answer in."""
    await talker.conversation(PARIS)

    assert (await talker.refused()).reason == "SESSION_NOT_BOUND"
    assert (await talker.refused("An answer of somebody else.")).reason == "SESSION_NOT_BOUND"


async def test_a_short_answer_binds_only_with_the_one_before_it(talker):
    """Two conversations said yes; each is found by what came before, and yes alone by nothing."""
    *_, ours = await talker.conversation(PARIS, "Yes.")
    *_, theirs = await talker.conversation(RIVER, "Yes.")

    assert (await talker.open(PARIS, "Yes.")).session_id == ours.session_id
    assert (await talker.open(RIVER, "Yes.")).session_id == theirs.session_id
    assert (await talker.refused("Yes.")).reason == "SESSION_NOT_BOUND"
    assert (await talker.refused(TOWER, "Yes.")).reason == "SESSION_NOT_BOUND"


async def test_what_two_conversations_share_binds_to_neither(talker):
    """The same answers in two sessions tell nothing; the first one that differs does."""
    await talker.conversation(PARIS, RIVER)
    window = await talker.settle(await talker.begin(), PARIS)
    refused = await talker.refused(PARIS)
    assert refused.reason == "SESSION_NOT_BOUND"
    assert not refused.metadata

    other = await talker.settle(await talker.begin(), TOWER)
    assert (await talker.open(PARIS, TOWER)).session_id == other.session_id != window.session_id


async def test_an_answer_given_twice_in_one_place_is_found(talker):
    """A client that retried has two windows with one answer: the later one goes on."""
    first, second = await talker.conversation(PARIS, RIVER)
    again = await talker.settle(await talker.open(PARIS), RIVER)

    assert (again.session_id, again.pattern) == (first.session_id, "BRANCH")
    assert list((await talker.open(PARIS, RIVER)).parent_ids) == [again.window_id] != [second.window_id]


@pytest.mark.parametrize("kind", ["hint", "cookie", "trace", "body"])
async def test_a_name_finds_its_session(talker, kind):
    """With or without history: the latest window goes on, and a conversation begins in it."""
    first = await talker.settle(await talker.begin(**{kind: "abc"}), PARIS)

    window = await talker.open(**{kind: "abc"})
    assert (window.session_id, list(window.parent_ids)) == (first.session_id, [first.window_id])
    assert window.binding.rank == pb.BindingRank.Value(f"BINDING_RANK_{kind.upper()}")
    assert window.binding.begins_conversation
    assert not window.binding.known_window_ids
    assert (await talker.refused(**{kind: "other"})).reason == "SESSION_NOT_BOUND"


async def test_a_name_that_a_settlement_brings_is_learnt(talker):
    """A cookie, or a response's id: both are made only when the answer is."""
    first = await talker.settle(await talker.begin(), "", cookie="c", response="r1")
    second = await talker.settle(await talker.open(cookie="c"), "", response="r2")

    window = await talker.open(response="r1")
    assert (window.session_id, list(window.parent_ids), window.pattern) == (
        first.session_id, [first.window_id], "BRANCH",
    )  # fmt: skip
    assert list((await talker.open(response="r2")).parent_ids) == [second.window_id]
    assert (await talker.refused(response="r3")).reason == "RESPONSE_NOT_FOUND"


async def test_the_first_name_that_is_known_decides(talker):
    """Stronger evidence wins, and what disagrees with it is told."""
    one = await talker.settle(await talker.begin(hint="a"), PARIS)
    two = await talker.settle(await talker.begin(cookie="b"), RIVER)

    window = await talker.open(RIVER, hint="a", cookie="b")
    assert window.session_id == one.session_id != two.session_id
    assert list(window.binding.disagreeing) == [pb.BINDING_RANK_COOKIE, pb.BINDING_RANK_CONVERSATION]
    assert window.binding.begins_conversation


async def test_a_new_hint_begins_whatever_else_is_known(talker):
    """A name that a caller gives anew is a new session; a cookie that is unknown tells nothing."""
    first = await talker.settle(await talker.begin(), PARIS)

    refused = await talker.refused(PARIS, hint="new")
    assert (refused.reason, refused.metadata["disagreeing"]) == ("SESSION_NOT_BOUND", "CONVERSATION")
    assert (await talker.open(PARIS, cookie="stale")).session_id == first.session_id


async def test_names_are_worth_something_within_one_scope_alone(client):
    """Two callers that send the same have two sessions, even where their digests were the same."""
    ours, theirs = Talker(client), Talker(client, "key_of_somebody_else")
    first = await ours.settle(await ours.begin(hint="a", cookie="b", trace="c", body="d"), PARIS, response="e")
    for given in ({"hint": "a"}, {"cookie": "b"}, {"trace": "c"}, {"body": "d"}, {"response": "e"}, {}):
        assert (await theirs.refused(PARIS, **given)).reason in {"SESSION_NOT_BOUND", "RESPONSE_NOT_FOUND"}
        stolen = speaking(PARIS, **given)
        stolen.scope = theirs.scope
        refused = await client.refused("OpenWindow", stolen)
        assert refused.reason in {"SESSION_NOT_BOUND", "RESPONSE_NOT_FOUND"}
        assert first.session_id not in str(refused.metadata)


async def test_a_name_belongs_to_one_living_session(talker):
    """A second session cannot start under a living one's name; the caller asks for the first one's window instead."""
    first = await talker.settle(await talker.begin(hint="a"), "")
    request = pb.StartSessionRequest(scope=SCOPE, policy_text=POLICY, policy_hash=sha(POLICY), names=names(hint="a"))

    refused = await talker.client.refused("StartSession", request)
    assert (refused.reason, refused.metadata["session_id"]) == ("BINDING_TAKEN", first.session_id)
    assert (await talker.open(hint="a")).session_id == first.session_id


async def test_a_session_that_its_client_ended_is_unbound(talker):
    """Its name and its answers begin a new session."""
    started = await talker.client.start(names=names(hint="a", cookie="b"), first_window=opening("", scope=""))
    await talker.settle(started.first_window.window, PARIS)
    await talker.client.call("TerminateSession", pb.TerminateSessionRequest(token=started.token, scope=SCOPE))

    for given in ({"hint": "a"}, {"cookie": "b"}, {}):
        assert (await talker.refused(PARIS, **given)).reason == "SESSION_NOT_BOUND"
    again = await talker.begin(hint="a", cookie="b")
    assert again.session_id != started.session.session_id
    await talker.settle(again, RIVER)
    for given in ({"hint": "a"}, {"cookie": "b"}):
        window = await talker.settle(await talker.open(RIVER, **given), "")
        assert window.session_id == again.session_id


async def test_a_depleted_session_stays_bound(talker):
    """The same history, or the same name, meets the same halt; it is no way to a new budget."""
    window = await talker.settle(await talker.begin(hint="a"), PARIS, cost=500_000)
    await talker.settle(await talker.open(PARIS), RIVER, cost=500_000)

    for history, given in (((PARIS, RIVER), {}), ((PARIS,), {}), ((), {"hint": "a"})):
        refused = await talker.refused(*history, **given)
        assert (refused.reason, refused.metadata["session_id"]) == ("BUDGET_DEPLETED", window.session_id)
    again = pb.StartSessionRequest(scope=SCOPE, policy_text=POLICY, policy_hash=sha(POLICY), names=names(hint="a"))
    assert (await talker.client.refused("StartSession", again)).reason == "BINDING_TAKEN"


async def test_the_same_call_again_and_again_spends_the_session(talker):
    """A caller that drops what was refused and asks anew branches; each branch starts with what the session has left."""
    await talker.settle(await talker.begin(), PARIS)
    left = []
    for _ in range(3):
        window = await talker.open(PARIS)
        left.append(window.safety_budget_micros)
        await talker.settle(window, "", cost=350_000)

    assert left == [1_000_000, 650_000, 300_000]
    assert (await talker.refused(PARIS)).reason == "BUDGET_DEPLETED"

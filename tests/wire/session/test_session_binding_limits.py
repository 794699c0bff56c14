"""Bindings at their edges over real gRPC and a real store: races, many ledgers, limits, what is lost or spoilt (ATT-1, ATT-3)."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from interlock.api.session.v1 import session_pb2 as pb
from interlock.domain.errors import Refused
from interlock.runtime.settings.model import Settings
from interlock.session.store.redis_bindings import generations_of
from tests.support.session.bindings import BEGINNING, Talker, names, speaking, turn
from tests.support.session.session_client import MASTER, POLICY, SCOPE, asking, opening, serving, sha

pytestmark = pytest.mark.req("ATT-1", "ATT-3")

PARIS = "Paris is the capital of France."
RIVER = "It lies on the river Seine."
TOWER = "The Eiffel Tower was built in 1889."


@contextlib.asynccontextmanager
async def talking(redis_url, tmp_path, **changed):
    values = {"max_windows": 20, "state_dir": tmp_path, "master_key": MASTER.hex(), "session_port": 0, **changed}
    async with serving(Settings(redis_url=redis_url, **values)) as address, asking(address) as client:
        yield Talker(client)


@pytest.fixture
async def talker(redis_url, tmp_path):
    async with talking(redis_url, tmp_path) as made:
        yield made


async def outcome(call):
    try:
        return await call
    except Refused as refused:
        return refused.reason


async def test_of_two_that_go_on_at_once_one_waits(talker):
    """One takes the lease; the other is told how long it is held, and goes on as a branch when that one was settled."""
    first = await talker.settle(await talker.begin(hint="a"), PARIS)
    got = await asyncio.gather(*(outcome(talker.open(PARIS)) for _ in range(2)))

    assert got.count("WINDOW_IN_FLIGHT") == 1
    refused = await talker.refused(PARIS)
    assert (refused.reason, refused.metadata["session_id"]) == ("WINDOW_IN_FLIGHT", first.session_id)
    assert refused.retry_after_ms > 0
    (window,) = (each for each in got if each != "WINDOW_IN_FLIGHT")
    await talker.settle(window, RIVER)
    assert (await talker.open(PARIS)).pattern == "BRANCH"


@pytest.mark.parametrize("kind", ["cookie", "trace", "body"])
async def test_conversations_that_share_a_name_do_not_wait_for_each_other(talker, kind):
    """While one is in flight, another that begins gets no 409: it has to begin a session of its own, and is told why."""
    first = await talker.settle(await talker.begin(**{kind: "a"}), PARIS)
    await talker.open(PARIS, **{kind: "a"})

    refused = await talker.refused(**{kind: "a"})
    assert (refused.reason, refused.metadata["cause"]) == ("SESSION_NOT_BOUND", "WINDOW_IN_FLIGHT")
    assert refused.metadata["session_id"] == first.session_id
    assert (await talker.refused(PARIS, **{kind: "a"})).reason == "WINDOW_IN_FLIGHT"


@pytest.mark.parametrize("kind", sorted(BEGINNING))
async def test_of_two_that_begin_under_one_name_one_gets_it(talker, kind):
    """The other is refused, and its session is ended: whoever finds it finds nothing to go on with."""
    got = await asyncio.gather(*(outcome(talker.begin(**{kind: "a"})) for _ in range(4)))

    assert got.count("BINDING_TAKEN") == 3
    (window,) = (each for each in got if each != "BINDING_TAKEN")
    await talker.settle(window, PARIS)
    assert (await talker.open(**{kind: "a"})).session_id == window.session_id


async def test_four_ledgers_over_one_store_find_the_same(redis_url, tmp_path):
    """A conversation whose calls go to one replica after the other is one session."""
    async with contextlib.AsyncExitStack() as stack:
        talkers = [await stack.enter_async_context(talking(redis_url, tmp_path)) for _ in range(4)]
        answers, sessions = [], set()
        for at in range(12):
            talker = talkers[at % 4]
            window = await talker.open(*answers, hint="a") if at else await talker.begin(hint="a")
            answers.append(f"Answer number {at} of this conversation.")
            await talker.settle(window, answers[-1])
            sessions.add(window.session_id)
            assert window.window_number == at + 1

    assert len(sessions) == 1


async def test_a_line_that_was_taken_meanwhile_is_branched_from(redis_url, tmp_path):
    """Many retries of one call over two replicas: each is settled beside the others, none is lost, none is refused."""
    async with talking(redis_url, tmp_path) as one, talking(redis_url, tmp_path) as other:
        first = await one.settle(await one.begin(), PARIS)
        got = []
        for talker in (one, other, one, other):
            got.append(await talker.settle(await talker.open(PARIS), f"Another answer: {len(got)}."))

    assert {window.session_id for window in got} == {first.session_id}
    assert [window.pattern for window in got] == ["LINEAR", "BRANCH", "BRANCH", "BRANCH"]


async def test_a_session_that_is_used_up_is_named(redis_url, tmp_path):
    """The refusal says which session it is; one that goes on from it takes its names, and is shown with the link."""
    async with talking(redis_url, tmp_path, max_windows=2) as talker:
        first, _ = await talker.conversation(PARIS, RIVER, hint="a", cookie="b")
        refused = await talker.refused(PARIS, RIVER)
        assert refused.metadata["session_id"] == refused.metadata["root_session_id"] == first.session_id
        assert refused.reason in {"MAX_WINDOWS_EXCEEDED", "SESSION_TERMINATED"}
        assert (await talker.refused(hint="a")).reason == refused.reason

        request = pb.StartSessionRequest(
            scope=SCOPE, policy_text=POLICY, policy_hash=sha(POLICY), names=names(hint="a", cookie="b"),
            continues_session_id=first.session_id, first_window=opening("", scope=""),
        )  # fmt: skip
        started = await talker.client.call("StartSession", request)
        assert started.session.continues_session_id == first.session_id
        stored = await talker.client.session(session_id=started.session.session_id)
        assert stored.continues_session_id == first.session_id
        await talker.settle(started.first_window.window, TOWER)
        for given in ({"hint": "a"}, {"cookie": "b"}, {}):
            window = await talker.open(PARIS, RIVER, TOWER, **given)
            assert window.session_id == started.session.session_id
            await talker.client.call(
                "AbandonWindow",
                pb.AbandonWindowRequest(
                    session_id=window.session_id, root_session_id=window.root_session_id, window_id=window.window_id
                ),
            )
            assert list(window.parent_ids) == [started.first_window.window.window_id]


async def test_the_last_window_of_a_branch_is_used_up_as_well(redis_url, tmp_path):
    """A history that ends at the limit, in a session that went on beside it: it goes on in a linked session, too."""
    async with talking(redis_url, tmp_path, max_windows=3) as talker:
        first, _ = await talker.conversation(PARIS, RIVER)
        await talker.settle(await talker.open(PARIS), "One branch of it.")
        await talker.settle(await talker.open(PARIS, RIVER), TOWER)
        await talker.settle(await talker.open(PARIS), "Another branch of it.")
        refused = await talker.refused(PARIS, RIVER, TOWER)

    assert refused.reason == "MAX_WINDOWS_EXCEEDED"
    assert refused.metadata["session_id"] == first.session_id


async def test_nothing_goes_on_from_another_callers_session(talker):
    """The link names a session of the same caller, or there is none."""
    window = await talker.begin(hint="a")
    request = pb.StartSessionRequest(scope="key_of_somebody_else", continues_session_id=window.session_id)

    assert (await talker.client.refused("StartSession", request)).reason == "SESSION_NOT_FOUND"


async def test_more_branches_than_fit_begin_anew(redis_url, tmp_path):
    """A client that asks the same again and again is not refused for it: past the width, nothing binds it."""
    async with talking(redis_url, tmp_path, max_fan_out=2) as talker:
        await talker.conversation(PARIS, RIVER)
        await talker.settle(await talker.open(PARIS), TOWER)
        refused = await talker.refused(PARIS)

    assert (refused.reason, refused.metadata["cause"]) == ("SESSION_NOT_BOUND", "MAX_FAN_OUT_EXCEEDED")


async def test_a_lost_session_is_named_and_then_replaced(talker, valkey):
    """It can be rebuilt from its chain by that name; where it cannot, its name is free for a new one."""
    window = await talker.settle(await talker.begin(hint="a"), PARIS)
    with valkey.client() as redis:
        assert redis.delete(f"il:{{{window.session_id}}}:s:{window.session_id}")

    for history, given in (((), {"hint": "a"}), ((PARIS,), {})):
        refused = await talker.refused(*history, **given)
        assert refused.reason == "SESSION_STATE_LOST"
        assert refused.metadata["session_id"] == refused.metadata["root_session_id"] == window.session_id
    again = await talker.settle(await talker.begin(hint="a"), "")
    assert (await talker.open(hint="a")).session_id == again.session_id


async def test_an_empty_store_knows_nobody(talker, valkey):
    """Nothing is found, and nothing is refused for it: a new session begins under the same name."""
    await talker.settle(await talker.begin(hint="a"), PARIS)
    valkey.flush()

    assert (await talker.refused(PARIS, hint="a")).reason == "SESSION_NOT_BOUND"
    assert (await talker.begin(hint="a")).window_number == 1


@pytest.mark.parametrize("value", [b"", b"\xff", b"\x02short", b"\x02" + b"x" * 40, b"no record of ours at all"])
async def test_a_spoilt_entry_is_unknown(talker, valkey, value):
    """Neither a guess nor a fault; the next answer puts a good one in its place."""
    window = await talker.settle(await talker.begin(hint="a"), PARIS)
    with valkey.client() as redis:
        current = generations_of(SCOPE)[0]
        for digest in redis.hkeys(current):
            redis.hset(current, digest, value)

    assert (await talker.refused(PARIS, hint="a")).reason == "SESSION_NOT_BOUND"
    again = await talker.settle(await talker.begin(hint="a"), PARIS)
    assert (await talker.open(PARIS, hint="a")).session_id == again.session_id != window.session_id


async def test_an_index_of_another_kind_fails_no_settlement(talker, valkey):
    """A settled window stays settled; what could not be noted costs a binding, and opening by evidence is refused."""
    window = await talker.begin()
    with valkey.client() as redis:
        redis.set(generations_of(SCOPE)[0], "somebody else's")

    await talker.settle(window, PARIS)
    assert (await talker.client.session(session_id=window.session_id)).windows[0].window_id == window.window_id
    assert (await talker.refused(PARIS)).reason == "SESSION_STATE_CORRUPT"


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"token": "a.b"}, "INVALID_FIELD"),
        ({"continuation_id": "crp_cont_" + "0" * 32}, "INVALID_FIELD"),
        ({"pattern": "BRANCH"}, "INVALID_FIELD"),
        ({"nonce": "base64:AAAA"}, "INVALID_FIELD"),
        ({"scope": ""}, "INVALID_SCOPE"),
        ({"evidence": pb.BindingEvidence(turns=[turn(str(n)) for n in range(65)])}, "INVALID_FIELD"),
        ({"evidence": pb.BindingEvidence(turns=[pb.BoundTurn(digest="abc")])}, "INVALID_FIELD"),
        ({"evidence": pb.BindingEvidence(names=[pb.BoundName(rank=1, digest="0" * 32)])}, "INVALID_FIELD"),
        ({"evidence": pb.BindingEvidence(names=[pb.BoundName(rank=7, digest="0" * 32)])}, "INVALID_FIELD"),
    ],
)
async def test_evidence_that_cannot_be_is_refused(talker, changed, reason):
    """A token and evidence at once, pointers without a token, ranks that name nothing, digests of another form."""
    request = speaking(PARIS)
    for field, value in changed.items():
        if field == "evidence":
            request.evidence.CopyFrom(value)
        else:
            setattr(request, field, value)

    assert (await talker.client.refused("OpenWindow", request)).reason == reason

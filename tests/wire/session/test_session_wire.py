"""The session service over real gRPC on a real Valkey: tokens, windows, breaker and leases."""

from __future__ import annotations

import asyncio
import secrets
import time

import pytest
import redis
from prometheus_client import REGISTRY

from interlock.api.common.v1 import common_pb2
from interlock.api.session.v1 import session_pb2 as pb
from interlock.domain.errors import Kind
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.settings.model import Settings
from interlock.session.ledger import Ledger
from interlock.session.servicer import SessionServicer
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore
from interlock.session.terms import rules_of
from interlock.session.wiring import open_service
from tests.support.session.session_client import (
    HIGH,
    MASTER,
    POLICY,
    SCOPE,
    STAMP,
    Client,
    Clock,
    asking,
    opening,
    payload,
    serving,
    settling,
    sha,
)


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


# The way through


@pytest.mark.req("BUD-1", "TOK-2", "BRK-1")
async def test_a_session_starts_full_with_a_token_for_its_first_window(client):
    """Budget 1.0, CLOSED, ACTIVE; the token says the same and names no window yet."""
    started = await client.start()
    session, token = started.session, payload(started.token)

    assert (session.safety_budget_micros, session.breaker, session.status) == (1_000_000, 1, 1)
    assert (session.session_id, session.root_session_id) == (token["sid"],) * 2
    assert (token["win"], token["qh"], token["sb"], token["ct"], token["cid"]) == (0, [], 1.0, "", "")
    assert (token["scope"], token["pol"], token["kv"], token["v"]) == (SCOPE, sha(POLICY), 1, "3.0.0")
    assert token["exp"] - token["iat"] == 3600


@pytest.mark.req("BUD-1", "BUD-5", "DAG-3", "DAG-11", "TOK-2")
async def test_each_window_is_charged_and_its_token_carries_the_session_on(client):
    """Two windows: budget, pointer, lineage, quality and token move together."""
    started = await client.start()
    first = await client.open(started.token)
    done = await client.settle(first)
    second = await client.open(done.token, continuation_id=done.continuation_id)
    last = await client.settle(second, quality_tier="C", risk_level=common_pb2.RISK_LEVEL_MEDIUM, charge_micros=50_000)
    token = payload(last.token)

    assert (first.window_number, list(first.parent_ids), list(first.parent_hmacs)) == (1, [], [])
    assert (second.window_number, list(second.parent_ids)) == (2, [first.window_id])
    assert list(second.parent_hmacs) == [sha(first.window_id)]
    assert (second.safety_budget_micros, list(second.quality_history)) == (850_000, ["B"])
    assert (last.safety_budget_micros, last.session_budget_micros) == (800_000, 800_000)
    assert list(last.lineage) == [first.window_id, second.window_id]
    assert (token["win"], token["qh"], token["sb"]) == (2, ["B", "C"], 0.8)
    assert (token["ct"], token["cid"], token["dag"]) == (sha(second.window_id), last.continuation_id, "LINEAR")
    assert last.max_age_s == 3600
    assert last.nonce == token["nonce"]


@pytest.mark.req("BUD-2")
async def test_an_opening_tells_what_a_response_costs(client):
    """The configured decrements travel with the lease."""
    cost = (await client.open((await client.start()).token)).decrements

    assert (cost.low_micros, cost.medium_micros, cost.high_micros, cost.critical_micros) == (
        0,
        50_000,
        150_000,
        350_000,
    )


@pytest.mark.req("TOK-5")
async def test_another_instance_resumes_a_session_from_its_token(client, settings):
    """Two services, one store, one master key: the token of one opens at the other (SPEC-007 §7)."""
    done = await client.line(HIGH)
    other = await open_service(settings)
    answer = await other.servicer.OpenWindow(opening(done.token), None)
    await other.close()

    assert (answer.window.window_number, answer.window.safety_budget_micros) == (2, 850_000)


@pytest.mark.req("TOK-1")
async def test_another_master_key_accepts_no_token_of_ours(client, settings):
    """A service with another key does not take over a session, whatever store it shares."""
    token = (await client.start()).token
    other = await open_service(settings.model_copy(update={"master_key": None}))
    answer = await other.servicer.OpenWindow(opening(token), None)
    await other.close()

    assert answer.refusal.reason == "TOKEN_SIGNATURE_INVALID"


@pytest.mark.req("DAG-1")
async def test_the_whole_session_can_be_read(client):
    """Every node field of SPEC-004 §3.1 comes back as it was settled, with parents and children."""
    done = await client.line(HIGH, 50_000)
    session = await client.session(token=done.token)
    first, second = session.windows

    assert (list(first.child_ids), list(second.parent_ids)) == ([second.window_id], [first.window_id])
    assert (first.window_number, first.pattern, first.strategy, first.quality_tier) == (1, "LINEAR", "push", "B")
    assert (first.safety_budget_micros, first.charge_micros, first.status) == (850_000, HIGH, "COMPLETED")
    assert (first.hmac, first.response_hash, first.envelope_etag) == (sha(first.window_id), sha("answer"), sha("facts"))
    assert (first.timestamp, first.token_count, first.session_id) == (STAMP, 12, session.session_id)
    assert (session.chain_tip, session.policy_text, session.scope) == (second.hmac, POLICY, SCOPE)
    assert second.continuation_id == done.continuation_id


# The breaker


@pytest.mark.req("BRK-1", "BRK-2", "BRK-5")
async def test_half_open_forces_the_reflexive_strategy_and_is_reported_as_a_step(client):
    """0.50: the commit names the transition, the token and the next lease say reflexive."""
    started = await client.start()
    done = await client.line(350_000, HIGH, token=started.token)
    window = await client.open(done.token)
    (step,) = done.transitions

    assert (step.from_state, step.to_state, step.safety_budget_micros) == (1, 2, 500_000)
    assert step.session_id == started.session.session_id
    assert (window.breaker, window.strategy, payload(done.token)["str"]) == (2, "reflexive", "reflexive")


@pytest.mark.req("BRK-3", "DAG-10")
async def test_an_open_breaker_ends_the_session_with_a_451(client):
    """0.05: no pointer, terminated, and every further opening is HALTED with what to do instead."""
    done = await client.line(350_000, 350_000, 250_000)
    no = await client.refused("OpenWindow", opening(done.token))

    assert (done.breaker, done.terminated, done.continuation_id) == (3, True, "")
    assert (no.kind, no.reason) == (Kind.HALTED, "BUDGET_DEPLETED")
    assert no.metadata == {"safety_budget": "0.05", "band": "depleted", "retry_after": "new-session-required"}
    assert (await client.session(token=done.token)).status == pb.SESSION_STATUS_HALTED


@pytest.mark.req("BRK-5")
async def test_charges_and_transitions_are_counted_once(client):
    """A repeated commit counts nothing a second time."""
    steps = ("interlock_breaker_transitions_total", {"from": "CLOSED", "to": "HALF_OPEN"})
    charges = ("interlock_budget_decrements_total", {"level": "HIGH"})
    before = [REGISTRY.get_sample_value(*name) or 0 for name in (steps, charges)]
    window = await client.open((await client.start()).token)
    for _ in range(3):
        done = await client.settle(window, ceiling_micros=500_000)
    after = [REGISTRY.get_sample_value(*name) for name in (steps, charges)]

    assert done.duplicate
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1]


# Tokens


@pytest.mark.req("TOK-5", "BUD-4")
async def test_a_replayed_token_is_a_409_and_gives_nothing_back(client):
    """The first token again, after two windows: refused, and the budget stays where it is."""
    token = (await client.start()).token
    done = await client.line(HIGH, HIGH, token=token)
    no = await client.refused("OpenWindow", opening(token))

    assert (no.kind, no.reason) == (Kind.CONFLICT, "TOKEN_REPLAYED")
    assert (await client.open(done.token)).session_budget_micros == 700_000


@pytest.mark.req("TOK-3")
@pytest.mark.parametrize(
    ("age_s", "reason"), [(3600.0, None), (3600.000001, "TOKEN_EXPIRED"), (-30, None), (-31, "TOKEN_FROM_FUTURE")]
)
async def test_a_token_expires_by_the_services_clock(timed, age_s, reason):
    """Valid for an hour, and from instances whose clock is up to 30 s ahead."""
    client, clock = timed
    token = (await client.start()).token
    clock.go_on(age_s)
    if reason:
        no = await client.refused("OpenWindow", opening(token))
        assert (no.kind, no.reason) == (Kind.UNAUTHENTICATED, reason)
    else:
        assert (await client.open(token)).window_number == 1


@pytest.mark.req("TOK-3")
async def test_every_settled_window_starts_a_new_hour(timed):
    """The token of the latest window counts; a session goes on as long as it is used."""
    client, clock = timed
    token = (await client.start()).token
    for _ in range(3):
        clock.go_on(3000)
        token = (await client.settle(await client.open(token))).token

    assert payload(token)["exp"] == clock.now_us // 1_000_000 + 3600


@pytest.mark.req("TOK-3")
@pytest.mark.parametrize("method", ["OpenWindow", "GetSession", "TerminateSession"])
async def test_a_token_is_of_no_use_to_another_key(client, method):
    """A stolen token without its key opens, shows and ends nothing."""
    request = {"OpenWindow": pb.OpenWindowRequest, "GetSession": pb.GetSessionRequest}.get(
        method, pb.TerminateSessionRequest
    )
    token = (await client.start()).token
    no = await client.refused(method, request(token=token, scope="key_other"))

    assert (no.kind, no.reason) == (Kind.UNAUTHENTICATED, "TOKEN_SCOPE_MISMATCH")


@pytest.mark.req("TOK-3")
async def test_the_nonce_must_be_the_sessions(client):
    """The session's own nonce passes; any other is malformed (SPEC-007 §5.6)."""
    token = (await client.start()).token
    for wrong in ("base64:AAECAwQFBgcICQoLDA0ODw==", "x" * 5000):
        no = await client.refused("OpenWindow", opening(token, nonce=wrong))
        assert (no.kind, no.reason) == (Kind.INVALID, "NONCE_MISMATCH")

    assert (await client.open(token, nonce=payload(token)["nonce"])).window_number == 1


@pytest.mark.req("TOK-1")
@pytest.mark.parametrize(
    ("token", "reason"),
    [("", "TOKEN_MISSING"), ("x", "TOKEN_MALFORMED"), ("A" * 8193, "TOKEN_MALFORMED"), ("\u241f.é", "TOKEN_MALFORMED")],
)
async def test_what_is_no_token_is_a_401(client, token, reason):
    """Missing, malformed, oversized and not ASCII."""
    no = await client.refused("OpenWindow", opening(token))

    assert (no.kind, no.reason) == (Kind.UNAUTHENTICATED, reason)


@pytest.mark.req("TOK-1")
async def test_ids_tokens_and_nonces_do_not_repeat(client):
    """Two hundred sessions: every id has 128 fresh bits, every nonce too."""
    started = [await client.start() for _ in range(200)]

    assert len({each.session.session_id for each in started}) == 200
    assert len({payload(each.token)["nonce"] for each in started}) == 200


@pytest.mark.req("DAG-4")
async def test_a_continuation_of_another_session_is_the_same_404_as_an_unknown_one(client):
    """Two sessions exchange their pointers."""
    mine, theirs = await client.line(HIGH), await client.line(HIGH)
    foreign = await client.refused("OpenWindow", opening(mine.token, continuation_id=theirs.continuation_id))
    unknown = await client.refused("OpenWindow", opening(mine.token, continuation_id="crp_cont_" + "0" * 32))

    assert (foreign.kind, foreign.reason) == (Kind.NOT_FOUND, "CONTINUATION_NOT_FOUND")
    assert vars(foreign) == vars(unknown)


# Leases


async def test_one_window_at_a_time(client):
    """The second opening waits; when the first is given back, it goes through."""
    token = (await client.start()).token
    window = await client.open(token)
    no = await client.refused("OpenWindow", opening(token))
    back = pb.AbandonWindowRequest(
        session_id=window.session_id, root_session_id=window.root_session_id, window_id=window.window_id
    )

    assert (no.kind, no.reason) == (Kind.CONFLICT, "WINDOW_IN_FLIGHT")
    assert 0 < no.retry_after_ms <= 30_000
    assert [(await client.call("AbandonWindow", back)).released for _ in range(2)] == [True, False]
    assert (await client.open(token)).window_number == 1


async def test_a_lease_that_ran_out_names_its_window(timed):
    """The next caller learns which window may have been sealed, and can settle it with its old lease."""
    client, clock = timed
    token = (await client.start()).token
    lost = await client.open(token, lease_ms=1000)
    clock.go_on(1)
    window = await client.open(token)
    done = await client.settle(lost)

    assert window.unsettled_window_id == lost.window_id
    assert (done.session_budget_micros, done.duplicate) == (850_000, False)
    assert (await client.refused("CommitWindow", settling(window))).reason == "PARENT_NOT_TIP"


async def test_a_lease_without_a_length_lasts_as_long_as_a_request_may(timed):
    """lease_ms 0 is the deployment's request timeout."""
    client, clock = timed
    token = (await client.start()).token
    await client.open(token, lease_ms=0)
    clock.go_on(59.999)
    assert (await client.refused("OpenWindow", opening(token))).retry_after_ms == 1
    clock.go_on(0.001)

    assert (await client.open(token)).window_number == 1


def wait_for_lease(url: str, session: str) -> None:
    """Return when the store has given the lease. The loop stands still meanwhile, so nobody has read the answer."""
    deadline = time.monotonic() + 5
    with redis.Redis.from_url(url) as store:
        while not store.hget(f"il:{{{session}}}:s:{session}", "lease"):
            assert time.monotonic() < deadline


async def test_a_caller_who_hangs_up_while_opening_leaves_no_lease(client, settings):
    """A cancelled OpenWindow gives back what it may have taken, so that a retry does not wait for a dead lease."""
    await client.open((await client.start()).token)  # from here on the store knows the script
    token = (await client.start()).token
    service = await open_service(settings)
    assert await service.unready_dependencies() == {}  # connected
    opening_call = asyncio.create_task(service.servicer.OpenWindow(opening(token), None))
    for _ in range(3):
        await asyncio.sleep(0)
    wait_for_lease(settings.redis_url, payload(token)["sid"])
    opening_call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await opening_call
    await service.close()

    assert (await client.open(token)).window_number == 1

"""The budget of a caller over real HTTP and a real Valkey: starting anew is no way out, and nothing refills it (ATT-2)."""

from __future__ import annotations

import asyncio
import json
import secrets
from contextlib import AsyncExitStack
from dataclasses import replace

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.domain.session.caller import caller_id_of
from interlock.runtime import failpoints
from interlock.runtime.keys.derivation import load_keyring
from interlock.runtime.settings.model import Settings
from interlock.session.ledger import Ledger
from interlock.session.servicer import SessionServicer
from interlock.session.store.redis import caller_key_of
from interlock.session.store.store import MemoryStore
from interlock.session.terms import rules_of
from tests.support.policy.agents import fields, write
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Answering, Merger, delegated, onward

CRITICAL, MEDIUM = "It is CRITICAL.", "It is MEDIUM."
CALLER = caller_id_of("anonymous")
DAY_S = 86_400


@pytest.fixture(scope="module")
def running():
    with RunningProvider(Answering()) as provider:
        yield provider


@pytest.fixture
def provider(running) -> Answering:
    running.provider.reset()
    return running.provider


@pytest.fixture
def fail():
    yield failpoints.configure
    failpoints.configure("")


@pytest.fixture
async def sidecars(tmp_path, running, redis_url):
    """Make sidecars over one store and one state folder."""
    async with AsyncExitStack() as ends:

        async def make(**settings):
            given = {"caller_budget": 1.0, "caller_period_s": DAY_S, "redis_url": redis_url, **settings}
            one = running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), **given)
            return await ends.enter_async_context(one)

        yield make


async def left(sidecar) -> int:
    answer = await sidecar.mesh.session.GetCaller(session_pb2.GetCallerRequest(scope="anonymous"))
    return answer.budget.left_micros


async def own_trail(sidecar) -> list[audit_pb2.Event]:
    return list(await sidecar.events(CALLER))


@pytest.mark.req("ATT-2")
async def test_a_plain_client_is_halted_across_its_sessions(sidecars, provider):
    """Twelve CRITICAL answers, each in a session of its own: the first passes, the second finds a breaker half open, the third
    spends the rest, and then nothing is even asked for until the period ends.
    """
    sidecar = await sidecars()
    provider.by_question = {"Q?": CRITICAL}
    answers = [await sidecar.chat("Q?") for _ in range(3)]
    asked = len(provider.received)
    answers += [await sidecar.chat("Q?") for _ in range(9)]
    refused = answers[5]

    assert [one.status_code for one in answers] == [200] + [451] * 11
    assert [reason_of(one) for one in answers[1:3]] == ["HELD_FOR_REVIEW", "BUDGET_DEPLETED"]
    assert {reason_of(one) for one in answers[3:]} == {"CALLER_BUDGET_DEPLETED"}
    assert all(1 <= int(one.headers["crp-safety-retry-after"]) <= DAY_S for one in answers[2:])
    assert refused.json()["crp_halt_reason"] == "CALLER_BUDGET_DEPLETED"
    assert refused.headers["retry-after"].isdigit()
    assert refused.json()["retry_condition"].endswith("Z"), "the end of the period"
    assert len(provider.received) == asked, "what is refused is not asked for"
    assert await left(sidecar) == 0


@pytest.mark.req("ATT-2")
async def test_four_replicas_count_together(sidecars, provider):
    """Whichever replica a call reaches, and however many come at once: no more is released than the budget holds."""
    four = [await sidecars() for _ in range(4)]
    provider.by_question = {"Q?": CRITICAL}
    answers = await asyncio.gather(*(one.chat("Q?") for one in four for _ in range(3)))
    after = await asyncio.gather(*(one.chat("Q?") for one in four))

    assert sum(one.status_code == 200 for one in answers) <= 2
    assert {one.status_code for one in after} == {451}
    assert {await left(one) for one in four} == {0}


@pytest.mark.req("ATT-2")
async def test_a_conversation_that_goes_on_is_held_to_it_too(sidecars, provider):
    """A session with a token and a full budget of its own opens no window once its caller has spent everything."""
    sidecar = await sidecars()
    provider.by_question = {"Q?": CRITICAL}
    good = await sidecar.chat("Fine?")
    for _ in range(3):
        await sidecar.chat("Q?")
    onwards = await sidecar.chat("Fine again?", token=token_of(good))

    assert (good.status_code, onwards.status_code) == (200, 451)
    assert reason_of(onwards) == "CALLER_BUDGET_DEPLETED"


@pytest.mark.req("ATT-2", "BUD-9")
@pytest.mark.parametrize("how", ["flushed", "key", "epoch"])
async def test_a_lost_budget_is_rebuilt_from_the_log(sidecars, provider, valkey, how):
    """The store is emptied, loses the key or comes up anew: what was charged stays charged, also to a new session."""
    sidecar = await sidecars()
    provider.by_question = {"Q?": CRITICAL, "M?": MEDIUM}
    await sidecar.chat("Q?")
    await sidecar.chat("M?")
    with valkey.client() as client:
        if how == "flushed":
            client.flushall()
        elif how == "key":
            client.delete(caller_key_of(CALLER))
        else:
            client.hset(caller_key_of(CALLER), "epoch", "another")
    answer = await sidecar.chat("M?")

    assert answer.status_code == 200
    assert await left(sidecar) == 1_000_000 - 350_000 - 50_000 - 50_000


@pytest.mark.req("ATT-2", "BUD-9", "SVC-9")
@pytest.mark.parametrize("by", ["token", "name"])
@pytest.mark.parametrize("how", ["flushed", "another server"])
async def test_a_conversation_goes_on_over_a_restart_of_the_store(sidecars, provider, valkey, by, how):
    """Its session and the budget of its caller are both to be rebuilt: the one call does both, and nobody is told to come again."""
    sidecar = await sidecars()
    provider.by_question = {"M?": MEDIUM}
    named = {"x-session-id": "mine"} if by == "name" else {}
    first = await sidecar.chat("M?", headers=named)
    with valkey.client() as client:
        if how == "flushed":
            client.flushall()
        else:  # as every key looks from a server that was started again
            for key in client.scan_iter("*"):
                if client.type(key) == b"hash" and client.hexists(key, "epoch"):
                    client.hset(key, "epoch", "another")
    token = {"token": token_of(first)} if by == "token" else {}
    answer = await sidecar.chat("M?", headers=named, **token)

    assert answer.status_code == 200, answer.text
    if by == "token" or how == "another server":
        assert answer.headers["crp-context-session-id"] == first.headers["crp-context-session-id"]
    assert await left(sidecar) == 1_000_000 - 2 * 50_000


@pytest.mark.req("ATT-2", "BUD-8")
@pytest.mark.parametrize("where", ["sidecar.after_seal", "sidecar.after_settle"])
async def test_a_crash_forgets_no_charge(sidecars, provider, valkey, fail, where):
    """A call dies behind its seal, the store goes too: the charge is counted once all the same."""
    sidecar = await sidecars()
    provider.by_question = {"Q?": CRITICAL}
    fail(f"{where}:error@1")
    died = await sidecar.chat("Q?")
    fail("")
    with valkey.client() as client:
        client.flushall()
    fine = await sidecar.chat("Fine?")

    assert (died.status_code, fine.status_code) == (503, 200)
    assert await left(sidecar) == 650_000


@pytest.mark.req("ATT-2", "AUD-1")
async def test_the_caller_s_own_chain_tells_its_periods_and_charges(sidecars, provider):
    """One event for the period, one for each charge, in a chain that verifies."""
    sidecar = await sidecars()
    provider.by_question = {"Q?": CRITICAL, "M?": MEDIUM}
    for question in ("M?", "Fine?", "Q?"):
        await sidecar.chat(question)
    trail = await own_trail(sidecar)
    data = [json.loads(event.data_json) for event in trail]
    verified = await sidecar.mesh.audit.Verify(audit_pb2.VerifyRequest(session_id=CALLER))

    assert [event.event_type for event in trail] == [
        "CALLER_BUDGET_PERIOD", "CALLER_BUDGET_LOWERED", "CALLER_BUDGET_LOWERED",
    ]  # fmt: skip
    assert [one.get("charge_micros") for one in data] == [None, 50_000, 350_000]
    assert not verified.faults


@pytest.mark.req("ATT-2", "BUD-7")
async def test_sub_agents_spend_the_budget_of_their_root_s_caller(sidecars, provider):
    """What a child is charged counts for the caller that began the tree."""
    sidecar = await sidecars()
    provider.by_question = {"One?": MEDIUM}
    root = await sidecar.chat("All?")
    child = await delegated(sidecar, root, "One?")

    assert child.status_code == 200, child.text
    assert await left(sidecar) == 950_000
    more = await sidecar.chat("One?", token=token_of(child), headers=onward(child))
    assert (more.status_code, await left(sidecar)) == (200, 900_000)


@pytest.mark.req("ATT-2")
async def test_only_time_renews_it(sidecars, provider, tmp_path):
    """The next period is full, and linked to the one before. The conversation of the old one goes on at its own budget and is
    charged in the new one; a clock that is set back again renews nothing.
    """
    ahead = [0]

    def with_clock(services):
        settings = Settings(state_dir=tmp_path / "state", caller_budget=1.0, caller_period_s=600)
        ledger = Ledger(
            MemoryStore(), load_keyring(settings), rules_of(settings), clock=lambda: 1_800_000_000_000_000 + ahead[0],
            entropy=secrets.token_bytes,
        )  # fmt: skip
        return {**services, "session": replace(services["session"], servicer=SessionServicer(ledger))}

    sidecar = await sidecars(wrap=with_clock, redis_url="memory://")
    provider.by_question = {"Q?": CRITICAL, "M?": MEDIUM}
    begun = await sidecar.chat("Fine?")
    for _ in range(3):
        await sidecar.chat("Q?")
    shut = await sidecar.chat("Fine?")
    ahead[0] = 600_000_000
    onwards = await sidecar.chat("M?", token=token_of(begun))
    after = await left(sidecar)
    ahead[0] = 0
    back = await sidecar.chat("M?")
    periods = [
        json.loads(event.data_json) for event in await own_trail(sidecar) if event.event_type == "CALLER_BUDGET_PERIOD"
    ]

    assert (shut.status_code, reason_of(shut)) == (451, "CALLER_BUDGET_DEPLETED")
    assert (onwards.status_code, after) == (200, 950_000), onwards.text
    assert (back.status_code, await left(sidecar)) == (200, 900_000)
    assert [(one["period"], one["previous_period"]) for one in periods] == [(3_000_000, 0), (3_000_001, 3_000_000)]


@pytest.mark.req("ATT-2", "ATT-3")
async def test_a_made_up_key_brings_no_budget(sidecars, provider):
    """The provider's key is the sidecar's, and no list says whose the callers' are: whatever they send, they share one budget."""
    sidecar = await sidecars(upstream_api_key="sk-of-the-sidecar")
    provider.by_question = {"Q?": CRITICAL}
    answers = [await sidecar.chat("Q?", headers={"authorization": f"Bearer made-up-{n}"}) for n in range(5)]

    assert [reason_of(one) for one in answers[3:]] == ["CALLER_BUDGET_DEPLETED"] * 2
    assert len({one.headers["crp-context-session-id"] for one in answers[:3]}) == 3


@pytest.mark.req("ATT-2")
async def test_a_budget_that_is_switched_off_stops_no_session_that_had_one(sidecars, provider):
    """An operator who takes the setting away frees the sessions that began under it, also those of a spent caller."""
    with_budget, without = await sidecars(), await sidecars(caller_budget=0.0)
    provider.by_question = {"Q?": CRITICAL}
    good = await with_budget.chat("Fine?")
    for _ in range(3):
        await with_budget.chat("Q?")
    shut = await with_budget.chat("Fine again?", token=token_of(good))
    onwards = await without.chat("Fine again?", token=token_of(good))

    assert (shut.status_code, reason_of(shut)) == (451, "CALLER_BUDGET_DEPLETED")
    assert onwards.status_code == 200, onwards.text


@pytest.mark.req("ATT-2")
async def test_without_the_setting_callers_have_no_budget(sidecars, provider):
    """Each session is bounded by its own budget alone."""
    sidecar = await sidecars(caller_budget=0.0)
    provider.by_question = {"Q?": CRITICAL}
    answers = [await sidecar.chat("Q?") for _ in range(4)]

    assert [one.status_code for one in answers] == [200] * 4
    with pytest.raises(Refused, match="SESSION_NOT_FOUND"):
        await own_trail(sidecar)


@pytest.mark.req("ATT-2", "AGT-2")
async def test_an_agent_whose_roots_are_forbidden_is_only_ever_a_sub_agent(sidecars, provider, tmp_path):
    """Without a grant it begins nothing, whatever it names; below its orchestrator it works."""
    registry = {"agents": {"helper": fields("helper-key", roots="forbidden"), "boss": fields("boss-key")}}
    sidecar = await sidecars(agents_file=write(tmp_path / "agents.yaml", registry))
    helper, boss = {"authorization": "Bearer helper-key"}, {"authorization": "Bearer boss-key"}
    alone = await sidecar.chat("Fine?", headers=helper)
    named = await sidecar.chat("Fine?", headers={**helper, "x-session-id": "mine"})
    root = await sidecar.chat("All?", headers=boss)
    granted = await sidecar.client.post(
        "/crp/v3/delegations", json={"agent_type": "helper"},
        headers={**boss, "crp-session-token": token_of(root)},
    )  # fmt: skip
    child = await sidecar.chat("Fine?", headers={**helper, **granted.json()["headers"]})

    assert {(one.status_code, reason_of(one)) for one in (alone, named)} == {(403, "ROOT_FORBIDDEN")}
    assert child.status_code == 200, child.text

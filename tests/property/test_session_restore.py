"""What is rebuilt from the record is what there was: random trees, lost keys, old copies, and never a higher budget."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, event, given, settings
from hypothesis import strategies as st

from interlock.domain.budget import Micros
from interlock.domain.dag.dag import violations
from interlock.domain.errors import Refused
from interlock.domain.ids import SessionId
from interlock.domain.session.restore import Ended, Lowered, SessionBegan, ended, merged, replayed
from interlock.domain.session.state import CommitWindow, FailWindow, SessionState, Status
from interlock.session.store import records
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.redis import RedisStore, key_of
from interlock.session.store.store import MemoryStore, Store
from tests.property.test_session_tree_lua import ROOTED, STEPS, TREES, Tree

LOSSES = st.lists(st.sampled_from(["keep", "keep", "lose", "old"]), min_size=12, max_size=12)
TAKEN_AT = st.integers(0, 24)


@pytest.fixture(scope="module")
def runner():
    with asyncio.Runner() as made:
        yield made


@pytest.fixture(scope="module")
def redis_store(valkey, runner):
    valkey.flush()
    store = RedisStore(Batcher(parse(valkey.url)), token_lifetime_s=3600)
    yield store
    runner.run(store.close())


class Recorded(Tree):
    """A tree whose every step is on record, as the audit log has it."""

    def __init__(self, redis_store: Store, limits: dict[str, Any]) -> None:
        super().__init__(redis_store, limits)
        self.log: list[Any] = []

    async def both(self, method: str, *arguments: Any) -> Any:
        got = await super().both(method, *arguments)
        if isinstance(got, tuple):
            return got
        if method == "start":
            (state,) = arguments
            self.log.append(SessionBegan(state.terms, state.policy, state.budget))
        elif method == "start_child":
            state, ask = arguments
            self.log.append(SessionBegan(state.terms, state.policy, Micros(got), ask.grant_id, ask.approval_id))
        elif method == "commit" and not got.duplicate:
            self.log.append(arguments[0])
            moved = [effect for effect in got.outcome.ancestors if effect.before != effect.after]
            self.log.extend(Lowered(effect.session_id, effect.after) for effect in moved)
        elif method == "fail" and got:
            (ask,) = arguments
            node = (await super().both("read", self.root, ask.session_id)).node(ask.window_id)
            self.log.append(
                FailWindow(
                    ask.session_id, ask.root_session_id, ask.window_id, ask.reason, node.pattern, node.parent_ids
                )
            )
        elif method == "terminate" and got:
            self.log.append(Ended(arguments[1]))
        return got


def enforced(state: SessionState) -> dict[str, Any]:
    """Everything of a session that anything is enforced on, or that a repeated call is answered from."""
    left_out = {"leases", "expired", "untold", "late", "status", "outcomes"}
    return {name: value for name, value in vars(state).items() if name not in left_out}


def same(live: SessionState, again: SessionState) -> None:
    """A window in flight keeps a session going that would have ended; nobody but the store knows of it."""
    assert enforced(again) == enforced(live)
    flying = bool(live.leases or live.expired)
    assert again.status == live.status or (flying and again.status > live.status)
    for was, now in zip(live.outcomes, again.outcomes, strict=True):
        assert (now.index, now.path_budget, now.session_budget, now.charge, now.hmac, now.ancestors) == (
            was.index, was.path_budget, was.session_budget, was.charge, was.hmac, was.ancestors,
        )  # fmt: skip
        assert was.continuation_id in {now.continuation_id, None} or flying


async def live(
    redis_store: Store, limits: dict[str, Any], steps: list[tuple[Any, ...]], taken_at: int, client: Any
) -> Any:
    tree = Recorded(redis_store, limits)
    await tree.start()
    for step in ROOTED if limits["max_fan_out"] > 1 else ():
        await tree.step(*step)
    copies = await taken(tree, client)
    for number, step in enumerate(steps):
        if number == taken_at:
            copies = await taken(tree, client)
        await tree.step(*step)
    return tree, await tree.states(), copies


async def taken(tree: Recorded, client: Any) -> dict[SessionId, bytes]:
    return {session: client.dump(key_of(tree.root, session)) for session in tree.sessions}


async def answered(store: Store, ask: CommitWindow) -> Any:
    try:
        got = await store.commit(ask)
    except Refused as refused:
        return refused.reason
    return got.duplicate, got.outcome.path_budget, got.outcome.session_budget, got.outcome.hmac


@pytest.mark.req("BUD-4", "BUD-8", "BUD-9")
@settings(
    max_examples=30,
    deadline=None,
    phases=tuple(set(Phase) - {Phase.explain}),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(limits=TREES, steps=st.lists(STEPS, min_size=1, max_size=25), losses=LOSSES, taken_at=TAKEN_AT)
def test_a_tree_is_rebuilt_as_it_was(runner, valkey, redis_store, limits, steps, losses, taken_at):
    """Any history, any of its keys lost or set back to an older copy: budgets, nodes, pointers, grants and answers return."""
    with valkey.client() as client:
        runner.run(rebuilt(redis_store, limits, steps, losses, taken_at, client))


async def rebuilt(redis_store: Store, limits: Any, steps: Any, losses: list[str], taken_at: int, client: Any) -> None:
    tree, before, copies = await live(redis_store, limits, steps, taken_at, client)
    settled = [step for step in tree.log if isinstance(step, CommitWindow)]
    answers = [await answered(redis_store, ask) for ask in settled]
    states = replayed(tree.root, tree.log)
    assert states.keys() == before.keys()
    for session, state in states.items():
        same(before[session], merged(None, state))
    for session, loss in zip(tree.sessions, losses, strict=False):
        key = key_of(tree.root, session)
        if loss != "keep":
            client.delete(key)
        if loss == "old" and session in copies:
            client.restore(key, 0, copies[session])
        event(f"loss: {loss}")
    for session, state in states.items():
        await redis_store.restore(state, ended=session in ended(tree.log))
    after = {session: await redis_store.read(tree.root, session) for session in tree.sessions}
    for session, state in after.items():
        assert state is not None
        same(before[session], state)
        assert state.budget <= before[session].budget
        assert violations(state.nodes) == ()
    assert [await answered(redis_store, ask) for ask in settled] == answers
    for session in states:
        assert not await redis_store.restore(states[session], ended=session in ended(tree.log))


@pytest.mark.req("BUD-4", "BUD-9")
@settings(
    max_examples=15,
    deadline=None,
    phases=tuple(set(Phase) - {Phase.explain}),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(limits=TREES, steps=st.lists(STEPS, min_size=1, max_size=25))
def test_what_is_written_again_is_what_the_scripts_wrote(runner, valkey, redis_store, limits, steps):
    """Every field of a rebuilt session's hash has the text that the scripts gave it; a store cannot tell the two apart."""
    with valkey.client() as client:
        tree, _, _ = runner.run(live(redis_store, limits, steps, 99, client))
        for session in tree.sessions:
            stored = {name.decode(): value for name, value in client.hgetall(key_of(tree.root, session)).items()}
            written = records.fields_of(records.state_from(stored))
            own = {name: value.decode() for name, value in stored.items() if name != "epoch" and name[:2] != "a:"}
            assert {name: value for name, value in written.items() if name[:2] != "a:"} == own
            assert {name for name in written if name[:2] == "a:"} == {name for name in stored if name[:2] == "a:"}


@pytest.mark.req("BUD-4")
async def test_a_record_without_its_beginning_restores_nothing(redis_store):
    """Steps that do not make up whole sessions are refused by name."""
    from tests.support.session.sessions import new_state, settle

    for log in ([], [settle(1)], [Ended(settle(1).session_id)]):
        with pytest.raises(Refused) as no:
            replayed(settle(1).root_session_id, log)
        assert no.value.reason == "RECORD_INCOMPLETE"
    state = new_state()
    twice = [SessionBegan(state.terms, state.policy, state.budget), settle(1), settle(1)]
    with pytest.raises(Refused) as no:
        replayed(state.terms.session_id, twice)
    assert no.value.metadata["cause"] == "SEALED_TWICE"


async def test_a_memory_store_is_rebuilt_too():
    """``memory://`` after a restart of its process: the same merge, the same answers."""
    from tests.support.session.sessions import line, new_state, settle

    store = MemoryStore()
    await store.start(new_state())
    done = await line(store, 50_000, 150_000)
    state = await store.read(new_state().terms.session_id, new_state().terms.session_id)
    fresh = MemoryStore()
    assert state is not None
    assert await fresh.restore(state)
    assert not await fresh.restore(state)
    again = await fresh.commit(settle(2, charge=Micros(150_000)))

    assert (again.duplicate, again.outcome) == (True, done[1].outcome)
    assert state.status is Status.ACTIVE


@pytest.mark.req("BUD-4", "BUD-9")
async def test_a_lower_budget_than_the_chain_grants_stays(redis_url):
    """Where the store holds less than the chain says, for whatever reason, less is what there is."""
    from tests.support.session.sessions import line, new_state, session_id

    store, session = RedisStore(Batcher(parse(redis_url)), token_lifetime_s=3600), session_id(1)
    await store.start(new_state())
    await line(store, 50_000)
    rebuilt_state = await store.read(session, session)
    import redis

    with redis.Redis.from_url(redis_url) as client:
        client.hset(key_of(session, session), mapping={"budget": "300000", "cap": "310000", "epoch": "another"})
    await store.restore(rebuilt_state)
    after = await store.read(session, session)
    await store.close()

    assert (after.budget, after.cap, after.status) == (300_000, 310_000, Status.ACTIVE)


@pytest.mark.req("BUD-9")
async def test_no_step_is_taken_under_an_ancestor_that_is_not_verified(redis_url):
    """A child that was verified does not lower a parent that may be an old copy, nor is one begun under it."""
    import redis

    from tests.support.session.sessions import child_of, delegated, first_ask, new_state, session_id, settle

    store, root = RedisStore(Batcher(parse(redis_url)), token_lifetime_s=3600), new_state()
    child = child_of(root, 2)
    await store.start(root)
    await store.start_child(child, delegated(root, 1))
    opened = await store.open(first_ask(1, session=2, root_session_id=session_id(1)))
    with redis.Redis.from_url(redis_url) as client:
        client.hset(key_of(session_id(1), session_id(1)), "epoch", "another")
    reasons = []
    for call in (
        store.commit(settle(1, opened)),
        store.start_child(child_of(root, 3), delegated(root, 2)),
        store.open(first_ask(2)),
        store.terminate(session_id(1), session_id(1)),
        store.view(session_id(1), session_id(1)),
        store.read(session_id(1), session_id(1)),
        store.abandon(session_id(1), session_id(1), window_of_ask(opened)),
        store.acknowledge(session_id(1), session_id(1), ()),
    ):
        with pytest.raises(Refused) as no:
            await call
        reasons.append(no.value.reason)
    kept = await store.read(session_id(1), session_id(2))
    await store.close()

    assert set(reasons) == {"SESSION_STATE_UNVERIFIED"}
    assert (kept.nodes, kept.budget) == ((), 1_000_000)


def window_of_ask(opened: Any) -> Any:
    from tests.support.session.sessions import window_id

    del opened
    return window_id(1)


@pytest.mark.req("POL-5", "BUD-9")
def test_a_policy_that_parallel_windows_tightened_is_their_join_again():
    """Each of two windows settled under its own tightening; the rebuilt session has both, whichever comes first."""
    from dataclasses import replace

    from tests.support.session.sessions import new_state, policy, settle, window_id

    state = new_state()
    asks = [
        replace(
            settle(n), parent_ids=(window_id(1),), window_number=2, pattern="FAN_OUT",
            policy=policy(f"halt-on CRITICAL; {more}"),
        )
        for n, more in ((2, "block-pii"), (3, "require-grounding 0.80"))
    ]  # fmt: skip
    ends = [
        replayed(state.terms.session_id, [SessionBegan(state.terms, state.policy, state.budget), settle(1), *order])
        for order in (asks, asks[::-1])
    ]
    texts = {end[state.terms.session_id].policy.text for end in ends}

    assert len(texts) == 1
    assert all(part in next(iter(texts)) for part in ("halt-on CRITICAL", "block-pii", "require-grounding 0.80"))


@pytest.mark.req("BUD-4")
async def test_a_record_that_was_read_too_early_is_read_again():
    """Store and record each know a sealed window that the other lacks: neither budget holds both, so nothing is joined."""
    from tests.support.session.sessions import first_ask, new_state, settle

    held, told = MemoryStore(), MemoryStore()
    for number, store in ((1, held), (2, told)):
        await store.start(new_state())
        await store.commit(settle(number, await store.open(first_ask(number))))
    root = new_state().terms.session_id
    stored, rebuilt_state = await held.read(root, root), await told.read(root, root)
    assert stored and rebuilt_state
    with pytest.raises(Refused) as no:
        merged(stored, rebuilt_state)

    assert no.value.reason == "RECORD_BEHIND"
    assert merged(stored, stored) == stored

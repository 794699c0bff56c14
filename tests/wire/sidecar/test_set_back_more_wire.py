"""More of a session that is set back while its server goes on: what the count, the delegations and the decision must not miss."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.support.policy import agents
from tests.support.sidecar import answering
from tests.support.sidecar.oversight import decision, token_for
from tests.support.sidecar.sidecar import Hooked, reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, delegated, fan_out, onward
from tests.wire.sidecar.test_set_back_wire import CRITICAL, HIGH, SetBack

running, provider = answering.running, answering.provider


class Moment:
    """What happens right before the session service starts a session; nothing until a test says what."""

    def __init__(self) -> None:
        self.act: Callable[[], None] = lambda: None

    async def __call__(self, _request: object) -> None:
        self.act()


@pytest.fixture
def before_start() -> Moment:
    """The moment."""
    return Moment()


@pytest.fixture
async def sidecar(tmp_path, running, provider, redis_url, before_start):
    del provider
    reviewers = agents.write(tmp_path / "reviewers.yaml", agents.reviewers())
    wanted = {"reviewers_file": reviewers, "remediation": "none", "redis_url": redis_url}

    def hooked(services):
        return {**services, "session": Hooked(services["session"], StartSession=before_start)}

    async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger(), wrap=hooked, **wanted) as one:
        yield one


BRANCH = {"crp-session-action": "branch"}


@pytest.mark.req("BUD-4")
async def test_a_failed_window_does_not_stand_for_a_sealed_one(sidecar, provider, valkey):
    """A part of a fan-out that failed is a node too; the chain counts what was sealed."""
    provider.by_question = {"B?": 500, "Costly?": CRITICAL}
    root = await sidecar.chat("All?")
    a, _ = await fan_out(sidecar, root, "A?", "B?")
    set_back = SetBack(valkey, root)
    await sidecar.chat("Costly?", token=token_of(root), headers={**onward(root), **BRANCH})
    spent = await budget(sidecar, root)
    set_back()
    two = await sidecar.chat("Two?", token=token_of(a), headers=onward(a))

    assert (spent, two.status_code) == (650_000, 200), two.text
    assert await budget(sidecar, root) == spent


@pytest.mark.req("BUD-4", "BUD-7", "AGT-2")
@pytest.mark.parametrize("granted_before", [True, False])
async def test_a_child_gets_nothing_of_what_its_parents_own_windows_spent(sidecar, provider, valkey, granted_before):
    """Its own windows are in no cascade: their number tells that they are missing."""
    provider.by_question = {"Costly?": CRITICAL}
    root = await sidecar.chat("All?")
    one = await sidecar.chat("One?", token=token_of(root), headers=onward(root))
    token = {"crp-session-token": token_of(one)}
    if granted_before:
        granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers=token)
    set_back = SetBack(valkey, root)
    await sidecar.chat("Costly?", token=token_of(root), headers={**onward(root), **BRANCH})
    assert await budget(sidecar, root) == 650_000
    set_back()
    shown = await sidecar.client.get(f"/crp/v3/session/{root.headers['crp-context-session-id']}", headers=token)
    set_back()
    if not granted_before:
        granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers=token)
    assert granted.status_code == 200, granted.text
    begun = await sidecar.chat("Mine?", headers=granted.json()["headers"])

    assert (begun.status_code, await budget(sidecar, begun)) == (200, 650_000)
    assert int(shown.json()["safety_budget_micros"]) == 650_000


@pytest.mark.req("BUD-4", "BUD-7", "AGT-2")
async def test_a_parent_that_is_set_back_while_its_child_starts_gives_it_nothing_back(
    sidecar, provider, valkey, before_start
):
    """It was vouched for a moment ago; what the child was given is compared with that, and the grant is spent."""
    provider.by_question = {"Costly?": CRITICAL}
    root = await sidecar.chat("All?")
    one = await sidecar.chat("One?", token=token_of(root), headers=onward(root))
    token = {"crp-session-token": token_of(one)}
    grants = [
        (await sidecar.client.post("/crp/v3/delegations", json={}, headers=token)).json()["headers"] for _ in range(2)
    ]
    set_back = SetBack(valkey, root)
    await sidecar.chat("Costly?", token=token_of(root), headers={**onward(root), **BRANCH})
    before_start.act = set_back
    first = await sidecar.chat("Mine?", headers=grants[0])
    before_start.act = lambda: None
    second = await sidecar.chat("Mine?", headers=grants[1])

    assert (first.status_code, reason_of(first)) == (503, "SESSION_STATE_UNVERIFIED"), first.text
    assert (second.status_code, await budget(sidecar, second)) == (200, 650_000), second.text
    assert await budget(sidecar, root) == 650_000


@pytest.mark.req("BUD-4", "AGT-2")
async def test_nothing_starts_below_a_depleted_ancestor_that_was_set_back(sidecar, provider, valkey):
    """An ancestor whose breaker is open halts its whole tree, also when the store forgot why."""
    provider.by_question = {"Two?": CRITICAL, "Three?": CRITICAL, "Four?": HIGH, "One?": HIGH}
    root = await sidecar.chat("All?")
    middle = await delegated(sidecar, root, "Fine?")
    set_back = SetBack(valkey, root)
    spender = await delegated(sidecar, root, "One?")
    for question in ("Two?", "Three?", "Four?"):
        spender = await sidecar.chat(question, token=token_of(spender), headers=onward(spender))
    assert await budget(sidecar, root) <= 100_000
    granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(middle)})
    sound = await sidecar.chat("Below?", headers=granted.json()["headers"])
    set_back()
    below = await sidecar.chat("Below?", headers=granted.json()["headers"])

    assert (sound.status_code, reason_of(sound)) == (451, "BUDGET_DEPLETED"), sound.text
    assert below.status_code in {451, 503}, (below.status_code, below.headers)


@pytest.mark.req("BRK-2", "OVR-1")
async def test_an_answer_decided_on_a_budget_that_was_set_back_is_not_released(sidecar, provider, valkey):
    """Under a half-open breaker it would be held for a person; it was decided as if the breaker were closed."""
    provider.by_question = {"Two?": CRITICAL, "One?": HIGH, "Risky?": HIGH, "Sound?": HIGH}
    root = await sidecar.chat("All?")
    set_back = SetBack(valkey, root)
    spender = await delegated(sidecar, root, "One?")
    await sidecar.chat("Two?", token=token_of(spender), headers=onward(spender))
    left = await budget(sidecar, root)
    set_back()
    risky = await sidecar.chat("Risky?", token=token_of(root), headers=onward(root))

    assert left == 500_000
    assert risky.status_code != 200, risky.text


@pytest.mark.req("OVR-4", "BUD-4")
async def test_nothing_held_is_released_by_an_exhausted_session_that_was_set_back(sidecar, provider, valkey):
    """Exhausted is final (requirements.md, reading 4), also when the store forgot it."""
    provider.by_question = {"Hold?": HIGH} | {f"{n}?": CRITICAL for n in range(4)}
    root = await sidecar.chat("All?")
    held = await sidecar.chat(
        "Hold?", token=token_of(root), headers={**onward(root), "crp-safety-oversight-mode": "human-review"}
    )
    assert reason_of(held) == "HELD_FOR_REVIEW", held.text
    window = held.json()["metadata"]["window_id"]
    path = f"/crp/v3/session/{root.headers['crp-context-session-id']}/held/{window}"
    item = (await sidecar.client.get(path, headers={"crp-session-token": token_of(held)})).json()
    token = token_for(item)
    assert not (await sidecar.mesh.audit.DecideHeld(decision(token))).HasField("refusal")
    set_back = SetBack(valkey, root)
    parent = await sidecar.client.post("/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(held)})
    assert parent.status_code == 200, parent.text
    child = await sidecar.chat("0?", headers=parent.json()["headers"])
    for n in range(1, 3):
        child = await sidecar.chat(f"{n}?", token=token_of(child), headers=onward(child))
    left = await budget(sidecar, root)
    sent = {"token": token_of(held), "headers": {"crp-oversight-token": token}}
    sound = await sidecar.chat(**sent) if left <= 0 else None
    set_back()
    released = await sidecar.chat(**sent)

    assert left == 0
    assert (sound.status_code, reason_of(sound)) == (451, "BUDGET_DEPLETED")
    assert (released.status_code, reason_of(released)) == (451, "BUDGET_DEPLETED"), released.text


@pytest.mark.req("AGT-2")
async def test_a_grant_that_was_used_is_not_used_again_when_its_parent_is_set_back(sidecar, provider, valkey):
    """Which children there are is on record; a store that forgot one would take its grant, or its approval, twice."""
    root = await sidecar.chat("All?")
    token = {"crp-session-token": token_of(root)}
    granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers=token)
    set_back = SetBack(valkey, root)
    first = await sidecar.chat("Mine?", headers=granted.json()["headers"])
    sound = await sidecar.chat("Mine too?", headers=granted.json()["headers"])
    set_back()
    again = await sidecar.chat("Mine too?", headers=granted.json()["headers"])

    assert (first.status_code, reason_of(sound)) == (200, "GRANT_ALREADY_USED"), sound.text
    assert (again.status_code, reason_of(again)) == (sound.status_code, "GRANT_ALREADY_USED"), again.text

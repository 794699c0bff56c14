"""A key of the session store that is set back while its server goes on running: same run id, an older state (I1, I2; A-02)."""

from __future__ import annotations

import pytest

from interlock.session.store.redis import key_of
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import reason_of, token_of
from tests.support.sidecar.windows import budget, dag, delegated, onward

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.stored_sidecar

CRITICAL, HIGH = "It is CRITICAL.", "It is HIGH."


class SetBack:
    """What the store held of a response's session, to be put back."""

    def __init__(self, valkey, response) -> None:
        self._valkey, self._key = valkey, key_of(*[response.headers["crp-context-session-id"]] * 2)
        with valkey.client() as client:
            self._old = client.dump(self._key)

    def __call__(self) -> None:
        with self._valkey.client() as client:
            client.restore(self._key, 0, self._old, replace=True)


async def spent_below(sidecar, provider, root) -> None:
    """Have a sub-agent spend what its parent has."""
    provider.by_question = {"One?": HIGH, "Two?": CRITICAL, "Three?": CRITICAL, "Four?": HIGH}
    child = await delegated(sidecar, root, "One?")
    for question in ("Two?", "Three?", "Four?"):
        child = await sidecar.chat(question, token=token_of(child), headers=onward(child))
    assert await budget(sidecar, root) <= 100_000


@pytest.mark.req("BUD-4", "BRK-4", "BUD-9")
async def test_what_sub_agents_spent_stays_spent_when_their_parent_is_set_back(sidecar, provider, valkey):
    """No token tells the parent's holder what its sub-agents cost: the parent's own chain does, before anything is released."""
    root = await sidecar.chat("All?")
    set_back = SetBack(valkey, root)
    await spent_below(sidecar, provider, root)
    set_back()
    risen = await budget(sidecar, root)
    onwards = await sidecar.chat("And now?", token=token_of(root), headers=onward(root))

    assert risen == 1_000_000
    assert (onwards.status_code, reason_of(onwards)) == (451, "BUDGET_DEPLETED"), onwards.text
    assert float(onwards.headers["crp-agent-safety-budget"]) <= 0.10
    assert "this answers" not in onwards.text.lower()
    assert await budget(sidecar, root) <= 100_000


@pytest.mark.req("BUD-4", "AGT-2")
async def test_a_parent_that_was_set_back_neither_shows_nor_delegates_what_it_no_longer_has(sidecar, provider, valkey):
    """A look tells the budget of the chain, and a sub-agent gets none of what is gone, with an older grant either."""
    root = await sidecar.chat("All?")
    token = {"crp-session-token": token_of(root)}
    granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers=token)
    set_back = SetBack(valkey, root)
    await spent_below(sidecar, provider, root)
    set_back()
    shown = await sidecar.client.get(f"/crp/v3/session/{root.headers['crp-context-session-id']}", headers=token)
    set_back()
    drawn = await sidecar.client.get(f"/crp/v3/session/{root.headers['crp-context-session-id']}/dag", headers=token)
    set_back()
    begun = await sidecar.chat("Mine?", headers=granted.json()["headers"])
    set_back()
    refused = await sidecar.client.post("/crp/v3/delegations", json={}, headers=token)

    assert int(shown.json()["safety_budget_micros"]) <= 100_000, shown.text
    assert int(drawn.json()["sessions"][0]["safety_budget_micros"]) <= 100_000, drawn.text
    assert (begun.status_code, reason_of(begun)) == (451, "BUDGET_DEPLETED"), begun.text
    assert (refused.status_code, reason_of(refused)) == (451, "BUDGET_DEPLETED"), refused.text


@pytest.mark.req("BUD-4", "DAG-6")
async def test_windows_of_another_branch_are_missed_when_a_session_is_set_back(sidecar, provider, valkey):
    """The token of one branch says nothing of the other: the count of sealed windows does, and the rebuild brings it back."""
    provider.by_question = {"Costly?": CRITICAL}
    root = await sidecar.chat("All?")
    one = await sidecar.chat("One?", token=token_of(root), headers=onward(root))
    set_back = SetBack(valkey, root)
    await sidecar.chat("Costly?", token=token_of(root), headers={**onward(root), "crp-session-action": "branch"})
    spent = await budget(sidecar, root)
    set_back()
    two = await sidecar.chat("Two?", token=token_of(one), headers=onward(one))

    assert (spent, two.status_code) == (650_000, 200), two.text
    assert await budget(sidecar, root) == spent
    assert len(await dag(sidecar, root)) == 4

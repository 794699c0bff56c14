"""The sum of a tree bounds every session of it, through the served sidecar on a real Valkey (BUD-10; F-10, F-12, F-16)."""

from __future__ import annotations

import asyncio

import pytest

from interlock.domain.session.token import claimed
from interlock.session.store.redis import key_of
from tests.support.sidecar import answering
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of
from tests.support.sidecar.windows import Merger, budget, dag, delegated, fan_in, fan_out, onward, report, window_of

running, provider, dpe, sidecar = answering.running, answering.provider, answering.dpe, answering.stored_sidecar


@pytest.fixture
async def summing(tmp_path, running, provider, redis_url):
    """A sidecar whose trees add up."""
    provider.by_question = {f"{risk}?": f"It is {risk}." for risk in ("MEDIUM", "HIGH", "CRITICAL")}
    async with running_sidecar(
        tmp_path, upstream=running.base_url, dpe=Merger(), redis_url=redis_url, budget_accumulate="sum"
    ) as one:
        yield one


def told(response) -> str:
    return response.headers["crp-agent-safety-budget"]


async def on(sidecar, response, question="And?", **more):
    return await sidecar.chat(question, token=token_of(response), headers=onward(response, **more))


@pytest.mark.finding("F-10")
@pytest.mark.req("BUD-10")
async def test_three_children_cannot_spend_what_their_tree_has_not(summing, provider):
    """Each CRITICAL comes off the root at once. When the root is at 0.10 or below, no child releases anything more."""
    root = await summing.chat("All?")
    children = [await delegated(summing, root, f"{n}?") for n in "abc"]
    ends = [await on(summing, child, "CRITICAL?") for child in children]
    provider.received.clear()
    again = [await summing.chat("And?", token=token_of(end)) for end in ends]

    assert [told(end) for end in ends] == ["0.65", "0.30", "0.00"]
    assert [end.status_code for end in ends] == [200, 451, 451]
    assert await budget(summing, root) == 0
    assert {one.status_code for one in again} == {451}, [one.text for one in again]
    assert {reason_of(one) for one in again} <= {"ANCESTOR_EXHAUSTED", "BUDGET_DEPLETED"}
    assert provider.received == []


@pytest.mark.finding("F-10")
@pytest.mark.req("BUD-10")
async def test_all_of_a_tree_counts_at_the_root_at_once(summing):
    """A grandchild, the branches of a fan-out, and a child that was told more before: each sees the one sum at its next call."""
    root = await summing.chat("All?")
    child, other = await delegated(summing, root, "One?"), await delegated(summing, root, "Two?")
    leaf = await delegated(summing, child, "Three?")
    deep = await on(summing, leaf, "HIGH?")
    after_leaf = await on(summing, other, "MEDIUM?")
    branches = await fan_out(summing, other, *["Four?"])
    wide = await fan_out(summing, root, "MEDIUM?", "MEDIUM?", "MEDIUM?")
    late = await on(summing, leaf, "HIGH?", session_action="branch")

    assert (told(deep), told(after_leaf)) == ("0.85", "0.80"), branches
    assert sorted(told(one) for one in wide) == ["0.65", "0.70", "0.75"]
    assert told(late) == "0.50", late.text
    assert await budget(summing, root) == 500_000


@pytest.mark.finding("F-10")
@pytest.mark.req("BUD-10")
async def test_a_halved_sum_forces_review_in_every_session_of_the_tree(summing, provider):
    """HALF_OPEN by the sum is HALF_OPEN for each: the strategy of a child that spent nothing is reflexive."""
    root = await summing.chat("All?")
    spender, other = await delegated(summing, root, "One?"), await delegated(summing, root, "Two?")
    for _ in range(4):
        spender = await on(summing, spender, "HIGH?") if told(spender) > "0.50" else spender
    after = await on(summing, other)

    assert told(after) <= "0.50"
    assert after.headers["crp-context-strategy"] == "reflexive"


@pytest.mark.finding("F-10")
@pytest.mark.req("BUD-8", "BUD-10")
async def test_the_sum_survives_a_store_that_lost_everything(summing, valkey):
    """Rebuilt from the chain, and never more than before for any session."""
    root = await summing.chat("All?")
    a, b = await delegated(summing, root, "One?"), await delegated(summing, root, "Two?")
    a = await on(summing, a, "CRITICAL?")
    b = await on(summing, b, "HIGH?")
    with valkey.client() as client:
        client.flushall()
    after = [await on(summing, one) for one in (a, b, root)]

    assert (told(a), told(b)) == ("0.65", "0.50")
    assert {told(one) for one in after} == {"0.50"}, [one.text for one in after]


@pytest.mark.finding("F-10")
@pytest.mark.req("BUD-8", "BUD-10")
async def test_the_sum_survives_a_root_that_was_set_back_in_place(summing, valkey):
    """An older copy of the root's key refills no tree: what its chain says that children spent is spent."""
    root = await summing.chat("All?")
    a, b = await delegated(summing, root, "One?"), await delegated(summing, root, "Two?")
    key = key_of(*[root.headers["crp-context-session-id"]] * 2)
    with valkey.client() as client:
        before = client.dump(key)
        a = await on(summing, a, "CRITICAL?")
        client.restore(key, 0, before, replace=True)
    b = await on(summing, b, "HIGH?")

    assert (told(a), told(b)) == ("0.65", "0.50"), b.text
    assert await budget(summing, root) == 500_000


@pytest.mark.finding("F-10")
@pytest.mark.req("BUD-10", "KRN-1")
async def test_a_tree_that_spends_all_at_once_releases_no_more_than_its_sum(summing):
    """Twelve children ask for a HIGH answer at the same time: of 1.00 no more than five are released, whatever the order."""
    root = await summing.chat("All?")
    children = [await delegated(summing, root, "Hello?") for _ in range(10)]
    ends = await asyncio.gather(
        *(
            summing.chat("HIGH?", token=token_of(one), headers={**onward(one), "crp-accept-risk": "CRITICAL"})
            for one in children
        )
    )
    released = [one for one in ends if one.status_code == 200]

    assert len(released) <= 5, [one.text for one in ends]
    assert await budget(summing, root) == 0


@pytest.mark.finding("F-12")
@pytest.mark.req("BUD-6")
async def test_what_is_told_of_a_budget_never_rises_within_a_session(sidecar, provider):
    """Line, branch, fan-out, a continuation of each, fan-in: header and token fall only. The path's budget is in report and DAG."""
    provider.by_question = {"HIGH?": "It is HIGH.", "MEDIUM?": "It is MEDIUM."}
    root = await sidecar.chat("All?")
    first = await on(sidecar, root, "MEDIUM?")
    steps = [root, first, await on(sidecar, first, "HIGH?")]
    steps.append(await on(sidecar, root, "MEDIUM?", session_action="branch"))
    branch = steps[-1]
    steps.append(await on(sidecar, branch))
    for one in await fan_out(sidecar, steps[-1], "A?"):
        steps.append(one)
    (more,) = await fan_out(sidecar, steps[4], "MEDIUM?")
    steps += [more, await fan_in(sidecar, [steps[5], more])]
    windows = await dag(sidecar, root)
    own = windows[window_of(branch)].safety_budget_micros
    shown = [told(one) for one in steps]
    assert {one.status_code for one in steps} == {200}, [one.text for one in steps]
    assert shown == sorted(shown, reverse=True)
    assert [claimed(token_of(one)).budget for one in steps] == [round(float(one) * 1_000_000) for one in shown]
    assert (told(branch), own) == ("0.80", 950_000)
    assert int((await report(sidecar, branch))["path_budget_micros"]) == own


@pytest.mark.finding("F-12")
@pytest.mark.req("BUD-6", "DAG-3")
async def test_a_path_is_charged_on_its_own_budget_however_little_was_told(sidecar, provider):
    """Reading 7 goes on to hold: a window of the other path costs that path, and the session is the lowest of both."""
    provider.by_question = {"HIGH?": "It is HIGH.", "MEDIUM?": "It is MEDIUM."}
    root = await sidecar.chat("All?")
    await on(sidecar, root, "HIGH?")
    branch = await on(sidecar, root, "MEDIUM?", session_action="branch")
    after = await on(sidecar, branch, "MEDIUM?")
    windows = await dag(sidecar, root)

    assert (told(branch), told(after)) == ("0.85", "0.85")
    assert windows[window_of(after)].safety_budget_micros == 900_000


@pytest.mark.finding("F-16")
@pytest.mark.req("BUD-6")
async def test_the_sum_over_branches_stands_beside_the_lowest_path(sidecar, provider):
    """Twelve MEDIUM answers side by side cost their session 0.05; that they cost 0.60 together is shown wherever it is shown."""
    provider.by_question = {"MEDIUM?": "It is MEDIUM."}
    root = await sidecar.chat("All?")
    ends = await fan_out(sidecar, root, *["MEDIUM?"] * 8)
    sent = {"crp-session-token": token_of(root)}
    uri = f"/crp/v3/session/{root.headers['crp-context-session-id']}"
    shown = (await sidecar.client.get(uri, headers=sent)).json()
    drawn = (await sidecar.client.get(f"{uri}/dag", headers=sent, params={"format": "text"})).text

    assert {one.status_code for one in ends} == {200}, [one.text for one in ends]
    assert int(shown["safety_budget_micros"]) == 950_000
    assert int(shown["charged_micros"]) == 400_000
    assert "budget 0.95, charged 0.40" in drawn

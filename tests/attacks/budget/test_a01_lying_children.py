"""A-01: a child that reports more budget than it has moves nothing: what it was charged counts, and only downwards."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from interlock.domain.budget import FULL, HALF_OPEN_AT
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import running_sidecar, token_of

COSTS = {"LOW": 0, "MEDIUM": 50_000, "HIGH": 150_000}
CLAIMS = {None: FULL, "1.0": FULL, "0.999999": 999_999, "0.9": 900_000, "0.7": 700_000}
LIES = ["1.0", "0.99", "1.000000", None]

# One child: the ceiling that its first call claims, then for each call what is said, and what it claims of its budget.
CHILD = st.tuples(
    st.sampled_from(list(CLAIMS)),
    st.lists(st.tuples(st.sampled_from(list(COSTS)), st.sampled_from(LIES)), min_size=1, max_size=3),
)


@pytest.mark.req("BUD-4", "BUD-7")
def test_a01_random_children_honest_and_lying_lower_their_parent_exactly(tmp_path):
    """A model of SPEC-012 §5.3 beside the sidecar: after every child the root has min(root, child), whatever was claimed."""
    cases: list[list] = []

    @settings(max_examples=5, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
    @given(st.lists(CHILD, min_size=1, max_size=3))
    def drawn(children) -> None:
        cases.append(children)

    drawn()

    async def played(provider: Provider, upstream: str) -> None:
        limits = {"max_windows": 50, "remediation": "none"}
        async with running_sidecar(tmp_path, upstream=upstream, **limits) as sidecar:
            for children in cases:
                await _tree(sidecar, provider, children)

    with RunningProvider(Provider()) as running:
        asyncio.run(played(running.provider, running.base_url))


async def _tree(sidecar, provider: Provider, children) -> None:
    provider.answers("Fine.")
    root = await sidecar.chat()
    expected = FULL
    for claim, calls in children:
        if expected <= HALF_OPEN_AT:  # no more delegations without an approval
            return
        child = await _below(sidecar, root)
        left, token = min(expected, CLAIMS[claim]), None
        for number, (risk, lie) in enumerate(calls):
            provider.answers(f"This is {risk}.")
            claimed = claim if number == 0 else lie
            sent = {**(child if token is None else {}), **({"crp-agent-safety-budget": claimed} if claimed else {})}
            answer = await sidecar.chat(token=token, headers=sent)
            before, left = left, left - COSTS[risk]
            budget = await _budget(sidecar, answer)
            # A claim may only lower what is left of that call.
            assert budget == min(left, before if claimed is None else CLAIMS.get(claimed, FULL) - COSTS[risk], left), (
                answer.text
            )
            token = token_of(answer)
            if answer.status_code != 200:
                break
        expected = min(expected, left)
        assert await _budget(sidecar, root) == expected


async def _below(sidecar, root) -> dict[str, str]:
    """Headers of a child's first call, without the budget that they carry: the child says what it likes."""
    granted = await sidecar.client.post("/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(root)})
    headers = {name.lower(): value for name, value in granted.json()["headers"].items()}
    return {name: value for name, value in headers.items() if name != "crp-agent-safety-budget"}


async def _budget(sidecar, answer) -> int:
    uri = f"/crp/v3/session/{answer.headers['crp-context-session-id']}"
    shown = await sidecar.client.get(uri, headers={"crp-session-token": token_of(answer)})
    return int(shown.json()["safety_budget_micros"])


@pytest.mark.req("BUD-4")
async def test_a01_a_child_that_claims_more_is_released_nothing_more(tmp_path):
    """A child at 0.15 that claims 1.0 for its next call ends at 0 all the same, and its parent with it."""
    with RunningProvider(Provider()) as running:
        async with running_sidecar(tmp_path, upstream=running.base_url, remediation="none") as sidecar:
            root = await sidecar.chat()
            sent = {**await _below(sidecar, root), "crp-agent-safety-budget": "0.15"}
            child = await sidecar.chat(headers=sent)
            running.provider.answers("This is HIGH.")
            spent = await sidecar.chat(token=token_of(child), headers={"crp-agent-safety-budget": "1.0"})
            more = await sidecar.chat(token=token_of(spent), headers={"crp-agent-safety-budget": "1.0"})

            assert (spent.status_code, more.status_code) == (451, 451)
            assert "This is HIGH." not in spent.text
            assert await _budget(sidecar, root) == 0

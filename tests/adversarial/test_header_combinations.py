"""Any mixture of the headers that place a call in a tree or a DAG has an answer with a reason, and loses nothing."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import running_sidecar, token_of

SESSION, POINTER = "crp_sess_" + "0a" * 16, "crp_cont_" + "0b" * 16

CHOICES = {
    "crp-session-token": ["{token}", "{old}", "{child}", "a.b", "{grant}"],
    "crp-agent-session-parent": ["{session}", SESSION, "{child_session}"],
    "crp-agent-delegation-grant": ["{grant}", "{used}", "a.b", "{token}"],
    "crp-agent-loop-depth": ["0", "1", "2", "999999999"],
    "crp-agent-safety-budget": ["0.0", "0.05", "0.5", "1.0", "NaN"],
    "crp-context-strategy": ["push", "reflexive", "fan-out", "fan-in", "hierarchical", "batch", "pull"],
    "crp-agent-dispatch-strategy": ["push", "fan-out"],
    "crp-accept-strategy": ["reflexive, push", "pull"],
    "crp-context-continuation-id": ["{pointer}", POINTER, "{pointer}, " + POINTER, "{pointer}, {pointer}"],
    "crp-agent-fan-in-policy": ["partial", "require-all"],
    "crp-session-action": ["branch"],
    "crp-safety-mode": ["strict", "permissive"],
    "crp-safety-policy": ["halt-on HIGH", "halt-on CRITICAL; require-grounding 0.80"],
    "crp-compliance-data-residency": ["EU", "US"],
    "crp-oversight-token": ["approved:sha256:eyJhIjoxfQ.c2ln"],
    "crp-safety-nonce": ["base64:AAAA"],
}
MIXTURES = st.lists(st.sampled_from(sorted(CHOICES)), unique=True, max_size=6).flatmap(
    lambda names: st.fixed_dictionaries({name: st.sampled_from(CHOICES[name]) for name in names})
)
ANSWERS = {200, 400, 401, 403, 404, 409, 451, 502}
"""502 is a hierarchical plan that names nothing; no mixture is a defect (500) or an outage (503)."""


@pytest.fixture(scope="module")
def running():
    with RunningProvider(Provider()) as provider:
        provider.provider.answers('{"issues": []}')
        yield provider


@pytest.mark.req("HDR-6", "SVC-3", "AGT-2", "DAG-2")
@pytest.mark.timeout(120)
def test_every_mixture_of_headers_is_answered_by_name(tmp_path, running):
    """Whatever is mixed, there is an answer or a reason, never a defect, and a session beside them goes on as it was."""

    async def mixed(cases: list[dict[str, str]]) -> None:
        async with running_sidecar(
            tmp_path, upstream=running.base_url, data_region="EU", max_windows=1000, max_dag_nodes=1000, max_fan_out=500
        ) as sidecar:
            known = await _known(sidecar)
            for case in cases:
                sent = {name: value.format(**known) for name, value in case.items()}
                response = await sidecar.chat(headers=sent)
                assert response.status_code in ANSWERS, (case, response.status_code, response.text)
                assert response.status_code == 200 or response.json()["reason"], case
                if "crp-set-session" in response.headers:
                    known["old"], known["token"] = known["token"], token_of(response)
            onward = await sidecar.chat(token=known["line"])
            assert (onward.status_code, onward.headers["crp-context-window"]) == (200, "2/1000"), onward.text

    cases: list[dict[str, str]] = []

    @settings(max_examples=120, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
    @given(MIXTURES)
    def drawn(case: dict[str, str]) -> None:
        cases.append(case)

    drawn()
    asyncio.run(mixed(cases))


async def _known(sidecar) -> dict[str, str]:
    """A session with a child and a grant that is left, one to go on with, and one that no mixture knows."""
    first = await sidecar.chat()
    grants = []
    for _ in range(2):
        granted = await sidecar.client.post(
            "/crp/v3/delegations", json={}, headers={"crp-session-token": token_of(first)}
        )
        grants.append(granted.json()["headers"])
    child = await sidecar.chat(headers=grants[0])
    other, line = await sidecar.chat(), await sidecar.chat()
    return {
        "token": token_of(other), "old": token_of(first), "line": token_of(line), "child": token_of(child),
        "session": first.headers["crp-context-session-id"], "child_session": child.headers["crp-context-session-id"],
        "grant": grants[1]["CRP-Agent-Delegation-Grant"], "used": grants[0]["CRP-Agent-Delegation-Grant"],
        "pointer": first.headers["crp-context-continuation-id"],
    }  # fmt: skip

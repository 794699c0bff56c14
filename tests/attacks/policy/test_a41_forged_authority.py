"""A-41: authority comes from a registered key, never from what a message says of itself.

The decision engine and its signals do not exist yet; what gives authority by now is an API key that belongs to an agent type,
a reviewer's approval, and a delegation grant.
"""

from __future__ import annotations

import json
import time

import pytest

from interlock.domain import approval
from interlock.domain.session import grant
from interlock.domain.signed import decoded, encoded
from tests.support.policy import agents
from tests.support.sidecar.sidecar import reason_of, running_sidecar, token_of

pytest_plugins = ("tests.support.sidecar.fronts",)


@pytest.fixture
async def governed(tmp_path, upstream, provider):
    """A sidecar with registered agent types and one reviewer."""
    async with running_sidecar(
        tmp_path, upstream=upstream, remediation="none",
        agents_file=agents.write(tmp_path / "agents.yaml", agents.SPECIFICATION),
        reviewers_file=agents.write(tmp_path / "reviewers.yaml", agents.reviewers()),
    ) as running:  # fmt: skip
        yield running


ORCHESTRATOR = {"authorization": "Bearer crp_gw_prod_orch_1"}
SPECIALIST = {"authorization": "Bearer crp_gw_prod_legal_1"}


async def delegate(sidecar, token: str, headers=ORCHESTRATOR, **more):
    body = {"agent_type": "specialist_legal"}
    sent = {**headers, "crp-session-token": token, **more}
    return await sidecar.client.post("/crp/v3/delegations", json=body, headers=sent)


async def half_open(sidecar, provider):
    """An orchestrator's session whose breaker is half open: it needs a person to delegate."""
    provider.answers("CRITICAL")
    first = await sidecar.chat(
        headers={**ORCHESTRATOR, "crp-safety-policy": "halt-on CRITICAL; require-grounding 0.80"}
    )
    token = token_of(first)
    second = await sidecar.chat(token=token, headers=ORCHESTRATOR)
    provider.answers('{"issues": []}')
    return second


def signed(session_id: str, **changes) -> str:
    now = int(time.time())
    scope = changes.pop("scope", {"session": session_id, "agent": "specialist_legal"})
    return agents.approved(**{"scope": scope, "issued_at": now - 5, "expires_at": now + 600, **changes})


@pytest.mark.req("OVR-3", "BRK-2")
async def test_a41_an_approval_of_nobodys_approves_nothing(governed, provider):
    """Another key, another name, a claim to be a reviewer, a signature of other bytes, an action that is not this one."""
    held = await half_open(governed, provider)
    token, session = token_of(held), held.headers["crp-context-session-id"]
    good = signed(session)
    payload, _, signature = good.removeprefix(approval.PREFIX).partition(".")
    said = json.loads(decoded(payload.encode()))
    louder = encoded(
        json.dumps({**said, "exp": said["exp"] + 1}, sort_keys=True, separators=(",", ":")).encode()
    ).decode()
    forged = {
        "another key": signed(session, key=agents.private_key(9)),
        "another reviewer": signed(session, reviewer="root@company.com"),
        "a longer life": f"{approval.PREFIX}{louder}.{signature}",
        "no signature": f"{approval.PREFIX}{payload}.{encoded(bytes(64)).decode()}",
        "another action": signed(session, action=approval.ERASE, scope={"session": session}),
        "another session": signed("crp_sess_" + "0" * 32),
        "another agent": signed(session, scope={"session": session, "agent": "orchestrator"}),
    }
    answers = {name: await delegate(governed, token, **{"crp-oversight-token": text}) for name, text in forged.items()}
    without = await delegate(governed, token)
    approved = await delegate(governed, token, **{"crp-oversight-token": good})

    assert {name: answer.status_code for name, answer in answers.items()} == dict.fromkeys(forged, 401)
    assert {reason_of(answer) for answer in answers.values()} <= {"APPROVAL_INVALID", "APPROVAL_MISMATCH"}
    assert (without.status_code, reason_of(without)) == (403, "DELEGATION_NEEDS_APPROVAL")
    assert approved.status_code == 200


@pytest.mark.req("AGT-1", "AGT-2")
async def test_a41_an_agent_is_what_its_key_says(governed, provider):
    """A specialist that calls itself an orchestrator, in every field that could say so, is one that may not delegate."""
    mine = {**SPECIALIST, "crp-safety-policy": "halt-on HIGH; require-grounding 0.90; block-fabrication"}
    started = await governed.chat(headers=mine)
    claimed = await governed.chat(headers={**mine, "crp-agent-type": "orchestrator"})
    granted = await delegate(governed, token_of(started), headers=SPECIALIST)
    looser = await governed.chat(headers={**SPECIALIST, "crp-safety-policy": "halt-on CRITICAL"})
    provider.answers("HIGH")
    stopped = await governed.chat(token=token_of(looser), headers=SPECIALIST)

    assert started.status_code == 200
    assert (claimed.status_code, reason_of(claimed)) == (400, "UNKNOWN_CRP_HEADER")
    assert (granted.status_code, reason_of(granted)) == (403, "MAX_DELEGATIONS_EXCEEDED")
    # Its registered policy is a layer of its own: what it asks for cannot loosen it.
    assert stopped.status_code == 451


@pytest.mark.req("AGT-2", "TOK-1")
async def test_a41_a_grant_is_only_what_the_session_service_signed(governed, provider):
    """Another key, another type, a deeper purse: forged grants begin nothing; the real one does, for its own agent alone."""
    root = await governed.chat(headers=ORCHESTRATOR)
    real = (await delegate(governed, token_of(root))).json()["headers"]["CRP-Agent-Delegation-Grant"]
    payload, _, mac = real.partition(".")
    said = json.loads(decoded(payload.encode()))
    richer = encoded(json.dumps({**said, "typ": "orchestrator"}, separators=(",", ":")).encode()).decode()
    own = grant.Grant(
        said["gid"], said["par"], said["root"], said["typ"], said["dep"], said["sb"], "", said["exp"], said["kv"]
    )
    forged = [f"{richer}.{mac}", grant.mint(own, b"k" * 32), f"{payload}.{'A' * 43}"]
    refused = [await governed.chat(headers={**SPECIALIST, "crp-agent-delegation-grant": text}) for text in forged]
    stolen = await governed.chat(headers={**ORCHESTRATOR, "crp-agent-delegation-grant": real})
    child = await governed.chat(headers={**SPECIALIST, "crp-agent-delegation-grant": real})

    assert {(answer.status_code, reason_of(answer)) for answer in refused} == {(401, "GRANT_SIGNATURE_INVALID")}
    assert (stolen.status_code, reason_of(stolen)) == (401, "GRANT_AGENT_MISMATCH")
    assert (child.status_code, child.headers["crp-agent-loop-depth"]) == (200, "1")

"""The governed call through the whole mesh, in one process and over separate services: the same tests over both (SVC-1)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import grpc
import httpx
import pytest

from interlock.api.common.v1 import common_pb2
from interlock.api.policy.v1 import policy_pb2
from interlock.api.sidecar.v1 import sidecar_pb2
from interlock.api.sidecar.v1.sidecar_pb2_grpc import SidecarServiceStub
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.mesh import Front, start_front
from tests.support.sidecar.sidecar import token_of
from tests.support.texts import canary

pytestmark = [pytest.mark.models, pytest.mark.timeout(240)]

FACTS = [
    {"id": "tower", "content": "The Eiffel Tower is 330 metres tall and stands in Paris.", "importance": 0.9},
    {"id": "year", "content": "The Eiffel Tower was completed in 1889.", "importance": 0.8},
]
TRUE = "The Eiffel Tower is 330 metres tall and was completed in 1889."
FALSE = "The Eiffel Tower is 990 metres tall. It was moved to Berlin by Otto Krause in 1953."


@pytest.fixture(scope="module")
def running_provider():
    with RunningProvider(Provider()) as running:
        yield running


@pytest.fixture(scope="module", params=["local", pytest.param("remote", marks=pytest.mark.long)])
def front(request, tmp_path_factory, running_provider) -> Iterator[Front]:
    """The whole mesh, with the real models, for all tests of a topology."""
    settings = {"upstream_base_url": running_provider.base_url, "request_timeout_s": 20, "rpc_timeout_s": 2}
    started = start_front(request.param, tmp_path_factory.mktemp(request.param), settings)
    with started.processes:
        yield started


@pytest.fixture
def provider(running_provider) -> Provider:
    running_provider.provider.reset()
    return running_provider.provider


def ask(front: Front, token: str | None = None, *, facts=FACTS, **headers: str) -> httpx.Response:
    """One call with facts, as a client would make it."""
    body = {
        "model": "m",
        "messages": [{"role": "user", "content": "How tall is the Eiffel Tower, and when was it completed?"}],
        "interlock": {"facts": facts},
    }
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    if token:
        sent["crp-session-token"] = token
    return httpx.post(f"{front.http}/v1/chat/completions", json=body, headers=sent, timeout=60, trust_env=False)


@pytest.mark.req("SVC-1", "SVC-2", "HDR-4", "PRV-2")
def test_a_supported_answer_is_delivered_free_of_charge(front, provider):
    """What the facts say is grounded, LOW, sealed and costs nothing."""
    provider.answers(TRUE)
    response = ask(front, crp_safety_policy="halt-on HIGH; require-grounding 0.75; block-fabrication")
    headers = response.headers

    assert response.status_code == 200
    assert response.json()["choices"][0]["message"]["content"] == TRUE
    assert (headers["crp-safety-hallucination-risk"], headers["crp-agent-safety-budget"]) == ("LOW", "1.00")
    assert headers["crp-safety-attribution"] == "CONTEXT_GROUNDED"
    assert headers["crp-safety-fabrications"] == "0"
    report = httpx.get(headers["crp-provenance-report-uri"], trust_env=False).json()
    assert [claim["attribution"] for claim in report["claims"]] == ["ATTRIBUTION_CONTEXT_GROUNDED"] * len(
        report["claims"]
    )


@pytest.mark.req("SVC-1", "BUD-5", "BUD-11")
def test_an_invented_answer_is_charged_and_halted(front, provider):
    """What the facts do not say is found, charged, sealed and not released."""
    provider.answers(FALSE)
    response = ask(front, crp_safety_policy="halt-on HIGH; block-fabrication")

    assert response.status_code == 451
    assert response.json()["crp_halt_reason"]
    assert "Krause" not in response.text
    assert response.headers["crp-safety-hallucination-risk"] in {"HIGH", "CRITICAL"}
    assert float(response.headers["crp-agent-safety-budget"]) < 1.0
    assert response.headers["crp-provenance-hmac"].startswith("sha256:")
    assert httpx.get(response.json()["audit_trail_uri"], trust_env=False).status_code == 200


@pytest.mark.req("BUD-1", "BUD-4", "BRK-2", "BRK-3", "DAG-11", "PRV-2")
def test_a_session_falls_through_its_bands_to_the_end(front, provider):
    """Budget down answer by answer, review forced below 0.50, halted at 0.10: then nothing is dispatched any more."""
    provider.answers(FALSE)
    seen = [ask(front)]
    while len(seen) < 5 and float(seen[-1].headers["crp-agent-safety-budget"]) > 0.10:
        seen.append(ask(front, token_of(seen[-1])))
    asked = len(provider.received)
    after = ask(front, token_of(seen[-1]))
    budgets = [float(response.headers["crp-agent-safety-budget"]) for response in seen]

    assert budgets == sorted(budgets, reverse=True)
    assert budgets[-1] <= 0.10
    assert all(r.headers["crp-safety-oversight-mode"] == "human-review" for b, r in zip(budgets, seen[1:]) if b <= 0.5)
    assert all(r.headers["crp-provenance-chain-integrity"] == "VALID" for r in seen[1:])
    assert (after.status_code, after.json()["reason"]) == (451, "BUDGET_DEPLETED")
    assert after.headers["crp-safety-retry-after"] == "new-session-required"
    assert len(provider.received) == asked


@pytest.mark.req("SVC-2", "SVC-1")
def test_both_fronts_come_to_the_same_end(front, provider):
    """Dispatch and Check over gRPC give the risk, the charge and the decision of the HTTP front (I14)."""
    provider.answers(FALSE)
    alone = (("crp-context-cache", "no-cache"),)  # a text that was brought cannot be continued, so neither is the other
    over_http = ask(front, crp_context_cache="no-cache")
    facts = [common_pb2.Fact(**fact) for fact in FACTS]
    question = "How tall is the Eiffel Tower, and when was it completed?"
    chat = json.dumps({"model": "m", "messages": [{"role": "user", "content": question}]}).encode()
    with grpc.insecure_channel(front.grpc) as channel:
        stub = SidecarServiceStub(channel)
        request = sidecar_pb2.DispatchRequest(chat_request=chat, facts=facts)
        dispatched = stub.Dispatch(request, timeout=60, metadata=alone).outcome
        checked = stub.Check(sidecar_pb2.CheckRequest(text=FALSE, facts=facts, query=question), timeout=60).outcome

    names = ("CRP-Safety-Hallucination-Score", "CRP-Agent-Safety-Budget", "CRP-Safety-Fabrications")
    expected = [over_http.headers[name] for name in names]
    assert [dispatched.headers[name] for name in names] == expected
    assert [checked.headers[name] for name in names] == expected
    assert dispatched.decision.action == checked.decision.action == policy_pb2.ACTION_DELIVER


@pytest.mark.req("SVC-5")
def test_no_secret_is_in_any_log(front, provider):
    """Key, token, prompt, fact and answer of a call appear in no output of any process (A-43)."""
    provider.answers(canary.PROMPT)
    fact = [{"id": "f", "content": canary.PROMPT, "importance": 0.9}]
    first = ask(front, facts=fact, authorization=f"Bearer {canary.API_KEY}")
    ask(front, token_of(first), facts=fact, authorization=f"Bearer {canary.API_KEY}")
    ask(front, canary.SESSION_TOKEN, facts=fact)
    logged = front.processes.everything()

    assert first.headers["crp-context-session-id"] in logged
    assert canary.found_in(logged) == []
    assert token_of(first) not in logged


@pytest.mark.req("SVC-9", "BUD-4")
@pytest.mark.long  # the default suite kills services in test_serve_processes.py
@pytest.mark.parametrize("front", ["remote"], indirect=True)  # in one process no service dies alone
@pytest.mark.parametrize("service", ["policy", "dpe", "audit"])
def test_a_service_that_dies_is_told_and_found_again(front, provider, service):
    """Killed: 503 with its name, nothing released; started again: calls work, and no budget has risen."""
    provider.answers(TRUE)
    process = front.processes.all[service]
    process.kill()
    refused, ready = ask(front), httpx.get(f"{front.http}/readyz", timeout=30, trust_env=False)
    process.restart()
    deadline = time.monotonic() + 10
    while (again := ask(front)).status_code == 503 and time.monotonic() < deadline:
        time.sleep(0.1)  # a peer that is back is looked for once a second

    assert (refused.status_code, refused.json()["reason"]) == (503, f"{service.upper()}_UNAVAILABLE")
    assert "330" not in refused.text
    assert (ready.status_code, list(ready.json()["missing"])) == (503, [service])
    assert again.status_code == 200

"""Pods as callers over real HTTP, gRPC and TLS: a token that was really signed names the pod, and a foreign one names nobody (KUB-3)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.api.policy.v1 import policy_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Kind
from interlock.domain.policy.pods import account_digest
from interlock.runtime.egress import kubernetes
from interlock.sidecar.admission import pods
from tests.support.policy.agents import write
from tests.support.servers.api_server import ApiServer, Signer, running_api_server
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import RunningSidecar, reason_of, running_sidecar, token_of

AUDIENCE, MINE, OTHER = "interlock.mesh", ("agent-1", "uid-1"), ("agent-2", "uid-2")
SCOPE = "pod:agents/billing"

pytestmark = [pytest.mark.req("KUB-3"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def upstream() -> Iterator[RunningProvider]:
    with RunningProvider(Provider()) as running:
        yield running


@pytest.fixture(scope="module")
def standing(tmp_path_factory) -> Iterator[ApiServer]:
    with running_api_server(tmp_path_factory.mktemp("cluster")) as made:
        yield made


@pytest.fixture
def cluster(standing, monkeypatch) -> ApiServer:
    """Two pods, and an API server that says what is so; a sidecar that asks again soon."""
    monkeypatch.setattr(pods, "AGAIN_S", 0.05)
    monkeypatch.setattr(pods, "REFUSED_AGAIN_S", 0.05)
    monkeypatch.setattr(kubernetes, "LIMIT_S", 1.0)
    standing.pods, standing.says, standing.waits_s, standing.reviewed = {MINE[1], OTHER[1]}, None, 0.0, 0
    return standing


def given(cluster: ApiServer, folder: Path, token: str, **more: Any) -> dict[str, Any]:
    """Return the settings of a mesh and of the sidecar of the first pod, whose mounted token is *token*."""
    file = folder / "mounted-token"
    file.write_text(token)
    return {
        **cluster.settings, "pod_token_file": file, "pod_uid": MINE[1], "pod_identity_audience": AUDIENCE,
        "pod_identity_namespaces": "agents,others", "pod_identity_cache_s": 3600, **more,
    }  # fmt: skip


def good(cluster: ApiServer, **changes: Any) -> str:
    return cluster.signer.token("agents/billing", MINE, **{"audience": AUDIENCE, **changes})


@pytest.fixture
async def sidecar(cluster, upstream, tmp_path) -> AsyncIterator[RunningSidecar]:
    async with running_sidecar(tmp_path, upstream=upstream.base_url, **given(cluster, tmp_path, good(cluster))) as made:
        yield made


@pytest.fixture
async def brief(cluster, upstream, tmp_path) -> AsyncIterator[RunningSidecar]:
    """A sidecar that holds an identity for less than a second."""
    settings = given(cluster, tmp_path, good(cluster), pod_identity_cache_s=0.6)
    async with running_sidecar(tmp_path, upstream=upstream.base_url, **settings) as made:
        yield made


def authorized(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


async def told(sidecar: RunningSidecar, reason: str) -> Any:
    """Call until the answer has a reason; the test's own time limit ends it otherwise."""
    while True:
        answer = await sidecar.chat("hello")
        if answer.is_error and reason_of(answer) == reason:
            return answer
        await asyncio.sleep(0.02)


async def test_the_pod_is_the_caller_whatever_key_its_agent_sends(sidecar):
    """A session that one key began goes on with another, and with none: its scope is the service account's."""
    first = await sidecar.chat("hello", headers=authorized("sk-one"))
    second = await sidecar.chat("hello", token=token_of(first), headers=authorized("sk-two"))
    third = await sidecar.chat("hello", token=token_of(second))
    session = first.headers["crp-context-session-id"]
    seen = await sidecar.mesh.session.GetSession(session_pb2.GetSessionRequest(session_id=session, scope=SCOPE))

    assert [200] * 3 == [one.status_code for one in (first, second, third)]
    assert session == third.headers["crp-context-session-id"]
    assert session == seen.session.session_id


async def test_the_key_goes_to_the_provider_and_an_agent_needs_none(sidecar, upstream):
    """What the agent sends is for its provider; without one the call is governed all the same."""
    upstream.provider.reset()
    await sidecar.chat("hello", headers=authorized("sk-for-the-provider"))
    bare = await sidecar.chat("hello")

    assert "Bearer sk-for-the-provider" == upstream.provider.received[0].header("authorization")
    assert 200 == bare.status_code


async def test_a_service_account_is_an_agent_type(cluster, upstream, tmp_path):
    """The registry names it: its limits hold for its pods, and a pod of another account is not registered."""
    registry = {"agents": {"billing": {"service_accounts": ["agents/billing"], "allowed_strategies": ["push"]}}}
    settings = given(
        cluster, tmp_path, good(cluster), pod_identity_cache_s=2, agents_file=write(tmp_path / "agents.yaml", registry),
        require_registered_agents=True, agent_cache_s=0.05,
    )  # fmt: skip
    async with running_sidecar(tmp_path, upstream=upstream.base_url, **settings) as sidecar:
        found = await sidecar.mesh.policy.IdentifyAgent(
            policy_pb2.IdentifyAgentRequest(api_key_sha256=account_digest("agents/billing"))
        )
        allowed = await sidecar.chat("hello")
        forbidden = await sidecar.chat("hello", headers={"crp-context-strategy": "reflexive"})
        settings["pod_token_file"].write_text(cluster.signer.token("agents/other", MINE, audience=AUDIENCE))
        await told(sidecar, "AGENT_NOT_REGISTERED")

    assert ("billing", ["agents/billing"]) == (found.agent.agent_type, list(found.agent.service_accounts))
    assert 200 == allowed.status_code
    assert "STRATEGY_NOT_ALLOWED" == reason_of(forbidden)


async def served(sidecar: RunningSidecar) -> None:
    """Call until an answer comes."""
    while (await sidecar.chat("hello")).is_error:
        await asyncio.sleep(0.02)


FOREIGN = {
    "of another audience": lambda c: (good(c, audience="https://kubernetes.default.svc"), "POD_TOKEN_REJECTED"),
    "of another cluster": lambda c: (Signer().token("agents/billing", MINE, audience=AUDIENCE), "POD_TOKEN_REJECTED"),
    "expired": lambda c: (good(c, seconds=-1), "POD_TOKEN_REJECTED"),
    "of another pod": lambda c: (c.signer.token("agents/billing", OTHER, audience=AUDIENCE), "POD_TOKEN_OF_ANOTHER_POD"),
    "of no pod": lambda c: (c.signer.token("agents/billing", None, audience=AUDIENCE), "POD_TOKEN_UNBOUND"),
    "of another namespace": lambda c: (c.signer.token("elsewhere/x", MINE, audience=AUDIENCE), "POD_NAMESPACE_NOT_SERVED"),
    "no token": lambda c: ("sk-a-key-of-somebody", "POD_TOKEN_REJECTED"),
    "altered": lambda c: (good(c)[:-8] + "AAAAAAAA", "POD_TOKEN_REJECTED"),
    "empty": lambda c: ("", "POD_IDENTITY_UNVERIFIED"),
}  # fmt: skip


async def test_a_foreign_token_makes_no_call(brief, cluster, upstream):
    """The sidecar is not ready, its calls are refused with the reason, and the provider hears nothing; the pod's own is taken again."""
    mounted, found = brief.settings.pod_token_file, {}
    for kind, make in FOREIGN.items():
        token, reason = make(cluster)
        mounted.write_text(token)
        refused = await told(brief, reason)
        upstream.provider.reset()
        again, ready = await brief.chat("hello", headers=authorized("sk-one")), await brief.client.get("/readyz")
        found[kind] = (
            refused.status_code,
            reason_of(again),
            ready.status_code,
            reason in ready.text,
            len(upstream.provider.received),
        )
    mounted.write_text(good(cluster))
    await served(brief)

    status = {"POD_NAMESPACE_NOT_SERVED": 403, "POD_IDENTITY_UNVERIFIED": 503}
    reasons = {kind: make(cluster)[1] for kind, make in FOREIGN.items()}
    assert {kind: (status.get(reason, 401), reason, 503, True, 0) for kind, reason in reasons.items()} == found


async def test_the_pod_that_is_deleted_calls_no_more(brief, cluster):
    """Its token would be good for minutes; the API server says that its pod is gone."""
    cluster.pods.discard(MINE[1])
    refused = await told(brief, "POD_TOKEN_REJECTED")

    assert 401 == refused.status_code


async def test_where_nobody_can_tell_calls_are_refused_and_taken_again(brief, cluster):
    """An API server that is down, forbids the question, hangs or says nothing that can be read names nobody, and is asked again."""
    found = []
    for fault in (500, 403, b"{}", b"[]", b"rubbish", "hangs"):
        cluster.says, cluster.waits_s = (None, 3) if fault == "hangs" else (fault, 0)
        refused = await told(brief, "POD_IDENTITY_UNVERIFIED")
        cluster.says, cluster.waits_s = None, 0
        await served(brief)
        found.append((refused.status_code, "retry-after" in refused.headers))

    assert [(503, True)] * 6 == found


async def test_one_failed_question_ends_no_call_while_the_identity_stands(cluster, upstream, tmp_path):
    """An API server that is away for less than the cache lasts is noticed by nobody."""
    settings = given(cluster, tmp_path, good(cluster))
    async with running_sidecar(tmp_path, upstream=upstream.base_url, **settings) as sidecar:
        cluster.says = 500
        answer = await sidecar.chat("hello")

    assert 200 == answer.status_code


async def test_a_mesh_that_identifies_no_pods_says_so(cluster, upstream, tmp_path):
    """A sidecar with a token and a policy service without an audience is a fault of the installation, and no open door."""
    settings = given(cluster, tmp_path, good(cluster)) | {"pod_identity_audience": ""}
    async with running_sidecar(tmp_path, upstream=upstream.base_url, **settings) as sidecar:
        refused = await sidecar.chat("hello")

    assert (403, "POD_IDENTITY_OFF") == (refused.status_code, reason_of(refused))
    assert 0 == cluster.reviewed


async def test_an_answer_about_another_pod_is_none(cluster, upstream, tmp_path):
    """A policy service that names a pod that was not asked about is not believed."""

    def astray(services):
        inner = services["policy"].servicer

        async def another(request, context):
            answer = await type(inner).IdentifyPod(inner, request, context)
            answer.pod_uid = "uid-9"
            return answer

        inner.IdentifyPod = another
        return services

    settings = given(cluster, tmp_path, good(cluster))
    async with running_sidecar(tmp_path, upstream=upstream.base_url, wrap=astray, **settings) as sidecar:
        refused = await sidecar.chat("hello")

    assert (503, "POD_IDENTITY_UNVERIFIED") == (refused.status_code, reason_of(refused))


def test_refusals_that_another_token_alone_can_cure_are_final():
    """They end an identity at once, where a dependency that is away leaves it until its time is over."""
    assert {Kind.UNAUTHENTICATED, Kind.FORBIDDEN, Kind.INVALID} == pods.FINAL

"""A-33: whatever a setting points to when nothing is there, nothing passes: a refusal with its reason, and a finding of ``check``."""

from __future__ import annotations

import dataclasses
import json
import os

import grpc
import httpx
import pytest

from interlock.api.audit.v1.audit_pb2_grpc import AuditServiceStub
from interlock.api.dpe.v1.dpe_pb2_grpc import DpeServiceStub
from interlock.api.policy.v1.policy_pb2_grpc import PolicyServiceStub
from interlock.api.session.v1.session_pb2_grpc import SessionServiceStub
from interlock.cli.check.command import examine
from interlock.runtime.rpc.mesh import Mesh
from interlock.sidecar.wiring import open_sidecar
from tests.support.servers.ports import free_port
from tests.support.servers.processes import environment, run
from tests.support.sidecar.sidecar import reason_of, running_sidecar

pytest_plugins = ("tests.support.sidecar.fronts",)

STUBS = {
    "session": SessionServiceStub, "policy": PolicyServiceStub, "dpe": DpeServiceStub, "audit": AuditServiceStub,
}  # fmt: skip
BODY = {"model": "m", "messages": [{"role": "user", "content": "?"}]}


@pytest.mark.req("SVC-9")
@pytest.mark.parametrize("gone", STUBS)
async def test_a33_a_service_that_is_not_there_releases_nothing(tmp_path, upstream, provider, gone):
    """The real stub on a port at which nobody is: 503, naming the service, and no word of the model's answer."""
    provider.answers("The secret answer.")
    async with (
        running_sidecar(tmp_path, upstream=upstream, rpc_timeout_s=1, dpe_timeout_s=1) as running,
        grpc.aio.insecure_channel(f"127.0.0.1:{free_port()}") as nowhere,
    ):
        mesh = dataclasses.replace(running.mesh, **{gone: STUBS[gone](nowhere)})
        assert isinstance(mesh, Mesh)

        async def unready_dependencies():
            return {}

        sidecar = await open_sidecar(running.settings, mesh, unready_dependencies)
        transport = httpx.ASGITransport(app=sidecar.http_app)
        async with httpx.AsyncClient(transport=transport, base_url="http://a") as client:
            answer = await client.post("/v1/chat/completions", json=BODY)
            streamed = await client.post("/v1/chat/completions", json={**BODY, "stream": True})
        await sidecar.close()

    assert {answer.status_code, streamed.status_code} == {503}
    assert {reason_of(answer), reason_of(streamed)} == {f"{gone.upper()}_UNAVAILABLE"}
    assert "secret answer" not in answer.text + streamed.text
    assert int(answer.headers["retry-after"]) >= 1


@pytest.mark.req("SVC-9")
@pytest.mark.parametrize(
    ("settings", "status", "reason"),
    [
        ({"redis_url": "redis://127.0.0.1:1/0"}, 503, "SESSION_STORE_UNAVAILABLE"),
        ({"upstream": "http://127.0.0.1:1/v1"}, 502, "UPSTREAM_UNAVAILABLE"),
        ({"upstream": ""}, 503, "UPSTREAM_NOT_CONFIGURED"),
    ],
)
async def test_a33_a_store_or_a_provider_that_is_not_there_releases_nothing(
    tmp_path, upstream, provider, settings, status, reason
):
    """Refused by name, and readiness says it or names it."""
    async with running_sidecar(tmp_path, **{"upstream": upstream, **settings}) as sidecar:
        answer = await sidecar.chat()

    assert (answer.status_code, reason_of(answer)) == (status, reason)
    assert provider.received == []


@pytest.fixture
def bare(monkeypatch, tmp_path):
    """No setting of this machine, and ports at which nobody is."""
    for name in [name for name in os.environ if name.upper().startswith("INTERLOCK_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("INTERLOCK_STATE_DIR", str(tmp_path / "state"))
    for name in ("SESSION", "POLICY", "DPE", "AUDIT"):
        monkeypatch.setenv(f"INTERLOCK_{name}_ADDRESS", f"127.0.0.1:{free_port()}")
    return monkeypatch


DRIFTED = {
    "REDIS_URL": ("redis://127.0.0.1:1/0", "redis"),
    "AUDIT_URL": ("sqlite:////dev/null/audit.db", "audit store"),
    "UPSTREAM_BASE_URL": ("http://127.0.0.1:1/v1", "upstream"),
    "AGENTS_FILE": ("/nowhere/agents.yaml", "configuration"),
    "REVIEWERS_FILE": ("/nowhere/reviewers.yaml", "configuration"),
    "API_KEYS_FILE": ("/nowhere/keys.yaml", "configuration"),
    "DEFAULT_POLICY": ("halt-never", "configuration"),
    "MASTER_KEY": ("short", "keys"),
    "NLI_MODEL_DIR": ("/nowhere/nli", "models"),
}


@pytest.mark.req("SVC-4", "SVC-9")
@pytest.mark.parametrize("setting", DRIFTED)
async def test_a33_the_check_names_what_a_setting_does_not_lead_to(bare, setting):
    """FAIL in the group of that setting, with what to do about it; nothing is taken for granted."""
    value, group = DRIFTED[setting]
    bare.setenv(f"INTERLOCK_{setting}", value)
    findings = [found for found in await examine() if found.group == group]

    assert any(found.status == "FAIL" and found.hint for found in findings), findings


@pytest.mark.req("SVC-4")
def test_a33_a_setting_that_is_misspelt_is_told_and_one_that_is_wrong_refuses_to_start(tmp_path):
    """`interlock check` exits with 1; `interlock serve` ends before it listens."""
    env = environment(tmp_path, {"decrement_high": "0.9"})
    checked = run("check", "-o", "json", env=env)
    served = run("serve", env=env)

    assert checked.returncode == 1
    assert "decrement_high" in json.loads(checked.stdout)["findings"][0]["detail"]
    assert served.returncode != 0
    assert "decrement_high" in served.stderr + served.stdout

"""A-37: a pod that wants to be another's. Its scope comes from its own token alone, whatever the agent beside the sidecar sends."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.servers.api_server import running_api_server
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import another_sidecar, reason_of, running_sidecar, token_of

AUDIENCE = "interlock.mesh"


@pytest.mark.req("KUB-3")
async def test_a37_a_pod_reads_no_session_of_another_account(tmp_path: Path):
    """With the other's session token and with its API key: the scope is that of its own service account, and there is no such session."""
    with running_api_server(tmp_path / "cluster") as cluster, RunningProvider(Provider()) as upstream:
        cluster.pods = {"uid-1", "uid-2"}
        mounted = tmp_path / "token"
        mounted.write_text(cluster.signer.token("agents/billing", ("a", "uid-1"), audience=AUDIENCE))
        settings = {
            **cluster.settings, "pod_token_file": mounted, "pod_uid": "uid-1", "pod_identity_audience": AUDIENCE,
            "pod_identity_namespaces": "agents", "upstream": upstream.base_url,
        }  # fmt: skip
        async with running_sidecar(tmp_path, **settings) as mine:
            own = {"authorization": "Bearer sk-shared-by-both"}
            first = await mine.chat("hello", headers=own)
            mounted.write_text(cluster.signer.token("agents/other", ("b", "uid-2"), audience=AUDIENCE))
            theirs = mine.settings.model_copy(update={"pod_uid": "uid-2"})
            mine.settings = theirs
            async with another_sidecar(mine) as http:
                sent = {**own, "crp-session-token": token_of(first)}
                body = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
                call = await mine.client.post(f"{http}/v1/chat/completions", json=body, headers=sent)
                read = await mine.client.get(
                    f"{http}/crp/v3/session/{first.headers['crp-context-session-id']}", headers=sent
                )

    assert 200 == first.status_code
    assert (401, 401) == (call.status_code, read.status_code), (call.text, read.text)
    assert "TOKEN_SCOPE_MISMATCH" == reason_of(call)

"""``interlock session list`` against running services: the latest sessions, and what their callers have left."""

from __future__ import annotations

import json

import httpx
import pytest

from tests.support.servers.processes import Processes, environment, run, run_here
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.windows import Answering


@pytest.mark.req("ATT-2")
def test_the_latest_sessions_and_their_callers_are_listed(tmp_path):
    """Both are in the table and in the JSON; --scope leaves out other callers' sessions; an empty log says so."""
    with RunningProvider(Answering()) as provider, Processes(tmp_path, {"caller_budget": 1.0}) as processes:
        services = [processes.process(name).start() for name in ("session", "policy", "audit", "dpe")]
        places = {f"{one.name}_address": f"127.0.0.1:{one.wait().ports[str(one.name)]}" for one in services}
        sidecar = processes.process("sidecar", upstream_base_url=provider.base_url, rpc_timeout_s=2, **places).start()
        url = f"http://127.0.0.1:{sidecar.wait().ports['sidecar_http']}/v1/chat/completions"
        env = environment(tmp_path / "state", places)
        empty = run("session", "list", env=env)
        body = {"model": "m", "messages": [{"role": "user", "content": "What is it?"}]}
        for _ in range(2):
            httpx.post(url, json=body, headers={"authorization": "Bearer sk-list"}, trust_env=False, timeout=60)
        text = run_here("session", "list", env=env)
        told = json.loads(run_here("session", "list", "-o", "json", env=env).stdout)
        scope = told["sessions"][0]["scope"]
        arguments = ("session", "list", "-o", "json", "--scope")
        own, other = (json.loads(run_here(*arguments, name, env=env).stdout)["sessions"] for name in (scope, "nobody"))

    assert "no session has begun yet" in empty.stdout
    assert len(told["sessions"]) == len(own) == 2
    assert all(one["session_id"] in text.stdout for one in own)
    assert [(one["scope"], one["left"], one["caller_budget"]) for one in told["callers"]] == [(scope, "1.00", "1.00")]
    assert other == []

"""A mesh in one process whose store goes away: the peer's client, the command line and the audit commands on recorded emergency actions (T8)."""

from __future__ import annotations

import json
import time

import pytest

from interlock.client.kernel import ActionSpec, KernelCalls, SafetyKernel, State
from tests.support.kernel_outages import OutageTeam
from tests.support.servers.processes import Processes, run_here
from tests.support.valkey import Valkey

pytestmark = pytest.mark.req("KRN-2", "KRN-8")

FLEE = ActionSpec("flee", "Flee")
TASK = ActionSpec("task", "A task", cost=10.0)


def shared(calls: KernelCalls) -> SafetyKernel:
    return SafetyKernel(100.0, emergency_actions={"flee"}, min_action_cost=1.0, name="team", calls=calls)


def test_emergency_actions_without_a_store_are_done_shown_and_verified(tmp_path):
    """Allowed by the client and the command line, which say that they are not sealed; sealed by themselves, and told as what they are."""
    (tmp_path / "valkey").mkdir()
    with Valkey(tmp_path / "valkey") as valkey, Processes(tmp_path, {"redis_url": valkey.url}) as processes:
        mesh = processes.mesh(emergency_reach_s=1, rpc_timeout_s=5)
        url = f"http://127.0.0.1:{mesh.ports['sidecar_http']}"
        env = {**mesh.env, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "alice"}
        calls = KernelCalls(url, api_key="alice", retries=0)
        kernel, team = shared(calls), OutageTeam(url, "team", key="alice")
        kernel.execute(State({}), TASK)
        _, before = kernel.execute(State({}), FLEE)
        valkey.kill()
        state, entry = kernel.execute(State({"n": 1}), FLEE)
        stopped = run_here("kernel", "stop", "team", "flee", "--key", "cli", env=env)
        waiting = run_here("kernel", "emergencies", env=env)
        with pytest.raises(Exception, match="KERNEL_STOPPED_HERE"):
            kernel.execute(State({}), TASK)
        shared(calls).stop(FLEE)
        valkey.start()
        records = team.sealed(4)
        watched = run_here("kernel", "watch", "team", "--once", env=env)
        simulated = run_here("kernel", "simulate", "team", "-o", "json", env=env)
        kernel_id = team.describe()["kernel_id"]
        verified = run_here("audit", "verify", kernel_id, env=env)
        deadline = time.monotonic() + 20
        while (checked := run_here("audit", "fsck", env=env)).returncode == 2 and time.monotonic() < deadline:
            time.sleep(0.5)  # the first checkpoint is signed soon
        done = run_here("kernel", "emergencies", env=env)
        calls.close()

    assert before.approved and not before.recorded_at_ms
    assert entry.approved and entry.recorded_at_ms and state.get("n") == 1
    assert (
        stopped.returncode == 0
        and "recorded by the sidecar at" in stopped.stdout
        and "not sealed yet" in stopped.stdout
    )
    assert waiting.stdout.count("flee") == 2 and "stop" in waiting.stdout
    assert ["recorded" in one for one in records] == [False, True, True, True]
    assert watched.stdout.count("while the kernel could not be reached") == 3
    assert len(json.loads(simulated.stdout)["recorded_emergencies"]) == 3 and simulated.returncode == 0
    assert verified.returncode == 0 and verified.stdout.count("signature VERIFIED") == 3
    assert checked.returncode == 0 and "3 emergency actions while their kernel could not be reached" in checked.stdout
    assert done.stdout.strip() == "every emergency action is sealed"

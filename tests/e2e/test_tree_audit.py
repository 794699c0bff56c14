"""An auditor at work: the trails that a running mesh left of a tree of agents, walked by the real command (SPEC-012 §8.2)."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator

import pytest

from tests.support.audit.audit import Attacker
from tests.support.servers.provider import RunningProvider
from tests.support.sidecar.sidecar import RunningSidecar, running_sidecar, token_of
from tests.support.sidecar.windows import Answering, Merger, delegated, onward, result_of, window_of


@pytest.fixture
async def sidecar(tmp_path) -> AsyncIterator[RunningSidecar]:
    with RunningProvider(Answering()) as running:
        running.provider.reset()
        async with running_sidecar(tmp_path, upstream=running.base_url, dpe=Merger()) as one:
            yield one


async def verified(sidecar: RunningSidecar, root_id: str) -> subprocess.CompletedProcess[str]:
    """Run the real command, as an auditor does, beside the running mesh."""
    command = [sys.executable, "-m", "interlock.cli.main", "audit", "verify", "--tree", root_id]
    settings, given = sidecar.settings, {}
    if settings.master_key is not None:
        given["INTERLOCK_MASTER_KEY"] = settings.master_key.get_secret_value()
    env = {
        **os.environ,
        **given,
        "INTERLOCK_STATE_DIR": str(settings.state_dir),
        "INTERLOCK_AUDIT_URL": settings.audit_url,
    }
    return await asyncio.to_thread(subprocess.run, command, env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.req("PRV-3", "PRV-4")
async def test_an_auditor_walks_what_a_mesh_left_of_a_tree(sidecar):
    """Two specialists, one of whom asked a third; both consumed. It holds, until somebody edits the third one's trail."""
    root = await sidecar.chat("All?")
    law, money = await delegated(sidecar, root, "Law?"), await delegated(sidecar, root, "Money?")
    case = await delegated(sidecar, law, "Cases?")
    more = {"sub_agent_results": [result_of(case)]}
    law = await sidecar.chat("Law again?", token=token_of(law), headers=onward(law), interlock=more)
    more = {"sub_agent_results": [result_of(law), result_of(money)]}
    made = await sidecar.chat("All in all?", token=token_of(root), headers=onward(root), interlock=more)
    ids = {
        name: one.headers["crp-context-session-id"] for name, one in {"root": root, "law": law, "case": case}.items()
    }

    sound = await verified(sidecar, ids["root"])
    with Attacker(sidecar.settings.state_dir / "audit.db") as attack:
        attack("UPDATE events SET severity = 1 WHERE session_id = ? AND sequence = 2", ids["case"])
    broken = await verified(sidecar, ids["root"])

    assert made.status_code == 200, made.text
    assert sound.returncode == 0, sound.stdout + sound.stderr
    assert sound.stdout.startswith(f"VALID  tree of {ids['root']}\n  4 sessions, 6 links")
    assert f"✓ consumed {ids['law']} in {window_of(made)}" in sound.stdout
    assert broken.returncode == 1
    assert f"first break: DELEGATED of {ids['case']} by {ids['law']}: CHILD_BROKEN" in broken.stdout
    assert "event 2: HMAC_MISMATCH" in broken.stdout

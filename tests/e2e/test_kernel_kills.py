"""T1 to T5 and T7 of a kernel over four processes with kill -9; then a verifier compares chain, store and clients (KRN-2)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import subprocess
import sys
import time

import pytest

from interlock.client.kernel import KernelCalls
from tests.support import kernel_verifier
from tests.support.kernels import UNIT, KernelClient, definition
from tests.support.paths import ROOT
from tests.support.servers.processes import Process, Processes
from tests.support.sidecar.sidecar import running_sidecar
from tests.support.valkey import Valkey

pytestmark = pytest.mark.req("KRN-2", "KRN-1", "KRN-12")

RICH = [
    {"name": "usd", "limit_micros": 2_000 * UNIT, "min_cost_micros": UNIT},
    {"name": "mails", "limit_micros": 30 * UNIT},
]
POINTS = ("kernel.before_step", "kernel.after_step", "kernel.before_seal", "kernel.after_seal")


def started(kernel: str, url: str, actions: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.kernel_agents", "acting", kernel, url, str(actions)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def lines(agent: subprocess.Popen[str]) -> list[dict]:
    """What an agent told; a line that kill -9 cut off is none."""
    out, _ = agent.communicate(timeout=240)
    found = []
    for line in out.splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            found.append(json.loads(line))
    return found


async def test_four_agents_survive_the_death_of_the_store_and_of_one_of_them(tmp_path):
    """The store dies and comes back in the middle, one agent dies for good; nothing is overspent, lost or done twice."""
    (tmp_path / "valkey").mkdir()
    with Valkey(tmp_path / "valkey") as valkey:
        async with running_sidecar(tmp_path / "mesh", redis_url=valkey.url) as sidecar:
            team = KernelClient(sidecar.client, "team")
            await team.open(resources=RICH)
            agents = [started("team", sidecar.http, 25) for _ in range(4)]
            while len(await team.trace()) < 20:
                await asyncio.sleep(0.02)
            agents[0].kill()
            valkey.kill()
            valkey.start()
            told = [one for agent in agents for one in await asyncio.to_thread(lines, agent)]
            counted = kernel_verifier.verify(await everything(team), await team.describe(), told)
    assert counted["answers"] >= 75
    assert counted["steps"] >= 20


async def everything(team: KernelClient) -> list[dict]:
    """The whole trace."""
    found: list[dict] = []
    while page := await team.trace(int(found[-1]["sequence"]) if found else 0):
        found += page
    return found


@pytest.mark.long
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_services_of_their_own_are_killed_at_every_failpoint(tmp_path, seed):
    """Session, audit, two sidecars and the store as processes, killed at each failpoint and at random, under six agents."""
    rng = random.Random(seed)
    (tmp_path / "valkey").mkdir()
    with Valkey(tmp_path / "valkey") as valkey, Processes(tmp_path, {"redis_url": valkey.url}) as processes:
        session, audit = (processes.process(name).start() for name in ("session", "audit"))
        nowhere = {f"{name}_address": "127.0.0.1:9" for name in ("policy", "dpe")}
        places = {f"{one.name}_address": f"127.0.0.1:{one.wait().ports[str(one.name)]}" for one in (session, audit)}
        sidecars = [processes.process("sidecar", label=f"sidecar{n}", **nowhere, **places).start() for n in (0, 1)]
        urls = [f"http://127.0.0.1:{one.wait().ports['sidecar_http']}" for one in sidecars]
        calls = KernelCalls(urls[0], retries=12)
        calls.post("team", "open", {"definition": definition(resources=RICH)})
        agents = [started("team", urls[n % 2], 120) for n in range(6)]
        pieces = [session, audit, *sidecars]
        points = list(POINTS)
        rng.shuffle(points)
        while any(agent.poll() is None for agent in agents):
            time.sleep(rng.uniform(0.2, 1.0))
            if points:
                point = points.pop()
                one = session if point.endswith("step") else rng.choice(sidecars)
                killed(one, f"{point}:kill@{rng.randint(2, 9)}")
            elif rng.random() < 0.3:
                valkey.kill()
                valkey.start()
            else:
                killed(rng.choice(pieces))
        told = [one for agent in agents for one in lines(agent)]
        trace: list[dict] = []
        while page := calls.trace("team", int(trace[-1]["sequence"]) if trace else 0):
            trace += page
        counted = kernel_verifier.verify(trace, calls.describe("team"), told)
        calls.close()
    assert counted["answers"] >= 200, counted


def killed(one: Process, failpoint: str = "") -> None:
    """kill -9 a process, at its failpoint where one is named, and start it again without."""
    one.kill()
    if failpoint:
        one.env["INTERLOCK_FAILPOINTS"] = failpoint
        one.restart()
        deadline = time.monotonic() + 15
        while one.child.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        one.env.pop("INTERLOCK_FAILPOINTS")
        if one.child.poll() is None:
            one.kill()
    one.restart()

"""`interlock kernel simulate` against a real sidecar: its trace, and the file that `watch` writes of it (KRN-1)."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.support.kernels import UNIT, KernelClient
from tests.support.servers.processes import environment, run
from tests.support.sidecar.sidecar import running_sidecar


@pytest.mark.req("KRN-1", "KRN-6")
async def test_a_recorded_trace_is_decided_again_under_other_limits(tmp_path):
    """Of five tasks of 10 the fourth and fifth would not fit 35; the kernel itself stays as it is, and a file says the same."""
    async with running_sidecar(tmp_path) as sidecar:
        team = KernelClient(sidecar.client, "team", key="alice")
        await team.open()
        await team.post("open-child", child="writer", limits=[{"resource": "usd", "micros": 40 * UNIT}], key="child")
        for number in range(5):
            await team.execute("task", f"k{number}", child="writer" if number < 2 else "")
        env = environment(tmp_path / "cli") | {
            "OPENAI_API_KEY": "alice",
            "OPENAI_BASE_URL": str(sidecar.client.base_url).rstrip("/") + "/v1",
        }

        async def kernel(*arguments: str):
            return await asyncio.to_thread(run, "kernel", *arguments, env=env)

        less = await kernel("simulate", "team", "--limit", "usd=35", "-o", "json")
        same = await kernel("simulate", "team")
        file = tmp_path / "trace.ndjson"
        file.write_text((await kernel("watch", "team", "--once", "-o", "json")).stdout)
        bound = await kernel(
            "simulate", "team", "--file", str(file), "--invariant", "few=active <= 4", "--limit", "writer/usd=15"
        )
        wrong = await kernel("simulate", "team", "--limit", "usd", "-o", "json")
        spent = await team.spent()

    told = json.loads(less.stdout)
    assert (less.returncode, [one["key"] for one in told["rejected"]]) == (1, ["k3", "k4"]), less.stdout + less.stderr
    assert told["rejected"][0]["checks"][0] == {
        "name": "budget:usd",
        "code": "BUDGET_EXCEEDED",
        "words": "it costs 10 usd, and 5 is left",
    }
    usd = told["resources"][0]
    assert (usd["recorded"]["remaining_micros"], usd["simulated"]["remaining_micros"]) == (
        str(50 * UNIT),
        str(5 * UNIT),
    )
    assert (same.returncode, same.stdout.splitlines()[0]) == (0, "7 records: 0 would have been rejected, 0 approved"), (
        same.stderr
    )
    assert bound.returncode == 1
    assert "REJECTED  task  k1  it costs 10 writer/usd, and 5 is left" in bound.stdout
    assert "1 would have been rejected" in bound.stdout, "one less is done, so that few holds"
    assert (wrong.returncode, json.loads(wrong.stdout)["error"]["reason"]) == (2, "KERNEL_CHANGE_INVALID")
    assert spent == 50 * UNIT


@pytest.mark.req("KRN-3")
async def test_conditions_in_cel_are_evaluated_again(tmp_path):
    """A trace under a condition of its own is as it was; one more that is tighter would have rejected, one left out approved."""
    async with running_sidecar(tmp_path) as sidecar:
        team = KernelClient(sidecar.client, "team", key="alice")
        await team.open(invariants=[{"name": "few", "cel": "active <= 3 && log.all(x, x == 'sent')"}])
        for number in range(5):
            await team.execute("task", f"k{number}")
        env = environment(tmp_path / "cli") | {
            "OPENAI_API_KEY": "alice",
            "OPENAI_BASE_URL": str(sidecar.client.base_url).rstrip("/") + "/v1",
        }

        async def kernel(*arguments: str):
            return await asyncio.to_thread(run, "kernel", "simulate", "team", "-o", "json", *arguments, env=env)

        same = await kernel()
        tight = await kernel("--cel", "rich=left.usd >= 75.5")
        loose = await kernel("--without", "few")
        wrong = await kernel("--cel", "rich=left.eur >= 75.5")
        described = await asyncio.to_thread(run, "kernel", "describe", "team", env=env)

    assert (same.returncode, json.loads(same.stdout)["rejected"]) == (0, []), same.stderr
    told = json.loads(tight.stdout)["rejected"]
    assert [(one["key"], one["checks"][0]["name"]) for one in told] == [("k2", "invariant:rich")]
    assert [one["key"] for one in json.loads(loose.stdout)["approved"]] == ["k3", "k4"]
    assert (wrong.returncode, json.loads(wrong.stdout)["error"]["reason"]) == (2, "KERNEL_VARIABLE_UNKNOWN")
    assert "  few: active <= 3 && log.all(x, x == 'sent')" in described.stdout.splitlines()

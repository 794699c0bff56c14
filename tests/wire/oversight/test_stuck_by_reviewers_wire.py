"""With `stuck_by_reviewers` what is stuck is settled by reviewers alone; a caller's own key is told so (KRN-5)."""

from __future__ import annotations

import asyncio
import json

import pytest
import pytest_asyncio
from typer.testing import CliRunner

from interlock.cli.main import app
from tests.support.kernels import KernelClient
from tests.support.sidecar import stuck
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.stuck import DECIDER, signed, stuck_step

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.req("KRN-5")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory, valkey):
    """A sidecar with the setting, its kernels in a real store, and its reviewers."""
    folder = tmp_path_factory.mktemp("by-reviewers")
    async with reviewed_world(folder, stuck.reviewers(), redis_url=valkey.url, stuck_by_reviewers=True) as running:
        yield running


def settling(step: str, outcome: str, key: str) -> dict[str, str]:
    return {"execution": step, "outcome": outcome, "key": key}


async def test_a_callers_key_does_not_settle_what_is_stuck(world):
    """Neither as done nor to be tried again, alone or among others, nor in the CLI: nothing is recorded, and it stays stuck."""
    _, step, _ = await stuck_step(world.sidecar.client, "own", "book")
    kernel = KernelClient(world.sidecar.client, "own")
    before = len(await kernel.trace())
    asks = [settling(step, f"OUTCOME_{outcome}", f"own{n}") for n, outcome in enumerate(["DONE", "RETRY"] * 4)]
    told = await asyncio.gather(*(kernel.post("settle-compensation", **ask) for ask in asks))
    command = await asyncio.to_thread(
        CliRunner().invoke, app, ["kernel", "settle", "own", step, "--url", world.sidecar.http]
    )

    assert {(one.status_code, one.json()["reason"]) for one in told} == {(403, "KERNEL_REVIEWER_NEEDED")}
    assert (command.exit_code, "KERNEL_REVIEWER_NEEDED" in command.output) == (2, True)
    assert "interlock oversight stuck" in command.output
    assert len(await kernel.trace()) == before
    assert [one["stuck"] for one in (await kernel.describe())["compensations"]] == [True]


async def test_a_reviewer_settles_it_and_is_on_record(world):
    """The same step, decided by a person: done, with the name."""
    kernel_id, step, record = await stuck_step(world.sidecar.client, "theirs", "send")
    csrf = await world.oversight.browse()
    body = {"step": step, "token": signed(kernel_id, step, record, "done"), "reason": "MADE_UP_FOR"}
    decided = await world.oversight.post(f"/api/stuck/{kernel_id}/decision", body, csrf)
    last = json.loads((await KernelClient(world.sidecar.client, "theirs").trace())[-1]["data_json"])

    assert decided.json()["approved"]
    assert last["decided"]["reviewer_id"] == DECIDER


async def test_what_is_not_stuck_is_the_workers_to_settle(world):
    """A compensation that is handed out ends by the caller's key, as ever."""
    kernel = KernelClient(world.sidecar.client, "running")
    await kernel.post("open", definition=stuck.DEFINITION)
    await kernel.post("begin-saga", lifetime_ms=60_000, key="saga")
    await kernel.execute("book", "step", saga="saga")
    await kernel.post("rollback", saga="saga", key="back")
    claimed = (await kernel.post("claim-compensation", lifetime_ms=60_000, key="worker")).json()["compensation"]
    settled = await kernel.post("settle-compensation", **settling(claimed["execution"], "OUTCOME_DONE", "made"))

    assert settled.json()["verdict"]["approved"]
    assert (await kernel.describe())["compensations"] == []

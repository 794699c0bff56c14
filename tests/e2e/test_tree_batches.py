"""Batches of one session at four sidecar processes at once: their charges add up to the last one."""

from __future__ import annotations

import asyncio

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.api.common.v1 import common_pb2
from tests.support.servers.provider import Provider, RunningProvider
from tests.support.sidecar.sidecar import token_of
from tests.support.sidecar.world import four_sidecars, obedient

QUIET = {"max_fan_out": 16, "max_dag_nodes": 64, "batch_parallel": 4}


def body(said: str) -> dict:
    return {"model": "m", "messages": [{"role": "user", "content": f"Say: {said}"}]}


@pytest.mark.req("BUD-8", "BUD-10")
@pytest.mark.timeout(180)
async def test_batches_side_by_side_are_charged_to_the_last_item(tmp_path):
    """Four sidecars, three items of 0.05 each, one token: 1.00 less 0.60, whoever came first, and one chain of all."""
    with RunningProvider(Provider()) as running:
        obedient(running.provider)
        async with four_sidecars(tmp_path, running.provider, running.base_url, QUIET) as world:
            first = await world.client(0)
            root = await first.post("/v1/chat/completions", json=body("LOW"))
            headers = {"crp-session-token": token_of(root)}
            items = [{"id": f"i{number}", "body": body("MEDIUM")} for number in range(3)]
            clients = [await world.client(place) for place in range(4)]
            ends = await asyncio.gather(
                *(one.post("/crp/v3/batch", json={"items": items}, headers=headers) for one in clients)
            )
            session_id = root.headers["crp-context-session-id"]
            shown = (await clients[3].get(f"/crp/v3/session/{session_id}", headers=headers)).json()
            chain = await world.audit.Verify(audit_pb2.VerifyRequest(session_id=session_id))

    assert {item["status"] for end in ends for item in end.json()["results"]} == {200}, [end.text for end in ends]
    assert (shown["safety_budget_micros"], len(shown["windows"])) == (400_000, 13)
    assert min(float(end.headers["crp-agent-safety-budget"]) for end in ends) == 0.4
    assert (chain.integrity, chain.charged_micros) == (common_pb2.CHAIN_INTEGRITY_VALID, 600_000)

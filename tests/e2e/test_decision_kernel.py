"""Experiments of several processes on one shared kernel: whatever they accept at the same time, it is never above its limit (DEC-13)."""

from __future__ import annotations

import asyncio

import grpc
import pytest
from google.protobuf.json_format import ParseDict

from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.api.kernel.v1 import kernel_pb2, kernel_pb2_grpc
from tests.support.decision_kernels import AGENT, KERNEL, UNIT, ReservingClient
from tests.support.decision_service import owner, proposes
from tests.support.servers.processes import Process, environment

pytestmark = [pytest.mark.req("DEC-13"), pytest.mark.long]
CYCLES, EXPERIMENTS = 6, 4


async def open_kernel(channel):

    stub = kernel_pb2_grpc.KernelServiceStub(channel)
    request = ParseDict({"kernel": "team", "definition": KERNEL}, kernel_pb2.OpenRequest())
    await stub.Open(request, metadata=owner())
    return stub


async def steered(client, done):
    """Run cycles that each want 40 of the kernel's 100; some are done for less, some not at all."""
    await client.open()
    await client.register(AGENT)
    wanted = proposes("EXTEND_TRIALS", "strategy", risk_level="MEDIUM", parameters_json='{"trials": 30}')
    accepted = []
    async with client.working("strategy", lambda _: {"proposals": [wanted]}):
        for cycle in range(1, CYCLES + 1):
            decision = await client.run(cycle)
            if decision.outcome != "EXTEND_TRIALS":
                continue
            spent = done(cycle)
            await client.settle(cycle, done=spent is not None, **({} if spent is None else {"trials": spent * UNIT}))
            accepted.append(spent or 0)
    return accepted


async def test_experiments_of_two_processes_spend_what_the_kernel_has(tmp_path, redis_url):
    """Four experiments, two decision services, a mesh: what was done adds up to what the kernel spent, at most its limit."""
    mesh = Process(tmp_path, None, environment(tmp_path / "state", {"redis_url": redis_url}))
    alone = environment(tmp_path / "state", {"redis_url": redis_url})
    decisions = [Process(tmp_path, "decision", alone, label=f"decision{one}") for one in range(2)]
    try:
        mesh.start().wait()
        for one in decisions:
            one.start().wait()
        sidecar = grpc.aio.insecure_channel(f"127.0.0.1:{mesh.ports['sidecar_grpc']}")
        places = [grpc.aio.insecure_channel(f"127.0.0.1:{one.ports['decision']}") for one in decisions]
        kernel = await open_kernel(sidecar)
        clients = [
            ReservingClient(DecisionServiceStub(places[number % 2]), experiment=f"e{number}")
            for number in range(EXPERIMENTS)
        ]
        kinds = (lambda _: 7, lambda cycle: None if cycle % 2 else 9, lambda _: 40, lambda cycle: cycle)
        found = await asyncio.gather(*(steered(*pair) for pair in zip(clients, kinds, strict=True)))
        described = await kernel.Describe(kernel_pb2.DescribeRequest(kernel="team"), metadata=owner())
        [trials] = described.resources
        for one in (sidecar, *places):
            await one.close()
    finally:
        for one in (*decisions, mesh):
            one.stop()

    spent = trials.gross_micros - trials.refunded_micros
    assert sum(map(sum, found)) * UNIT == spent <= trials.limit_micros
    assert sum(map(len, found)) >= 2

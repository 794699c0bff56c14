"""The decision service killed with kill -9 in each phase of a cycle: one decision, which replays, and the experiment goes on (DEC-8)."""

from __future__ import annotations

import grpc
import pytest

from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from tests.support.decision_service import DecisionClient, proposes
from tests.support.decisions import PROTOCOL
from tests.support.servers.processes import Process, environment

pytestmark = [pytest.mark.req("DEC-6", "DEC-8"), pytest.mark.long]

# Opening and registering are sealed too: those passes come first.
POINTS = ("decision.after_ask:kill@1", "decision.before_seal:kill@3", "decision.after_seal:kill@3")


@pytest.mark.parametrize("point", POINTS)
async def test_a_cycle_survives_the_death_of_its_service(tmp_path, redis_url, point):
    """The owner gets no answer and asks again: the cycle is decided once, by whoever sealed it, and the next one follows."""
    env = environment(tmp_path / "state", {"redis_url": redis_url})
    audit, decision = (Process(tmp_path, name, env) for name in ("audit", "decision"))
    decision.env["INTERLOCK_FAILPOINTS"] = point
    try:
        audit.start().wait()
        decision.start().wait()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{decision.ports['decision']}") as channel:
            search = DecisionClient(DecisionServiceStub(channel))
            await search.open()
            await search.register(PROTOCOL)
            async with search.working("protocol", lambda _: {"proposals": [proposes()]}):
                with pytest.raises(grpc.aio.AioRpcError) as died:
                    await search.run(1)
        assert died.value.code() is grpc.StatusCode.UNAVAILABLE
        decision.kill()
        decision.env.pop("INTERLOCK_FAILPOINTS")
        decision.start().wait()
        async with grpc.aio.insecure_channel(f"127.0.0.1:{decision.ports['decision']}") as channel:
            again = DecisionClient(DecisionServiceStub(channel))
            await again.register(PROTOCOL)
            assert again.tickets == search.tickets, "the agent comes back with the ticket that it has"
            async with again.working("protocol", lambda _: {"proposals": [proposes()]}):
                try:
                    first = await again.run(1)
                except grpc.aio.AioRpcError:  # sealed, and the store did not know it yet: asked again, it is read
                    first = await again.run(1)
                second = await again.run(2)
            assert first.outcome == "SWITCH_HPO"
            assert first.replayed is ("after_seal" in point)
            assert [one.reason for one in second.rejected] == ["COOLDOWN_ACTIVE"]
            assert [one.cycle for one in await again.list()] == [1, 2]
            assert (await again.replay(1)).same
    finally:
        for one in (decision, audit):
            one.stop()

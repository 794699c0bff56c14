"""A crash around a decision or a hand-out loses nothing that was approved and gives nothing away twice (I12)."""

from __future__ import annotations

import pytest
import pytest_asyncio

from interlock.api.audit.v1 import audit_pb2
from interlock.runtime import failpoints
from tests.support.sidecar.oversight import HOLDS, decision, reviewed_world, token_for, window_of
from tests.support.sidecar.sidecar import reason_of, token_of

pytestmark = [pytest.mark.req("OVR-4"), pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    async with reviewed_world(tmp_path_factory.mktemp("crash")) as running:
        running.provider.answers("HIGH risk.")
        yield running


@pytest.fixture
def crashing():
    """Set failpoints for this test alone."""
    yield failpoints.configure
    failpoints.configure("")


async def item_of(sidecar, held) -> audit_pb2.HeldItem:
    return (await sidecar.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=window_of(held)))).item


async def kinds(sidecar, held) -> list[str]:
    return [event.event_type for event in await sidecar.events(held.headers["crp-context-session-id"])]


@pytest.mark.parametrize(("point", "standing"), [("before_decision", False), ("after_decision", True)])
async def test_a_decision_is_written_or_it_is_not(world, crashing, point, standing):
    """Handed in once more it stands once, whatever the first try came to."""
    held = await world.sidecar.chat(headers=HOLDS)
    request = decision(token_for(await item_of(world.sidecar, held)))
    crashing(f"audit.{point}:error@1")
    first = await world.sidecar.mesh.audit.DecideHeld(request)
    between = await kinds(world.sidecar, held)
    again = await world.sidecar.mesh.audit.DecideHeld(request)

    assert first.refusal.reason == "FAILPOINT"
    assert ("OVERSIGHT_APPROVED" in between) is standing
    assert again.item.status == audit_pb2.HELD_STATUS_APPROVED
    assert (await kinds(world.sidecar, held)).count("OVERSIGHT_APPROVED") == 1


@pytest.mark.parametrize(
    ("point", "told"),
    [("before_handout", ["RESPONSE_RELEASED"]), ("after_handout", ["RESPONSE_RELEASED", "RESPONSE_REPEATED"])],
)
async def test_an_approved_answer_is_not_lost_with_the_hand_out(world, crashing, point, told):
    """The client's retry gets it: the first time, or, where the mark was made before the crash, on record again."""
    held = await world.sidecar.chat(headers=HOLDS)
    token = token_for(await item_of(world.sidecar, held))
    await world.sidecar.mesh.audit.DecideHeld(decision(token))
    crashing(f"audit.{point}:error@1")
    sent = {"crp-oversight-token": token}
    lost = await world.sidecar.chat(token=token_of(held), headers=sent)
    got = await world.sidecar.chat(token=token_of(held), headers=sent)

    assert (lost.status_code, reason_of(lost)) == (503, "FAILPOINT")
    assert got.status_code == 200
    assert [kind for kind in await kinds(world.sidecar, held) if kind.startswith("RESPONSE_")] == told

"""What is put on record before the first part of an answer leaves (BUD-11)."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from interlock.api.session.v1 import session_pb2
from interlock.runtime.rpc.deadline import Deadline
from interlock.runtime.settings.model import Settings
from interlock.sidecar.streaming.parts import GROWTH, LEAST, WAIT_S, PartRelease, is_due

DECREMENTS = session_pb2.Decrements(critical_micros=350_000)


async def _begun(asked: int | None) -> dict:
    """Return what STREAM_BEGUN says of a window whose path has 0.95, while another window holds 0.35 of the session."""

    async def hold_window(*_):
        return session_pb2.HoldWindowResponse(held_micros=350_000)

    opened = session_pb2.OpenedWindow(
        safety_budget_micros=950_000, session_budget_micros=600_000, decrements=DECREMENTS
    )
    call = SimpleNamespace(live=object(), asked=SimpleNamespace(ceiling=asked))
    run = SimpleNamespace(call=call, deadline=Deadline(5))
    peers = SimpleNamespace(session=SimpleNamespace(hold_window=hold_window))
    release = PartRelease(Settings(), peers, run, SimpleNamespace(opened=opened, budget=600_000), None)
    return json.loads((await release._hold()).data_json)


@pytest.mark.req("BUD-11", "BUD-4")
@pytest.mark.parametrize(("asked", "ceiling"), [(None, 950_000), (400_000, 400_000)])
async def test_a_stream_that_is_lost_is_charged_to_its_path(asked, ceiling):
    """What another window holds for a while comes back: it lowers no path for good. A caller's own ceiling does."""
    assert (await _begun(asked))["ceiling_micros"] == ceiling


@pytest.mark.req("API-4")
@pytest.mark.parametrize(
    ("known", "judged", "waited_s", "due"),
    [
        (0, 0, 0.0, False),
        (1, 0, 0.0, True),
        (30 + LEAST - 1, 30, 0.0, False),
        (30 + LEAST, 30, 0.0, True),
        (60, 30, WAIT_S, True),
        (59, 30, WAIT_S, False),
        (1000 + LEAST, 1000, WAIT_S, False),
        (int(1000 * GROWTH), 1000, 0.0, True),
    ],
)
def test_when_a_part_is_judged(known, judged, waited_s, due):
    """The first sentence at once; then a line or two more, or what a second brought; and always as much again as was judged."""
    assert is_due(known, judged, waited_s) is due

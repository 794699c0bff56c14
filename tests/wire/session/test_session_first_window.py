"""A session that starts together with its first window: one call, no token presented (docs/architecture.md)."""

from __future__ import annotations

import pytest

from interlock.runtime.settings.model import Settings
from tests.support.session.session_client import HIGH, MASTER, asking, opening, serving


@pytest.fixture
async def client(redis_url, tmp_path):
    settings = Settings(redis_url=redis_url, state_dir=tmp_path, master_key=MASTER.hex(), session_port=0)
    async with serving(settings) as address, asking(address) as made:
        yield made


async def test_a_session_starts_with_its_first_window(client):
    """One call: the window is the one that the token would have opened, and its lease is taken."""
    started = await client.start(first_window=opening("", scope=""))
    window = started.first_window.window

    assert (window.session_id, window.window_number) == (started.session.session_id, 1)
    assert (window.safety_budget_micros, list(window.parent_ids)) == (1_000_000, [])
    assert (await client.refused("OpenWindow", opening(started.token))).reason == "WINDOW_IN_FLIGHT"
    settled = await client.settle(window)
    assert settled.safety_budget_micros == 1_000_000 - HIGH


@pytest.mark.parametrize("wrong", [{"token": "a.b"}, {"token": "", "scope": "another"}, {"token": "", "lease_ms": -1}])
async def test_a_first_window_that_cannot_be_opened_leaves_the_session(client, wrong):
    """The refusal is a value beside the session, whose token still opens the window."""
    started = await client.start(first_window=opening(**wrong))

    assert started.first_window.refusal.reason == "INVALID_FIELD"
    assert (await client.open(started.token)).window_number == 1

"""A store that is closed makes no connection any more: nothing is left running behind it."""

from __future__ import annotations

import asyncio

import pytest

from interlock.domain.errors import Refused
from interlock.session.store.cluster import Routes
from interlock.session.store.connection import parse


async def refused(work) -> str:
    with pytest.raises(Refused) as caught:
        await work
    return caught.value.metadata["error"]


async def test_a_closed_store_is_not_connected_to():
    """A call that comes while it closes, or later, is refused and begins nothing."""
    routes = Routes(parse("redis://127.0.0.1:1"), 1.0)
    await routes.close()
    before = asyncio.all_tasks()

    assert await refused(routes.entry.ready()) == "CLOSED"
    assert asyncio.all_tasks() == before


async def test_a_call_is_not_redirected_while_a_store_closes():
    """A link that is made then would be closed by nobody."""
    import hiredis

    routes = Routes(parse("redis://127.0.0.1:1"), 1.0)
    await routes.close()
    moved = hiredis.ReplyError("MOVED 1 127.0.0.1:2")

    assert await refused(routes.follow(moved, None, None)) == "CLOSED"

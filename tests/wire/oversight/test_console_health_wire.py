"""The page of health over its real listener: parts that work, that are down and that hang, in words and in bounded time (OBS-5)."""

from __future__ import annotations

import asyncio
import socket

import pytest

from interlock.oversight.health.look import Health
from interlock.runtime.rpc.health import ProbeFinding, ProbeStatus
from tests.support.servers.ports import free_port
from tests.support.sidecar.oversight import reviewed_world, running_oversight
from tests.support.sidecar.people import VIEWER, people, who

pytestmark = [pytest.mark.req("OBS-5")]


@pytest.fixture
def mute():
    """A port that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield listener.getsockname()[1]


def row(page: str, part: str) -> str:
    """The line of a part."""
    start = page.index(f'<th scope="row">{part}</th>')
    return page[start : page.index("</tr>", start)]


async def test_parts_that_work_hang_and_are_down_are_told_in_words(tmp_path, redis_url, mute):
    """The store and its clock work; Triton and the collector hang or are away; the page comes, with what to do for each."""
    places = {"triton_url": f"127.0.0.1:{mute}", "otlp_endpoint": f"http://127.0.0.1:{free_port()}"}
    async with reviewed_world(tmp_path, people(), redis_url=redis_url) as world:
        async with running_oversight(world.sidecar, **places) as oversight:
            await oversight.look()
            async with asyncio.timeout(60):
                page = (await oversight.client.get("/health")).text
            await oversight.browse(**who(VIEWER))
            viewers = (await oversight.client.get("/health")).text

    assert ">works</span>" in row(page, "Session store")
    assert ">works</span>" in row(page, "Clock")
    assert ">does not work</span>" in row(page, "Models on Triton")
    assert "Without it: no answer is analysed." in row(page, "Models on Triton")
    assert ">look at it</span>" in row(page, "Traces (OTLP)")
    assert "start the collector" in row(page, "Traces (OTLP)")
    assert "Models on Triton" in page.split("<strong>Does not work: ")[1].split("</strong>")[0]
    assert ">does not work</span>" in row(viewers, "Models on Triton")
    assert f"{mute}" not in viewers


async def test_a_store_that_hangs_holds_up_no_page(tmp_path, mute):
    """A Redis that takes connections and says nothing: the page comes and names it."""
    async with reviewed_world(tmp_path) as world:
        async with running_oversight(world.sidecar, redis_url=f"redis://127.0.0.1:{mute}") as oversight:
            await oversight.look()
            async with asyncio.timeout(60):
                page = await oversight.client.get("/health")

    assert page.status_code == 200
    assert ">does not work</span>" in row(page.text, "Session store")
    assert "no call is admitted" in row(page.text, "Session store")


async def test_one_look_is_shared_and_a_look_without_an_end_is_given_up():
    """Many who ask at once cause one look; one that never ends, or breaks, leaves a page that says so."""
    looks = 0
    found = [ProbeFinding("redis", "server", ProbeStatus.OK, "it answers")]

    async def look() -> list[ProbeFinding]:
        nonlocal looks
        looks += 1
        await asyncio.sleep(0)
        return found

    async def never() -> list[ProbeFinding]:
        await asyncio.Event().wait()
        return found

    async def broken() -> list[ProbeFinding]:
        raise OSError("a disk")

    health = Health(look)
    assert list(await asyncio.gather(*(health.now() for _ in range(9)))) == [found] * 9
    assert looks == 1
    endless = Health(never, limit_s=0.05)
    assert await endless.now() is None
    await endless.close()
    assert await Health(broken).now() is None

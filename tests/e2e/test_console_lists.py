"""Kernels and decision runs in a real Chromium: by keyboard from a list to what is in it, on a telephone and in the dark (OBS-5)."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from interlock.api.decision.v1.decision_pb2_grpc import DecisionServiceStub
from interlock.oversight.link import ConsoleLink
from tests.e2e.test_console_page import kept
from tests.support.accessibility import findings
from tests.support.decision_service import DecisionClient
from tests.support.kernels import UNIT, KernelClient
from tests.support.servers.browser import browsing
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.people import ADMIN, people, who
from tests.support.sidecar.sidecar import token_of
from tests.wire.oversight.test_console_decisions_wire import decided
from tests.wire.oversight.test_console_wire import SAID, report

pytestmark = [pytest.mark.long, pytest.mark.req("OBS-5"), pytest.mark.timeout(180)]


@pytest.fixture
async def world(tmp_path, redis_url):
    """A session, two kernels and an experiment, and the console beside them."""
    async with reviewed_world(tmp_path, people(), redis_url=redis_url, decides=True) as running:
        running.provider.answers(SAID)
        running.sidecar.dpe.report = report()
        begun = await running.sidecar.chat()
        running.session = begun.headers["crp-context-session-id"]
        running.window = begun.headers["crp-provenance-report-uri"].rpartition("/")[2]
        team = KernelClient(running.sidecar.client, "team", key="sk-of-the-team")
        await team.open()
        await team.execute("task", "one")
        await team.post("lease", resource="usd", wanted_micros=5 * UNIT, lifetime_ms=600_000, key="slice")
        await KernelClient(running.sidecar.client, "shared", token=token_of(begun)).open()
        async with grpc.aio.insecure_channel(running.sidecar.grpc) as channel:
            running.experiment = await decided(DecisionClient(DecisionServiceStub(channel)), 3)
        running.link = ConsoleLink(running.oversight.http, running.oversight.secret).url("alice")
        running.bearer = (await running.oversight.signed_in(**who(ADMIN))).bearer
        yield running


async def looking(page: Any, world: Any) -> list[str]:
    """Sign a page in by the link; returns what the browser will have complained of."""
    faults: list[str] = []
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: faults.append(str(error)))
    await page.goto(world.link)
    await page.wait_for_url("**/sessions")
    return faults


async def test_a_kernel_is_found_by_keyboard_and_followed(world):
    """From the list to its page; what it spends shows on the open list without a reload."""
    async with browsing(viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as page:
        faults = await looking(page, world)
        await page.click("nav >> text=Kernels")
        await page.wait_for_selector("#live:not([hidden])")
        kept("console-kernels.png", await page.screenshot())
        await KernelClient(world.sidecar.client, "team", key="sk-of-the-team").execute("task", "two")
        await page.wait_for_selector("text=75.00", timeout=60_000)
        await page.focus("text=team")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("h1:has-text('Kernel team')")
        shown = await page.inner_text("main")

    assert faults == []
    assert "A task" in shown


async def test_a_run_is_read_by_keyboard(world):
    """From the list of experiments to the time line, to a cycle and its rationale, with its hidden character named."""
    async with browsing(viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as page:
        faults = await looking(page, world)
        await page.click("nav >> text=Decisions")
        await page.focus("text=search")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("svg.timeline")
        marks = await page.locator("circle.mark").count()
        kept("console-decisions.png", await page.screenshot())
        await page.click("a.item:has-text('Cycle 1')")
        await page.wait_for_selector("text=What they saw")
        shown = await page.inner_text("main")

    assert faults == []
    assert marks > 6
    assert "U+202E" in shown
    assert "<script>alert(1)</script>" in shown


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_no_page_has_a_finding_of_axe_or_scrolls_sideways(world, scheme):
    """Every page of the console, signed in as an admin and not, on a telephone, with what axe-core says of it."""
    paths = [
        "/sessions", f"/sessions/{world.session}", f"/windows/{world.window}", "/", "/stuck", "/figures", "/would", "/health", "/sessions?outcome=halted&since=2026-01-02", "/kernels",
        "/decisions", f"/decisions/{world.experiment}", f"/decisions/{world.experiment}/1",
        "/policy?text=halt-on+HIGH%3B+warn-on+CRITICAL", "/sessions/nonsense", "/nowhere", "/settings?show=changed", "/settings", "/sign-in",
    ]  # fmt: skip
    found: dict[str, Any] = {}
    async with browsing(viewport={"width": 390, "height": 844}, color_scheme=scheme, reduced_motion="reduce") as page:
        await page.goto(f"{world.oversight.http}/sign-in")
        await page.fill("#bearer", world.bearer)
        await page.click("text=Sign in to read")
        await page.wait_for_selector("text=Sign out")
        await page.goto(f"{world.oversight.http}/kernels")
        paths.append(await page.get_attribute("a.item >> nth=1", "href"))
        for path in paths:
            await page.goto(f"{world.oversight.http}{path}")
            wide = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")
            if told := [*(["it scrolls sideways"] if wide else []), *await findings(page)]:
                found[path] = told

    assert found == {}

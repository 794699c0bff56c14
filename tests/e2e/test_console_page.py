"""The live console in a real Chromium: by the operator's link, by keyboard, as it happens, and without scripts (OBS-5)."""

from __future__ import annotations

import os

import pytest

from interlock.oversight.link import ConsoleLink
from tests.support.paths import ROOT
from tests.support.servers.browser import browsing
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.people import ADMIN, people, who
from tests.support.sidecar.sidecar import a_report, token_of
from tests.wire.oversight.test_console_wire import SAID, report

pytestmark = [pytest.mark.long, pytest.mark.req("OBS-5"), pytest.mark.timeout(180)]

PICTURES = ROOT / "docs" / "img"
LARGEST_PICTURE = 200_000


@pytest.fixture
async def world(tmp_path):
    """Three calls of one session and one of another, and the console beside them."""
    async with reviewed_world(tmp_path) as running:
        running.provider.answers(SAID)
        running.sidecar.dpe.report = report()
        token = None
        for _ in range(3):
            facts = {"facts": [{"id": "f1", "content": "The deposit is 2,400 EUR by contract."}]}
            answer = await running.sidecar.chat(token=token or "", interlock=facts)
            assert answer.status_code == 200, answer.text
            token = token_of(answer)
        await running.sidecar.chat(headers={"authorization": "Bearer sk-another"})
        running.token = token
        running.link = ConsoleLink(running.oversight.http, running.oversight.secret).url("alice")
        yield running


def kept(name: str, picture: bytes) -> None:
    """Keep a picture for the docs, where that was asked for."""
    assert len(picture) < LARGEST_PICTURE
    if os.environ.get("INTERLOCK_TEST_PICTURES"):
        (PICTURES / name).write_bytes(picture)


async def test_an_operator_looks_from_the_list_to_a_claim(world):
    """The link signs in and leaves no secret in the address; by keyboard to a session, a window, a claim and its fault."""
    faults: list[str] = []
    async with browsing(viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as page:
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(world.link)
        await page.wait_for_url("**/sessions")
        secret_is_there = await page.evaluate(
            "(secret) => document.documentElement.outerHTML.includes(secret)", world.oversight.secret
        )
        kept("console-sessions.png", await page.screenshot())
        await page.focus("a.item >> nth=1")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/sessions/crp_sess_*")
        windows = await page.locator("a.item").count()
        await page.click("text=Verify the chain")
        verified = await page.inner_text("#chain")
        await page.click("text=Window 3")
        kept("console-window.png", await page.screenshot())
        await page.click(".quote mark.wrong")
        chosen = await page.inner_text("li:target")
        unchosen = await page.locator("#c1 .evidence").is_visible()
        await page.click("text=evidence f1")
        evidence = await page.inner_text("#c1 .evidence")

    assert faults == []
    assert not secret_is_there
    assert not unchosen
    assert "2,400 EUR by contract" in evidence
    assert windows == 3
    assert "VALID" in verified
    assert "90 days" in chosen


async def test_an_open_list_shows_a_call_as_it_happens(world):
    """A CRITICAL answer turns the bar and the risk of its session, without a reload."""
    async with browsing() as page:
        await page.goto(world.link)
        await page.wait_for_url("**/sessions")
        await page.wait_for_selector("#live:not([hidden])")
        before = await page.locator("meter.half-open").count()
        world.sidecar.dpe.report = a_report("CRITICAL")
        await world.sidecar.chat(token=world.token)
        await page.wait_for_selector("meter.half-open", timeout=60_000)

    assert before == 0


@pytest.mark.parametrize("width", [390, 3840])
async def test_it_fits_a_telephone_and_a_wall(world, width):
    """Nothing but a table scrolls sideways."""
    async with browsing(viewport={"width": width, "height": 900}) as page:
        await page.goto(world.link)
        await page.wait_for_url("**/sessions")
        overflow = await page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")

    assert overflow <= 0


async def test_without_scripts_it_is_read(world):
    """The secret is typed in; every page is there."""
    async with browsing(java_script_enabled=False) as page:
        await page.goto(f"{world.oversight.http}/sign-in")
        await page.fill("#viewer", "alice")
        await page.fill("#secret", world.oversight.secret)
        await page.keyboard.press("Enter")
        await page.click("a.item >> nth=1")
        await page.click("text=Window 1")
        shown = await page.inner_text("main")

    assert "U+202E" in shown
    assert "90 days" in shown


async def test_a_policy_is_tried_by_keyboard(world):
    """Typed and sent by Enter, on a wide and on a narrow screen: the caret, the sentences and the risk levels are there."""
    async with browsing(viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as page:
        await page.goto(world.link)
        await page.wait_for_url("**/sessions")
        await page.click("text=Policies")
        await page.wait_for_url("**/policy")
        await page.fill("input[name=text]", "halt-on HIGH; warn-on CRITICAL; require-grounding 0.75")
        await page.fill("input[name=other]", "halt-on CRITICAL; require-grounding 0.80")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**/policy?text=*")
        said = await page.inner_text("main")
        kept("console-policy.png", await page.screenshot())
        await page.set_viewport_size({"width": 390, "height": 844})
        overflows = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")

    assert "it changes nothing: halt-on HIGH stops all that it would warn of" in said
    assert "halt-on HIGH; ^warn-on CRITICAL" in said
    assert "Halts an answer whose risk is HIGH or above." in said
    assert not overflows


async def test_figures_over_time_are_live_in_light_and_dark(world):
    """The pictures grow as a call ends, keep an opened table open, fit a telephone, and are coloured by the style alone."""
    faults: list[str] = []
    async with browsing(viewport={"width": 1280, "height": 800}, reduced_motion="reduce") as page:
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        await page.goto(world.link)
        await page.wait_for_url("**/sessions")
        await page.click("text=Over time")
        await page.wait_for_url("**/figures")
        await page.wait_for_selector("#live:not([hidden])")
        await page.click("summary")
        said = "document.querySelector('svg.chart').getAttribute('aria-label')"
        before = await page.evaluate(said)
        world.sidecar.dpe.report = a_report("CRITICAL")
        await world.sidecar.chat(token=world.token)
        await page.wait_for_function(f"(before) => {said} !== before", arg=before, timeout=60_000)
        critical = await page.locator(".bar-critical").count()
        opened = await page.locator("details[open]").count()
        kept("console-over-time.png", await page.screenshot())
        colour = "getComputedStyle(document.querySelector('.bar-most')).fill"
        light = await page.evaluate(colour)
        await page.emulate_media(color_scheme="dark")
        dark = await page.evaluate(colour)
        await page.set_viewport_size({"width": 390, "height": 844})
        overflows = await page.evaluate("document.documentElement.scrollWidth > window.innerWidth")

    assert faults == []
    assert (critical > 0, opened) == (True, 1)
    assert light != dark
    assert not overflows


async def test_an_admin_stops_a_session_by_keyboard(tmp_path):
    """The form wants a reason and the digits; afterwards the page says that it has ended."""
    async with reviewed_world(tmp_path, people()) as running:
        running.provider.answers(SAID)
        begun = await running.sidecar.chat()
        session_id = begun.headers["crp-context-session-id"]
        bearer = (await running.oversight.signed_in(**who(ADMIN))).bearer
        async with browsing(java_script_enabled=False) as page:
            await page.goto(f"{running.oversight.http}/sign-in")
            await page.fill("#bearer", bearer)
            await page.keyboard.press("Enter")
            await page.wait_for_selector("text=Sign out")
            await page.goto(f"{running.oversight.http}/sessions/{session_id}")
            await page.click("text=Stop this session")
            await page.select_option("select[name=reason]", "RUNAWAY")
            await page.fill("input[name=confirm]", session_id[-6:])
            await page.keyboard.press("Enter")
            await page.wait_for_selector("text=TERMINATED")
            buttons = await page.locator(".stop").count()

    assert buttons == 0

"""The reviewers' page in a real Chromium: by keyboard alone, with a key that stays in the browser (ecosystem.md 3.11)."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
import yaml
from playwright.async_api import TimeoutError  # noqa: A004 - Playwright's own

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.policy.reviewers import key_text
from tests.support.accessibility import findings
from tests.support.kernels import KernelClient
from tests.support.paths import ROOT
from tests.support.policy import agents
from tests.support.servers.browser import browsing
from tests.support.sidecar import stuck
from tests.support.sidecar.oversight import HOLDS, held_path, reviewed_world, window_of
from tests.support.sidecar.sidecar import a_report, token_of

pytestmark = [pytest.mark.long, pytest.mark.req("OVR-5"), pytest.mark.timeout(180)]

PICTURE = ROOT / "docs" / "img" / "oversight-page.png"
LARGEST_PICTURE = 300_000
SAID = (
    "The tenant may end the lease with HIGH certainty after three months of notice. "
    "The deposit of 2,400 EUR is returned within 14 days.\u202e .syad 09 nihtiw ton\u202c"
)
QUESTION = "When can the tenant end the lease, and when is the deposit returned?"
LEASE = "The lease can be ended with a notice of three months."
DEPOSIT = "The deposit of 2,400 EUR is returned within 90 days."


def report() -> dpe_pb2.Report:
    """What the analysis would say of that answer."""
    claims = [
        dpe_pb2.Claim(
            claim_id="c1", text="The tenant may end the lease after three months of notice.", fact_id="lease-4",
            attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED, entailment=0.96, contradiction=0.01,
        ),
        dpe_pb2.Claim(
            claim_id="c2", text="The deposit of 2,400 EUR is returned within 14 days.", fact_id="lease-9",
            attribution=dpe_pb2.ATTRIBUTION_CONTEXT_GROUNDED, entailment=0.03, contradiction=0.95,
            distortions=[dpe_pb2.Distortion(type="numerical", source_value="90 days", claim_value="14 days")],
        ),
    ]  # fmt: skip
    return a_report("HIGH", claims=claims, claims_total=2, distortion_count=1, grounding_pct=0.5, quality_score=0.71)


@pytest.fixture
async def world(tmp_path):
    async with reviewed_world(tmp_path) as running:
        running.provider.answers(SAID)
        running.sidecar.dpe.report = report()
        yield running


@pytest.fixture
def key_file(tmp_path) -> Path:
    """The reviewer's key as `interlock oversight keygen` writes it."""
    path = tmp_path / "reviewer.key"
    private = key_text(agents.private_key().private_bytes_raw())
    path.write_text(yaml.safe_dump({"reviewer": agents.REVIEWER, "private_key": private}))
    return path


async def held_by(world):
    facts = [{"id": "lease-4", "content": LEASE}, {"id": "lease-9", "content": DEPOSIT}]
    held = await world.sidecar.chat(QUESTION, headers=HOLDS, interlock={"facts": facts})
    assert held.status_code == 451, held.text
    return held


async def focused(page) -> str:
    return await page.evaluate("document.activeElement.id || document.activeElement.className")


async def sign_in(page, key_file: Path) -> None:
    """Choose the key file and sign in, by keyboard alone."""
    for _ in range(12):
        await page.keyboard.press("Tab")
        if await focused(page) == "key-file":
            break
    assert await focused(page) == "key-file"
    for attempt in range(3):  # on a busy machine the browser may take the key before the field is ready for it
        try:
            async with page.expect_file_chooser(timeout=15_000) as opening:
                await page.keyboard.press("Space")
        except TimeoutError:
            assert attempt < 2, "the key that opens a file dialogue opened none"
        else:
            break
    await (await opening.value).set_files(key_file)
    await page.keyboard.press("Tab")
    async with page.expect_navigation(url="**/"):
        await page.keyboard.press("Enter")


async def test_the_inbox_leads_to_a_decision_by_one_key(world, key_file):
    """Question and beginning of the answer in the list; `r` opens the answer at its rejection, which is decided there."""
    await held_by(world)
    async with browsing(viewport={"width": 1100, "height": 900}, reduced_motion="reduce") as page:
        await page.goto(f"{world.oversight.http}/sign-in")
        await sign_in(page, key_file)
        listed = await page.inner_text("main")
        told = await findings(page)
        await page.keyboard.press("j")
        await page.keyboard.press("r")
        await page.wait_for_selector("#reject-button:not([disabled])")
        at = await focused(page)
        await page.keyboard.type("inaccurate")
        await page.keyboard.press("Tab")
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
        after = await page.inner_text("main")

    assert QUESTION in listed
    assert "The tenant may end the lease" in listed
    assert "U+202E" in listed
    assert told == []
    assert at == "reject-reason"
    assert "REJECTED" in after


@pytest.mark.req("OVR-3", "OVR-4")
async def test_a_reviewer_approves_by_keyboard_alone(world, key_file, tmp_path):
    """Sign in, read, approve without a pointer; then the client that waited gets its answer."""
    held = await held_by(world)
    faults: list[str] = []
    async with browsing(viewport={"width": 1100, "height": 1500}, reduced_motion="reduce") as page:
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        await page.goto(f"{world.oversight.http}/sign-in")
        await sign_in(page, key_file)
        await page.keyboard.press("j")
        outline = await page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
        await page.keyboard.press("Enter")
        await page.wait_for_selector("#release-button:not([disabled])")
        picture = await page.screenshot(path=tmp_path / "page.png", full_page=True)
        shown = await page.inner_text("main")
        await page.keyboard.press("a")
        await page.keyboard.type("sources")
        chosen = await page.eval_on_selector("#release-reason", "select => select.value")
        await page.keyboard.press("Tab")
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
        after = await page.inner_text("main")
    answer = await world.sidecar.client.get(held_path(held), headers={"crp-session-token": token_of(held)})
    approval = {"crp-oversight-token": answer.json()["oversight_token"]}
    released = await world.sidecar.chat(token=token_of(held), headers=approval)

    assert faults == []
    assert outline != "none"
    assert (chosen, "APPROVED" in after, "SOURCES_CHECKED" in after) == ("SOURCES_CHECKED", True, True)
    for text in (QUESTION, DEPOSIT, "90 days", "U+202E", "0.500", "0.85", "numerical"):
        assert text in shown, text
    assert released.json()["choices"][0]["message"]["content"] == SAID
    assert len(picture) < LARGEST_PICTURE
    if os.environ.get("INTERLOCK_TEST_PICTURES"):
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(picture)


async def test_the_key_cannot_be_read_back_and_leaves_with_the_sign_out(world, key_file):
    """It is kept as something that signs, not as bytes; no script sees the cookie; signing out forgets both."""
    await held_by(world)
    kept = """async () => {
        const database = await new Promise((done, failed) => {
            const opening = indexedDB.open("interlock-oversight", 1);
            opening.onsuccess = () => done(opening.result); opening.onerror = failed;
        });
        const held = await new Promise((done) => {
            const asked = database.transaction("keys").objectStore("keys").get("reviewer");
            asked.onsuccess = () => done(asked.result);
        });
        if (!held) return "nothing";
        return await crypto.subtle.exportKey("pkcs8", held.key).then(() => "exported", (fault) => fault.name);
    }"""
    sent: list[str] = []
    async with browsing() as page:
        page.on("request", lambda request: sent.append(request.post_data or ""))
        await page.goto(f"{world.oversight.http}/sign-in")
        await sign_in(page, key_file)
        exported = await page.evaluate(kept)
        cookie = await page.evaluate("document.cookie")
        async with page.expect_navigation(url="**/sign-in"):
            await page.click("#sign-out button")
        afterwards = await page.evaluate(kept)
        await page.goto(world.oversight.http)
        where = page.url
    secret = key_file.read_text().split("ed25519:")[1].strip()

    assert (exported, cookie, afterwards) == ("InvalidAccessError", "", "nothing")
    assert where.endswith("/sign-in")
    assert not any(secret in body for body in sent)


async def test_without_scripts_the_page_is_read_and_decides_nothing(world):
    """A token of the command line opens it; the whole answer is there, and every button that signs is off."""
    held = await held_by(world)
    bearer = (await world.oversight.signed_in()).bearer
    async with browsing(java_script_enabled=False) as page:
        await page.goto(f"{world.oversight.http}/sign-in")
        await page.fill("#bearer", bearer)
        await page.keyboard.press("Enter")
        await page.click("a.item")
        shown = await page.inner_text("main")
        disabled = [await button.is_disabled() for button in await page.query_selector_all("form.decision button")]
    found = await world.sidecar.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=window_of(held)))

    assert "U+202E" in shown
    assert DEPOSIT in shown
    assert disabled == [True, True]
    assert found.item.status == audit_pb2.HELD_STATUS_PENDING


@pytest.mark.req("KRN-5")
async def test_a_reviewer_decides_about_a_stuck_step_by_keyboard_alone(tmp_path, key_file):
    """Read, choose, sign in the browser; the kernel's chain has the decision, and the list is empty afterwards."""
    async with reviewed_world(tmp_path, stuck.reviewers()) as world:
        kernel_id, *_ = await stuck.stuck_step(world.sidecar.client, "trip", "send")
        faults: list[str] = []
        async with browsing(viewport={"width": 1100, "height": 1500}, reduced_motion="reduce") as page:
            page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
            page.on("pageerror", lambda error: faults.append(str(error)))
            await page.goto(f"{world.oversight.http}/sign-in")
            await sign_in(page, key_file)
            await page.goto(f"{world.oversight.http}/stuck")
            await page.keyboard.press("j")
            async with page.expect_navigation():
                await page.keyboard.press("Enter")
            await page.wait_for_selector("#done-button:not([disabled])")
            shown = await page.inner_text("main")
            await page.focus("#done-reason")
            await page.keyboard.type("loss")
            await page.keyboard.press("Tab")
            async with page.expect_navigation(url="**/stuck"):
                await page.keyboard.press("Enter")
            after = await page.inner_text("main")
        last = (await KernelClient(world.sidecar.client, "trip").trace())[-1]
    decided = json.loads(last["data_json"])["decided"]

    assert faults == []
    assert (kernel_id in shown, stuck.STEP in shown) == (True, True)
    assert (decided["reviewer_id"], decided["reason"]) == (agents.REVIEWER, "LOSS_ACCEPTED")
    assert "Nothing waits for a person" in after


async def test_bytes_that_are_not_those_of_the_hash_cannot_be_signed(world, key_file):
    """The browser hashes what is held itself: another answer than the one it shows turns the buttons off."""
    held = await held_by(world)
    async with browsing() as page:
        await page.route("**/body", lambda route: route.fulfill(status=200, body=b"something else"))
        await page.goto(f"{world.oversight.http}/sign-in")
        await sign_in(page, key_file)
        await page.goto(f"{world.oversight.http}/held/{window_of(held)}")
        await page.wait_for_function("document.getElementById('checked').textContent.includes('Nothing can be signed')")
        disabled = await page.is_disabled("#release-button")

    assert disabled

"""A hundred hostile answers in the console, over the real models and in a real Chromium: shown harmless, and nothing of them is lost (OBS-5; A-17)."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from interlock.dpe.wiring import open_service
from interlock.oversight.link import ConsoleLink
from interlock.oversight.visible import visible
from interlock.runtime.settings.model import Settings
from tests.support.servers.browser import browsing
from tests.support.sidecar.oversight import reviewed_world

pytestmark = [pytest.mark.long, pytest.mark.req("OBS-5"), pytest.mark.timeout(300)]

HIT = "window.hit=1"
PARTS = (
    f"<script>{HIT}</script>", f"<img src=x onerror={HIT}>", f"<svg onload={HIT}>", f'"><iframe srcdoc="<script>parent.{HIT}</script>">',
    "</mark></li></ul></main></body></html>", f"<a href=javascript:{HIT}>here</a>", f"{{{{ {HIT} }}}}{{% raw %}}", "<style>*{display:none}</style>",
    '<base href="https://elsewhere.test/">', '<link rel=stylesheet href="https://elsewhere.test/x.css">', "<meta http-equiv=refresh content=0;url=/sign-in>",
    "<form action=/sign-out method=post><button autofocus>", "<template><p>", "<!--", "<![CDATA[", "&lt;script&gt;&#x3c;b&#x3e;", "\u202egnp.exe\u202c", "\u2066\u2069\u200b\u200d\ufeff",
    "\x1b[2J\x1b]0;x\x07\x08\x7f\x85", "المدة ٣٠ يومًا، והמחיר 2400", "👩‍👩‍👧‍👦🏳️‍🌈🧑🏽‍🚀", "Z̸̡̢̛̛͓͓̬̈́̆͌͘a̷l̶g̵o̴" * 20, "x" * 5_000, "\u2028\u2029\r\n\t\v\f", "＜script＞",
)  # fmt: skip
"""Markup, addresses, templates, marks that turn or hide text, scripts of several directions, words without an end."""
FORMS = (
    "{} The deposit is 2,400 EUR.",
    "The deposit of {} is 2,400 EUR by contract.",
    "- The deposit is 2,400 EUR.\n- {}\n",
    "```html\n{}\n```\nThe deposit is 2,400 EUR.",
)
ANSWERS = [form.format(part) for part, form in itertools.product(PARTS, FORMS)]
LONGEST = f"<b>{'the deposit and ' * 3_200}</b>"


@pytest.fixture
async def world(tmp_path):
    """Each answer in a session of its own, asked for in its own words and beside a source that holds them."""
    dpe = await open_service(Settings())
    async with reviewed_world(tmp_path, dpe=dpe, profile="observe") as running:
        running.windows = {}
        for text in [*ANSWERS, LONGEST]:
            running.provider.answers(text)
            facts = {"facts": [{"id": "f1", "content": f"The deposit is 2,400 EUR by contract. {text[:500]}"}]}
            answer = await running.sidecar.chat(f"What is the deposit? {text[:500]}", interlock=facts)
            assert answer.status_code == 200, answer.text
            running.windows[answer.headers["crp-provenance-report-uri"].rpartition("/")[2]] = text
        running.link = ConsoleLink(running.oversight.http, running.oversight.secret).url("alice")
        yield running
    await dpe.close()


async def test_nothing_of_a_hundred_hostile_answers_runs_hides_or_turns(world):
    """No script, no request to anywhere else, no element of theirs, no sideways page; what cannot be seen is named, and all text is there."""
    faults: list[str] = []
    async with browsing(viewport={"width": 1280, "height": 800}) as page:
        page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", lambda dialog: faults.append(dialog.message))
        page.on(
            "request",
            lambda request: None if request.url.startswith(world.oversight.http) else faults.append(request.url),
        )
        await page.goto(world.link)
        await page.wait_for_url("**/sessions")
        elements = "script:not([src]), iframe, base, style, img, svg[onload], template, a[href^='javascript']"
        for window, text in world.windows.items():
            await page.goto(f"{world.oversight.http}/windows/{window}")
            faults += await looked_at(page, elements, text)
            assert not faults, (text[:80], faults)

    assert len(world.windows) >= 100


async def looked_at(page: Any, elements: str, text: str) -> list[str]:
    """What is wrong with the page of one answer."""
    found = await page.evaluate(
        """(elements) => ({
            hit: window.hit !== undefined,
            foreign: [...document.querySelectorAll(elements)].map((one) => one.outerHTML.slice(0, 80)),
            wide: document.documentElement.scrollWidth > window.innerWidth,
            shown: document.querySelector('main').textContent,
            hidden: getComputedStyle(document.querySelector('main')).display === 'none',
        })""",
        elements,
    )
    shown = found.pop("shown")
    faults = [name for name, wrong in found.items() if wrong]
    squeezed = plain(shown)
    faults += [f"not shown: {line[:60]!r}" for line in visible(text).splitlines() if plain(line)[:200] not in squeezed]
    return faults + [f"not named: {ord(sign):x}" for sign in "\u202e\u2066\u200b\x1b\x07\x7f" if sign in shown]


def plain(text: str) -> str:
    """Without white space and without the brackets around a name, which a style draws."""
    return "".join(text.split()).replace("⟦", "").replace("⟧", "")

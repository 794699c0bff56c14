"""Sign-in to the console by a certified OpenID provider in its own process, by hand and in a real Chromium (OBS-5)."""

from __future__ import annotations

import asyncio
import html
import json
import re
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urljoin

import httpx
import pytest

from tests.clients.toolchains import needs, run
from tests.support.accessibility import findings
from tests.support.paths import ROOT
from tests.support.servers.browser import browsing
from tests.support.servers.openid import CLIENT, SECRET
from tests.support.servers.ports import free_port
from tests.support.sidecar.openid import write_roles
from tests.support.sidecar.oversight import RunningOversight, reviewed_world

pytestmark = [pytest.mark.long, pytest.mark.req("OBS-5"), pytest.mark.timeout(300), needs("node", "npm")]

NODE = ROOT / "tests" / "support" / "servers" / "openid_node"


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Path:
    """The script with the packages that its lock file names."""
    folder = tmp_path_factory.mktemp("openid") / "node"
    shutil.copytree(NODE, folder, ignore=shutil.ignore_patterns("node_modules"))
    run("npm", "ci", "--no-audit", "--no-fund", cwd=folder)
    return folder


@asynccontextmanager
async def console(folder: Path, node: Path) -> AsyncIterator[RunningOversight]:
    """Serve a console, and the provider that its people sign in with."""
    port = free_port()
    settings = {
        "oidc_issuer": f"http://localhost:{port}", "oidc_client_id": CLIENT, "oidc_client_secret": SECRET,
        "oidc_scopes": "openid,email,groups", "oidc_roles_file": write_roles(folder / "roles.yaml"),
    }  # fmt: skip
    async with reviewed_world(folder, **settings) as world:
        http = world.oversight.http
        told = {
            "port": port,
            "client": CLIENT,
            "secret": SECRET,
            "redirect": f"{http}/oidc/callback",
            "back": f"{http}/sign-in",
        }
        process = await asyncio.create_subprocess_exec(
            "node", "provider.mjs", cwd=node, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        try:
            process.stdin.write(json.dumps(told).encode() + b"\n")
            async with asyncio.timeout(30):
                while b"ready" not in await process.stdout.readline():
                    assert process.returncode is None
            yield world.oversight
        finally:
            process.kill()
            await process.wait()


async def walked(oversight: RunningOversight, browser: httpx.AsyncClient, login: str) -> httpx.Response:
    """Sign in as a person would, form by form, until the console answers."""
    answer = await browser.get(f"{oversight.http}/oidc/start", params={"to": "/figures"})
    for _ in range(12):
        if answer.is_redirect:
            answer = await browser.get(urljoin(str(answer.url), answer.headers["location"]))
        elif str(answer.url).startswith(oversight.http):
            return answer
        else:
            action = html.unescape(re.search(r'<form[^>]* action="([^"]+)"', answer.text)[1])
            fields = dict(re.findall(r'<input[^>]* name="(\w+)" value="(\w*)"', answer.text))
            if 'name="login"' in answer.text:
                fields |= {"login": login, "password": "any"}
            answer = await browser.post(urljoin(str(answer.url), action), data=fields)
    raise AssertionError(answer.text)


async def test_a_person_of_a_certified_provider_signs_in(tmp_path, node):
    """Login and consent there, groups by userinfo, the role here; whoever has no listed group stays outside."""
    async with console(tmp_path, node) as oversight:
        async with httpx.AsyncClient(trust_env=False, timeout=30, headers={"accept": "text/html"}) as browser:
            answer = await walked(oversight, browser, "reviewer")
            page = await browser.get(f"{oversight.http}/figures")
        async with httpx.AsyncClient(trust_env=False, timeout=30, headers={"accept": "text/html"}) as browser:
            stranger = await walked(oversight, browser, "stranger")

    assert answer.status_code == 200, answer.text
    assert 'content="0;url=/figures"' in answer.text
    assert "reviewer@company.com</strong>, reviewer" in page.text
    assert stranger.status_code == 403
    assert "OIDC_GROUP_NOT_MAPPED" in stranger.text


async def test_chromium_signs_in_there_and_out_again(tmp_path, node):
    """From the button to the provider's form and back to a page: the strict cookie is sent, and nothing on the way is blocked.

    The provider is another site (localhost, not 127.0.0.1): a redirect from there would come without the cookie.
    """
    faults: list[str] = []
    async with console(tmp_path, node) as oversight, browsing(viewport={"width": 1100, "height": 900}) as page:
        await page.goto(f"{oversight.http}/figures")
        told = await findings(page)
        page.on(
            "console",
            lambda message: (
                faults.append(message.text) if oversight.http in page.url and message.type == "error" else None
            ),
        )
        await page.click("#provider")
        await page.fill('input[name="login"]', "reviewer")
        await page.fill('input[name="password"]', "any")
        await page.click('button[type="submit"]')
        await page.click('button[type="submit"]')
        await page.wait_for_url(f"{oversight.http}/figures")
        who = await page.inner_text(".who")
        cookies = {one["name"]: one for one in await page.context.cookies(oversight.http)}
        await page.click("#sign-out button")
        await page.wait_for_url(f"{oversight.http}/signed-out")
        elsewhere = await page.get_attribute("main a", "href")
        left = await page.context.cookies(oversight.http)
        await page.goto(f"{oversight.http}/figures")
        after = page.url

    assert told == []
    assert faults == []
    assert "reviewer@company.com" in who
    assert cookies.keys() == {"interlock_view"}
    assert (cookies["interlock_view"]["sameSite"], cookies["interlock_view"]["httpOnly"]) == ("Strict", True)
    assert "/session/end?" in elsewhere
    assert left == []
    assert after == f"{oversight.http}/sign-in?to=/figures"

"""The page of settings over its real listener: for admins, with origins and meanings, and with no secret in it (OBS-5)."""

from __future__ import annotations

import re

import pytest
import pytest_asyncio
from pydantic import SecretStr

from interlock.runtime.settings.loading import explain, in_force
from interlock.runtime.settings.model import Settings
from tests.support.policy import agents
from tests.support.sidecar.oversight import reviewed_world
from tests.support.sidecar.people import ADMIN, VIEWER, people, who

pytestmark = [pytest.mark.req("OBS-5"), pytest.mark.asyncio(loop_scope="module")]

SECRET = "sk-quokka-0123456789"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def world(tmp_path_factory):
    """A console over a mesh with a secret, and a URL with a password, in its settings."""
    more = {"upstream_api_key": SecretStr(SECRET), "otlp_endpoint": "http://me:wombat@127.0.0.1:4317"}
    async with reviewed_world(tmp_path_factory.mktemp("settings"), people(), **more) as running:
        yield running


async def page_of(world, path: str = "/settings") -> str:
    await world.oversight.browse(**who(ADMIN))
    page = await world.oversight.client.get(path)
    assert page.status_code == 200, page.text
    return page.text


def row_of(page: str, name: str) -> str:
    row = re.search(rf">{name}</code></th>(.*?)</tr>", page, re.DOTALL)[1]
    return " ".join(re.sub(r"<[^>]+>", " ", row).split())


async def test_every_setting_is_there_with_its_value_its_origin_and_its_meaning(world):
    """By subject; one that is not the default says what that was."""
    page = await page_of(world)

    assert len(re.findall(r'<code title="INTERLOCK_', page)) == len(Settings.model_fields)
    assert "<h2>Human oversight</h2>" in page
    assert row_of(page, "hold_expires_s").startswith("86400 default How long a response is held")
    assert row_of(page, "profile").startswith("enforce process default: observe")
    assert row_of(page, "agents_file").startswith("absent default")


async def test_no_secret_is_in_the_page(world):
    """A key is masked, and so is the password of a URL."""
    page = await page_of(world)

    assert SECRET not in page
    assert "wombat" not in page
    assert row_of(page, "upstream_api_key").startswith("*** process")
    assert "http://***@127.0.0.1:4317" in page


async def test_the_page_is_narrowed_by_name_and_to_what_was_changed(world):
    """What is left out is told by the count; nothing like it says so."""
    changed = await page_of(world, "/settings?show=changed")
    named = await page_of(world, "/settings?name=DPE_")
    none = await page_of(world, "/settings?name=%3Cscript%3E")

    assert ">hold_expires_s<" not in changed
    assert ">redis_url<" in changed
    assert set(re.findall(r'title="INTERLOCK_(\w{4})', named)) == {"DPE_"}
    assert "No setting is like that." in none
    assert "<script>" not in none


@pytest.mark.parametrize("name", [VIEWER, agents.REVIEWER, ""])
async def test_nobody_but_an_admin_reads_them(world, name):
    """Told in words that the page is for admins; there is no link to it, and no setting in the answer."""
    if name:
        await world.oversight.browse(**who(name))
    else:
        world.oversight.client.cookies.clear()
        await world.oversight.look()
    listed = await world.oversight.client.get("/sessions")
    page = await world.oversight.client.get("/settings")

    assert page.status_code == 403
    assert "This is not for your role: it is for admins." in page.text
    assert "INTERLOCK_" not in page.text
    assert 'href="/settings"' not in listed.text


async def test_an_unknown_choice_is_refused(world):
    """By name, as every parameter."""
    await world.oversight.browse(**who(ADMIN))
    answer = await world.oversight.client.get("/settings?show=secrets")

    assert (answer.status_code, "INVALID_PARAMETER" in answer.text) == (400, True)


async def test_what_a_process_was_started_with_keeps_its_origin(tmp_path, monkeypatch):
    """Flag, environment, file and profile; what the process set since is its own."""
    file = tmp_path / "interlock.yaml"
    file.write_text("hold_expires_s: 60\n")
    monkeypatch.setenv("INTERLOCK_LOG_LEVEL", "error")
    loaded = explain(file, {"profile": "enforce"})
    settings = Settings(profile="enforce", hold_expires_s=60, log_level="error").model_copy(
        update={"redis_url": "redis://x:1"}
    )
    origins = {one.name: one.origin for one in in_force(settings, loaded)}

    assert [origins[name] for name in ("profile", "hold_expires_s", "log_level", "redis_url", "drain_s")] == [
        "flag", "file", "environment", "process", "default",
    ]  # fmt: skip

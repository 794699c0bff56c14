"""Sign-in to the console by an OpenID provider, over its real listener: pages, cookies, roles, ways, and the end of a view (OBS-5)."""

from __future__ import annotations

import asyncio
import json
import re
from http.cookies import SimpleCookie

import pytest
import pytest_asyncio
from prometheus_client import REGISTRY

from interlock.api.audit.v1 import audit_pb2
from interlock.domain.errors import Refused
from interlock.oversight.oidc.opening import open_oidc
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import PERIOD_S
from tests.support.policy import agents
from tests.support.servers.openid import CLIENT, OpenIdProvider
from tests.support.sidecar.openid import entered_world, oidc_settings, write_roles
from tests.support.sidecar.oversight import HOLDS, reviewed_world, running_oversight, window_of
from tests.support.sidecar.sidecar import a_report

pytestmark = [pytest.mark.req("OBS-5"), pytest.mark.asyncio(loop_scope="module")]

SAID = "HIGH risk: it costs 9 EUR."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    async with entered_world(tmp_path_factory.mktemp("oidc")) as running:
        running.reviewed.provider.answers(SAID)
        running.reviewed.sidecar.dpe.report = a_report("HIGH")
        held = await running.reviewed.sidecar.chat(headers=HOLDS)
        assert held.status_code == 451, held.text
        running.held = window_of(held)
        yield running


@pytest.fixture
def world(shared):
    shared.provider.behave()
    write_roles(shared.roles)
    shared.reviewed.oversight.clock.by_s = 0
    return shared


def cookies(answer) -> SimpleCookie:
    found = SimpleCookie()
    for line in answer.headers.get_list("set-cookie"):
        found.load(line)
    return found


async def test_the_sign_in_page_offers_the_provider_first(world):
    """The host of the provider is on the button; key and link stand below it."""
    async with world.browser() as browser:
        page = (await browser.get("/sign-in")).text

    host = world.provider.issuer.partition("://")[2]
    assert re.search(rf'id="provider" href="/oidc/start\?to=/sessions">Sign in at {re.escape(host)}<', page)
    assert page.index('id="provider"') < page.index('id="key-form"') < page.index('id="link-form"')


async def test_who_follows_a_link_comes_back_to_it(world):
    """A page that needs a sign-in leads there by way of the provider."""
    async with world.browser() as browser:
        first = await browser.get(f"/held/{world.held}")
        page = await browser.get(first.headers["location"])
        away = re.search(r'id="provider" href="([^"]+)"', page.text)[1]
        callback = world.provider.authorize((await browser.get(away)).headers["location"])
        arrived = await browser.get(callback)
        to = re.search(r'content="0;url=([^"]+)"', arrived.text)[1]
        held = await browser.get(to)

    assert to == f"/held/{world.held}"
    assert SAID in held.text


async def test_the_cookies_are_as_strict_as_each_can_be(world):
    """That of the view is strict, as with a key; that of the way there and back is lax, short, and gone afterwards."""
    async with world.browser() as browser:
        away = await browser.get("/oidc/start")
        back = await browser.get(world.provider.authorize(away.headers["location"]))

    lent, view = cookies(away)["interlock_oidc"], cookies(back)["interlock_view"]
    assert (lent["httponly"], lent["samesite"], lent["max-age"], lent["path"]) == (True, "lax", "600", "/")
    assert (view["httponly"], view["samesite"], view["path"]) == (True, "strict", "/")
    assert int(view["max-age"]) <= 900
    assert cookies(back)["interlock_oidc"]["max-age"] == "0"
    assert back.headers["cache-control"] == "no-store"
    assert "form-action 'self'" in back.headers["content-security-policy"]


async def test_over_tls_the_cookies_are_secure(tmp_path):
    """Behind an https base URL both have a __Host- name, and the redirect URI is that of the base URL."""
    async with entered_world(tmp_path) as world:
        async with running_oversight(world.reviewed.sidecar, oversight_base_url="https://console.example") as oversight:
            headers = {"host": "console.example", "accept": "text/html"}
            away = await oversight.client.get("/oidc/start", headers=headers)
            callback = world.provider.authorize(away.headers["location"])
            lent = cookies(away)["__Host-interlock_oidc"]
            path = callback.removeprefix("https://console.example")
            sent = {**headers, "cookie": f"__Host-interlock_oidc={lent.value}"}
            back = await oversight.client.get(path, headers=sent)

    assert path.startswith("/oidc/callback?")
    assert lent["secure"]
    assert cookies(back)["__Host-interlock_view"]["secure"]


@pytest.mark.parametrize(
    ("groups", "role", "seen"),
    [
        (["interlock-viewers"], "viewer", 403),
        (["interlock-reviewers"], "reviewer", 200),
        (["interlock-viewers", "interlock-admins"], "admin", 200),
        (["interlock-support"], "reviewer", 403),
        (["interlock-support", "interlock-reviewers"], "reviewer", 200),
    ],
)
async def test_groups_give_role_and_sight(world, groups, role, seen):
    """The highest role counts; a limited group sees the sessions of its keys alone; settings are for admins."""
    world.provider.behave(claims={"groups": groups})
    async with world.browser() as browser:
        page = await world.back(browser)
        held, settings = await browser.get(f"/held/{world.held}"), await browser.get("/settings")

    assert f"person@company.com, {role}." in page.text
    assert held.status_code == seen
    assert settings.status_code == (200 if role == "admin" else 403)


async def test_a_look_at_content_is_on_record_with_the_providers_name(world):
    """Whoever came by the provider leaves the same event as a reviewer."""
    async with world.browser() as browser:
        await world.back(browser)
        await browser.get(f"/held/{world.held}")
    sidecar = world.reviewed.sidecar
    item = await sidecar.mesh.audit.GetHeld(audit_pb2.GetHeldRequest(window_id=world.held, state_only=True))
    looks = [e for e in await sidecar.events(item.item.session_id) if e.event_type == "CONTENT_VIEWED"]

    assert "person@company.com" in [json.loads(look.data_json)["viewer"] for look in looks]


async def test_a_changed_file_counts_with_the_next_request(world):
    """A group that gets another role has it at once; one that is taken out is signed out; a bad file leaves the good one."""
    async with world.browser() as browser:
        await world.back(browser)
        told = []
        for groups in (
            {"interlock-reviewers": {"role": "viewer"}},
            {"interlock-reviewers": {"role": "owner"}},
            {"others": {"role": "admin"}},
        ):
            write_roles(world.roles, groups)
            await _period()
            told.append(await browser.get(f"/held/{world.held}"))
        write_roles(world.roles)
        await _period()
        again = await browser.get("/sessions")

    assert [answer.status_code for answer in told] == [403, 403, 303]
    assert again.status_code == 303  # its view is gone for good


async def _period() -> None:
    """Wait until the file is looked at again."""
    await asyncio.sleep(PERIOD_S + 0.1)


async def test_a_view_ends_in_its_time_and_by_signing_out(world):
    """After oversight_view_s, or a click: then the provider's own way out is told, with this client and the way back."""
    async with world.browser() as browser:
        page = await world.back(browser)
        csrf = re.search(r'data-csrf="([^"]+)"', page.text)[1]
        refused = await browser.post("/sign-out", data={"csrf": "another"}, headers={"origin": world.http})
        out = await browser.post("/sign-out", data={"csrf": csrf}, headers={"origin": world.http})
        told = await browser.get(out.headers["location"])
        after = await browser.get("/sessions")
        await world.back(browser)
        world.reviewed.oversight.clock.by_s += 901
        late = await browser.get("/sessions")

    assert (refused.status_code, out.status_code, out.headers["location"]) == (403, 303, "/signed-out")
    assert f"{world.provider.issuer}/end?client_id={CLIENT}&amp;post_logout_redirect_uri=http" in told.text
    assert (after.status_code, late.status_code) == (303, 303)


async def test_sign_ins_are_counted(world):
    """One number for those who came in, and one for each reason of those who did not."""

    def count(outcome: str) -> float:
        return REGISTRY.get_sample_value("interlock_oversight_sign_ins_total", {"outcome": outcome}) or 0

    before = count("oidc"), count("OIDC_GROUP_NOT_MAPPED")
    async with world.browser() as browser:
        await world.back(browser)
        world.provider.behave(claims={"groups": ["staff"]})
        await world.back(browser)

    assert (count("oidc"), count("OIDC_GROUP_NOT_MAPPED")) == (before[0] + 1, before[1] + 1)


async def test_a_provider_that_is_down_is_told_in_words_and_a_key_still_opens(tmp_path):
    """The page says whose fault it is, as JSON to a program; nobody is let in instead, and the other ways stay open."""
    async with entered_world(tmp_path) as world:
        world.provider.behave(status=500)
        async with world.browser() as browser:
            page = await browser.get("/oidc/start")
            data = await browser.get("/oidc/start", headers={"accept": "application/json"})
        csrf = await world.reviewed.oversight.browse()

    assert page.status_code == 503
    assert "OIDC_ANSWER_INVALID" in page.text
    assert "The OpenID provider answers, and not as it should" in page.text
    assert data.json()["reason"] == "OIDC_ANSWER_INVALID"
    assert csrf


async def test_a_way_that_is_switched_off_opens_nothing(tmp_path):
    """With oidc alone neither link nor key opens a view, in the browser or by gRPC, and the page does not offer them."""
    async with entered_world(tmp_path, sign_in_ways="oidc") as world:
        oversight = world.reviewed.oversight
        link = await oversight.look()
        key = await oversight.signed_in()
        async with world.browser() as browser:
            page = (await browser.get("/sign-in")).text
            by_provider = await world.back(browser)

    assert "SIGN_IN_WAY_OFF" in link.text
    assert key.refusal.reason == "SIGN_IN_WAY_OFF"
    assert 'id="key-form"' not in page
    assert 'id="link-form"' not in page
    assert by_provider.status_code == 200


async def test_without_a_provider_its_paths_say_so(tmp_path):
    """A console that was not set up for it has no button, and its paths refuse."""
    async with reviewed_world(tmp_path) as world:
        client = world.oversight.client
        page = await client.get("/sign-in")
        answers = [await client.get(path) for path in ("/oidc/start", "/oidc/callback?code=a&state=b", "/signed-out")]
        stranger = await client.get("/sessions")

    assert 'id="provider"' not in page.text
    assert {(one.status_code, "SIGN_IN_WAY_OFF" in one.text) for one in answers} == {(403, True)}
    assert stranger.headers["location"] == "/sign-in"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"oidc_roles_file": None}, "SETTINGS_INVALID"),
        ({"oidc_client_id": ""}, "SETTINGS_INVALID"),
        ({"oidc_issuer": "", "sign_in_ways": "oidc"}, "SETTINGS_INVALID"),
        ({"oidc_issuer": "http://issuer.example"}, "OIDC_URL_INVALID"),
        ({"oidc_client_secret_file": "missing"}, "SETTINGS_INVALID"),
        ({"oidc_client_secret_file": "missing", "oidc_client_secret": None}, "FILE_UNREADABLE"),
        ({"oidc_client_secret_file": "open", "oidc_client_secret": None}, "KEY_FILE_EXPOSED"),
        ({"oidc_roles_file": "open"}, "FILE_UNSAFE"),
        ({"oidc_roles_file": "missing"}, "FILE_UNREADABLE"),
    ],
    ids=str,
)  # fmt: skip
async def test_nothing_starts_half_set_up(tmp_path, change, reason):
    """What is missing, or could be changed or read by everyone, is refused at the start with its name."""
    (tmp_path / "open").write_text("groups: {a: {role: admin}}")
    (tmp_path / "open").chmod(0o666)
    given = {name: tmp_path / value if name.endswith("_file") and value else value for name, value in change.items()}
    with OpenIdProvider() as provider:
        wanted = {**oidc_settings(provider, write_roles(tmp_path / "roles.yaml")), **given}
        with pytest.raises(Refused, match=reason):
            open_oidc(Settings(**wanted), lambda: 0)


async def test_reviewers_by_key_are_as_before(tmp_path):
    """With a provider set up, a reviewer's key still opens the view that decides."""
    async with entered_world(tmp_path, agents.reviewers()) as world:
        opened = await world.reviewed.oversight.signed_in()

    assert not opened.HasField("refusal")
    assert opened.bearer

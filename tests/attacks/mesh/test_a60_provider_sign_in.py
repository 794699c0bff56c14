"""A-60: somebody who signs in to the console by an OpenID provider as another person, or with a role that is not theirs."""

from __future__ import annotations

import json
import re
import time
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import pytest_asyncio
from structlog.testing import capture_logs

from tests.support.servers.openid import jwk, key, signed
from tests.support.sidecar.openid import entered_world

pytestmark = [pytest.mark.req("OBS-5"), pytest.mark.asyncio(loop_scope="module")]

NOW = int(time.time())
OTHER = "another-client"
CHANGED = {"OIDC_SIGNATURE_INVALID", "OIDC_TOKEN_INVALID", "OIDC_KEY_UNKNOWN"}
"""What a token that was changed is refused with, by where it was."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(tmp_path_factory):
    async with entered_world(tmp_path_factory.mktemp("a60")) as running:
        yield running


@pytest.fixture
def world(shared):
    """The shared console; its provider is a good one again."""
    shared.provider.behave()
    return shared


def refusal(answer) -> str:
    """The reason on the page."""
    assert answer.status_code in {400, 401, 403, 503}, (answer.status_code, answer.text)
    assert "interlock_view" not in answer.headers.get("set-cookie", "")
    fault = answer.text[answer.text.index('class="fault"') :]
    return fault.partition(">")[2].removeprefix("<strong>").partition(":")[0].removesuffix("</strong>")


async def test_a60_a_good_token_signs_in(world):
    """The way there and back opens a view with the role of the group: what the attacks below take away is there."""
    async with world.browser() as browser:
        answer = await world.back(browser)
        page = await browser.get("/sessions")

    assert answer.status_code == 200, answer.text
    assert "person@company.com" in page.text
    assert "reviewer" in page.text


def named(value: object) -> str:
    """Return a name without the time: every process has to give a test the same one."""
    return re.sub(r"\d{9,}", "time", str(value))[:80]


@pytest.mark.parametrize(
    ("claims", "reason"),
    [
        ({"iss": "https://evil.example"}, "OIDC_ISSUER_MISMATCH"),
        ({"iss": None}, "OIDC_ISSUER_MISMATCH"),
        ({"aud": OTHER}, "OIDC_AUDIENCE_MISMATCH"),
        ({"aud": None}, "OIDC_AUDIENCE_MISMATCH"),
        ({"aud": [OTHER, "interlock-console"]}, "OIDC_AUDIENCE_MISMATCH"),
        ({"aud": ["interlock-console", OTHER], "azp": OTHER}, "OIDC_AUDIENCE_MISMATCH"),
        ({"azp": OTHER}, "OIDC_AUDIENCE_MISMATCH"),
        ({"exp": NOW - 100}, "OIDC_TOKEN_EXPIRED"),
        ({"exp": None}, "OIDC_TOKEN_INVALID"),
        ({"exp": str(NOW + 300)}, "OIDC_TOKEN_INVALID"),
        ({"iat": None}, "OIDC_TOKEN_INVALID"),
        ({"iat": NOW + 3_600}, "OIDC_CLOCK_OFF"),
        ({"nbf": NOW + 3_600}, "OIDC_CLOCK_OFF"),
        ({"iat": NOW - 3_600}, "OIDC_CLOCK_OFF"),
        ({"nonce": "of-another-sign-in"}, "OIDC_NONCE_MISMATCH"),
        ({"nonce": None}, "OIDC_NONCE_MISMATCH"),
        ({"sub": None}, "OIDC_TOKEN_INVALID"),
        ({"sub": ""}, "OIDC_TOKEN_INVALID"),
        ({"email": None}, "OIDC_NAME_INVALID"),
        ({"email": "<script>alert(1)</script>"}, "OIDC_NAME_INVALID"),
        ({"email_verified": False}, "OIDC_EMAIL_NOT_VERIFIED"),
        ({"email_verified": None}, "OIDC_EMAIL_NOT_VERIFIED"),
        ({"groups": None}, "OIDC_GROUPS_MISSING"),
        ({"groups": None, "_claim_names": {"groups": "src1"}}, "OIDC_GROUPS_MISSING"),
        ({"groups": {"interlock-admins": True}}, "OIDC_GROUPS_MISSING"),
        ({"groups": []}, "OIDC_GROUP_NOT_MAPPED"),
        ({"groups": ["staff", "Interlock-Admins", "interlock-admins "]}, "OIDC_GROUP_NOT_MAPPED"),
        ({"groups": ["interlock-admins"] * 2_001}, "OIDC_GROUPS_MISSING"),
    ],
    ids=named,
)
async def test_a60_a_token_with_a_wrong_claim_is_refused(world, claims, reason):
    """Issuer, audience, party, times, nonce, subject, name and groups: each by itself, signed by the provider's own key."""
    world.provider.behave(claims=claims)
    async with world.browser() as browser:
        assert refusal(await world.back(browser)) == reason
        assert (await browser.get("/sessions")).status_code == 303


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        ({"alg": "none"}, "OIDC_ALGORITHM_REFUSED"),
        ({"alg": "None"}, "OIDC_ALGORITHM_REFUSED"),
        ({"alg": "HS256"}, "OIDC_ALGORITHM_REFUSED"),
        ({"alg": "RS1"}, "OIDC_ALGORITHM_REFUSED"),
        ({"alg": None}, "OIDC_TOKEN_INVALID"),
        ({"alg": "PS256"}, "OIDC_SIGNATURE_INVALID"),
        ({"alg": "ES256"}, "OIDC_KEY_UNKNOWN"),
        ({"kid": "k2"}, "OIDC_KEY_UNKNOWN"),
        ({"crit": ["exp"], "exp": 1}, "OIDC_SIGNATURE_INVALID"),
    ],
    ids=str,
)
async def test_a60_an_algorithm_or_key_that_is_not_the_providers_is_refused(world, header, reason):
    """No signature, a secret that is the public key, another kind of signature, another key, and a header that has to be understood."""
    world.provider.behave(header=header)
    async with world.browser() as browser:
        assert refusal(await world.back(browser)) == reason


@pytest.mark.parametrize(
    "spoil",
    [
        lambda token: token[:-8] + ("AAAAAAAA" if not token.endswith("AAAAAAAA") else "BBBBBBBB"),
        lambda token: signed({"iss": "x"}, {"kid": "k1"}, 3).rpartition(".")[0] + "." + token.rpartition(".")[2],
        lambda token: f"{token}.{token}",
        lambda token: "",
        lambda token: "a.b.c",
        lambda token: token + "A" * 70_000,
    ],
    ids=["cut", "exchanged", "five parts", "empty", "no base64", "long"],
)
async def test_a60_a_token_that_was_changed_is_refused(world, spoil):
    """Whatever stands between the provider's key and the console shows."""
    world.provider.behave(token=spoil)
    async with world.browser() as browser:
        assert refusal(await world.back(browser)) in CHANGED


async def test_a60_a_header_that_brings_its_own_key_is_not_believed(world):
    """A token signed by a stranger's key that its header has, or says where it is, is of no key of the provider."""
    for more in ({"jwk": {**jwk(9), "kid": "k9"}}, {"jku": f"{world.provider.issuer}/jwks-of-evil"}):
        world.provider.behave(header={"kid": "k9", **more}, key=9)
        async with world.browser() as browser:
            assert refusal(await world.back(browser)) in CHANGED
    assert "/jwks-of-evil" not in world.provider.asked


async def test_a60_a_state_is_used_once(world):
    """The same answer of the provider, again and in the same browser, opens nothing."""
    async with world.browser() as browser:
        callback = world.provider.authorize(await world.away(browser))
        kept = browser.cookies["interlock_oidc"]
        first = await browser.get(callback)
        async with world.browser() as again:
            again.cookies.set("interlock_oidc", kept)
            second = await again.get(callback)

    assert first.status_code == 200
    assert refusal(second) == "OIDC_STATE_INVALID"


@pytest.mark.parametrize("with_own", [False, True])
async def test_a60_a_code_of_another_browser_opens_nothing(world, with_own):
    """Sent to somebody else, an answer of the provider would sign them in as its sender; the sender's own browser still may."""
    async with world.browser() as evil, world.browser() as victim:
        if with_own:
            await world.away(victim)
        callback = world.provider.authorize(await world.away(evil))
        sent = await victim.get(callback)
        own = await evil.get(callback)

    assert refusal(sent) == "OIDC_STATE_INVALID"
    assert own.status_code == 200


async def test_a60_a_code_of_another_sign_in_is_refused(world):
    """A code that was stolen, brought with a state of one's own, fails at the verifier."""
    async with world.browser() as victim, world.browser() as evil:
        stolen = parse_qs(urlsplit(world.provider.authorize(await world.away(victim))).query)["code"][0]
        own = parse_qs(urlsplit(await world.away(evil)).query)["state"][0]
        answer = await evil.get("/oidc/callback", params={"code": stolen, "state": own})

    assert refusal(answer) == "OIDC_CODE_REFUSED"
    assert "PKCE" not in answer.text


async def test_a60_a_late_answer_opens_nothing(world):
    """A sign-in that took longer than ten minutes is begun again."""
    clock = world.reviewed.oversight.clock
    async with world.browser() as browser:
        callback = world.provider.authorize(await world.away(browser))
        clock.by_s += 601
        try:
            assert refusal(await browser.get(callback)) == "OIDC_STATE_INVALID"
        finally:
            clock.by_s -= 601


@pytest.mark.parametrize("more", [{"state": "twice"}, {"code": "twice"}, {"error": "x" * 5_000}], ids=str)
async def test_a60_what_stands_twice_in_an_answer_is_not_chosen_from(world, more):
    """A parameter that parsers could read differently is refused."""
    async with world.browser() as browser:
        callback = world.provider.authorize(await world.away(browser))
        assert refusal(await browser.get(f"{callback}&{urlencode(more)}")) == "INVALID_PARAMETER"


async def test_a60_an_error_of_the_provider_is_told_by_its_word_alone(world):
    """A description is text of another party: the word of the protocol is shown, and nothing of the rest."""
    async with world.browser() as browser:
        for error, shown in (("access_denied", "access_denied"), ("<b>not a word</b>", "an error")):
            state = parse_qs(urlsplit(await world.away(browser)).query)["state"][0]
            told = {"error": error, "error_description": "<i>mark</i>", "state": state}
            answer = await browser.get("/oidc/callback", params=told)
            assert refusal(answer) == "OIDC_REFUSED"
            assert f"signed nobody in: {shown}" in answer.text
            assert "mark" not in answer.text
            assert "not a word" not in answer.text


@pytest.mark.parametrize("named", [None, "https://evil.example"])
async def test_a60_an_answer_of_another_provider_is_refused(tmp_path, named):
    """A provider that says whose an answer is (RFC 9207) is believed to say it always."""
    async with entered_world(tmp_path) as world:
        world.provider.behave(metadata={"authorization_response_iss_parameter_supported": True})
        async with world.browser() as browser:
            callback = world.provider.authorize(await world.away(browser))
            mixed = await browser.get(callback + ("" if named is None else "&" + urlencode({"iss": named})))
            callback = world.provider.authorize(await world.away(browser))
            good = await browser.get(callback + "&" + urlencode({"iss": world.provider.issuer}))

    assert refusal(mixed) == "OIDC_ISSUER_MISMATCH"
    assert good.status_code == 200


@pytest.mark.parametrize(
    "to",
    [
        "https://evil.example", "//evil.example", "/\\evil.example", "/%2f/evil.example", "javascript:alert(1)", "/a//evil.example",
        "/sessions?x=https://evil.example", "/sessions#x", "/../x", "/a\r\nset-cookie: x=1", "/.", "", "x" * 600, '/"><script>',
    ],
)  # fmt: skip
async def test_a60_nobody_is_sent_elsewhere_from_here(world, to):
    """A path to come back to is one of this page: anything else leads to its first page."""
    async with world.browser() as browser:
        answer = await world.back(browser, to)

    assert '<meta http-equiv="refresh" content="0;url=/sessions">' in answer.text
    assert "evil" not in answer.text


async def test_a60_a_host_that_is_not_ours_gets_no_redirect_uri(world):
    """The redirect URI is made of an origin that the page is served under, whatever a request says."""
    async with world.browser() as browser:
        answer = await browser.get("/oidc/start", headers={"host": "evil.example"})
        asked = parse_qs(urlsplit(await world.away(browser)).query)

    assert answer.status_code == 403
    assert "location" not in answer.headers
    assert asked["redirect_uri"] == [f"{world.http}/oidc/callback"]


async def test_a60_userinfo_of_another_person_is_refused(world):
    """Groups that the ID token lacks are asked for, and count only for the person of the ID token."""
    groups = {"groups": ["interlock-admins"]}
    async with world.browser() as browser:
        for found in ({"sub": "person-2", **groups}, groups):
            world.provider.behave(claims={"groups": None}, userinfo=found)
            assert refusal(await world.back(browser)) == "OIDC_SUBJECT_MISMATCH"
        world.provider.behave(claims={"groups": None}, userinfo={"sub": "person-1", **groups})
        assert (await world.back(browser)).status_code == 200


async def test_a60_userinfo_changes_nothing_that_was_signed(world):
    """What the ID token says stays, whatever userinfo says of it."""
    more = {"sub": "person-1", "groups": ["interlock-admins"], "email_verified": True, "email": "other@company.com"}
    world.provider.behave(claims={"email_verified": None}, userinfo=more)
    async with world.browser() as browser:
        await world.back(browser)
        page = await browser.get("/sessions")

    assert "person@company.com</strong>, reviewer" in page.text


async def test_a60_one_by_the_provider_decides_nothing(world):
    """The page of whom a provider names admin has no form that decides; a decision without a key's view is refused."""
    world.provider.behave(claims={"groups": ["interlock-admins"]})
    async with world.browser() as browser:
        await world.back(browser)
        page = await browser.get("/policy")
        csrf = page.text.partition('data-csrf="')[2].partition('"')[0]
        headers = {"origin": world.http, "x-csrf-token": csrf, "accept": "application/json"}
        window = "crp_win_" + "0" * 32
        told = {"token": "approved:sha256:x.y", "reason": "ACCURATE"}
        answer = await browser.post(f"/api/held/{window}/decision", json=told, headers=headers)

    assert (answer.status_code, answer.json()["reason"]) == (403, "VIEW_READS_ONLY")


async def test_a60_no_code_token_or_secret_is_logged_or_shown(world):
    """Neither a good sign-in nor a refused one leaves what opens something in the log or on the page."""
    with capture_logs() as lines:
        async with world.browser() as browser:
            callback = world.provider.authorize(await world.away(browser))
            good = await browser.get(callback)
            bearer = browser.cookies["interlock_view"]
            world.provider.behave(claims={"nonce": "x"})
            bad = await world.back(browser)
    code = parse_qs(urlsplit(callback).query)["code"][0]
    told = json.dumps(lines) + good.text + bad.text

    assert [line["event"] for line in lines if line["event"].startswith("oversight.sign")] == [
        "oversight.signed_in", "oversight.sign_in_refused",
    ]  # fmt: skip
    assert not [secret for secret in (code, bearer, "opaque-token", "a secret:", "eyJ") if secret in told]


async def test_a60_a_weak_key_of_the_provider_signs_nothing(tmp_path):
    """A key of 1024 bits can be broken: it is left out of the set."""
    async with entered_world(tmp_path) as world:
        world.provider.behave(keys=[jwk(5, 1024), jwk(1)], key=5, bits=1024)
        async with world.browser() as browser:
            assert refusal(await world.back(browser)) == "OIDC_KEY_UNKNOWN"
    assert key(5, 1024).key_size == 1024

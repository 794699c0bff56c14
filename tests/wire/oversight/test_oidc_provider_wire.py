"""The OpenID provider over HTTP: what is read of it, kept and asked for anew, and what is refused of it (OBS-5)."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
from pathlib import Path

import pytest
from cryptography import x509

from interlock.domain.errors import Refused
from interlock.oversight.oidc.calls import LARGEST
from interlock.oversight.oidc.provider import Client, Provider
from interlock.oversight.oidc.sign_in import MOST, OidcSignIn
from tests.support.servers.openid import CLIENT, SECRET, OpenIdProvider, jwk
from tests.support.servers.ports import free_port
from tests.support.servers.tls import a_mesh_of_certificates, issue
from tests.support.sidecar.oversight import Shifted

pytestmark = pytest.mark.req("OBS-5")

DISCOVERY, HERE = "/.well-known/openid-configuration", "http://127.0.0.1:7075/oidc/callback"


@pytest.fixture
def openid():
    with OpenIdProvider() as running:
        yield running


def signing_in(
    issuer: str,
    clock: Shifted | None = None,
    *,
    secret: str | None = SECRET,
    timeout_s: float = 5,
    ca_file: Path | None = None,
) -> OidcSignIn:
    client = Client(
        issuer=issuer, client_id=CLIENT, secret=lambda: secret, scopes=["openid", "email"], groups_claim="groups",
        name_claim="email", ca_file=ca_file, timeout_s=timeout_s,
    )  # fmt: skip
    clock = clock or Shifted()
    return OidcSignIn(Provider(client, clock), clock, os.urandom)


async def signed_in(openid: OpenIdProvider, sign_in: OidcSignIn):
    """Go there and back, and return who came."""
    started = await sign_in.start(HERE, "/sessions")
    told = dict(pair.split("=", 1) for pair in openid.authorize(started.location).partition("?")[2].split("&"))
    person, _ = await sign_in.finish(told, started.browser)
    return person


async def reason_of(awaitable) -> str:
    with pytest.raises(Refused) as refused:
        await awaitable
    return refused.value.reason


async def test_a_person_comes_back_with_name_and_groups(openid):
    """What is asked for is the code flow with S256, a state and a nonce; what comes is the person."""
    person = await signed_in(openid, signing_in(openid.issuer))

    assert (person.name, person.groups) == ("person@company.com", {"staff", "interlock-reviewers"})
    assert {"code", "code_verifier", "redirect_uri", "grant_type"} <= openid.forms[-1].keys()
    assert "client_secret" not in openid.forms[-1]


async def test_the_secret_goes_into_the_form_where_the_provider_wants_it_there(openid):
    """By HTTP's own authentication unless the provider takes the form alone; a public client sends its id."""
    openid.behave(metadata={"token_endpoint_auth_methods_supported": ["client_secret_post"]})
    await signed_in(openid, signing_in(openid.issuer))
    posted = openid.forms[-1]
    refused = await reason_of(signed_in(openid, signing_in(openid.issuer, secret=None)))

    assert (posted["client_id"], posted["client_secret"]) == (CLIENT, SECRET)
    assert refused == "OIDC_CODE_REFUSED"  # it is no public client there
    assert openid.forms[-1]["client_id"] == CLIENT


async def test_document_and_keys_are_kept_and_asked_for_again_after_ten_minutes(openid):
    """Ten people cost one look; after ten minutes what the provider took back counts no more."""
    clock = Shifted()
    sign_in = signing_in(openid.issuer, clock)
    for _ in range(3):
        await signed_in(openid, sign_in)
    kept = list(openid.asked)
    openid.behave(keys=[jwk(2)])
    clock.by_s += 601
    openid.does.ahead_s = 601

    assert (kept.count(DISCOVERY), kept.count("/jwks")) == (1, 1)
    assert await reason_of(signed_in(openid, sign_in)) == "OIDC_KEY_UNKNOWN"
    assert openid.asked.count(DISCOVERY) == 2


async def test_a_rotated_key_is_found_at_once(openid):
    """A key id that is not known is looked for once more in the set as it is now; one that is not there either is refused."""
    sign_in = signing_in(openid.issuer)
    await signed_in(openid, sign_in)
    openid.behave(keys=[jwk(2)], key=2)
    person = await signed_in(openid, sign_in)
    openid.behave(keys=[jwk(2)], key=3)
    before = openid.asked.count("/jwks")

    assert person.name == "person@company.com"
    assert await reason_of(signed_in(openid, sign_in)) == "OIDC_KEY_UNKNOWN"
    assert openid.asked.count("/jwks") == before + 1


async def test_a_token_without_a_key_id_needs_the_only_key(openid):
    """With one key there is no doubt whose it is; with two there is."""
    openid.behave(header={"kid": None})
    alone = await signed_in(openid, signing_in(openid.issuer))
    openid.behave(header={"kid": None}, keys=[jwk(1), jwk(2)])

    assert alone.name == "person@company.com"
    assert await reason_of(signed_in(openid, signing_in(openid.issuer))) == "OIDC_KEY_UNKNOWN"


@pytest.mark.parametrize(
    "found",
    [
        {"keys": []},
        {"keys": "all"},
        {},
        {"keys": [jwk(1)] * 101},
        {"keys": [{**jwk(1), "use": "enc"}]},
        {"keys": [{"kty": "oct", "k": "AAAA", "kid": "k1"}, 7, {"kty": "RSA", "kid": "k1"}]},
    ],
    ids=["none", "no list", "nothing", "too many", "to encrypt", "a secret"],
)
async def test_a_key_set_without_a_key_that_signs_is_refused(openid, found):
    """Keys of another use or kind are left out; a set without any is none, and so is one of more than a hundred."""
    openid.behave(bodies={"/jwks": json.dumps(found).encode()})

    assert await reason_of(signed_in(openid, signing_in(openid.issuer))) == "OIDC_ANSWER_INVALID"


@pytest.mark.parametrize("path", [DISCOVERY, "/jwks", "/token"])
@pytest.mark.parametrize(
    "body",
    [b"{" + b" " * LARGEST + b"}", b"[]", b"<html>", b'{"issuer": "a", "issuer": "b"}', b"\xff", b"[" * 100_000, b"{}"],
    ids=["huge", "a list", "a page", "a key twice", "no text", "deep", "empty"],
)
async def test_an_answer_that_is_none_is_refused(openid, path, body):
    """Too large, no JSON object, or one that parsers read differently: nobody is signed in, and it is said whose fault it is."""
    openid.behave(bodies={path: body})

    reason = await reason_of(signed_in(openid, signing_in(openid.issuer)))

    assert reason == ("OIDC_ISSUER_MISMATCH" if (path, body) == (DISCOVERY, b"{}") else "OIDC_ANSWER_INVALID")


async def test_an_answer_that_is_compressed_unasked_is_refused(openid):
    """A megabyte of it could be a thousand when it is unpacked."""
    openid.behave(compressed=True)

    assert await reason_of(signed_in(openid, signing_in(openid.issuer))) == "OIDC_ANSWER_INVALID"


@pytest.mark.parametrize("status", [302, 404, 500])
async def test_no_redirect_is_followed_and_no_error_is_a_document(openid, status):
    """The issuer that was set is asked, and nobody whom it names instead."""
    openid.behave(status=status)

    assert await reason_of(signed_in(openid, signing_in(openid.issuer))) == "OIDC_ANSWER_INVALID"
    assert openid.asked == [DISCOVERY]


@pytest.mark.parametrize(
    ("metadata", "reason"),
    [
        ({"issuer": "https://evil.example"}, "OIDC_ISSUER_MISMATCH"),
        ({"token_endpoint": "http://evil.example/token"}, "OIDC_ANSWER_INVALID"),
        ({"authorization_endpoint": "javascript:alert(1)"}, "OIDC_ANSWER_INVALID"),
        ({"authorization_endpoint": None}, "OIDC_ANSWER_INVALID"),
        ({"jwks_uri": "file:/etc/passwd"}, "OIDC_ANSWER_INVALID"),
        ({"userinfo_endpoint": "https://a@evil.example"}, "OIDC_ANSWER_INVALID"),
        ({"end_session_endpoint": 7}, "OIDC_ANSWER_INVALID"),
        ({"token_endpoint_auth_methods_supported": 7}, "OIDC_ANSWER_INVALID"),
    ],
    ids=str,
)  # fmt: skip
async def test_a_document_that_names_what_is_not_safe_is_refused(openid, metadata, reason):
    """Another issuer, an address without TLS that is not on loopback, a script, a file, a user in an address."""
    openid.behave(metadata=metadata)

    assert await reason_of(signing_in(openid.issuer).start(HERE, "/")) == reason


async def test_the_issuer_counts_to_the_last_character(openid):
    """A slash at the end is another issuer, as the specification has it."""
    assert await reason_of(signing_in(openid.issuer + "/").start(HERE, "/")) == "OIDC_ISSUER_MISMATCH"


async def test_a_provider_that_hangs_or_is_down_signs_nobody_in(openid):
    """Each sign-in ends in its time, those too that wait for another one's answer."""
    openid.behave(hangs=True)
    hanging = signing_in(openid.issuer, timeout_s=0.2)
    reasons = await asyncio.gather(*(reason_of(hanging.start(HERE, "/")) for _ in range(5)))
    down = await reason_of(signing_in(f"http://127.0.0.1:{free_port()}").start(HERE, "/"))
    openid.released.set()
    openid.behave()

    assert {*reasons, down} == {"OIDC_UNREACHABLE"}
    assert (await signed_in(openid, signing_in(openid.issuer))).name == "person@company.com"


async def test_a_provider_that_drips_is_not_waited_for(openid):
    """One byte in time after another is still no answer in time."""
    openid.behave(drips=True)

    assert await reason_of(signing_in(openid.issuer, timeout_s=0.5).start(HERE, "/")) == "OIDC_UNREACHABLE"


async def test_a_provider_that_ends_between_there_and_back_signs_nobody_in(openid):
    """What was kept of a provider is no reason to believe anybody while it cannot be asked."""
    sign_in = signing_in(openid.issuer)
    await signed_in(openid, sign_in)
    started = await sign_in.start(HERE, "/")
    told = dict(pair.split("=", 1) for pair in openid.authorize(started.location).partition("?")[2].split("&"))
    openid.behave(status=503)

    assert await reason_of(sign_in.finish(told, started.browser)) == "OIDC_ANSWER_INVALID"
    assert await reason_of(sign_in.finish(told, started.browser)) == "OIDC_STATE_INVALID"


async def test_sign_ins_under_way_are_bounded(openid):
    """Whoever begins thousands ends the oldest, and takes no more memory."""
    sign_in = signing_in(openid.issuer)
    first = await sign_in.start(HERE, "/")
    callback = openid.authorize(first.location)
    for _ in range(MOST):
        await sign_in.start(HERE, "/")
    told = dict(pair.split("=", 1) for pair in callback.partition("?")[2].split("&"))

    assert await reason_of(sign_in.finish(told, first.browser)) == "OIDC_STATE_INVALID"


async def test_nothing_of_a_sign_in_can_be_guessed(openid):
    """State, nonce, verifier and browser's secret are 256 bits each, and new each time."""
    sign_in = signing_in(openid.issuer)
    drawn: list[int] = []
    sign_in._entropy = lambda size: drawn.append(size) or secrets.token_bytes(size)
    await sign_in.start(HERE, "/")

    assert drawn == [32] * 4


@pytest.mark.parametrize(
    ("name", "authority", "signs_in"),
    [
        ("localhost", "own", True),
        ("localhost", None, False),
        ("localhost", "other", False),
        ("issuer.example", "own", False),
    ],
)
async def test_the_providers_certificate_is_checked(tmp_path, name, authority, signs_in):
    """By the authorities of oidc_ca_file and for the issuer's name; neither another authority nor another name is believed."""
    folders = {one: a_mesh_of_certificates(tmp_path / one) for one in ("own", "other")}
    held = issue(folders["own"], "provider", [x509.DNSName(name)])
    ca_file = authority and issue(folders[authority], "any", [x509.DNSName("any")])["tls_ca_file"]
    with OpenIdProvider(held["tls_cert_file"], held["tls_key_file"]) as openid:
        sign_in = signing_in(openid.issuer, ca_file=ca_file)
        if signs_in:
            assert (await signed_in(openid, sign_in)).name == "person@company.com"
        else:
            assert await reason_of(sign_in.start(HERE, "/")) == "OIDC_UNREACHABLE"


@pytest.mark.parametrize(
    "issuer", ["http://issuer.example", "ftp://127.0.0.1", "https://", "https://u@issuer.example", "https://a b"]
)
async def test_an_issuer_that_everybody_could_be_is_refused(issuer):
    """Without TLS whoever is on the way signs in as anybody."""
    assert await reason_of(signing_in(issuer).start(HERE, "/")) == "OIDC_URL_INVALID"

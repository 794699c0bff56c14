"""Where the store is and whether it may be used: addresses, credentials, TLS, readiness."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import ssl

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from interlock.domain.errors import Kind, Refused
from interlock.session.store.batcher import Batcher
from interlock.session.store.connection import parse
from interlock.session.store.readiness import unready_dependencies
from interlock.session.store.redis import RedisStore
from tests.support.servers.tcp import Proxy, listening
from tests.support.servers.valkey import Valkey
from tests.support.session.sessions import first_ask, new_state, next_ask, settle


@pytest.fixture
async def batcher(redis_url):
    made = Batcher(parse(redis_url))
    yield made
    await made.close()


@pytest.fixture(scope="module")
def own_valkey(tmp_path_factory):
    """A server of this module's own, for settings that no other test may see."""
    with Valkey(tmp_path_factory.mktemp("own"), "--unixsocket", "own.sock") as server:
        yield server


@pytest.fixture
def admin(own_valkey):
    with own_valkey.client() as client:
        yield client


async def refused(call) -> Refused:
    with pytest.raises(Refused) as caught:
        await call
    return caught.value


def error_of(found: Refused) -> str:
    assert (found.kind, found.reason) == (Kind.UNAVAILABLE, "SESSION_STORE_UNAVAILABLE")
    assert found.retry_after_ms > 0
    return found.metadata["error"]


async def talk(batcher: Batcher, text: str) -> str:
    return (await batcher.command("ECHO", text)).decode()


# Connecting


async def test_a_wrong_password_is_refused_without_being_quoted(own_valkey, admin):
    """The refusal says what is wrong in one constant word."""
    admin.acl_setuser("guarded", enabled=True, passwords=["+right"], commands=["+@all"], keys=["*"])
    batcher = Batcher(parse(f"redis://guarded:wr0ng@127.0.0.1:{own_valkey.port}"))
    no = await refused(batcher.command("PING"))
    await batcher.close()

    assert error_of(no) == "WRONGPASS"
    assert "wr0ng" not in f"{no} {no.metadata} {batcher._routes._address}"


async def test_the_database_of_the_url_is_selected(own_valkey, admin):
    """What is written through /3 is in database 3."""
    batcher = Batcher(parse(f"redis://127.0.0.1:{own_valkey.port}/3"))
    await batcher.command("SET", "here", "3")
    await batcher.close()

    assert admin.get("here") is None
    admin.select(3)
    assert admin.get("here") == b"3"


async def test_a_unix_socket_is_an_address_too(own_valkey):
    """The embedded Valkey is reached this way."""
    batcher = Batcher(parse(f"unix://{own_valkey.folder}/own.sock?db=0"))

    assert await talk(batcher, "over a socket") == "over a socket"
    await batcher.close()


@pytest.mark.parametrize(
    "url",
    [
        "redis://h:notaport",
        "redis://:pass@h/0?socket_timeout=3",
        "rediss://:pass@h/0?ssl_cert_reqs=none",
        "rediss://:pass@h/0?ssl_ca_certs=/nowhere/ca.pem",
        "redis://:pass@h/0?max_connections=many",
    ],
)
def test_a_url_that_asks_for_something_else_is_refused_at_start(url):
    """An option that we would not honour is not ignored; certificate checks cannot be switched off."""
    with pytest.raises(Refused) as no:
        parse(url)

    assert (no.value.kind, no.value.reason) == (Kind.INVALID, "REDIS_URL_INVALID")
    assert "pass@" not in str(no.value)


async def test_nobody_listening_is_said_at_once():
    """A refused connection is a refusal, and the next call tries again."""
    async with listening(lambda *_: asyncio.sleep(0)) as port:
        pass
    batcher = Batcher(parse(f"redis://127.0.0.1:{port}"))

    answers = await asyncio.gather(*(batcher.command("PING") for _ in range(5)), return_exceptions=True)
    assert [error_of(answer) for answer in answers] == ["CONNECT_FAILED ConnectionRefusedError"] * 5
    await batcher.close()


async def test_a_server_that_never_greets_runs_into_the_time_limit():
    """AUTH is sent while connecting; silence there ends the attempt."""

    async def silent(reader, _writer):
        await reader.read()

    async with listening(silent) as port:
        batcher = Batcher(parse(f"redis://:secret@127.0.0.1:{port}"), timeout_s=0.1)
        assert error_of(await refused(batcher.command("PING"))) in {"CONNECT_TIMEOUT", "TIMEOUT"}
        await batcher.close()


# TLS


def certificate(folder):
    """Return a fresh self-signed certificate for 127.0.0.1: PEM file of the certificate, PEM file of both."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = made.public_bytes(serialization.Encoding.PEM)
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    (folder / "ca.pem").write_bytes(pem)
    (folder / "both.pem").write_bytes(pem + secret)
    return folder / "ca.pem", folder / "both.pem"


async def test_tls_is_spoken_with_a_server_whose_certificate_verifies(valkey, redis_url, tmp_path):
    """rediss:// with the authority's certificate reaches the store; without it, it does not."""
    authority, both = certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(both)
    async with listening(Proxy(valkey.port).handle, context) as port:
        trusting = Batcher(parse(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={authority}"))
        doubting = Batcher(parse(f"rediss://127.0.0.1:{port}/0"))

        assert await talk(trusting, "in private") == "in private"
        assert error_of(await refused(doubting.command("PING"))) == "CONNECT_FAILED SSLCertVerificationError"
        await trusting.close()
        await doubting.close()


# Readiness


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize(
    ("setting", "wrong", "right", "hint"),
    [
        ("maxmemory-policy", "allkeys-lru", "noeviction", "set maxmemory-policy noeviction"),
        ("appendonly", "no", "yes", "set appendonly yes"),
    ],
)
async def test_a_server_that_may_lose_sessions_is_not_ready(own_valkey, admin, setting, wrong, right, hint):
    """Eviction and missing persistence are named, each with what to set; put right, the service is ready by itself."""
    batcher = Batcher(parse(own_valkey.url))
    assert await unready_dependencies(batcher) == {}
    admin.config_set(setting, wrong)
    found = await unready_dependencies(batcher)
    admin.config_set(setting, right)

    assert list(found) == ["redis"]
    assert hint in found["redis"]
    assert await unready_dependencies(batcher) == {}
    await batcher.close()


async def test_a_server_that_does_not_say_who_it_is_is_unfit(own_valkey, admin):
    """Without INFO no restart and no failover could be told; an operator may allow that for development."""
    admin.acl_setuser("quiet", enabled=True, passwords=["+q"], commands=["+@all", "-info", "-config"], keys=["*"])
    batcher = Batcher(parse(f"redis://quiet:q@127.0.0.1:{own_valkey.port}"))
    allowed = Batcher(parse(f"redis://quiet:q@127.0.0.1:{own_valkey.port}"), allow_unfit=True)
    no = await refused(RedisStore(batcher, token_lifetime_s=60).start(new_state(7001)))
    await RedisStore(allowed, token_lifetime_s=60).start(new_state(7001))

    assert "allow +info" in (await unready_dependencies(batcher))["redis"]
    assert (no.reason, await unready_dependencies(allowed)) == ("SESSION_STORE_UNFIT", {})
    await batcher.close()
    await allowed.close()


@pytest.mark.req("BUD-9")
@pytest.mark.parametrize(
    ("setting", "wrong", "right"), [("maxmemory-policy", "allkeys-lru", "noeviction"), ("appendonly", "no", "yes")]
)
async def test_no_session_begins_on_a_server_that_may_lose_it(own_valkey, admin, setting, wrong, right):
    """Starting and opening are refused; what was opened is settled all the same. A setting put right is seen by the next look."""
    fit = RedisStore(Batcher(parse(own_valkey.url)), token_lifetime_s=60)
    n = 7100 + (setting == "appendonly")
    await fit.start(new_state(n))
    opened = await fit.open(first_ask(1, session=n))
    admin.config_set(setting, wrong)
    batcher = Batcher(parse(own_valkey.url))
    store = RedisStore(batcher, token_lifetime_s=60)
    refusals = [await refused(store.start(new_state(n + 10))), await refused(store.open(first_ask(2, session=n)))]
    settled = await store.commit(settle(1, opened))
    admin.config_set(setting, right)
    ready = await unready_dependencies(batcher)
    await store.open(next_ask(2, settled, session=n))

    assert {no.reason for no in refusals} == {"SESSION_STORE_UNFIT"}
    assert (settled.duplicate, ready) == (False, {})
    await fit.close()
    await store.close()


@pytest.mark.parametrize(
    ("url", "places", "db"),
    [
        ("sentinel://h1:1,h2:2/crp", (("h1", 1), ("h2", 2)), 0),
        ("sentinel://u:p@[::1]:26379/crp?db=3&sentinel_password=s", (("::1", 26379),), 3),
        ("sentinels://h1:1/crp.x", (("h1", 1),), 0),
    ],
)
def test_a_sentinel_url_names_sentinels_and_the_master(url, places, db):
    """Several places, one name; credentials of the master before them, those of the sentinels as an option."""
    address = parse(url)
    assert address.sentinels is not None
    assert (address.sentinels.places, address.db, bool(address.tls)) == (places, db, url.startswith("sentinels"))
    assert "p@" not in repr(address)
    assert (address.password, address.sentinels.password) == (("p", "s") if "@" in url else ("", ""))


@pytest.mark.parametrize(
    "url",
    [
        "sentinel://h1/crp",
        "sentinel://h1:1",
        "sentinel://h1:1/a b",
        "sentinel://h1:1/crp?socket_timeout=1",
        "sentinel:///x",
    ],
)
def test_a_sentinel_url_that_is_none_is_refused(url):
    """Each needs its port, the master its name."""
    with pytest.raises(Refused) as no:
        parse(url)
    assert no.value.reason == "REDIS_URL_INVALID"


async def test_a_server_that_is_down_or_silent_is_missing_with_a_hint():
    """Readiness never raises and never hangs."""

    async def silent(reader, _writer):
        await reader.read()

    async with listening(silent) as port:
        batcher = Batcher(parse(f"redis://127.0.0.1:{port}"), timeout_s=0.5)
        hung = await unready_dependencies(batcher)
    down = await unready_dependencies(batcher)
    await batcher.close()

    assert "does not answer (TIMEOUT)" in hung["redis"]
    assert "INTERLOCK_REDIS_URL" in down["redis"]

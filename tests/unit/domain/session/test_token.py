"""Session tokens: exact bytes, every defect refused by name, nothing read that is not signed."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from dataclasses import replace

import pytest

from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused
from interlock.domain.ids import ContinuationId, SessionId
from interlock.domain.session.token import HISTORY_KEPT, PAYLOAD_LIMIT, Token, mint, verify

KEY = bytes(range(32))
SECOND = 1_000_000
SCOPE = "key_0123456789abcdef01234567"
TOKEN = Token(
    session_id=SessionId("crp_sess_000102030405060708090a0b0c0d0e0f"),
    window=3,
    quality_history=("A", "A", "B"),
    budget=Micros(780_000),
    chain_tip="sha256:" + "9b" * 32,
    continuation_id=ContinuationId("crp_cont_" + "c1" * 16),
    pattern="LINEAR",
    strategy="reflexive",
    policy_hash="sha256:" + "5a" * 32,
    ckf_hash="",
    scope=SCOPE,
    issued_at=1_748_160_000,
    expires_at=1_748_163_600,
    nonce="base64:AAECAwQFBgcICQoLDA0ODw==",
    key_version=1,
)
FIRST = replace(TOKEN, window=0, quality_history=(), chain_tip="", continuation_id=None, budget=Micros(1_000_000))
PAYLOAD = (
    '{"v":"3.0.0","sid":"crp_sess_000102030405060708090a0b0c0d0e0f","win":3,"qh":["A","A","B"],"sb":0.780000,'
    '"ct":"sha256:9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b9b",'
    '"cid":"crp_cont_c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1c1","dag":"LINEAR","str":"reflexive",'
    '"pol":"sha256:5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a","ckf":"",'
    '"scope":"key_0123456789abcdef01234567","iat":1748160000,"exp":1748163600,'
    '"nonce":"base64:AAECAwQFBgcICQoLDA0ODw==","kv":1}'
)
# HMAC-SHA256 with KEY over "eyJhbGciOiJIUzI1NiIsInR5cCI6IkNSUCJ9." and the payload in base64url, by openssl.
KNOWN_MAC = "1QV7Z4y4D4TTZMyPa4jLy2Kt2mEh6UWScwr31V17rUE"


def b64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def signed(payload: str | bytes, key: bytes = KEY) -> str:
    """Sign any payload, as someone who holds the key would."""
    part = b64url(payload.encode() if isinstance(payload, str) else payload)
    mac = hmac.new(key, f"eyJhbGciOiJIUzI1NiIsInR5cCI6IkNSUCJ9.{part}".encode(), hashlib.sha256).digest()
    return f"{part}.{b64url(mac)}"


def keys(version: int, session_id: str) -> bytes | None:
    """One key version, for the session of TOKEN; the keys of other sessions are different ones."""
    if version != 1:
        return None
    return KEY if session_id == TOKEN.session_id else hashlib.sha256(session_id.encode()).digest()


def check(text: str, *, now_us: int = TOKEN.issued_at * SECOND, scope: str | None = SCOPE) -> Token:
    return verify(text, keys, now_us=now_us, scope=scope)


def reason(text: str, **given) -> str:
    with pytest.raises(Refused) as refused:
        check(text, **given)
    assert refused.value.kind is Kind.UNAUTHENTICATED
    return refused.value.reason


@pytest.mark.req("TOK-1", "TOK-2")
def test_a_token_has_exactly_the_bytes_of_the_known_answer():
    """Payload order, compact JSON, six places of sb, the header under the MAC: byte for byte."""
    assert mint(TOKEN, KEY) == f"{b64url(PAYLOAD.encode())}.{KNOWN_MAC}"


@pytest.mark.req("TOK-1", "TOK-2")
@pytest.mark.parametrize("token", [TOKEN, FIRST, replace(TOKEN, budget=Micros(0), key_version=1)])
def test_what_is_minted_verifies_to_the_same_values(token):
    """Every field survives the way there and back, the budget to its last millionth."""
    assert check(mint(token, KEY)) == token


@pytest.mark.req("TOK-1")
def test_a_payload_is_verified_as_received_and_never_rewritten():
    """Other JSON with the same meaning is accepted when its own bytes are signed: nothing is re-serialised."""
    spaced = PAYLOAD.replace('"win":3', '"win" : 3')

    assert check(signed(spaced)) == TOKEN


@pytest.mark.req("TOK-1")
def test_no_byte_of_a_token_can_be_changed():
    """Every byte with each of its seven bits flipped is refused as malformed or forged (reliability.md A-06)."""
    text = mint(TOKEN, KEY)
    for place in range(len(text)):
        for bit in range(7):
            mutant = text[:place] + chr(ord(text[place]) ^ 1 << bit) + text[place + 1 :]
            assert reason(mutant) in {"TOKEN_MALFORMED", "TOKEN_SIGNATURE_INVALID", "TOKEN_KEY_UNKNOWN"}, place


@pytest.mark.req("TOK-1")
def test_no_byte_of_a_token_can_be_left_out_or_doubled():
    """Truncation at any place, a missing and a doubled byte are refused."""
    text = mint(TOKEN, KEY)
    for place in range(len(text)):
        for mutant in (text[:place], text[:place] + text[place + 1 :], text[: place + 1] + text[place:]):
            if mutant != text:
                assert reason(mutant) in {"TOKEN_MALFORMED", "TOKEN_SIGNATURE_INVALID"}, place


@pytest.mark.req("TOK-1")
@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "a.b",
        "a" * 4096,
        "é." + "A" * 43,
        f"{b64url(PAYLOAD.encode())}.{KNOWN_MAC}=",
        f"{b64url(PAYLOAD.encode())}.{KNOWN_MAC[:-1]}F",
        f"{b64url(PAYLOAD.encode())}.{KNOWN_MAC[:-2]}",
        f"{b64url(PAYLOAD.encode())}..{KNOWN_MAC[1:]}",
        f"{b64url(PAYLOAD.encode())}.{KNOWN_MAC}.{KNOWN_MAC}",
        f"{b64url(PAYLOAD.encode())[:-1]}+.{KNOWN_MAC}",
        f" {b64url(PAYLOAD.encode())}.{KNOWN_MAC}",
        f"{b64url(PAYLOAD.encode())}.{KNOWN_MAC}\n",
        f"eyJhbGciOiJub25lIn0.{b64url(PAYLOAD.encode())}.",
    ],
)
def test_a_token_of_another_shape_is_malformed(text):
    """Empty, padded, in the other alphabet, with stray bits, with three parts, with algorithm none."""
    assert reason(text) == "TOKEN_MALFORMED"


def changed(**fields: object) -> str:
    """Return PAYLOAD with fields replaced; ``None`` leaves one out, a str of the form ``raw:…`` is put in as it is."""
    values = json.loads(PAYLOAD) | {"sb": "raw:0.780000"} | fields
    parts = []
    for name, value in values.items():
        if value is not None:
            raw = isinstance(value, str) and value.startswith("raw:")
            parts.append(f'"{name}":{value[4:] if raw else json.dumps(value)}')
    return "{" + ",".join(parts) + "}"


def test_the_table_below_starts_from_a_good_payload():
    """Without a change the helper gives a payload that verifies."""
    assert check(signed(changed())) == TOKEN


@pytest.mark.req("TOK-1", "TOK-2")
@pytest.mark.parametrize(
    "payload",
    [
        b"\xff\xfe",
        "[]",
        "3",
        "null",
        "{}",
        "[" * 3000,
        '{"v":' * 500 + "1" + "}" * 500,
        PAYLOAD[:-1],
        PAYLOAD + "x",
        "\ufeff" + PAYLOAD,
        PAYLOAD[:-1] + ',"win":9}',
        PAYLOAD[:-1] + ',"kv":1}',
        PAYLOAD[:-1] + ',"WIN":9}',
        PAYLOAD[:-1] + ',"alg":"none"}',
        changed(ckf=None),
        changed(v="2.0.0"),
        changed(v=3),
        changed(sid="crp_sess_x"),
        changed(sid="crp_sess_" + "a" * 33),
        changed(sid="crp_sess_0001020304050607-8090"),
        changed(sid="crp_sess_000102030405060708090a0b0c0d0e0f\n"),
        changed(win="3"),
        changed(win=True),
        changed(win=-1),
        changed(win="raw:3.0"),
        changed(win="raw:1e2"),
        changed(win=2**53),
        changed(win="raw:" + "9" * 2000),
        changed(sb="raw:NaN"),
        changed(sb="raw:Infinity"),
        changed(sb="raw:-Infinity"),
        changed(sb="raw:1.000001"),
        changed(sb="raw:2.000000"),
        changed(sb="raw:-0.780000"),
        changed(sb="0.780000"),
        changed(qh="A"),
        changed(qh=[["A"]]),
        changed(qh=["E"]),
        changed(qh=[1]),
        changed(qh={"A": 1}),
        changed(ct="sha256:9b"),
        changed(ct="raw:null"),
        changed(cid="crp_cont_1"),
        changed(dag="TREE"),
        changed(str="rm -rf"),
        changed(pol="md5:" + "5a" * 32),
        changed(scope=""),
        changed(scope="k" * 129),
        changed(scope=7),
        changed(iat="raw:1748160000.5"),
        changed(exp=-5),
        changed(nonce="base64:"),
        changed(nonce="AAECAwQFBgcICQoLDA0ODw=="),
        changed(kv=-1),
        changed(kv=True),
    ],
)
def test_a_payload_that_is_not_exactly_a_token_is_malformed_even_when_signed(payload):
    """Wrong types, ranges, spellings, missing, extra and doubled keys, deep nesting, no JSON (reliability.md A-21)."""
    assert reason(signed(payload)) == "TOKEN_MALFORMED"


@pytest.mark.req("TOK-2")
def test_a_payload_over_the_limit_is_refused_before_it_is_read():
    """4,096 bytes of base64url are the most (SPEC-007 §2.4)."""
    padded = PAYLOAD + " " * (PAYLOAD_LIMIT * 3 // 4 + 3 - len(PAYLOAD))

    assert len(signed(padded).partition(".")[0]) > PAYLOAD_LIMIT
    assert reason(signed(padded)) == "TOKEN_MALFORMED"


@pytest.mark.req("TOK-2")
def test_the_largest_token_that_can_be_minted_stays_under_the_limit():
    """Every field at its longest, a scope of four-byte characters, and more windows than a token remembers."""
    largest = replace(
        TOKEN,
        window=10_000,
        quality_history=("S",) * 10_000,
        ckf_hash="sha256:" + "0c" * 32,
        strategy="hierarchical",
        scope="\U0001f511" * 128,
        key_version=2**31,
        nonce="base64:" + "A" * 64,
    )
    text = mint(largest, KEY)

    assert len(text.partition(".")[0]) <= PAYLOAD_LIMIT
    read = verify(text, lambda *_: KEY, now_us=TOKEN.issued_at * SECOND, scope=largest.scope)
    assert read == replace(largest, quality_history=("S",) * HISTORY_KEPT)


@pytest.mark.req("TOK-2")
def test_fifty_windows_are_remembered_in_full():
    """A session of the default size carries the tier of every window."""
    tiers = tuple("SABCD"[n % 5] for n in range(50))

    assert check(mint(replace(TOKEN, quality_history=tiers), KEY)).quality_history == tiers


@pytest.mark.req("TOK-1")
def test_a_token_signed_with_another_key_is_forged():
    """Right shape, wrong key."""
    assert reason(mint(TOKEN, b"\x01" * 32)) == "TOKEN_SIGNATURE_INVALID"


@pytest.mark.req("TOK-1")
def test_the_signature_of_one_session_says_nothing_of_another():
    """Keys are per session: its own key does not sign another session's id."""
    other = replace(TOKEN, session_id=SessionId("crp_sess_" + "ee" * 16))

    assert reason(mint(other, KEY)) == "TOKEN_SIGNATURE_INVALID"


@pytest.mark.req("TOK-1")
def test_the_signature_does_not_move_to_another_payload():
    """The MAC of one token does not hold for the next one of the same session."""
    richer = b64url(PAYLOAD.replace("0.780000", "1.000000").encode())

    assert reason(f"{richer}.{KNOWN_MAC}") == "TOKEN_SIGNATURE_INVALID"


@pytest.mark.req("TOK-1")
def test_an_unknown_key_version_is_named():
    """A token of a key that was retired, or never was, says so."""
    assert reason(signed(changed(kv=9))) == "TOKEN_KEY_UNKNOWN"


@pytest.mark.req("TOK-1")
def test_no_key_is_derived_from_a_session_id_that_is_none():
    """The id is the salt of the key; what is not an id never gets that far (reliability.md A-36)."""
    asked: list[str] = []

    def watched(version: int, session_id: str) -> bytes:
        asked.append(session_id)
        return KEY

    with pytest.raises(Refused, match="TOKEN_MALFORMED"):
        verify(signed(changed(sid="crp_sess_../../x")), watched, now_us=TOKEN.issued_at * SECOND, scope=None)

    assert asked == []


@pytest.mark.req("TOK-3")
@pytest.mark.parametrize(
    ("now_us", "expected"),
    [
        ((TOKEN.issued_at - 30) * SECOND - 1, "TOKEN_FROM_FUTURE"),
        ((TOKEN.issued_at - 30) * SECOND, None),
        (TOKEN.expires_at * SECOND, None),
        (TOKEN.expires_at * SECOND + 1, "TOKEN_EXPIRED"),
    ],
)
def test_a_token_holds_from_thirty_seconds_before_its_issue_to_its_expiry(now_us, expected):
    """Expired one microsecond after exp; ahead of us by more than the leeway is from the future (A-45)."""
    if expected:
        assert reason(mint(TOKEN, KEY), now_us=now_us) == expected
    else:
        assert check(mint(TOKEN, KEY), now_us=now_us) == TOKEN


@pytest.mark.req("TOK-3")
@pytest.mark.parametrize("scope", ["key_0123456789abcdef01234568", "key_0123456789abcdef0123456", "KEY_0123", ""])
def test_a_token_belongs_to_the_key_that_made_its_session(scope):
    """The whole key id counts, not a prefix (reliability.md A-08)."""
    assert reason(mint(TOKEN, KEY), scope=scope) == "TOKEN_SCOPE_MISMATCH"


@pytest.mark.req("TOK-3")
def test_a_forged_token_says_nothing_of_scope_or_time():
    """The signature is looked at first: an outsider learns nothing about what would have passed."""
    forged = mint(TOKEN, b"\x01" * 32)

    assert reason(forged, scope="other", now_us=0) == "TOKEN_SIGNATURE_INVALID"


def test_no_refusal_quotes_the_token():
    """Messages go to logs and callers; a credential must not."""
    text = mint(TOKEN, KEY)
    for bad in (text[:-1], text + "x", signed(changed(scope=7)), mint(TOKEN, b"\x01" * 32)):
        with pytest.raises(Refused) as refused:
            check(bad)
        assert text[:20] not in f"{refused.value} {refused.value.metadata}"

"""Tokens of another implementation under a shared master key: every form that SPEC-007 allows is read, and no other."""

from __future__ import annotations

import hashlib
import hmac
import json
from dataclasses import replace

import pytest

from interlock.domain.errors import Refused
from interlock.domain.session.token import HISTORY_KEPT, Token, claimed, mint, root_of, verify
from tests.unit.domain.session.test_token import KEY, PAYLOAD, SECOND, TOKEN, b64url, changed, signed

pytestmark = [pytest.mark.finding("F-15"), pytest.mark.req("TOK-1", "TOK-2")]

OTHER_KEY = b"\x07" * 32
HEX_16 = "7f3a9bc2d4e1f083"
EXAMPLE = """{
  "v": "3.0.0",
  "sid": "crp_sess_7f3a9bc2d4e1f083",
  "win": 3,
  "qh": ["A", "A", "B"],
  "sb": 0.78,
  "ct": "sha256:9bce472f...",
  "cid": "crp_cont_c1d4e5f6...",
  "dag": "LINEAR",
  "str": "reflexive",
  "pol": "sha256:policy_hash...",
  "ckf": "sha256:ckf_state_hash...",
  "scope": "crp_gw_prod_abc123...",
  "iat": 1748160000,
  "exp": 1748163600,
  "nonce": "base64:nZ8fXw=="
}"""
"""SPEC-007 §2.2, to the letter."""


def read(text: str, **given) -> Token:
    """Verify as an instance that holds keys 1 and 2, of which 2 signs."""
    keys = {1: KEY, 2: OTHER_KEY}
    settled = {"now_us": TOKEN.issued_at * SECOND, "scope": None, "versions": (2, 1), **given}
    return verify(text, lambda version, _: keys.get(version), **settled)


def reason(text: str, **given) -> str:
    with pytest.raises(Refused) as refused:
        read(text, **given)
    return refused.value.reason


def without_kv(**fields: object) -> str:
    return changed(kv=None, **fields)


VALID = {
    "no kv": (without_kv(), {}),
    "kv 0 names no version": (changed(kv=0), {}),
    "an sb with two places": (without_kv(sb=0.78), {"budget": 780_000}),
    "an sb with one place": (without_kv(sb=0.5), {"budget": 500_000}),
    "a full sb as an integer": (without_kv(sb=1), {"budget": 1_000_000}),
    "a spent sb as an integer": (without_kv(sb=0), {"budget": 0}),
    "an sb of 1.0": (without_kv(sb="raw:1.0"), {"budget": 1_000_000}),
    "a double's nearest": (without_kv(sb=1 - 0.35), {"budget": 650_000}),
    "a double's remainder": (without_kv(sb=1.0 - 0.35 - 0.35 - 0.15 - 0.05), {"budget": 100_000}),
    "an sb with an exponent": (without_kv(sb="raw:7.8e-1"), {"budget": 780_000}),
    "a session id of 16": (without_kv(sid=f"crp_sess_{HEX_16}"), {"session_id": f"crp_sess_{HEX_16}"}),
    "a session id of letters": (without_kv(sid="crp_sess_aBcDeFgHiJkLmNoPqRsT"), {}),
    "a session id in capitals": (without_kv(sid="crp_sess_000102030405060708090A0B0C0D0E0F"), {}),
    "a pointer of 16": (without_kv(cid=f"crp_cont_{HEX_16}"), {"continuation_id": f"crp_cont_{HEX_16}"}),
    "hashes in capitals": (without_kv(ct="sha256:" + "9B" * 32, pol="sha256:" + "5A" * 32), {}),
    "a nonce of four bytes": (without_kv(nonce="base64:nZ8fXw=="), {"nonce": "base64:nZ8fXw=="}),
    "the nonce of SPEC-002": (without_kv(nonce="base64:nZ8fXwKq2mP9vR=="), {}),
    "a nonce without padding": (without_kv(nonce="base64:nZ8fXw"), {}),
    "a nonce of 64 bytes": (without_kv(nonce="base64:" + "A" * 86 + "=="), {}),
    "the hash of a knowledge base": (without_kv(ckf="sha256:" + "0c" * 32), {"ckf_hash": "sha256:" + "0c" * 32}),
    "a fan-out by another strategy": (without_kv(dag="FAN_OUT", str="agentic"), {"strategy": "agentic"}),
    "no quality yet": (without_kv(qh=[]), {"quality_history": ()}),
    "more windows than are kept here": (without_kv(qh=["A"] * (HISTORY_KEPT + 1)), {}),
    "another order of fields": (json.dumps(dict(reversed(json.loads(without_kv()).items()))), {}),
    "indented": (json.dumps(json.loads(without_kv()), indent=2), {}),
}  # fmt: skip


@pytest.mark.parametrize(("payload", "says"), VALID.values(), ids=VALID.keys())
def test_what_the_text_allows_is_read(payload, says):
    """Each is signed with the shared key; what it says is found, in whole millionths."""
    found = read(signed(payload))

    assert found.key_version == 1
    assert {name: getattr(found, name) for name in says} == says
    assert (found.window, found.issued_at) == (TOKEN.window, TOKEN.issued_at)


def test_the_example_of_the_specification_is_read():
    """SPEC-007 §2.2, with the abbreviations that it prints."""
    found = read(signed(EXAMPLE))

    assert (found.session_id, found.window, found.budget) == ("crp_sess_7f3a9bc2d4e1f083", 3, 780_000)
    assert (found.quality_history, found.nonce) == (("A", "A", "B"), "base64:nZ8fXw==")
    assert (found.scope, found.key_version) == ("crp_gw_prod_abc123...", 1)
    assert root_of(found) == found.session_id
    assert claimed(signed(EXAMPLE)) == replace(found, key_version=0)


def test_a_signature_under_the_header_as_printed_holds():
    """SPEC-007 §3.2 prints its header with spaces; nothing says which of the two is signed."""
    part, header = b64url(without_kv().encode()), b64url(b'{"alg": "HS256", "typ": "CRP"}')
    mac = hmac.new(KEY, f"{header}.{part}".encode(), hashlib.sha256).digest()

    assert read(f"{part}.{b64url(mac)}") == TOKEN


def test_hashes_are_compared_without_regard_to_case():
    """HEXDIG is not case-sensitive (RFC 5234), and the store's are in lower case."""
    found = read(signed(without_kv(ct="sha256:" + "9B" * 32)))

    assert found.chain_tip == TOKEN.chain_tip


INVALID = {
    "an sb above one": without_kv(sb="raw:1.0000000000000002"),
    "an sb below zero": without_kv(sb="raw:-0.1"),
    "an sb as text": without_kv(sb="0.78"),
    "an sb that is none": without_kv(sb="raw:NaN"),
    "an endless sb": without_kv(sb="raw:0." + "1" * 200),
    "an sb with a long exponent": without_kv(sb="raw:1e-9999"),
    "a truth for an sb": without_kv(sb=True),
    "a session id of 15": without_kv(sid="crp_sess_" + HEX_16[:-1]),
    "a session id of 33": without_kv(sid="crp_sess_" + "a" * 33),
    "a session id that is a path": without_kv(sid="crp_sess_../../etc/passwd"),
    "a session id of braces": without_kv(sid="crp_sess_{a}:b0000000000000"),
    "a pointer of 15": without_kv(cid="crp_cont_" + HEX_16[:-1]),
    "a pointer of another kind": without_kv(cid=f"crp_sess_{HEX_16}"),
    "a hash of 63": without_kv(ct="sha256:" + "9" * 63),
    "a hash of another kind": without_kv(pol="sha512:" + "9" * 64),
    "no pointer to a window": without_kv(cid="raw:null"),
    "a nonce without its prefix": without_kv(nonce="nZ8fXw=="),
    "an empty nonce": without_kv(nonce="base64:"),
    "a nonce that is no base64": without_kv(nonce="base64:nZ8f!w=="),
    "a nonce that no base64 spells": without_kv(nonce="base64:nZ8fX"),
    "an unknown strategy": without_kv(str="turbo"),
    "an unknown pattern": without_kv(dag="linear"),
    "a tier that is none": without_kv(qh=["A+"]),
    "a version that is none": without_kv(v="3"),
    "an empty scope": without_kv(scope=""),
    "no scope": without_kv(scope=None),
    "no expiry": without_kv(exp=None),
    "a time in parts": without_kv(iat="raw:1748160000.5"),
    "a field that no text knows": PAYLOAD[:-1] + ',"adm":true}',
    "a field twice": PAYLOAD[:-1] + ',"kv":1}',
}  # fmt: skip


@pytest.mark.parametrize("payload", INVALID.values(), ids=INVALID.keys())
def test_what_the_text_does_not_allow_stays_refused(payload):
    """Signed with the shared key, and malformed all the same."""
    assert reason(signed(payload)) == "TOKEN_MALFORMED"


@pytest.mark.parametrize(
    ("text", "given", "expected"),
    [
        (signed(without_kv(), b"\x09" * 32), {}, "TOKEN_SIGNATURE_INVALID"),
        (signed(changed(kv=2)), {}, "TOKEN_SIGNATURE_INVALID"),
        (signed(changed(kv=3)), {}, "TOKEN_KEY_UNKNOWN"),
        (signed(without_kv()), {"versions": (2,)}, "TOKEN_SIGNATURE_INVALID"),
        (signed(without_kv()), {"versions": ()}, "TOKEN_KEY_UNKNOWN"),
        (signed(without_kv()), {"scope": "crp_gw_prod_def456"}, "TOKEN_SCOPE_MISMATCH"),
        (signed(without_kv()), {"now_us": (TOKEN.expires_at + 1) * SECOND}, "TOKEN_EXPIRED"),
        (signed(without_kv()), {"now_us": (TOKEN.issued_at - 31) * SECOND}, "TOKEN_FROM_FUTURE"),
    ],
)
def test_a_foreign_form_weakens_nothing(text, given, expected):
    """Signature, key, scope and lifetime hold a foreign token as they hold our own."""
    assert reason(text, **given) == expected


def test_the_version_that_signed_is_told_where_the_token_names_none():
    """A session of one key is not reached by a token of another: who compares gets the real version."""
    assert read(signed(without_kv(), OTHER_KEY)).key_version == 2
    assert read(signed(without_kv())).key_version == 1


def test_our_own_tokens_are_minted_as_before():
    """Other forms are read, not written."""
    assert f'"sb":{0.78:.6f}' in PAYLOAD
    assert mint(TOKEN, KEY).split(".")[0] == b64url(PAYLOAD.encode())

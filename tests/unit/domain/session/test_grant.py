"""Delegation grants: what is signed, who may present it, and how tokens of children name their root."""

from __future__ import annotations

import base64
import json
from dataclasses import replace

import pytest

from interlock.domain.budget import Micros
from interlock.domain.errors import Kind, Refused
from interlock.domain.session import grant as grants
from interlock.domain.session import token as tokens
from interlock.domain.session.grant import Grant
from interlock.domain.signed import compute_mac, encoded
from interlock.runtime.keys.derivation import GRANT, HMAC, SIGN, Keyring
from tests.support.session.sessions import session_id
from tests.unit.domain.session.test_token import KEY, TOKEN

NOW = 1_748_160_000
GIVEN = Grant(
    "0" * 31 + "1", session_id(1), session_id(2), "specialist_legal", 2, Micros(630_000), "apr-1", NOW + 60, 1
)


def keys(version: int, session: str) -> bytes | None:
    return KEY if version == 1 else None


def verified(text: str, *, at: float = NOW, agent: str = "specialist_legal") -> Grant:
    return grants.verify(text, keys, now_us=round(at * 1_000_000), agent_type=agent)


def reason(text: str, **given) -> str:
    with pytest.raises(Refused) as no:
        verified(text, **given)
    assert no.value.kind is Kind.UNAUTHENTICATED
    return no.value.reason


def resigned(**changed) -> str:
    """Return a grant that we would have signed ourselves, with other fields."""
    text = grants.mint(GIVEN, KEY)
    part = text.partition(".")[0]
    values = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4))) | changed
    payload = encoded(json.dumps({name: value for name, value in values.items() if value is not ...}).encode())
    return (payload + b"." + encoded(compute_mac(grants._TAG, payload, KEY))).decode()


@pytest.mark.req("AGT-2")
def test_a_grant_comes_back_as_it_was_minted():
    """Every field, in a text that fits a header."""
    text = grants.mint(GIVEN, KEY)

    assert verified(text) == GIVEN
    assert len(text) <= grants.TEXT_LIMIT


@pytest.mark.req("AGT-2")
def test_every_changed_byte_is_refused():
    """No byte of a grant is without meaning."""
    text = grants.mint(GIVEN, KEY)
    for at in range(len(text)):
        forged = text[:at] + ("A" if text[at] != "A" else "B") + text[at + 1 :]
        assert reason(forged) in {"GRANT_MALFORMED", "GRANT_SIGNATURE_INVALID", "GRANT_KEY_UNKNOWN"}


@pytest.mark.req("AGT-2")
def test_a_token_is_no_grant_and_a_grant_no_token():
    """The MAC covers what kind of text it is, and each kind has a key of its own."""
    ring = Keyring({1: b"k" * 32})
    derived = {ring.derive(1, session_id(1), info) for info in (SIGN, HMAC, GRANT)}

    assert len(derived) == 3
    assert reason(tokens.mint(TOKEN, KEY)) == "GRANT_MALFORMED"
    with pytest.raises(Refused) as no:
        tokens.verify(grants.mint(GIVEN, KEY), keys, now_us=NOW * 1_000_000, scope=None)
    assert no.value.reason == "TOKEN_MALFORMED"


@pytest.mark.req("AGT-2")
@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"v": 2}, "v"),
        ({"gid": "x"}, "gid"),
        ({"par": "crp_sess_1"}, "par"),
        ({"root": "il:{x}"}, "root"),
        ({"typ": "a b"}, "typ"),
        ({"dep": 0}, "dep"),
        ({"dep": True}, "dep"),
        ({"sb": 1_000_001}, "sb"),
        ({"sb": -1}, "sb"),
        ({"sb": 1e308}, "sb"),
        ({"sb": "630000"}, "sb"),
        ({"exp": 1.5}, "exp"),
        ({"apr": "a\n"}, "apr"),
        ({"kv": 0}, "kv"),
        ({"extra": 1}, "fields"),
        ({"apr": ...}, "fields"),
    ],
)
def test_a_field_that_is_not_as_it_must_be_is_malformed(changed, why):
    """Even under a good signature: types, ranges and alphabets are checked."""
    with pytest.raises(Refused, match=why) as no:
        verified(resigned(**changed))
    assert no.value.reason == "GRANT_MALFORMED"


@pytest.mark.parametrize("text", ["", ".", "a.b", "A" * 3000, "é.x", "." + "A" * 43])
def test_what_is_no_grant_is_malformed(text):
    """Nothing of any length breaks the reader."""
    assert reason(text) == "GRANT_MALFORMED"


@pytest.mark.req("AGT-2")
def test_a_grant_is_for_its_agent_type_and_its_time():
    """Another type, or none; a moment after its end; a key version that is gone."""
    text = grants.mint(GIVEN, KEY)

    assert reason(text, agent="specialist_tax") == reason(text, agent="") == "GRANT_AGENT_MISMATCH"
    assert verified(text, at=NOW + 60) == GIVEN
    assert reason(text, at=NOW + 60.000001) == "GRANT_EXPIRED"
    assert reason(grants.mint(replace(GIVEN, key_version=9), KEY)) == "GRANT_KEY_UNKNOWN"


@pytest.mark.req("AGT-2")
@pytest.mark.parametrize(
    ("parent", "depth", "wrong"),
    [
        ("", None, None),
        (session_id(1), 2, None),
        (session_id(3), None, "GRANT_PARENT_MISMATCH"),
        ("", 1, "LOOP_DEPTH_MISMATCH"),
        ("", 3, "LOOP_DEPTH_MISMATCH"),
        ("", 0, "LOOP_DEPTH_MISMATCH"),
    ],
)
def test_what_a_presenter_says_of_itself_must_be_the_grants(parent, depth, wrong):
    """Parent and depth come from the signed text; headers that say otherwise are a 409."""
    if not wrong:
        grants.check_named(GIVEN, parent=parent, loop_depth=depth)
        return
    with pytest.raises(Refused) as no:
        grants.check_named(GIVEN, parent=parent, loop_depth=depth)
    assert (no.value.kind, no.value.reason) == (Kind.CONFLICT, wrong)


@pytest.mark.req("TOK-2")
def test_the_nonce_of_a_child_names_its_root_and_a_roots_does_not():
    """Sixteen random bytes alone, or before the root's id; a token with either is read back."""
    random = bytes(range(16))
    own = tokens.nonce_of(random, session_id(5), session_id(5))
    childs = tokens.nonce_of(random, session_id(5), session_id(2))
    mine, theirs = [replace(TOKEN, session_id=session_id(5), nonce=nonce) for nonce in (own, childs)]
    read = [
        tokens.verify(tokens.mint(each, KEY), keys, now_us=each.issued_at * 1_000_000, scope=None)
        for each in (mine, theirs)
    ]

    assert [tokens.root_of(each) for each in read] == [session_id(5), session_id(2)]
    assert childs.startswith(own.rstrip("=")[:-1])

"""Tokens at their edges: what each refusal says, the root in a nonce, times at both ends, the pattern of a branch."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from interlock.domain.errors import Refused
from interlock.domain.ids import ENTROPY_BYTES, SessionId
from interlock.domain.session.token import LEEWAY_S, PAYLOAD_LIMIT, Token, claimed, mint, nonce_of, root_of, verify
from tests.unit.domain.session.test_token import KEY, PAYLOAD, SCOPE, SECOND, TOKEN, b64url, keys, signed

CHILD = SessionId("crp_sess_" + "0c" * 16)
LARGEST = 2**53 - 1


def refusal(text: str, *, now_us: int = TOKEN.issued_at * SECOND, scope: str | None = SCOPE) -> Refused:
    with pytest.raises(Refused) as refused:
        verify(text, keys, now_us=now_us, scope=scope)
    return refused.value


def edited(**fields: object) -> str:
    """The payload with some of its fields changed, signed; sb is kept as it is written."""
    values = json.loads(PAYLOAD) | fields
    text = json.dumps(values, separators=(",", ":"))
    return signed(text.replace('"sb":0.78', '"sb":0.780000'))


EXPIRED = (TOKEN.expires_at + 1) * SECOND
EARLY = (TOKEN.issued_at - LEEWAY_S) * SECOND - 1


@pytest.mark.req("TOK-3", "SVC-3")
@pytest.mark.parametrize(
    ("text", "given", "reason", "message"),
    [
        (edited(kv=2), {}, "TOKEN_KEY_UNKNOWN", "the key that signed this token is not known here"),
        (signed(PAYLOAD, b"x" * 32), {}, "TOKEN_SIGNATURE_INVALID", "the signature of the session token does not hold"),
        (mint(TOKEN, KEY), {"scope": "x"}, "TOKEN_SCOPE_MISMATCH", "the session belongs to another key"),
        (mint(TOKEN, KEY), {"now_us": EARLY}, "TOKEN_FROM_FUTURE", "the session token was issued in the future"),
        (mint(TOKEN, KEY), {"now_us": EXPIRED}, "TOKEN_EXPIRED", "the session token has expired; start a new session"),
        ("x", {}, "TOKEN_MALFORMED", "not a session token: its length or its number of parts is wrong"),
        (signed("{}"), {}, "TOKEN_MALFORMED", "not a session token: its fields are not the fields of a token"),
        (edited(str="x"), {}, "TOKEN_MALFORMED", "not a session token: str is not as it must be"),
        (edited(win=-1), {}, "TOKEN_MALFORMED", "not a session token: win is not as it must be"),
        (edited(qh=["X"]), {}, "TOKEN_MALFORMED", "not a session token: qh is not as it must be"),
    ],
)  # fmt: skip
def test_each_refusal_of_a_token_says_why_in_words(text, given, reason, message):
    """The reason is for programs; the message is what a person who attaches an agent reads."""
    refused = refusal(text, **given)

    assert (refused.reason, refused.message) == (reason, message)
    assert refused.metadata == ({"retry_after": "0"} if reason == "TOKEN_EXPIRED" else {})


@pytest.mark.req("TOK-3")
@pytest.mark.parametrize(("field", "values"), [("iat", [0]), ("exp", [LARGEST]), ("kv", [1]), ("win", [0, LARGEST])])
def test_numbers_hold_up_to_both_their_ends(field, values):
    """The smallest and the largest that a double can tell apart are read."""
    for value in values:
        assert verify(edited(**{field: value}), keys, now_us=TOKEN.issued_at * SECOND, scope=SCOPE)


@pytest.mark.req("TOK-3")
def test_a_token_that_expired_with_the_epoch_is_expired_and_not_malformed():
    """0 is a time too."""
    assert refusal(edited(exp=0)).reason == "TOKEN_EXPIRED"
    assert refusal(edited(win=LARGEST + 1)).reason == "TOKEN_MALFORMED"


@pytest.mark.req("TOK-2")
@pytest.mark.parametrize(
    ("pattern", "written"),
    [("LINEAR", "LINEAR"), ("BRANCH", "LINEAR"), ("FAN_OUT", "FAN_OUT"), ("FAN_IN", "FAN_IN")],
)
def test_a_branch_is_one_more_line_and_the_others_are_themselves(pattern, written):
    """SPEC-007 has no word for a branch."""
    found = verify(mint(replace(TOKEN, pattern=pattern), KEY), keys, now_us=TOKEN.issued_at * SECOND, scope=SCOPE)

    assert found.pattern == written


@pytest.mark.req("TOK-2")
def test_a_payload_of_exactly_the_limit_is_minted_and_one_byte_more_is_a_defect():
    """The length in base64url counts, and the error names it."""
    # Four characters of base64url are three of the payload.
    most = next(
        n for n in range(1, 4096) if len(b64url(json.dumps("x" * n).encode())) and _length(n + 1) > PAYLOAD_LIMIT
    )
    assert _length(most) == PAYLOAD_LIMIT
    assert mint(replace(TOKEN, scope="x" * most), KEY)
    with pytest.raises(ValueError, match=f"^a token payload of {_length(most + 1)} bytes is over the limit of 4096$"):
        mint(replace(TOKEN, scope="x" * (most + 1)), KEY)


def _length(scope: int) -> int:
    return len(b64url(PAYLOAD.replace(SCOPE, "x" * scope).encode()))


@pytest.mark.req("TOK-2")
def test_what_looks_like_a_budget_inside_a_text_stays_text():
    """The six places of sb are put where sb is, and nowhere else."""
    scope = '"sb":null and "sb":null'
    found = verify(mint(replace(TOKEN, scope=scope), KEY), keys, now_us=TOKEN.issued_at * SECOND, scope=scope)

    assert (found.scope, found.budget) == (scope, TOKEN.budget)


@pytest.mark.req("TOK-2", "BUD-8")
def test_a_childs_nonce_holds_the_root_of_its_tree_and_a_roots_holds_none():
    """What is read out of the nonce is what was put in, for both."""
    entropy = bytes(range(ENTROPY_BYTES))
    own = nonce_of(entropy, TOKEN.session_id, TOKEN.session_id)
    below = nonce_of(entropy, CHILD, TOKEN.session_id)

    assert own == "base64:AAECAwQFBgcICQoLDA0ODw=="
    assert below == "base64:AAECAwQFBgcICQoLDA0ODwABAgMEBQYHCAkKCwwNDg8="
    assert root_of(replace(TOKEN, nonce=own)) == TOKEN.session_id
    assert root_of(replace(TOKEN, session_id=CHILD, nonce=below)) == TOKEN.session_id
    assert root_of(replace(TOKEN, session_id=CHILD, nonce=own)) == CHILD


@pytest.mark.req("TOK-2")
@pytest.mark.parametrize(
    "nonce", ["base64:" + "A" * 17, "base64:" + "A" * 16 + "=", "base64:" + "A" * 18 + "=", "base64:A==="]
)
def test_a_nonce_that_no_base64_spells_is_malformed(nonce):
    """Whoever reads the root out of a verified token never meets one that cannot be decoded."""
    assert refusal(edited(nonce=nonce)).reason == "TOKEN_MALFORMED"


@pytest.mark.req("TOK-5")
def test_a_claim_is_read_as_it_stands_or_is_malformed():
    """Unverified reading finds the same values, of any key, and refuses what is no token in the same words."""
    found: Token = claimed(signed(PAYLOAD, b"x" * 32))
    with pytest.raises(Refused) as refused:
        claimed("x" * (PAYLOAD_LIMIT + 1) + "." + "A" * 43)

    assert found == TOKEN
    assert refused.value.reason == "TOKEN_MALFORMED"
    assert refused.value.message == "not a session token: its length or its number of parts is wrong"

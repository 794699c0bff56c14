"""Session tokens: only what was minted verifies, and what verifies is minted again as it was (A-06)."""

from __future__ import annotations

from fuzz.reading import split_off, text_of, told
from interlock.domain.budget import Micros
from interlock.domain.ids import ContinuationId, SessionId
from interlock.domain.session import token
from interlock.domain.signed import compute_mac, encoded

KEY = b"k" * 32
NOW_US = 1_748_160_000_000_000
SCOPE = "key_0123456789abcdef01234567"
WORDS = (
    b'"v":"3.0.0"', b'"sid":"crp_sess_', b'"win":', b'"qh":["S"]', b'"sb":0.950000', b'"sb":1.000000', b'"ct":""',
    b'"cid":"crp_cont_', b'"dag":"LINEAR"', b'"str":"push"', b'"pol":"sha256:', b'"scope":"', b'"iat":', b'"exp":',
    b'"nonce":"base64:', b'"kv":1', b"true", b"1e3", b"-0", b"NaN", b"\\u0000", b"eyJ", b".",
)  # fmt: skip
_HEADER = encoded(b'{"alg":"HS256","typ":"CRP"}')


def TestOneInput(data: bytes) -> None:
    """The first byte says how the rest is used: as a token, as a payload to be signed, or as a change to a good token."""
    kind, rest = data[:1], data[1:]
    if kind == b"p":
        _signed(rest)
    elif kind == b"c":
        _changed(rest)
    else:
        text = text_of(rest)
        found = told(lambda: token.verify(text, lambda _version, _session: KEY, now_us=NOW_US, scope=None))
        assert found is None or token.mint(found, KEY).split(".")[0]


def _signed(payload: bytes) -> None:
    """Even under our own key nothing but a whole and sound payload passes."""
    part = encoded(payload)
    text = (part + b"." + encoded(compute_mac(_HEADER, part, KEY))).decode()
    found = told(lambda: token.verify(text, lambda _version, _session: KEY, now_us=NOW_US, scope=None))
    if found is None:
        return
    assert 0 <= found.budget <= 1_000_000
    again = token.verify(token.mint(found, KEY), lambda _version, _session: KEY, now_us=NOW_US, scope=found.scope)
    assert again == found
    assert token.root_of(found).startswith("crp_sess_")


def _changed(rest: bytes) -> None:
    """A good token with a piece of it replaced is refused, unless the piece is what was there."""
    place, put = split_off(rest, 2)
    good = token.mint(sample(), KEY)
    at = int.from_bytes(place[:2], "big") % len(good)
    text = good[:at] + put.decode("latin-1") + good[at + len(put) :]
    found = told(lambda: token.verify(text, lambda _version, _session: KEY, now_us=NOW_US, scope=SCOPE))
    assert (found is not None) == (text == good)


def sample() -> token.Token:
    """A token of a session with two windows."""
    return token.Token(
        session_id=SessionId("crp_sess_" + "0a" * 16), window=2, quality_history=("S", "B"), budget=Micros(950_000),
        chain_tip="sha256:" + "ab" * 32, continuation_id=ContinuationId("crp_cont_" + "0b" * 16), pattern="LINEAR",
        strategy="push", policy_hash="sha256:" + "cd" * 32, ckf_hash="", scope=SCOPE, issued_at=NOW_US // 1_000_000,
        expires_at=NOW_US // 1_000_000 + 3600, nonce="base64:AAECAwQFBgcICQoLDA0ODw==", key_version=1,
    )  # fmt: skip


def seeds() -> dict[str, bytes]:
    """A good token, its payload, and changes at both ends of it."""
    from interlock.domain.signed import decoded

    good = token.mint(sample(), KEY)
    payload = decoded(good.split(".")[0].encode())
    return {
        "token": b"t" + good.encode(),
        "payload": b"p" + payload,
        "payload_of_a_child": b"p" + payload.replace(b"AAECAwQFBgcICQoLDA0ODw==", b"A" * 42 + b"8="),
        "payload_duplicate": b"p" + payload[:-1] + b',"kv":2}',
        "payload_deep": b"p" + b"[" * 3000,
        "changed_first": b"c\x00\x00\x00f",
        "changed_last": b"c" + (len(good) - 1).to_bytes(2, "big").replace(b"\x00", b"\x01") + b"\x00A",
        "none": b"t",
    }

"""Delegation grants and approvals: only what was minted verifies, and each has one text (A-05, A-30)."""

from __future__ import annotations

from fuzz.reading import split_off, text_of, told
from interlock.domain import approval
from interlock.domain.budget import Micros
from interlock.domain.ids import SessionId
from interlock.domain.session import grant
from interlock.domain.signed import compute_mac, encoded

KEY = b"g" * 32
NOW_US = 1_748_160_000_000_000
WORDS = (
    b'"v":1', b'"gid":"', b'"par":"crp_sess_', b'"root":"crp_sess_', b'"typ":"', b'"dep":', b'"sb":', b'"apr":"', b'"exp":',
    b'"kv":1', b"true", b"1.0", b"-1", b'"action":"', b'"delegate"', b'"release"', b'"reviewer":"', b'"scope":{',
    b'"session":"', b'"agent":"', b'"iat":', b'"id":"crp_appr_', b"approved:sha256:", b".",
)  # fmt: skip
_TAG = encoded(b'{"alg":"HS256","typ":"CRP-GRANT"}')


def TestOneInput(data: bytes) -> None:
    """The first byte says what the rest is: a grant, its payload, a change to a good one, an approval or its payload."""
    kind, rest = data[:1], data[1:]
    if kind == b"p":
        part = encoded(rest)
        _verified((part + b"." + encoded(compute_mac(_TAG, part, KEY))).decode())
    elif kind == b"c":
        _changed(rest)
    elif kind == b"a":
        _approval(text_of(rest))
    elif kind == b"s":
        _approval(approval.token(rest, b"s" * approval.SIGNATURE_BYTES))
    else:
        _verified(text_of(rest))


def _verified(text: str) -> None:
    found = told(lambda: grant.verify(text, lambda _version, _session: KEY, now_us=NOW_US, agent_type="helper"))
    if found is None:
        return
    assert 0 <= found.budget <= 1_000_000
    assert found.loop_depth >= 1
    assert grant.verify(grant.mint(found, KEY), lambda *_: KEY, now_us=NOW_US, agent_type="helper") == found


def _changed(rest: bytes) -> None:
    place, put = split_off(rest, 2)
    good = grant.mint(sample(), KEY)
    at = int.from_bytes(place[:2], "big") % len(good)
    text = good[:at] + put.decode("latin-1") + good[at + len(put) :]
    found = told(lambda: grant.verify(text, lambda *_: KEY, now_us=NOW_US, agent_type="helper"))
    assert (found is not None) == (text == good)


def _approval(text: str) -> None:
    """What is read is written as the same text: an approval has one spelling, so that one use is one use."""
    found = told(lambda: approval.read(text))
    if found is None:
        return
    assert approval.token(approval.canonical_payload(found.approval), found.signature) == text
    assert found.signed == approval.signed_bytes(approval.canonical_payload(found.approval))
    assert set(found.approval.scope) == set(approval.SCOPES[found.approval.action])
    assert 0 < found.approval.expires_at - found.approval.issued_at <= approval.LONGEST_LIFE_S


def sample() -> grant.Grant:
    """A grant to a registered agent."""
    return grant.Grant(
        grant_id="0c" * 16, parent_session_id=SessionId("crp_sess_" + "0a" * 16),
        root_session_id=SessionId("crp_sess_" + "0a" * 16), agent_type="helper", loop_depth=1, budget=Micros(950_000),
        approval_id="", expires_at=NOW_US // 1_000_000 + 300, key_version=1,
    )  # fmt: skip


def seeds() -> dict[str, bytes]:
    """A good grant and a good approval, whole and as payloads."""
    from interlock.domain.signed import decoded

    good = grant.mint(sample(), KEY)
    seen = approval.Approval(
        "crp_appr_" + "0d" * 16, "alice@example.com", approval.DELEGATE,
        {"session": "crp_sess_" + "0a" * 16, "agent": "helper"}, NOW_US // 1_000_000, NOW_US // 1_000_000 + 600,
    )  # fmt: skip
    payload = approval.canonical_payload(seen)
    return {
        "grant": b"g" + good.encode(),
        "grant_payload": b"p" + decoded(good.split(".")[0].encode()),
        "grant_changed": b"c\x00\x07\x00Z",
        "approval": b"a" + approval.token(payload, b"s" * approval.SIGNATURE_BYTES).encode(),
        "approval_payload": b"s" + payload,
        "approval_spaced": b"s" + payload.replace(b",", b", "),
        "approval_form_true": b"s" + payload.replace(b'"kv":1', b'"kv":true'),
    }

"""The session token: signed state that the client carries (SPEC-007; design.md, Token).

``b64url(payload) "." b64url(mac)`` without padding. The MAC covers ``b64url({"alg":"HS256","typ":"CRP"}) "." payload`` as
received: a token is never re-serialised to be checked. There is one algorithm, and it is not read from the token.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from interlock.domain.budget import Micros, as_fixed
from interlock.domain.dag.dag import BRANCH, LINEAR, STRATEGIES, TIERS
from interlock.domain.errors import Refused, unauthenticated
from interlock.domain.ids import ENTROPY_BYTES, ContinuationId, SessionId
from interlock.domain.signed import MalformedError, compute_mac, decoded, encoded, parse_json, split

VERSION = "3.0.0"
PAYLOAD_LIMIT = 4096
"""Longest payload in base64url, bytes (SPEC-007 §2.4)."""

LEEWAY_S = 30
"""How far ahead another instance's clock may be (reliability.md A-45)."""

HISTORY_KEPT = 256
"""Quality tiers that a token carries: the latest ones, so that every token stays under its limit."""

KeyOf = Callable[[int, str], bytes | None]
"""Key version and session id to signing key; ``None`` for a version that is not known."""

_SESSION, _NONCE = "crp_sess_", "base64:"
_HEADER = encoded(b'{"alg":"HS256","typ":"CRP"}')
_FIELDS = ("v", "sid", "win", "qh", "sb", "ct", "cid", "dag", "str", "pol", "ckf", "scope", "iat", "exp", "nonce", "kv")
_LARGEST = 2**53 - 1
_HASH = r"(?:sha256:[0-9a-f]{64})?"
_TEXTS = {
    "v": re.compile(re.escape(VERSION)),
    "sid": re.compile(r"crp_sess_[0-9a-f]{32}"),
    "sb": re.compile(r"0\.[0-9]{6}|1\.000000"),
    "ct": re.compile(_HASH),
    "cid": re.compile(r"(?:crp_cont_[0-9a-f]{32})?"),
    "dag": re.compile("LINEAR|FAN_OUT|FAN_IN"),
    "str": re.compile("|".join(STRATEGIES)),
    "pol": re.compile(_HASH),
    "ckf": re.compile(_HASH),
    "scope": re.compile(r".{1,128}"),
    # Whole groups of four: the tail is decoded where the root of the session's tree is wanted.
    "nonce": re.compile(r"base64:(?:[A-Za-z0-9+/]{4}){4,15}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=|[A-Za-z0-9+/]{2}==)"),
}


@dataclass(frozen=True)
class Token:
    """What a token says. ``chain_tip`` and ``continuation_id`` are empty before the first window."""

    session_id: SessionId
    window: int
    quality_history: tuple[str, ...]
    budget: Micros
    chain_tip: str
    continuation_id: ContinuationId | None
    pattern: str
    strategy: str
    policy_hash: str
    ckf_hash: str
    scope: str
    issued_at: int
    expires_at: int
    nonce: str
    key_version: int


def nonce_of(entropy: bytes, session: SessionId, root: SessionId, caller_id: str = "") -> str:
    """Return the nonce of a session: random bytes, and behind them, in a child's, the id of the root of its tree; where a
    caller's budget stands above it, the root's and the caller's.

    The payload has no field for what a session is stored under (ADR 0010, 0018).
    """
    tail = b"" if session == root and not caller_id else bytes.fromhex(root.removeprefix(_SESSION))
    return _NONCE + base64.b64encode(entropy + tail + bytes.fromhex(caller_id.removeprefix(_SESSION))).decode("ascii")


def root_of(token: Token) -> SessionId:
    """Return the root of the tree that the session of a verified token belongs to."""
    root = _tail(token)[:ENTROPY_BYTES]
    return SessionId(_SESSION + root.hex()) if root else token.session_id


def caller_of(token: Token) -> SessionId | None:
    """Return the caller whose budget stands above the session of a verified token; ``None``: none does."""
    caller = _tail(token)[ENTROPY_BYTES:]
    return SessionId(_SESSION + caller.hex()) if caller else None


def _tail(token: Token) -> bytes:
    """Return the ids in a nonce: none, one or two; another implementation's nonce has none."""
    tail = base64.b64decode(token.nonce.removeprefix(_NONCE))[ENTROPY_BYTES:]
    return tail if len(tail) in {ENTROPY_BYTES, 2 * ENTROPY_BYTES} else b""


class _Fraction(str):
    """A JSON number with a decimal point, kept as it was written."""

    __slots__ = ()


def mint(token: Token, key: bytes) -> str:
    """Return the signed token. Only the latest ``HISTORY_KEPT`` quality tiers are carried."""
    values = {
        "v": VERSION,
        "sid": token.session_id,
        "win": token.window,
        "qh": list(token.quality_history[-HISTORY_KEPT:]),
        "sb": None,
        "ct": token.chain_tip,
        "cid": token.continuation_id or "",
        # SPEC-007 §2.3 has no word for a branch: it is one more line from its window.
        "dag": LINEAR if token.pattern == BRANCH else token.pattern,
        "str": token.strategy,
        "pol": token.policy_hash,
        "ckf": token.ckf_hash,
        "scope": token.scope,
        "iat": token.issued_at,
        "exp": token.expires_at,
        "nonce": token.nonce,
        "kv": token.key_version,
    }
    text = json.dumps(values, separators=(",", ":"), ensure_ascii=False)
    # A float would not keep its six places; the marker cannot occur inside a JSON string, whose quotes are escaped.
    payload = encoded(text.replace('"sb":null', f'"sb":{as_fixed(token.budget)}', 1).encode())
    if len(payload) > PAYLOAD_LIMIT:
        raise ValueError(f"a token payload of {len(payload)} bytes is over the limit of {PAYLOAD_LIMIT}")
    return (payload + b"." + encoded(compute_mac(_HEADER, payload, key))).decode("ascii")


def verify(text: str, key_of: KeyOf, *, now_us: int, scope: str | None) -> Token:
    """Return what a token says when all of it holds; ``scope=None`` leaves the scope to the caller.

    Refused with TOKEN_MALFORMED, TOKEN_KEY_UNKNOWN, TOKEN_SIGNATURE_INVALID, TOKEN_FROM_FUTURE, TOKEN_EXPIRED or
    TOKEN_SCOPE_MISMATCH. Whether it is the latest one of its session only the store knows.
    """
    try:
        payload, mac = split(text, PAYLOAD_LIMIT)
        token = _read(parse_json(decoded(payload), parse_float=_Fraction))
    except MalformedError as flaw:
        raise _malformed(str(flaw)) from None
    # The id is checked before it becomes the salt of a key.
    key = key_of(token.key_version, token.session_id)
    if key is None:
        raise unauthenticated("TOKEN_KEY_UNKNOWN", "the key that signed this token is not known here")
    if not hmac.compare_digest(compute_mac(_HEADER, payload, key), mac):
        raise unauthenticated("TOKEN_SIGNATURE_INVALID", "the signature of the session token does not hold")
    _check_time(token, now_us)
    if scope is not None and not hmac.compare_digest(token.scope.encode(), scope.encode()):
        raise unauthenticated("TOKEN_SCOPE_MISMATCH", "the session belongs to another key")
    return token


def claimed(text: str) -> Token:
    """Return the claims of a token, unverified: only for a text whose signature another service has just verified.

    Refused with TOKEN_MALFORMED.
    """
    try:
        payload, _ = split(text, PAYLOAD_LIMIT)
        return _read(parse_json(decoded(payload), parse_float=_Fraction))
    except MalformedError as flaw:
        raise _malformed(str(flaw)) from None


def _check_time(token: Token, now_us: int) -> None:
    if token.issued_at * 1_000_000 > now_us + LEEWAY_S * 1_000_000:
        raise unauthenticated("TOKEN_FROM_FUTURE", "the session token was issued in the future")
    if now_us > token.expires_at * 1_000_000:
        raise unauthenticated("TOKEN_EXPIRED", "the session token has expired; start a new session", retry_after="0")


def _malformed(why: str) -> Refused:
    return unauthenticated("TOKEN_MALFORMED", f"not a session token: {why}")


def _read(values: Any) -> Token:
    if not isinstance(values, dict) or set(values) != set(_FIELDS):
        raise _malformed("its fields are not the fields of a token")
    _check_types(values)
    return Token(
        session_id=SessionId(values["sid"]),
        window=values["win"],
        quality_history=tuple(values["qh"]),
        budget=Micros(int(values["sb"].replace(".", ""))),
        chain_tip=values["ct"],
        continuation_id=ContinuationId(values["cid"]) if values["cid"] else None,
        pattern=values["dag"],
        strategy=values["str"],
        policy_hash=values["pol"],
        ckf_hash=values["ckf"],
        scope=values["scope"],
        issued_at=values["iat"],
        expires_at=values["exp"],
        nonce=values["nonce"],
        key_version=values["kv"],
    )


def _check_types(values: dict[str, Any]) -> None:
    for name, shape in _TEXTS.items():
        kind = _Fraction if name == "sb" else str
        # type() and not isinstance(): a fraction is a str here, and a bool would be an int.
        if type(values[name]) is not kind or not shape.fullmatch(values[name]):
            raise _malformed(f"{name} is not as it must be")
    for name, least in (("win", 0), ("iat", 0), ("exp", 0), ("kv", 1)):
        if type(values[name]) is not int or not least <= values[name] <= _LARGEST:
            raise _malformed(f"{name} is not as it must be")
    history = values["qh"]
    if type(history) is not list or len(history) > HISTORY_KEPT or any(tier not in TIERS for tier in history):
        raise _malformed("qh is not as it must be")

"""The session token: signed state that the client carries (SPEC-007; design.md, Token).

``b64url(payload) "." b64url(mac)`` without padding. The MAC covers ``b64url({"alg":"HS256","typ":"CRP"}) "." payload`` as
received: a token is never re-serialised to be checked. There is one algorithm, and it is not read from the token.

What is minted here has one form. What is read is every form that SPEC-007 allows, since another implementation may share the
master key (SPEC-007 §7.1): ids of SPEC-002 §4.7 and §4.11, ``sb`` as any JSON number, any base64 nonce, ``kv`` or none.
"""

from __future__ import annotations

import base64
import hmac
import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from interlock.domain.budget import FULL, Micros, as_fixed
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

UNNAMED = 0
"""Key version of a token that does not name one (SPEC-007 §6.2: it may)."""

_SESSION, _NONCE = "crp_sess_", "base64:"
_HEADER = encoded(b'{"alg":"HS256","typ":"CRP"}')
_PRINTED_HEADER = encoded(b'{"alg": "HS256", "typ": "CRP"}')
"""The header with the spaces that SPEC-007 §3.2 prints, under which another implementation may sign."""
_FIELDS = ("v", "sid", "win", "qh", "sb", "ct", "cid", "dag", "str", "pol", "ckf", "scope", "iat", "exp", "nonce", "kv")
_LARGEST = 2**53 - 1
# SPEC-007 §2.2 prints its hashes and its pointer abbreviated; such a text is read, and equals nothing that a store holds.
_HASH = r"(?:sha256:(?:[0-9A-Fa-f]{64}|[0-9a-z_]{1,60}\.\.\.))?"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]{0,39})(?:\.[0-9]{1,60})?(?:[eE][+-]?[0-9]{1,3})?", re.ASCII)
_TEXTS = {
    "v": re.compile(re.escape(VERSION)),
    "sid": re.compile(r"crp_sess_[0-9A-Za-z]{16,32}"),
    "ct": re.compile(_HASH),
    "cid": re.compile(r"(?:crp_cont_(?:[0-9A-Za-z]{16,32}|[0-9A-Za-z]{1,29}\.\.\.))?"),
    "dag": re.compile("LINEAR|FAN_OUT|FAN_IN"),
    "str": re.compile("|".join(STRATEGIES)),
    "pol": re.compile(_HASH),
    "ckf": re.compile(_HASH),
    "scope": re.compile(r".{1,128}"),
    # Whole groups of four, with padding or without: the tail is decoded where the root of the session's tree is wanted.
    "nonce": re.compile(
        r"base64:(?:[A-Za-z0-9+/]{4}){0,63}(?:[A-Za-z0-9+/]{4}|[A-Za-z0-9+/]{3}=?|[A-Za-z0-9+/]{2}(?:==)?)"
    ),
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
    """Version of the master key; that of the key that verified it where the token names none."""


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
    text = token.nonce.removeprefix(_NONCE).rstrip("=")
    tail = base64.b64decode(text + "=" * (-len(text) % 4))[ENTROPY_BYTES:]
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


def verify(text: str, key_of: KeyOf, *, now_us: int, scope: str | None, versions: Sequence[int] = (UNNAMED,)) -> Token:
    """Return what a token says when all of it holds; ``scope=None`` leaves the scope to the caller.

    *versions* are tried in turn for a token that names no key version (SPEC-007 §6.1).
    Refused with TOKEN_MALFORMED, TOKEN_KEY_UNKNOWN, TOKEN_SIGNATURE_INVALID, TOKEN_FROM_FUTURE, TOKEN_EXPIRED or
    TOKEN_SCOPE_MISMATCH. Whether it is the latest one of its session only the store knows.
    """
    try:
        payload, mac = split(text, PAYLOAD_LIMIT)
        token = _read(parse_json(decoded(payload), parse_float=_Fraction))
    except MalformedError as flaw:
        raise _malformed(str(flaw)) from None
    named = token.key_version != UNNAMED
    version = _signed_by(token.session_id, payload, mac, key_of, (token.key_version,) if named else versions)
    if not named:
        token = replace(token, key_version=version)
    _check_time(token, now_us)
    if scope is not None and not hmac.compare_digest(token.scope.encode(), scope.encode()):
        raise unauthenticated("TOKEN_SCOPE_MISMATCH", "the session belongs to another key")
    return token


def _signed_by(session_id: SessionId, payload: bytes, mac: bytes, key_of: KeyOf, versions: Sequence[int]) -> int:
    """Return the first of *versions* whose key signed the payload. The id was checked before it becomes the salt of a key."""
    keys = [(version, key) for version in versions if (key := key_of(version, session_id)) is not None]
    if not keys:
        raise unauthenticated("TOKEN_KEY_UNKNOWN", "the key that signed this token is not known here")
    for version, key in keys:
        for header in (_HEADER, _PRINTED_HEADER):
            if hmac.compare_digest(compute_mac(header, payload, key), mac):
                return version
    raise unauthenticated("TOKEN_SIGNATURE_INVALID", "the signature of the session token does not hold")


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
    if not isinstance(values, dict) or set(values) | {"kv"} != set(_FIELDS):
        raise _malformed("its fields are not the fields of a token")
    values = {"kv": UNNAMED, **values}
    _check_types(values)
    return Token(
        session_id=SessionId(values["sid"]),
        window=values["win"],
        quality_history=tuple(values["qh"]),
        budget=_budget(values["sb"]),
        chain_tip=values["ct"].lower(),
        continuation_id=ContinuationId(values["cid"]) if values["cid"] else None,
        pattern=values["dag"],
        strategy=values["str"],
        policy_hash=values["pol"].lower(),
        ckf_hash=values["ckf"].lower(),
        scope=values["scope"],
        issued_at=values["iat"],
        expires_at=values["exp"],
        nonce=values["nonce"],
        key_version=values["kv"],
    )


def _check_types(values: dict[str, Any]) -> None:
    for name, shape in _TEXTS.items():
        # type() and not isinstance(): a fraction is a str here, and a bool would be an int.
        if type(values[name]) is not str or not shape.fullmatch(values[name]):
            raise _malformed(f"{name} is not as it must be")
    for name in ("win", "iat", "exp", "kv"):
        if type(values[name]) is not int or not 0 <= values[name] <= _LARGEST:
            raise _malformed(f"{name} is not as it must be")
    history = values["qh"]
    if type(history) is not list or any(tier not in TIERS for tier in history):
        raise _malformed("qh is not as it must be")


def _budget(value: Any) -> Micros:
    """Return ``sb`` in whole millionths, whatever its spelling: a double may say 0.6499999999999999 for 0.65."""
    if type(value) not in {int, _Fraction} or not _NUMBER.fullmatch(text := str(value)):
        raise _malformed("sb is not as it must be")
    exact = Decimal(text)
    if not 0 <= exact <= 1:
        raise _malformed("sb is not as it must be")
    return Micros(int((exact * FULL).to_integral_value(ROUND_HALF_EVEN)))

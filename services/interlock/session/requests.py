"""Requests of the session service as domain values. What is not as it must be is refused by name and goes no further.

Ids become keys, and texts are stored, signed and shown: every one is held against its own small alphabet.
"""

from __future__ import annotations

import hashlib
import re

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import FULL, LARGEST_CHARGE, Micros
from interlock.domain.dag import STATUSES, STRATEGIES, TIERS, Seal
from interlock.domain.errors import Refused, invalid, unauthenticated
from interlock.domain.ids import ContinuationId, SessionId, WindowId, check
from interlock.domain.risk import RiskLevel
from interlock.domain.session import CommitWindow, PolicyText
from interlock.session.ledger import Presented

TOKEN_LIMIT = 8192
SCOPE_LIMIT = 128
NONCE_LIMIT = 128
POLICY_LIMIT = 16_384
LONGEST_LEASE_MS = 3_600_000
DEFAULT_STRATEGY = "push"

_HASH = re.compile(r"sha256:[0-9a-f]{64}")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|\+00:00)", re.ASCII)
_SEPARATOR = "\u241f"  # parts the fields of a window HMAC (design.md, Window HMAC)


def scope_of(value: str) -> str:
    """Return a caller's key id: 1 to 128 printable characters."""
    if not 0 < len(value) <= SCOPE_LIMIT or not value.isprintable() or _SEPARATOR in value:
        raise invalid("INVALID_SCOPE", f"scope is a key id of 1 to {SCOPE_LIMIT} printable characters")
    return value


def token_of(value: str) -> str:
    """Return a token as received, when it may be one."""
    if not value:
        raise unauthenticated("TOKEN_MISSING", "a session token is needed")
    if len(value) > TOKEN_LIMIT:
        raise unauthenticated("TOKEN_MALFORMED", "not a session token: it is too long")
    return value


def policy_of(text: str, digest: str) -> PolicyText:
    """Return a canonical policy with its hash. Refused with POLICY_HASH_MISMATCH when they do not belong together."""
    if len(text) > POLICY_LIMIT or not text.isprintable() or _SEPARATOR in text:
        raise invalid("INVALID_POLICY_TEXT", f"a policy is one line of at most {POLICY_LIMIT} printable characters")
    expected = "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    if digest != expected and (text or digest):
        raise invalid("POLICY_HASH_MISMATCH", "policy_hash is not the SHA-256 of policy_text")
    return PolicyText(text, digest)


def strategy_of(value: str) -> str:
    """Return a dispatch strategy; push without one."""
    return one_of("strategy", value, STRATEGIES) if value else DEFAULT_STRATEGY


def one_of(field: str, value: str, allowed: tuple[str, ...]) -> str:
    """Return *value* when it is one of *allowed*."""
    if value not in allowed:
        raise _wrong(field, "one of " + ", ".join(allowed))
    return value


def presented_of(request: session_pb2.OpenWindowRequest) -> Presented:
    """Return what an OpenWindow presents."""
    if len(request.nonce) > NONCE_LIMIT:
        raise invalid("NONCE_MISMATCH", "the policy nonce is not the one of this session")
    return Presented(
        token=token_of(request.token),
        scope=scope_of(request.scope),
        continuation_id=_continuation(request.continuation_id),
        nonce=request.nonce,
        lease_ms=_within("lease_ms", request.lease_ms, 0, LONGEST_LEASE_MS),
    )


def commit_of(request: session_pb2.CommitWindowRequest, continuation_id: ContinuationId) -> CommitWindow:
    """Return what a CommitWindow settles; *continuation_id* is what it may issue."""
    if len(request.parent_ids) > 1:
        raise invalid("FAN_IN_NOT_SUPPORTED", "a window has one parent at most", parents=str(len(request.parent_ids)))
    policy = policy_of(request.policy_text, request.policy_hash)
    return CommitWindow(
        session_id=session_of(request.session_id),
        root_session_id=session_of(request.root_session_id),
        window_id=window_of(request.window_id),
        parent_ids=tuple(window_of(parent) for parent in request.parent_ids),
        window_number=_within("window_number", request.window_number, 1, 2**31 - 1),
        charge=Micros(_within("charge_micros", request.charge_micros, 0, LARGEST_CHARGE)),
        ceiling=Micros(_within("ceiling_micros", request.ceiling_micros, 0, FULL)),
        continuation_id=continuation_id,
        seal=_seal(request),
        # No text keeps the session's policy: a settle may tighten it, never take it away.
        policy=policy if policy.text else None,
    )


def session_of(value: str) -> SessionId:
    """Return a session id."""
    return SessionId(check("crp_sess_", value))


def window_of(value: str) -> WindowId:
    """Return a window id."""
    return WindowId(check("crp_win_", value))


def _continuation(value: str) -> ContinuationId | None:
    return ContinuationId(check("crp_cont_", value)) if value else None


def _seal(request: session_pb2.CommitWindowRequest) -> Seal:
    if request.risk_level not in {int(level) for level in RiskLevel}:
        raise _wrong("risk_level", "LOW, MEDIUM, HIGH or CRITICAL")
    if not _TIME.fullmatch(request.timestamp):
        raise _wrong("timestamp", "an ISO 8601 time in UTC")
    return Seal(
        risk_level=RiskLevel(request.risk_level),
        hmac=_hash("hmac", request.hmac),
        timestamp=request.timestamp,
        response_hash=_hash("response_hash", request.response_hash),
        envelope_etag=_hash("envelope_etag", request.envelope_etag) if request.envelope_etag else "",
        quality_tier=one_of("quality_tier", request.quality_tier, TIERS),
        strategy=strategy_of(request.strategy),
        token_count=_within("token_count", request.token_count, 0, 2**31 - 1),
        status=one_of("status", request.status, STATUSES),
    )


def _hash(field: str, value: str) -> str:
    if not _HASH.fullmatch(value):
        raise _wrong(field, "sha256: and 64 hex digits")
    return value


def _within(field: str, value: int, least: int, most: int) -> int:
    if not least <= value <= most:
        raise _wrong(field, f"from {least} to {most}")
    return value


def _wrong(field: str, expected: str) -> Refused:
    return invalid("INVALID_FIELD", f"{field} must be {expected}", field=field)

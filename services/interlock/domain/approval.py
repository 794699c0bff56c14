"""A reviewer's approval: its fields, its token, and whether it permits a given action (SPEC-012 §6.2; I12).

``approved:sha256:`` b64url(payload) ``.`` b64url(signature), both without padding. The payload is canonical JSON, so that
one approval has one text. The reviewer's own key signs a tag and the payload. Other code checks the signature and who is a
reviewer. The session's state ensures that an approval is used once, by its id.

An approval names one action and exactly the values that bind this action: the rows of ``SCOPES``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Refused, unauthenticated
from interlock.domain.signed import MalformedError, decoded, encoded

FORM = 1
PREFIX = "approved:sha256:"
SIGNED_TAG = b"interlock-approval-v1\x00"
SIGNATURE_BYTES = 64
LONGEST = 4_096
LONGEST_LIFE_S = 86_400
CLOCK_SKEW_S = 60

DELEGATE, RELEASE, REJECT, ERASE, ACKNOWLEDGE = "delegate", "release", "reject", "erase", "acknowledge-truncation"
COMPENSATE = "compensate"
SCOPES: Mapping[str, tuple[str, ...]] = {
    DELEGATE: ("session", "agent"),
    RELEASE: ("session", "window", "response", "policy"),
    REJECT: ("session", "window", "response", "policy"),
    ERASE: ("session",),
    ACKNOWLEDGE: ("size",),
    COMPENSATE: ("kernel", "step", "record", "outcome"),
}
"""Action → the values that bind an approval of it.

A delegation is bound to the delegating session and the type of the child. A decision about a held response is bound to its
session, its window, the hash of exactly what the reviewer saw, and the hash of the policy that held it. An erasure is bound
to the session. The acceptance of a truncated log is bound to the size that was anchored. A decision about a compensation that
is stuck is bound to its kernel, its step, the number of the record that says so, and what is decided.
"""

REVIEWER = re.compile(r"[A-Za-z0-9._@+-]{1,128}", re.ASCII)
_ID = re.compile(r"crp_appr_[0-9a-f]{32}", re.ASCII)
_ENTROPY_BYTES = 16


@dataclass(frozen=True)
class Approval:
    """What a reviewer signed. ``scope`` has exactly the names that ``SCOPES`` lists for the action. Times are Unix seconds."""

    approval_id: str
    reviewer: str
    action: str
    scope: Mapping[str, str]
    issued_at: int
    expires_at: int


@dataclass(frozen=True)
class ApprovalToken:
    """The parts of a token: the approval, the signed bytes and the signature. None of them is verified yet."""

    approval: Approval
    signed: bytes
    signature: bytes


def approval_id(entropy: bytes) -> str:
    """Return the id of an approval, made of 16 random bytes from the caller."""
    if len(entropy) != _ENTROPY_BYTES:
        raise ValueError(f"an approval's id needs {_ENTROPY_BYTES} bytes")
    return "crp_appr_" + entropy.hex()


def canonical_payload(approval: Approval) -> bytes:
    """Return the canonical JSON of an approval."""
    values = {
        "action": approval.action, "exp": approval.expires_at, "iat": approval.issued_at, "id": approval.approval_id,
        "kv": FORM, "reviewer": approval.reviewer, "scope": dict(approval.scope),
    }  # fmt: skip
    return json.dumps(values, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def signed_bytes(payload: bytes) -> bytes:
    """Return the bytes that the reviewer's key signs. The tag prevents another signature of this key from passing as one."""
    return SIGNED_TAG + payload


def token(payload: bytes, signature: bytes) -> str:
    """Return the value of CRP-Oversight-Token."""
    return f"{PREFIX}{encoded(payload).decode()}.{encoded(signature).decode()}"


def read(text: str) -> ApprovalToken:
    """Return the parts of a token. Refused with APPROVAL_INVALID for anything that is not exactly one token."""
    if len(text) > LONGEST or not text.startswith(PREFIX):
        raise _malformed()
    first, _, second = text.removeprefix(PREFIX).partition(".")
    payload, signature = _decoded(first), _decoded(second)
    approval = _approval(payload)
    if len(signature) != SIGNATURE_BYTES or canonical_payload(approval) != payload:
        raise _malformed()
    return ApprovalToken(approval, signed_bytes(payload), signature)


def require(approval: Approval, action: str, scope: Mapping[str, str], *, now_s: int) -> None:
    """Refuse an approval that is validly signed, but for another action, scope or time.

    Refused with APPROVAL_MISMATCH, APPROVAL_EXPIRED or APPROVAL_FROM_FUTURE.
    """
    if action not in SCOPES or approval.action != action:
        raise unauthenticated("APPROVAL_MISMATCH", "the approval is for another action", field="action")
    for name in SCOPES[action]:
        if approval.scope[name] != scope.get(name):
            raise unauthenticated("APPROVAL_MISMATCH", f"the approval is for another {name}", field=name)
    if approval.issued_at > now_s + CLOCK_SKEW_S:
        raise unauthenticated("APPROVAL_FROM_FUTURE", "the approval is dated in the future; check the clocks")
    if now_s >= approval.expires_at:
        raise unauthenticated("APPROVAL_EXPIRED", "the approval has expired; ask the reviewer for another one")


def is_caller(reviewer: str, callers: Iterable[str]) -> bool:
    """Tell whether a reviewer is one of the *callers*, by the full name or by the part before the @. Case is ignored.

    Callers are known by the names of their API keys and by their agent types. No one may approve their own request (A-30).
    """
    names = {name.casefold() for name in callers if name}
    return bool(names & {reviewer.casefold(), reviewer.partition("@")[0].casefold()})


def _approval(payload: bytes) -> Approval:
    try:
        values = json.loads(payload)
    except (ValueError, RecursionError):
        raise _malformed() from None
    if not isinstance(values, dict) or values.keys() != {"action", "exp", "iat", "id", "kv", "reviewer", "scope"}:
        raise _malformed()
    if type(values["kv"]) is not int or values["kv"] != FORM:
        raise unauthenticated("APPROVAL_INVALID", "the approval has an unknown form")
    return _checked(values)


def _checked(values: dict[str, Any]) -> Approval:
    action, scope, issued, expires = values["action"], values["scope"], values["iat"], values["exp"]
    sound = (
        isinstance(action, str)
        and isinstance(scope, dict)
        and scope.keys() == set(SCOPES.get(action, ("?",)))
        and all(isinstance(value, str) for value in scope.values())
        and _matches(_ID, values["id"])
        and _matches(REVIEWER, values["reviewer"])
        and type(issued) is int
        and type(expires) is int
        and 0 < expires - issued <= LONGEST_LIFE_S
    )
    if not sound:
        raise _malformed()
    return Approval(values["id"], values["reviewer"], action, scope, issued, expires)


def _matches(pattern: re.Pattern[str], value: object) -> bool:
    return isinstance(value, str) and pattern.fullmatch(value) is not None


def _decoded(part: str) -> bytes:
    """Decode strictly. A non-canonical spelling is refused, so that a token has one text."""
    try:
        return decoded(part.encode("ascii"))
    except (MalformedError, UnicodeEncodeError):
        raise _malformed() from None


def _malformed() -> Refused:
    return unauthenticated("APPROVAL_INVALID", "the oversight token was not signed by a reviewer")

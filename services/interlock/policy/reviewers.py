"""Who may approve: reviewers' public keys from a file, and their signatures (SPEC-012 §6.2; reliability.md A-30)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from interlock.domain import approval
from interlock.domain.approval import Approval, Presented
from interlock.domain.errors import Refused, invalid, unauthenticated
from interlock.policy.watched import content_of, document_of

KEY_PREFIX = "ed25519:"
KEY_BYTES = 32
_KEY_RULE = f"{KEY_PREFIX} and the 43 characters that `interlock oversight keygen` prints"
_FIELDS = {"public_key", "actions"}


class Reviewers:
    """Registered reviewers: name → public key and the actions that they may approve."""

    def __init__(self, keys: Mapping[str, tuple[Ed25519PublicKey, frozenset[str]]]) -> None:
        self._keys = keys

    def verified(self, token: str, action: str, scope: Mapping[str, str], *, now_s: int) -> Approval:
        """Return what *token* approves, when a registered reviewer signed it for exactly this.

        Refused with APPROVAL_INVALID, APPROVAL_MISMATCH, APPROVAL_EXPIRED or APPROVAL_FROM_FUTURE. An unknown reviewer is
        answered like a forged signature.
        """
        presented = approval.read(token)
        key, actions = self._keys.get(presented.approval.reviewer, (None, frozenset[str]()))
        if key is None or not _signed_by(key, presented):
            raise unauthenticated(
                "APPROVAL_INVALID", "the oversight token is not one that a registered reviewer signed"
            )
        if presented.approval.action not in actions:
            raise unauthenticated("APPROVAL_MISMATCH", "its reviewer may not approve this action", field="reviewer")
        approval.require(presented.approval, action, scope, now_s=now_s)
        return presented.approval


def _signed_by(key: Ed25519PublicKey, presented: Presented) -> bool:
    try:
        key.verify(presented.signature, presented.signed)
    except InvalidSignature:
        return False
    return True


NOBODY = Reviewers({})
"""Without a file nobody can approve anything."""


def read_reviewers(document: object) -> Reviewers:
    """Return the reviewers that *document* lists: a mapping with ``reviewers``, name → public_key and, if wanted, actions.

    Refused with REVIEWERS_INVALID; metadata names the place and what is expected.
    """
    if not isinstance(document, Mapping) or document.keys() != {"reviewers"}:
        raise _bad("the file", "a mapping with reviewers and nothing else")
    listed = document["reviewers"]
    if not isinstance(listed, Mapping):
        raise _bad("reviewers", "a mapping of name to public_key and, if wanted, actions")
    keys: dict[str, tuple[Ed25519PublicKey, frozenset[str]]] = {}
    owners: dict[bytes, str] = {}
    for name, fields in listed.items():
        if not isinstance(name, str) or not approval.REVIEWER.fullmatch(name):
            raise _bad("reviewers", "names of 1 to 128 letters, digits and ._@+-, such as reviewer@company.com")
        raw, actions = _fields(f"reviewers.{name}", fields)
        if (other := owners.setdefault(raw, name)) != name:
            raise _bad(f"reviewers.{name}.public_key", f"a key of its own; {other} has the same one")
        keys[name] = (Ed25519PublicKey.from_public_bytes(raw), actions)
    return Reviewers(keys)


def load_reviewers(path: Path) -> Reviewers:
    """Return the reviewers in *path* as it is now; refused as ``read_reviewers`` and ``document_of``."""
    return read_reviewers(document_of(content_of(path), path))


def _fields(place: str, fields: object) -> tuple[bytes, frozenset[str]]:
    if not isinstance(fields, Mapping) or "public_key" not in fields or not fields.keys() <= _FIELDS:
        raise _bad(place, "a mapping with public_key and, if wanted, actions, and nothing else")
    actions = fields.get("actions", list(approval.SCOPES))
    known = isinstance(actions, list) and all(isinstance(one, str) and one in approval.SCOPES for one in actions)
    if not known or not actions:
        raise _bad(f"{place}.actions", f"a list of at least one of {', '.join(approval.SCOPES)}")
    return key_bytes(fields["public_key"], f"{place}.public_key", _KEY_RULE), frozenset(actions)


def key_bytes(value: Any, place: str, rule: str) -> bytes:
    """Return the 32 bytes of an Ed25519 key as it is written in files; refused with REVIEWERS_INVALID."""
    text = value if isinstance(value, str) else ""
    try:
        raw = base64.b64decode(text.removeprefix(KEY_PREFIX) + "=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not text.startswith(KEY_PREFIX) or len(raw) != KEY_BYTES:
        raise _bad(place, rule)
    return raw


def key_text(raw: bytes) -> str:
    """Return an Ed25519 key as it is written in files."""
    return KEY_PREFIX + base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _bad(place: str, expected: str) -> Refused:
    return invalid("REVIEWERS_INVALID", f"{place}: expected {expected}", place=place, expected=expected)

"""Reviewers: their public keys, from a file or by RPC, and their signatures (SPEC-012 §6.2; reliability.md A-30)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from interlock.api.policy.v1 import policy_pb2
from interlock.domain import approval
from interlock.domain.approval import Approval, ApprovalToken
from interlock.domain.errors import Refused, conflict, forbidden, invalid, unauthenticated
from interlock.policy.watched import parse_document, read_content

KEY_PREFIX = "ed25519:"
KEY_BYTES = 32
_KEY_RULE = f"{KEY_PREFIX} and the 43 characters that `interlock oversight keygen` prints"
_FIELDS = {"public_key", "actions"}
MOST = 1_000
"""Maximum number of reviewers that are registered by RPC."""

UNNAMED = (approval.DELEGATE, approval.RELEASE, approval.REJECT)
"""Default actions of a reviewer. An action that cannot be undone, such as an erasure, must be named explicitly."""


class Reviewers:
    """Registered reviewers: name → public key and the actions that they may approve."""

    def __init__(self, keys: Mapping[str, tuple[Ed25519PublicKey, frozenset[str]]]) -> None:
        self._keys = keys

    def joined(self, others: Reviewers) -> Reviewers:
        """Return these reviewers and *others*. These win where a name or a key occurs in both."""
        mine = {key.public_bytes_raw() for key, _ in self._keys.values()}
        more = {name: held for name, held in others._keys.items() if held[0].public_bytes_raw() not in mine}
        return Reviewers({**more, **self._keys})

    def find_owner(self, name: str, key: bytes) -> str | None:
        """Return the reviewer with that name or that key; ``None`` when there is none."""
        if name in self._keys:
            return name
        return next((owner for owner, (held, _) in self._keys.items() if held.public_bytes_raw() == key), None)

    def messages(self, names: Iterable[str] | None = None) -> list[policy_pb2.Reviewer]:
        """Return every reviewer as a message, by name; those in *names* are marked as from the file."""
        filed = set(self._keys if names is None else names)
        return [
            policy_pb2.Reviewer(
                reviewer_id=name, public_key=key_text(key.public_bytes_raw()), actions=sorted(actions),
                from_file=name in filed,
            )
            for name, (key, actions) in sorted(self._keys.items())
        ]  # fmt: skip

    @property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(self._keys)

    def may_any(self, action: str) -> bool:
        """Tell whether one of them may approve *action*."""
        return any(action in actions for _, actions in self._keys.values())

    def verified(self, token: str, action: str, scope: Mapping[str, str], *, now_s: int) -> Approval:
        """Return the approval in *token* if a registered reviewer signed it for exactly this action and scope.

        Refused with APPROVAL_INVALID, APPROVAL_MISMATCH, APPROVAL_EXPIRED or APPROVAL_FROM_FUTURE. An unknown reviewer
        gets the same refusal as a forged signature.
        """
        presented = approval.read(token)
        key, actions = self._keys.get(presented.approval.reviewer, (None, frozenset[str]()))
        if key is None or not _signed_by(key, presented):
            raise unauthenticated("APPROVAL_INVALID", "no registered reviewer signed this oversight token")
        if presented.approval.action not in actions:
            raise unauthenticated("APPROVAL_MISMATCH", "the reviewer may not approve this action", field="reviewer")
        approval.require(presented.approval, action, scope, now_s=now_s)
        return presented.approval


def _signed_by(key: Ed25519PublicKey, presented: ApprovalToken) -> bool:
    try:
        key.verify(presented.signature, presented.signed)
    except InvalidSignature:
        return False
    return True


NO_REVIEWERS = Reviewers({})
"""The reviewers without a file: none."""


def read_reviewers(document: object) -> Reviewers:
    """Return the reviewers that *document* lists: a mapping with ``reviewers``: name → public_key and optional actions.

    Refused with REVIEWERS_INVALID; metadata names the place and what is expected.
    """
    if not isinstance(document, Mapping) or document.keys() != {"reviewers"}:
        raise _bad("the file", "a mapping with only the key reviewers")
    listed = document["reviewers"]
    if not isinstance(listed, Mapping):
        raise _bad("reviewers", "a mapping of name to public_key and optional actions")
    keys: dict[str, tuple[Ed25519PublicKey, frozenset[str]]] = {}
    owners: dict[bytes, str] = {}
    for name, fields in listed.items():
        if not isinstance(name, str) or not approval.REVIEWER.fullmatch(name):
            raise _bad("reviewers", "names of 1 to 128 letters, digits and ._@+-, such as reviewer@company.com")
        raw, actions = _fields(f"reviewers.{name}", fields)
        if (other := owners.setdefault(raw, name)) != name:
            raise _bad(f"reviewers.{name}.public_key", f"a unique key; {other} has the same one")
        keys[name] = (Ed25519PublicKey.from_public_bytes(raw), actions)
    return Reviewers(keys)


def load_reviewers(path: Path) -> Reviewers:
    """Return the reviewers in *path* as it is now; refused like ``read_reviewers`` and ``parse_document``."""
    return read_reviewers(parse_document(read_content(path), path))


class Registered:
    """The reviewers in the current file, and those that were registered by RPC, in this process's memory.

    *by_rpc* allows registration by RPC. Without mutual TLS any caller that can reach the port could register itself.
    """

    def __init__(self, file: Callable[[], Reviewers], *, by_rpc: bool) -> None:
        self._file, self._by_rpc = file, by_rpc
        self._added: dict[str, dict[str, Any]] = {}

    def now(self) -> Reviewers:
        """Return all reviewers. The file overrides registrations by RPC."""
        return self._file().joined(read_reviewers({"reviewers": self._added}))

    def may_any(self, action: str) -> bool:
        """Tell whether a registered reviewer may approve *action*. Every decision asks, so nothing is parsed for it."""
        return self._file().may_any(action) or any(action in held["actions"] for held in self._added.values())

    def list(self) -> list[policy_pb2.Reviewer]:
        """Return all reviewers, by name."""
        return self.now().messages(self._file().names)

    def register(self, reviewer: policy_pb2.Reviewer) -> bool:
        """Register a reviewer, and return whether it replaced an earlier registration.

        Refused with REVIEWERS_BY_FILE_ONLY, REVIEWERS_INVALID, REVIEWER_FROM_FILE or REVIEWER_KEY_TAKEN.
        """
        self._require()
        name = reviewer.reviewer_id
        fields: dict[str, Any] = {"public_key": reviewer.public_key, "actions": list(reviewer.actions or UNNAMED)}
        read_reviewers({"reviewers": {name: fields}})
        key = key_bytes(reviewer.public_key, "public_key", _KEY_RULE)
        if self._file().find_owner(name, key) is not None:
            raise conflict("REVIEWER_FROM_FILE", "the file holds that name or that key; change it there")
        others = {one: held for one, held in self._added.items() if one != name}
        if read_reviewers({"reviewers": others}).find_owner(name, key) is not None:
            raise conflict("REVIEWER_KEY_TAKEN", "another reviewer has that key")
        if len(others) >= MOST:
            raise invalid("REVIEWERS_INVALID", f"at most {MOST} reviewers are registered by RPC")
        replaced = name in self._added
        self._added = {**others, name: fields}
        return replaced

    def remove(self, name: str) -> bool:
        """Remove a reviewer that was registered by RPC; return whether there was one. Refused like ``register``."""
        self._require()
        if name in self._file().names:
            raise conflict("REVIEWER_FROM_FILE", "the file holds that reviewer; remove it there")
        return self._added.pop(name, None) is not None

    def _require(self) -> None:
        if not self._by_rpc:
            raise forbidden(
                "REVIEWERS_BY_FILE_ONLY", "reviewers can only be registered in the file",
                hint="set INTERLOCK_REVIEWERS_BY_RPC=true if mutual TLS identifies the callers",
            )  # fmt: skip


def _fields(place: str, fields: object) -> tuple[bytes, frozenset[str]]:
    if not isinstance(fields, Mapping) or "public_key" not in fields or not fields.keys() <= _FIELDS:
        raise _bad(place, "a mapping with public_key, optional actions, and nothing else")
    actions = fields.get("actions", list(UNNAMED))
    known = isinstance(actions, list) and all(isinstance(one, str) and one in approval.SCOPES for one in actions)
    if not known or not actions:
        raise _bad(f"{place}.actions", f"a list of at least one of {', '.join(approval.SCOPES)}")
    return key_bytes(fields["public_key"], f"{place}.public_key", _KEY_RULE), frozenset(actions)


def key_bytes(value: Any, place: str, rule: str) -> bytes:
    """Return the 32 bytes of an Ed25519 key in its file notation; refused with REVIEWERS_INVALID."""
    text = value if isinstance(value, str) else ""
    try:
        raw = base64.b64decode(text.removeprefix(KEY_PREFIX) + "=", altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if not text.startswith(KEY_PREFIX) or len(raw) != KEY_BYTES:
        raise _bad(place, rule)
    return raw


def key_text(raw: bytes) -> str:
    """Return an Ed25519 key in its file notation."""
    return KEY_PREFIX + base64.urlsafe_b64encode(raw).rstrip(b"=").decode("ascii")


def _bad(place: str, expected: str) -> Refused:
    return invalid("REVIEWERS_INVALID", f"{place}: expected {expected}", place=place, expected=expected)

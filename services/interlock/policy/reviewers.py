"""Reviewers: their public keys, from a file or by RPC, and their signatures (SPEC-012 §6.2; reliability.md A-30)."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from interlock.api.policy.v1 import policy_pb2
from interlock.domain import approval
from interlock.domain.approval import Approval, ApprovalToken
from interlock.domain.errors import Refused, conflict, forbidden, invalid, unauthenticated
from interlock.domain.policy.roles import EVERYTHING, Role, Sight, read_role, read_sight
from interlock.policy.watched import parse_document, read_content

KEY_PREFIX = "ed25519:"
KEY_BYTES = 32
_KEY_RULE = f"{KEY_PREFIX} and the 43 characters that `interlock oversight keygen` prints"
_FIELDS = {"public_key", "actions", "role", "sees"}
MOST = 1_000
"""Maximum number of reviewers that are registered by RPC."""

UNNAMED = (approval.DELEGATE, approval.RELEASE, approval.REJECT)
"""Default actions of a reviewer. An action that cannot be undone, such as an erasure, must be named explicitly."""


@dataclass(frozen=True)
class Registration:
    """A registered person: the key, the actions that it may approve, and the role in the console."""

    key: Ed25519PublicKey
    actions: frozenset[str]
    role: Role = Role.REVIEWER
    sight: Sight = EVERYTHING

    @property
    def raw(self) -> bytes:
        """The bytes of the key."""
        return self.key.public_bytes_raw()

    def message(self, name: str, *, from_file: bool) -> policy_pb2.Reviewer:
        """Return it as a message."""
        return policy_pb2.Reviewer(
            reviewer_id=name, public_key=key_text(self.raw), actions=sorted(self.actions), from_file=from_file,
            role=self.role.value, sees_keys=sorted(self.sight.keys), sees_agent_types=sorted(self.sight.agent_types),
        )  # fmt: skip


class Reviewers:
    """Registered reviewers, by name."""

    def __init__(self, keys: Mapping[str, Registration]) -> None:
        self._keys = keys

    def joined(self, others: Reviewers) -> Reviewers:
        """Return these reviewers and *others*. These win where a name or a key occurs in both."""
        mine = {held.raw for held in self._keys.values()}
        more = {name: held for name, held in others._keys.items() if held.raw not in mine}
        return Reviewers({**more, **self._keys})

    def find_owner(self, name: str, key: bytes) -> str | None:
        """Return the reviewer with that name or that key; ``None`` when there is none."""
        if name in self._keys:
            return name
        return next((owner for owner, held in self._keys.items() if held.raw == key), None)

    def messages(self, names: Iterable[str] | None = None) -> list[policy_pb2.Reviewer]:
        """Return every reviewer as a message, by name; those in *names* are marked as from the file."""
        filed = set(self._keys if names is None else names)
        return [held.message(name, from_file=name in filed) for name, held in sorted(self._keys.items())]

    @property
    def names(self) -> frozenset[str]:
        """Their names."""
        return frozenset(self._keys)

    def may_any(self, action: str) -> bool:
        """Tell whether one of them may approve *action*."""
        return any(action in held.actions for held in self._keys.values())

    def verified(self, token: str, action: str, scope: Mapping[str, str], *, now_s: int) -> Approval:
        """Return the approval in *token* if a registered reviewer signed it for exactly this action and scope.

        Refused with APPROVAL_INVALID, APPROVAL_MISMATCH, APPROVAL_EXPIRED or APPROVAL_FROM_FUTURE. An unknown reviewer
        gets the same refusal as a forged signature.
        """
        presented = approval.read(token)
        held = self._keys.get(presented.approval.reviewer)
        if held is None or not _signed_by(held.key, presented):
            raise unauthenticated("APPROVAL_INVALID", "no registered reviewer signed this oversight token")
        if presented.approval.action not in held.actions:
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
    """Return the reviewers that *document* lists: a mapping with ``reviewers``: name → public_key, optional actions, role and sees.

    Refused with REVIEWERS_INVALID; metadata names the place and what is expected.
    """
    if not isinstance(document, Mapping) or document.keys() != {"reviewers"}:
        raise _bad("the file", "a mapping with only the key reviewers")
    listed = document["reviewers"]
    if not isinstance(listed, Mapping):
        raise _bad("reviewers", "a mapping of name to public_key and optional actions, role and sees")
    keys: dict[str, Registration] = {}
    owners: dict[bytes, str] = {}
    for name, fields in listed.items():
        if not isinstance(name, str) or not approval.REVIEWER.fullmatch(name):
            raise _bad("reviewers", "names of 1 to 128 letters, digits and ._@+-, such as reviewer@company.com")
        keys[name] = held = _registration(f"reviewers.{name}", fields)
        if (other := owners.setdefault(held.raw, name)) != name:
            raise _bad(f"reviewers.{name}.public_key", f"a unique key; {other} has the same one")
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
        fields = _given(reviewer)
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


def _given(reviewer: policy_pb2.Reviewer) -> dict[str, Any]:
    """Return the fields of a reviewer who is registered by RPC, as the file would have them."""
    role = reviewer.role or Role.REVIEWER.value
    unnamed = () if role == Role.VIEWER.value else UNNAMED
    sees = {"keys": list(reviewer.sees_keys), "agent_types": list(reviewer.sees_agent_types)}
    given = {name: listed for name, listed in sees.items() if listed}
    fields = {"public_key": reviewer.public_key, "actions": list(reviewer.actions or unnamed), "role": role}
    return {**fields, "sees": given} if given else fields


def _registration(place: str, fields: object) -> Registration:
    if not isinstance(fields, Mapping) or "public_key" not in fields or not fields.keys() <= _FIELDS:
        raise _bad(place, "a mapping with public_key, optional actions, role and sees, and nothing else")
    role = read_role(f"{place}.role", fields.get("role", Role.REVIEWER.value), _bad)
    actions = _actions(f"{place}.actions", fields.get("actions"), role)
    sight = read_sight(f"{place}.sees", fields["sees"], _bad) if "sees" in fields else EVERYTHING
    key = key_bytes(fields["public_key"], f"{place}.public_key", _KEY_RULE)
    return Registration(Ed25519PublicKey.from_public_bytes(key), actions, role, sight)


def _actions(place: str, given: Any, role: Role) -> frozenset[str]:
    """Return the actions of a role. A viewer has none: whoever may not see an answer cannot approve it either."""
    if role is Role.VIEWER:
        if given:
            raise _bad(place, "no action for a viewer")
        return frozenset()
    listed: Any = list(UNNAMED) if given is None else given
    known = isinstance(listed, list) and all(isinstance(one, str) and one in approval.SCOPES for one in listed)
    if not known or not listed:
        raise _bad(place, f"a list of at least one of {', '.join(approval.SCOPES)}")
    return frozenset(listed)


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

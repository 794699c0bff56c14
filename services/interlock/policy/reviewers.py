"""Who may approve: reviewers' public keys from a file and by RPC, and their signatures (SPEC-012 §6.2; reliability.md A-30)."""

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
from interlock.policy.watched import content_of, document_of

KEY_PREFIX = "ed25519:"
KEY_BYTES = 32
_KEY_RULE = f"{KEY_PREFIX} and the 43 characters that `interlock oversight keygen` prints"
_FIELDS = {"public_key", "actions"}
MOST = 1_000
"""Reviewers that are registered by RPC at most."""

UNNAMED = (approval.DELEGATE, approval.RELEASE, approval.REJECT)
"""Actions of a reviewer for whom none are named. What cannot be undone, such as an erasure, is named or not allowed."""


class Reviewers:
    """Registered reviewers: name → public key and the actions that they may approve."""

    def __init__(self, keys: Mapping[str, tuple[Ed25519PublicKey, frozenset[str]]]) -> None:
        self._keys = keys

    def joined(self, others: Reviewers) -> Reviewers:
        """Return these and *others*; of two of one name or one key these stay."""
        mine = {key.public_bytes_raw() for key, _ in self._keys.values()}
        more = {name: held for name, held in others._keys.items() if held[0].public_bytes_raw() not in mine}
        return Reviewers({**more, **self._keys})

    def owner_of(self, name: str, key: bytes) -> str | None:
        """Return who has that name or that key; ``None``: nobody."""
        if name in self._keys:
            return name
        return next((owner for owner, (held, _) in self._keys.items() if held.public_bytes_raw() == key), None)

    def messages(self, names: Iterable[str] | None = None) -> list[policy_pb2.Reviewer]:
        """Return every reviewer as a message, by name; those in *names* are said to be in the file."""
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


def _signed_by(key: Ed25519PublicKey, presented: ApprovalToken) -> bool:
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


class Registered:
    """The reviewers of the file as it is now, and those that were registered by RPC, in this process's memory.

    *by_rpc* says whether RPC may add any: whoever can reach a port without mutual TLS could make itself a reviewer.
    """

    def __init__(self, file: Callable[[], Reviewers], *, by_rpc: bool) -> None:
        self._file, self._by_rpc = file, by_rpc
        self._added: dict[str, dict[str, object]] = {}

    def now(self) -> Reviewers:
        """Return everybody who may approve something now. What the file says goes over what RPC said."""
        return self._file().joined(read_reviewers({"reviewers": self._added}))

    def list(self) -> list[policy_pb2.Reviewer]:
        """Return everybody, by name."""
        return self.now().messages(self._file().names)

    def register(self, reviewer: policy_pb2.Reviewer) -> bool:
        """Take a reviewer in, and return whether there was another key before.

        Refused with REVIEWERS_BY_FILE_ONLY, REVIEWERS_INVALID, REVIEWER_FROM_FILE or REVIEWER_KEY_TAKEN.
        """
        self._require()
        name = reviewer.reviewer_id
        fields: dict[str, object] = {"public_key": reviewer.public_key, "actions": list(reviewer.actions or UNNAMED)}
        read_reviewers({"reviewers": {name: fields}})
        key = key_bytes(reviewer.public_key, "public_key", _KEY_RULE)
        if self._file().owner_of(name, key) is not None:
            raise conflict("REVIEWER_FROM_FILE", "the file holds that name or that key; change it there")
        others = {one: held for one, held in self._added.items() if one != name}
        if read_reviewers({"reviewers": others}).owner_of(name, key) is not None:
            raise conflict("REVIEWER_KEY_TAKEN", "another reviewer has that key")
        if len(others) >= MOST:
            raise invalid("REVIEWERS_INVALID", f"at most {MOST} reviewers are registered by RPC")
        replaced = name in self._added
        self._added = {**others, name: fields}
        return replaced

    def remove(self, name: str) -> bool:
        """Take a reviewer out that was registered by RPC; return whether there was one. Refused as ``register``."""
        self._require()
        if name in self._file().names:
            raise conflict("REVIEWER_FROM_FILE", "the file holds that reviewer; take it out there")
        return self._added.pop(name, None) is not None

    def _require(self) -> None:
        if not self._by_rpc:
            raise forbidden(
                "REVIEWERS_BY_FILE_ONLY", "reviewers are registered in the file alone here",
                hint="set INTERLOCK_REVIEWERS_BY_RPC=true where mutual TLS says who calls",
            )  # fmt: skip


def _fields(place: str, fields: object) -> tuple[bytes, frozenset[str]]:
    if not isinstance(fields, Mapping) or "public_key" not in fields or not fields.keys() <= _FIELDS:
        raise _bad(place, "a mapping with public_key and, if wanted, actions, and nothing else")
    actions = fields.get("actions", list(UNNAMED))
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

"""A reviewer's key file, and signatures with it. Only this process reads the private key."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.domain import approval
from interlock.domain.approval import Approval
from interlock.domain.errors import invalid, unavailable
from interlock.policy.reviewers import key_bytes
from interlock.policy.watched import parse_document, read_content
from interlock.runtime.clock import system_clock

_RULE = "a file that `interlock oversight keygen` wrote"


def private_key(path: Path) -> tuple[str, Ed25519PrivateKey]:
    """Return the reviewer's name and key in *path*. Refused with KEY_FILE_OPEN when other users can read the file."""
    content = read_content(path)
    if stat.S_IMODE(path.stat().st_mode) & 0o077:
        raise invalid(
            "KEY_FILE_OPEN", f"{path} can be read by other users, so it proves nothing", hint=f"chmod 600 {path}"
        )
    document = parse_document(content, path)
    if not isinstance(document, dict) or document.keys() != {"reviewer", "private_key"}:
        raise invalid("REVIEWERS_INVALID", f"{path}: expected {_RULE}")
    reviewer = document["reviewer"]
    if not isinstance(reviewer, str) or not approval.REVIEWER.fullmatch(reviewer):
        raise invalid("REVIEWERS_INVALID", f"{path}: reviewer: expected {_RULE}")
    return reviewer, Ed25519PrivateKey.from_private_bytes(key_bytes(document["private_key"], "private_key", _RULE))


def approved(
    reviewer: str, key: Ed25519PrivateKey, action: str, scope: Mapping[str, str], *, life_s: int
) -> tuple[Approval, str]:
    """Return an approval made now, and its token."""
    now_s = system_clock() // 1_000_000
    made = Approval(
        approval_id=approval.approval_id(os.urandom(16)),
        reviewer=reviewer,
        action=action,
        scope=scope,
        issued_at=now_s,
        expires_at=now_s + max(1, min(life_s, approval.LONGEST_LIFE_S)),
    )
    payload = approval.canonical_payload(made)
    return made, approval.token(payload, key.sign(approval.signed_bytes(payload)))


def write_key(path: Path, text: str) -> None:
    """Write a key file, readable by its owner only. Refused with FILE_EXISTS: a key is never overwritten."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
    except FileExistsError:
        raise invalid("FILE_EXISTS", f"{path} already exists, and a key is never overwritten") from None
    except OSError as error:
        raise unavailable("FILE_NOT_WRITTEN", f"{path}: {type(error).__name__}", retry_after_ms=0) from None

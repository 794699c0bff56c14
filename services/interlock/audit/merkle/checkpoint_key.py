"""The Ed25519 key of the log's checkpoints: its file, and the only place that verifies such signatures."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from interlock.domain.errors import Refused, unavailable
from interlock.domain.merkle import note
from interlock.domain.merkle.note import Checkpoint, VerifiedCheckpoint, VerifierKey
from interlock.domain.merkle.tiles import generation_origin
from interlock.runtime.settings.model import Settings

OWN_KEY = "checkpoint.key"
PUBLIC = ".pub"


@dataclass(frozen=True)
class CheckpointKey:
    """The log's name and its private key."""

    name: str
    private: Ed25519PrivateKey = field(repr=False)

    def verifier(self, generation: int = 1) -> VerifierKey:
        """Return the public key that verifies the checkpoints of a generation."""
        return VerifierKey(generation_origin(self.name, generation), self.private.public_key().public_bytes_raw())

    def sign(self, size: int, root: bytes, *, generation: int, now_s: int) -> str:
        """Return a signed checkpoint."""
        key = self.verifier(generation)
        return note.sign(Checkpoint(key.name, size, root), key, self.private.sign, now_s=now_s)

    def open(self, text: str, generation: int) -> VerifiedCheckpoint:
        """Return a checkpoint of that generation. Raises ``MalformedNoteError`` unless this key signed it."""
        return note.open_note(text, self.verifier(generation), holds)


def holds(public_key: bytes, signature: bytes, message: bytes) -> bool:
    """Return whether an Ed25519 signature is valid."""
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, message)
    except (InvalidSignature, ValueError):
        return False
    return True


def load_checkpoint_key(settings: Settings) -> CheckpointKey:
    """Return the key that the settings name; without one, the key in ``state_dir``, which is made if missing.

    Refused with CHECKPOINT_KEY_UNREADABLE. The public half of a key made here is written next to it.
    """
    path = settings.checkpoint_key_file
    try:
        if path is None:
            path = settings.state_dir / OWN_KEY
            _create(path, settings.audit_origin)
        private = _private(path)
    except OSError as error:
        raise _unreadable(path, type(error).__name__) from None
    return CheckpointKey(settings.audit_origin, private)


def _private(path: Path | None) -> Ed25519PrivateKey:
    assert path is not None
    with path.open("rb") as file:
        if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
            raise _unreadable(path, "others can read it", hint=f"chmod 600 {path}")
        content = file.read(65_536)
    try:
        found = load_pem_private_key(content, None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        found = None
    if not isinstance(found, Ed25519PrivateKey):
        raise _unreadable(path, "it is not an Ed25519 private key in PEM")
    return found


def _unreadable(path: Path | None, why: str, **metadata: str) -> Refused:
    return unavailable("CHECKPOINT_KEY_UNREADABLE", f"{path}: {why}", retry_after_ms=0, **metadata)


def _create(path: Path, name: str) -> None:
    """Make a key if there is none. Of two processes that try at once the first wins, and both read its key."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with contextlib.suppress(FileExistsError):
        _write(path, pem, 0o600)
        public = str(VerifierKey(name, key.public_key().public_bytes_raw())) + "\n"
        _write(path.with_name(path.name + PUBLIC), public.encode(), 0o644)


def _write(path: Path, content: bytes, mode: int) -> None:
    scratch = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(scratch, path)
    finally:
        scratch.unlink()

"""Signed notes and their checkpoints (C2SP signed-note and tlog-checkpoint).

The text of a checkpoint is origin, size and root hash, one line each. The log signs it with Ed25519. A second signature of the
same key covers the text and a time (C2SP tlog-cosignature v1), because a monitor could not check an extension line. The caller
provides the functions that make and verify signatures.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256

from interlock.domain.merkle.log_name import name_problem
from interlock.domain.merkle.tree import HASH_BYTES

ED25519 = 0x01
TIMED = 0x04
"""Signature types of C2SP signed-note: over the text, and over the text with a time."""

KEY_BYTES = 32
SIGNATURE_BYTES = 64
LONGEST_NOTE = 16_384
MOST_SIGNATURES = 32
MAX_SIZE = 2**63 - 1

Sign = Callable[[bytes], bytes]
"""Returns the Ed25519 signature of a message."""
Verify = Callable[[bytes, bytes, bytes], bool]
"""Returns whether a signature of a message is valid for a public key."""

_SIZE = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_KEY_ID = re.compile(r"[0-9a-f]{8}", re.ASCII)
_DASH = "\u2014 "


class MalformedNoteError(ValueError):
    """The text is no valid note, checkpoint or verifier key."""


@dataclass(frozen=True)
class VerifierKey:
    """The name of a log and its public key. An auditor receives its text: ``name+hash+key``."""

    name: str
    public_key: bytes

    def key_id(self, kind: int = ED25519) -> bytes:
        """Return the four bytes that identify this key in a signature of this type."""
        return sha256(self.name.encode() + b"\n" + bytes([kind]) + self.public_key).digest()[:4]

    def named(self, name: str) -> VerifierKey:
        """Return the same key under another name."""
        return VerifierKey(name, self.public_key)

    def __str__(self) -> str:
        return f"{self.name}+{self.key_id().hex()}+{b64encode(bytes([ED25519]) + self.public_key).decode()}"


@dataclass(frozen=True)
class Checkpoint:
    """Origin, size and root hash of a log."""

    origin: str
    size: int
    root: bytes

    def text(self) -> str:
        """Return the signed text."""
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n"


@dataclass(frozen=True)
class VerifiedCheckpoint:
    """A checkpoint with a valid signature, and its time: Unix seconds, 0 when no time is signed."""

    checkpoint: Checkpoint
    signed_at: int
    note: str


def verifier_key(text: str) -> VerifierKey:
    """Return the key in ``name+hash+key``. Raises ``MalformedNoteError`` where the hash does not match name and key."""
    name, _, rest = text.strip().partition("+")
    key_id, _, encoded = rest.partition("+")
    key = _decoded(encoded)
    if len(key) != 1 + KEY_BYTES or key[0] != ED25519 or name_problem(name):
        raise MalformedNoteError("not an Ed25519 verifier key, name+hash+key")
    found = VerifierKey(name, key[1:])
    if not _KEY_ID.fullmatch(key_id) or bytes.fromhex(key_id) != found.key_id():
        raise MalformedNoteError("the hash of the verifier key does not match its name and key")
    return found


def sign(checkpoint: Checkpoint, key: VerifierKey, signer: Sign, *, now_s: int) -> str:
    """Return the note: the checkpoint, the log's signature, and its signature with the time."""
    text = checkpoint.text()
    plain, timed = signer(text.encode()), signer(_timed(text, now_s))
    stamp = now_s.to_bytes(8, "big")
    return text + "\n" + _line(key, ED25519, plain) + _line(key, TIMED, stamp + timed)


def open_note(note: str, key: VerifierKey, verify: Verify) -> VerifiedCheckpoint:
    """Return the checkpoint in *note* if *key* signed it.

    Raises ``MalformedNoteError`` for a note without a checkpoint of this key's log, or with an invalid signature. Signatures of
    unknown keys are ignored (signed-note).
    """
    text, signatures = _parts(note)
    checkpoint = _checkpoint(text)
    if checkpoint.origin != key.name:
        raise MalformedNoteError("the note is of another log")
    mine = [found for name, found in signatures if name == key.name]
    plain = [found[4:] for found in mine if found[:4] == key.key_id()]
    if not plain or not all(_holds(verify, key, signature, text.encode()) for signature in plain):
        raise MalformedNoteError("the note is not signed by this key")
    stamped = [found[4:] for found in mine if found[:4] == key.key_id(TIMED)]
    return VerifiedCheckpoint(checkpoint, max((_time(verify, key, found, text) for found in stamped), default=0), note)


def checkpoint_in(note: str) -> Checkpoint:
    """Return the checkpoint in *note* without verifying it: for a look-up only, never as evidence."""
    return _checkpoint(_parts(note)[0])


def _time(verify: Verify, key: VerifierKey, found: bytes, text: str) -> int:
    now_s = int.from_bytes(found[:8], "big")
    if not _holds(verify, key, found[8:], _timed(text, now_s)):
        raise MalformedNoteError("the time of the note is not signed by this key")
    return now_s


def _holds(verify: Verify, key: VerifierKey, signature: bytes, message: bytes) -> bool:
    return len(signature) == SIGNATURE_BYTES and verify(key.public_key, signature, message)


def _timed(text: str, now_s: int) -> bytes:
    return f"cosignature/v1\ntime {now_s}\n{text}".encode()


def _line(key: VerifierKey, kind: int, signature: bytes) -> str:
    return f"{_DASH}{key.name} {b64encode(key.key_id(kind) + signature).decode()}\n"


def _parts(note: str) -> tuple[str, list[tuple[str, bytes]]]:
    if len(note) > LONGEST_NOTE or not note.endswith("\n") or any(ord(c) < 0x20 and c != "\n" for c in note):
        raise MalformedNoteError("not a signed note")
    text, blank, rest = note.rpartition("\n\n")
    lines = rest.split("\n")[:-1]
    if not blank or not 0 < len(lines) <= MOST_SIGNATURES:
        raise MalformedNoteError("not a signed note")
    return text + "\n", [_signature(line) for line in lines]


def _signature(line: str) -> tuple[str, bytes]:
    name, _, encoded = line.removeprefix(_DASH).partition(" ")
    found = _decoded(encoded)
    if not line.startswith(_DASH) or not name or len(found) < 5:
        raise MalformedNoteError("not a signature line")
    return name, found


def _checkpoint(text: str) -> Checkpoint:
    lines = text.split("\n")[:-1]
    if len(lines) != 3 or name_problem(lines[0]) or not _SIZE.fullmatch(lines[1]) or int(lines[1]) > MAX_SIZE:
        raise MalformedNoteError("not a checkpoint: origin, size and root hash")
    root = _decoded(lines[2])
    if len(root) != HASH_BYTES:
        raise MalformedNoteError("the root hash of a checkpoint has 32 bytes")
    return Checkpoint(lines[0], int(lines[1]), root)


def _decoded(text: str) -> bytes:
    """Decode strictly: a non-canonical spelling is refused."""
    try:
        found = b64decode(text.encode("ascii"), validate=True)
    except (Base64Error, ValueError):
        raise MalformedNoteError("not base64") from None
    if b64encode(found).decode() != text:
        raise MalformedNoteError("not base64")
    return found

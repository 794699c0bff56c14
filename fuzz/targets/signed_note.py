"""Checkpoints: a note that opens was signed as it stands, and a verifier key has one text (AUD-6)."""

from __future__ import annotations

import hashlib

from fuzz.reading import split_off
from interlock.domain.merkle import note
from interlock.domain.merkle.note import Checkpoint, MalformedNoteError, VerifierKey

KEY = VerifierKey("example.com/audit", bytes(range(32)))
NOW_S = 1_748_160_000
WORDS = (
    b"example.com/audit", b"\n\n", "\u2014 ".encode(), b"\n0\n", b"+", b"=", b"==", b"\n\n\n", b"18446744073709551616", b"\r\n",
    b"+AQ", b"\x7f",
)  # fmt: skip


def signature(message: bytes) -> bytes:
    """Stand for Ed25519: 64 bytes that only this message has."""
    return hashlib.sha512(b"secret" + message).digest()


def verified(public_key: bytes, found: bytes, message: bytes) -> bool:
    """Check what ``signature`` made."""
    return public_key == KEY.public_key and found == signature(message)


def TestOneInput(data: bytes) -> None:
    """Every text is a ``ValueError``, or a note whose checkpoint, signed again, opens to the same; so with keys."""
    kind, rest = data[:1], data[1:]
    if kind == b"k":
        _key(rest.decode("utf-8", "replace"))
    elif kind == b"c":
        _changed(rest)
    else:
        _note(rest.decode("utf-8", "replace"))


def _key(text: str) -> None:
    try:
        found = note.verifier_key(text)
    except MalformedNoteError:
        return
    assert str(found) == text.strip()
    assert note.verifier_key(str(found)) == found


def _note(text: str) -> None:
    try:
        said = note.checkpoint_in(text)
    except MalformedNoteError:
        said = None
    try:
        opened = note.open_note(text, KEY, verified)
    except MalformedNoteError:
        return
    assert opened.checkpoint == said
    assert text.startswith(opened.checkpoint.text() + "\n")
    again = note.sign(opened.checkpoint, KEY, signature, now_s=opened.signed_at)
    assert note.open_note(again, KEY, verified).checkpoint == opened.checkpoint


def _changed(rest: bytes) -> None:
    """A good note with a piece of its text replaced does not open, and so its size and root cannot be changed."""
    place, put = split_off(rest, 2)
    good = sample()
    at = int.from_bytes(place[:2], "big") % len(good)
    inserted = put.decode("utf-8", "replace")
    text = good[:at] + inserted + good[at + len(inserted) :]
    try:
        opened = note.open_note(text, KEY, verified)
    except MalformedNoteError:
        return
    assert opened.checkpoint == note.open_note(good, KEY, verified).checkpoint
    assert opened.signed_at in {0, NOW_S}


def sample() -> str:
    """A good note."""
    return note.sign(Checkpoint(KEY.name, 200, hashlib.sha256(b"root").digest()), KEY, signature, now_s=NOW_S)


def seeds() -> dict[str, bytes]:
    """A note, its key, and notes with other lines."""
    good = sample()
    return {
        "note": b"n" + good.encode(),
        "other_signer": b"n" + (good + "\u2014 witness.example AAAAAAAA\n").encode(),
        "extension": b"n" + good.replace("\n\n", "\nmore\n\n").encode(),
        "changed_size": b"c\x00\x12\x009",
        "changed_name": b"c\x00\x01\x00E",
        "key": b"k" + str(KEY).encode(),
        "key_spaced": b"k " + str(KEY).encode() + b"\n",
    }

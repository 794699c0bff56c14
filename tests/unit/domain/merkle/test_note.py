"""Checkpoints as signed notes: byte-exact, signed with a time, and refused for every other byte (C2SP)."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from interlock.audit.merkle.checkpoint_key import holds
from interlock.domain.merkle.note import (
    Checkpoint,
    MalformedNoteError,
    VerifierKey,
    checkpoint_in,
    open_note,
    sign,
    verifier_key,
)

PRIVATE = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
KEY = VerifierKey("example.com/audit", PRIVATE.public_key().public_bytes_raw())
CHECKPOINT = Checkpoint("example.com/audit", 200, bytes(range(32)))
NOTE = sign(CHECKPOINT, KEY, PRIVATE.sign, now_s=1_779_703_200)

# The example of C2SP tlog-checkpoint.
PUBLISHED = (
    "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n\n"
    "— example.com/behind-the-sofa"
    " Az3grlgtzPICa5OS8npVmf1Myq/5IZniMp+ZJurmRDeOoRDe4URYN7u5/Zhcyv2q1gGzGku9nTo+zyWE+xeMcTOAYQ8=\n"
)
# A published verifier key of the C2SP form: that of Go's checksum database.
SUMDB = "sum.golang.org+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8"


@pytest.mark.req("AUD-6")
def test_a_checkpoint_is_what_it_was_signed_as():
    """Size, root and time come out of the note that they went into."""
    opened = open_note(NOTE, KEY, holds)

    assert opened.checkpoint == CHECKPOINT
    assert opened.signed_at == 1_779_703_200
    assert NOTE.startswith(
        "example.com/audit\n200\nAAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=\n\n— example.com/audit "
    )


def test_published_examples_are_read():
    """The specification's own checkpoint, and a verifier key that the world uses."""
    assert checkpoint_in(PUBLISHED).size == 20_852_163
    assert str(verifier_key(SUMDB)) == SUMDB


@pytest.mark.req("AUD-6")
def test_every_changed_byte_is_noticed():
    """No character of the text or of the log's own signature can be replaced."""
    end = NOTE.index("\n", NOTE.index("— "))
    for at in range(end):
        changed = NOTE[:at] + chr(ord(NOTE[at]) ^ 1) + NOTE[at + 1 :]
        with pytest.raises(MalformedNoteError):
            open_note(changed, KEY, holds)


def test_a_changed_time_is_noticed():
    """The time stands under a signature of its own."""
    head, _, line = NOTE.rstrip("\n").rpartition("\n")
    changed = line[:60] + ("A" if line[60] != "A" else "B") + line[61:]
    with pytest.raises(MalformedNoteError):
        open_note(f"{head}\n{changed}\n", KEY, holds)


def test_signatures_of_others_are_passed_over():
    """A witness may add a line; it neither helps nor harms."""
    stranger = Ed25519PrivateKey.generate()
    theirs = VerifierKey("witness.example", stranger.public_key().public_bytes_raw())
    added = sign(CHECKPOINT, theirs, stranger.sign, now_s=5).split("\n\n")[1]

    assert open_note(NOTE + added, KEY, holds).checkpoint == CHECKPOINT
    with pytest.raises(MalformedNoteError, match="not signed"):
        open_note(f"{CHECKPOINT.text()}\n{added}", KEY, holds)


@pytest.mark.parametrize(
    "text",
    [
        "", "\n", "a\n", PUBLISHED.rstrip("\n"), PUBLISHED.replace("20852163", "020852163"), PUBLISHED.replace("— ", "- "),
        PUBLISHED.replace("20852163", "-1"), PUBLISHED.replace("20852163", str(2**63)), PUBLISHED.replace("sofa", "so fa"),
        PUBLISHED.replace("\n\n", "\nextension\n\n"), PUBLISHED.replace("q2I=", "q2J="), PUBLISHED.replace("\n", "\r\n"),
        PUBLISHED + "\x00\n", PUBLISHED * 60, PUBLISHED.replace("q2I=\n\n", "q2I=\n"),
    ],
)  # fmt: skip
def test_what_is_no_checkpoint_is_refused(text):
    """Leading zeros, a minus, other dashes, extension lines, loose base64, control characters, too much."""
    with pytest.raises(MalformedNoteError):
        checkpoint_in(text)


@pytest.mark.parametrize(
    "text", ["", "a+b+c", SUMDB[:-1], SUMDB.replace("033d", "133d"), SUMDB.replace("sum.", "sun."), SUMDB.replace("+Ac", "+Bc")]
)  # fmt: skip
def test_a_verifier_key_whose_parts_do_not_fit_is_refused(text):
    """Name, hash and key vouch for one another."""
    with pytest.raises(MalformedNoteError):
        verifier_key(text)

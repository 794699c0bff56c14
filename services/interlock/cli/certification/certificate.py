"""Certificates: a report, signed with the Ed25519 key that signs the checkpoints of this mesh's audit log."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from interlock.audit.merkle.checkpoint_key import CheckpointKey, holds
from interlock.cli.certification.kit import KitReport
from interlock.domain.decision.engine import ENGINE
from interlock.domain.decision.reading import canonical
from interlock.domain.errors import Refused, invalid
from interlock.domain.merkle.note import SIGNATURE_BYTES, MalformedNoteError, VerifierKey, verifier_key
from interlock.runtime.clock import iso8601

FORM = "interlock-decision-certificate-v1"
LARGEST = 1 << 20


@dataclass(frozen=True)
class VerifiedCertificate:
    """What a valid certificate says, and the key that signed it."""

    told: Mapping[str, Any]
    key: VerifierKey


def signed(report: KitReport, key: CheckpointKey, *, at_us: int) -> str:
    """Return a certificate. Only for an agent that passed."""
    told = {"form": FORM, "engine": ENGINE, "certified_at": iso8601(at_us), **report.told()}
    text = canonical(told)
    signature = key.private.sign(_message(text))
    # What is signed is a text: nothing is serialised again to be compared.
    return (
        json.dumps({"certificate": text, "key": str(key.verifier()), "signature": b64encode(signature).decode()}) + "\n"
    )


def verified(path: Path, trusted: VerifierKey) -> VerifiedCertificate:
    """Return what a certificate says if *trusted* signed it. Refused with CERTIFICATE_UNREADABLE or CERTIFICATE_INVALID."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise invalid("CERTIFICATE_UNREADABLE", f"{path}: {type(error).__name__}") from None
    try:
        envelope: Any = json.loads(content) if len(content) <= LARGEST else None
        text, key = envelope["certificate"], verifier_key(envelope["key"])
        signature = b64decode(envelope["signature"], validate=True)
        told = json.loads(text)
        whole = told["form"] == FORM and told["passed"] is True and len(signature) == SIGNATURE_BYTES
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, MalformedNoteError):
        raise _wrong(path, "it is no certificate of an agent that passed") from None
    if not whole:
        raise _wrong(path, "it is no certificate of an agent that passed")
    if key != trusted:
        raise _wrong(path, f"{key.name} signed it, with another key than the trusted one")
    if not holds(trusted.public_key, signature, _message(text)):
        raise _wrong(path, "its text is not the one that was signed")
    return VerifiedCertificate(told, key)


def _message(text: str) -> bytes:
    """Return the bytes that are signed. The form in front keeps them apart from checkpoints, which the same key signs."""
    return f"{FORM}\n{text}".encode()


def _wrong(path: Path, why: str) -> Refused:
    return invalid("CERTIFICATE_INVALID", f"{path}: {why}")

"""Spools of recorded emergency actions as texts, made by the rule itself."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from interlock.domain.kernel.definition import kernel_id_of
from interlock.domain.kernel.emergency import (
    EmergencyEntry,
    Spool,
    SpoolHead,
    begun_line,
    emergency_line,
    read_spool,
)

SIGNED_BY, SPOOL_ID = "master-1", "ab" * 16


def key_named(name: str, subject: str) -> bytes | None:
    """A key of the deployment; none of another name."""
    return hashlib.sha256(f"{name} {subject}".encode()).digest() if name == SIGNED_BY else None


def foreign_key(name: str, subject: str) -> bytes | None:
    """A key of another deployment under the same name."""
    return hashlib.sha256(f"other {name} {subject}".encode()).digest()


def entry(number: int, kernel: str = "team", *, stop: bool = True, child: str = "", key: str = "") -> EmergencyEntry:
    """A signed entry."""
    made = EmergencyEntry(
        SPOOL_ID, number, kernel_id_of("owner", "", kernel), "owner", "", kernel, "leave", stop, child, key or f"key-{number}",
        number * 10, SIGNED_BY,
    )  # fmt: skip
    return made.signed(key_named(SIGNED_BY, made.kernel_id) or b"")


def written(bodies: Sequence[dict[str, object]], *, generation: int = 0) -> tuple[str, str]:
    """The texts of a spool with these lines, and of its head."""
    spool, key = Spool(), key_named(SIGNED_BY, "") or b""
    lines = []
    for body in [begun_line(Spool(spool=SPOOL_ID, generation=generation), signed_by=SIGNED_BY), *bodies]:
        lines.append(spool.line(body, key))
        spool.take(lines[-1])
    return "".join(lines), SpoolHead(spool.generation, spool.number, spool.mac).text(SIGNED_BY, key_named)


def with_entries(count: int) -> tuple[str, str]:
    """A spool with so many entries of two kernels, the first of which is sealed."""
    entries = [entry(number, ("team", "other")[number % 2]) for number in range(1, count + 1)]
    bodies = [emergency_line(one) for one in entries]
    return written([*bodies, {"what": "sealed", "of": 1, "sequence": 5}] if count else bodies)


def read(text: str | None, head: str | None) -> Spool:
    return read_spool(text, head, key_named)

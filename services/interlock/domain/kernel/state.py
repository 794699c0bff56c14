"""A kernel as the store keeps it: fields and values of one hash (``session/lua/kernel_step.lua`` lists them), and its records."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.domain.errors import Kind, Refused, conflict, unavailable

Fields = dict[str, str]

LOOK = "LOOK"
"""Status of a step that asks back: its subject is a view of conditions in CEL (``cel.names``). It is asked again with ``told``, the verdicts by
the hash of the view."""
KEYS_KEPT = 10_000
"""Idempotency keys of the last so many records are remembered."""
OUTBOX, LEASES, MOMENTS, MOST_NAMED = 64, 256, 1_000, 2_048
LARGEST_RECORD = 60_000
"""Bytes of a record: the audit service takes 65,536."""
SKEW_MS = 5_000
"""Largest clock error that leases allow for."""


@dataclass(frozen=True)
class Resource:
    """A budget as it stands, millionths."""

    limit: int
    min_cost: int
    gross: int = 0
    refunded: int = 0
    leased: int = 0

    @property
    def left(self) -> int:
        """What can still be spent."""
        return self.limit - self.gross + self.refunded

    @property
    def text(self) -> str:
        """The stored form."""
        return f"{self.limit} {self.min_cost} {self.gross} {self.refunded} {self.leased}"

    @classmethod
    def of(cls, text: str) -> Resource:
        """Read the stored form."""
        return cls(*map(int, text.split(" ")))


@dataclass(frozen=True)
class KernelRecord:
    """One record of a kernel's trace. *data* is the text of a JSON object."""

    sequence: int
    previous: str
    link: str
    type: str
    severity: int
    data: str

    @property
    def stored(self) -> str:
        """The form in which the store keeps it until it is sealed."""
        return json.dumps([str(self.sequence), self.previous, self.link, self.type, str(self.severity), self.data])

    @classmethod
    def of(cls, stored: str) -> KernelRecord:
        """Read the stored form. Raises ``ValueError`` for anything else."""
        sequence, previous, link, kind, severity, data = json.loads(stored)
        return cls(int(sequence), previous, link, kind, int(severity), data)


@dataclass(frozen=True)
class Stepped:
    """What a step gave: ``OK`` and the answer, ``FULL``, ``LOOK`` and what to look at, or the reason of a refusal with its subject, and what is to be sealed."""

    status: str
    answer: Mapping[str, Any]
    subject: str = ""
    unsealed: Sequence[KernelRecord] = ()


def replayed(records: Sequence[KernelRecord]) -> Fields:
    """Return the fields of a kernel from its sealed records, from the first.

    Refused with KERNEL_RECORD_BROKEN where a record does not follow the one before it, or with KERNEL_RECORD_TRUNCATED.
    """
    fields: Fields = {}
    last = ""
    for number, record in enumerate(records, 1):
        if number == 1 and record.sequence > 1:
            raise unavailable(
                "KERNEL_RECORD_TRUNCATED", "the beginning of the kernel's record was removed", retry_after_ms=0
            )
        if record.sequence != number or record.previous != last:
            raise conflict("KERNEL_RECORD_BROKEN", "a record does not follow the one before it", sequence=str(number))
        last = record.link
        _replay(fields, json.loads(record.data), number)
    return fields | {"link": last}


def _replay(fields: Fields, data: Mapping[str, Any], number: int) -> None:
    changes = data["changes"]
    fields.update(changes or {})
    for field in data["dropped"] or ():
        fields.pop(field, None)
    for field, entry in data["moments"] or ():
        spans = json.loads(fields["win"])
        kept = moments_since(fields.get(field, ""), int(entry.split(" ")[0]) - int(spans[field[2:]]) * 1000)
        fields[field] = ",".join([*kept, entry])
    fields["seq"] = str(number)


def moments_since(text: str, at_ms: int) -> list[str]:
    """Return the moments of a window after a time."""
    return [one for one in text.split(",") if one and int(one.split(" ")[0]) > at_ms]


def unsealed(fields: Mapping[str, str], have: int = 0, link: str = "") -> list[KernelRecord]:
    """Return the records of a kernel that are not known to be sealed, without those up to *have*, if that one has this *link*."""
    first, last = int(fields["sealed"]) + 1, int(fields["seq"])
    if have >= first and (held := fields.get(f"o:{have}")) is not None and KernelRecord.of(held).link == link:
        first = have + 1
    return [KernelRecord.of(fields[f"o:{number}"]) for number in range(first, last + 1)]


def following(
    number: int, link: str, given: Sequence[tuple[int, str, str]], stands: Callable[[int], bool]
) -> tuple[int, int]:
    """Return how many of *given* a chain has already that ends with *number* and *link*, and up to which they follow it.

    Each is number, link before and link; *stands* tells of an index whether the chain has exactly that record. One that does not follow
    has another in its place: all are refused then.
    """
    there = 0
    for index, (sequence, previous, own) in enumerate(given):
        if sequence <= number:
            if index > there or not stands(index):
                return there, index
            there += 1
        elif sequence == number + 1 and previous == link:
            number, link = sequence, own
        else:
            return there, index
    return there, len(given)


def linked(previous: str, data: str) -> str:
    """Return the link of a record: it names a place in one history, and vouches for nothing."""
    return hashlib.sha1((previous + data).encode(), usedforsecurity=False).hexdigest()


def listed(value: Any) -> list[Any]:
    """Return a list of the store's JSON, whose empty lists are written as objects."""
    return list(value) if isinstance(value, list) else []


_REFUSALS: Mapping[str, tuple[str, str]] = {
    "KERNEL_ACTION_UNKNOWN": ("not_found", "no action of this id is registered"),
    "KERNEL_RESOURCE_UNKNOWN": ("not_found", "the kernel has no resource of this name"),
    "KERNEL_EXECUTION_UNKNOWN": ("not_found", "no execution of this key can be undone"),
    "KERNEL_PERMIT_UNKNOWN": ("not_found", "no open permit has this key"),
    "KERNEL_PERMIT_ABORTED": ("conflict", "the permit was taken back, or aborted before it was there: do not act"),
    "KERNEL_LEASE_UNKNOWN": ("not_found", "no lease has this key; it was returned, or ended"),
    "KERNEL_LEASE_FENCED": ("conflict", "the fence is of another grant"),
    "KERNEL_LEASE_EXPIRED": ("conflict", "the lease ended; what it did not return counts as spent"),
    "KERNEL_CHILD_UNKNOWN": ("not_found", "the kernel has no child of this name"),
    "KERNEL_CHILD_DIFFERS": ("conflict", "the child of this name has another parent or other limits"),
    "KERNEL_SAGA_UNKNOWN": ("not_found", "no open saga has this key; it ended, or was rolled back"),
    "KERNEL_SAGA_EXPIRED": ("conflict", "the saga's time is over; it is rolled back"),
    "KERNEL_COMPENSATION_UNKNOWN": ("not_found", "nothing is to be compensated under this key"),
    "KERNEL_COMPENSATION_FENCED": (
        "conflict",
        "the compensation is another's by now, was given to nobody yet, or is not one to try again",
    ),
    "KERNEL_COMPENSATION_NOT_STUCK": ("conflict", "it is tried again, and not for a person to decide now"),
    "KERNEL_REVIEWER_NEEDED": (
        "forbidden",
        "what is stuck is settled by a reviewer here, not by the caller's key (interlock oversight stuck)",
    ),
    "KERNEL_COMPENSATION_MOVED_ON": (
        "conflict",
        "it was decided about, or got stuck again, since it was read: read it again",
    ),
    "KERNEL_EMERGENCY_UNKNOWN": ("not_found", "no emergency action of this id is registered"),
    "KERNEL_EMERGENCY_PASSED": (
        "conflict",
        "a later emergency action of the same sidecar is in the chain, and nothing of this one's key: a person has to look",
    ),
    "KERNEL_VERSION_NEEDED": ("invalid", "the kernel has predicates: name the version on which they were evaluated"),
    "KERNEL_VERSION_CHANGED": ("conflict", "the state has another version by now; evaluate again"),
    "KERNEL_TICKET_AHEAD": ("conflict", "another's ticket comes first; ask again, or take one"),
    "KERNEL_TICKET_UNKNOWN": ("not_found", "no ticket of this key stands; it was used, or its turn is over"),
    "KERNEL_KEY_REUSED": ("conflict", "this key was used for something else"),
    "KERNEL_VARIABLE_RETYPED": ("conflict", "the variable is there with another type"),
    "KERNEL_ACTION_DIFFERS": ("conflict", "an action of this id is registered with another content"),
    "KERNEL_REGISTRY_CLOSED": ("forbidden", "the registry of this kernel is closed"),
    "KERNEL_TOO_LARGE": (
        "exhausted",
        "a kernel has at most 2,048 variables and actions, and its definition 49,152 bytes",
    ),
    "KERNEL_NOT_FOUND": ("not_found", "there is no kernel of this name for this caller"),
    "KERNEL_STATE_UNVERIFIED": ("unavailable", "the kernel must be restored from the audit log first"),
}


def refusal(reason: str, subject: str = "") -> Refused:
    """Return the refusal of a step."""
    kind, words = _REFUSALS[reason]
    metadata = {"subject": subject} if subject else {}
    return Refused(
        Kind[kind.upper()], reason, words, metadata=metadata, retry_after_ms=1000 if kind == "unavailable" else 0
    )


REASONS = frozenset(_REFUSALS)
"""All that a step may be refused with."""

"""Emergency actions in a kernel's trail that a sidecar had recorded and signed while the kernel could not be reached (T8)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from interlock.audit.export.export import printable
from interlock.domain.chain.chain import EventRecord, Fault, Verification
from interlock.domain.kernel.emergency import EmergencyEntry, entry_in
from interlock.runtime.clock import iso8601
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.keys.emergency_keys import EmergencyKeys, verifying_keys
from interlock.runtime.settings.model import Settings

EMERGENCY = "KERNEL_EMERGENCY"
VERIFIED, MISMATCH, NO_KEY = "VERIFIED", "MISMATCH", "KEY_NOT_AT_HAND"


def recorded_emergencies(
    kernel_id: str, events: Iterable[EventRecord], settings: Settings, keyring: Keyring
) -> list[dict[str, Any]]:
    """Return the recorded emergency actions of a trail: when and where each was recorded, and whether its signature holds."""
    keys, found = verifying_keys(settings, keyring), list[dict[str, Any]]()
    for event in events:
        if event.event_type == EMERGENCY and (entry := _entry(kernel_id, event)):
            found.append({
                "event": event.sequence, "action": entry.action, "stop": entry.stop, "child": entry.child,
                "recorded_at": iso8601(entry.at_ms * 1000), "spool": entry.spool, "number": entry.number,
                "signed_by": entry.signed_by, "signature": _verdict(entry, keys),
            })  # fmt: skip
    return found


def with_forged(found: Verification, recorded: Sequence[dict[str, Any]]) -> Verification:
    """Return the verdict on a trail with a fault for each action that was not signed by the key that it names."""
    verdicts = [(one["event"], one["signature"]) for one in recorded]
    more = [Fault("event", event, "EMERGENCY_SIGNATURE_MISMATCH") for event, verdict in verdicts if verdict == MISMATCH]
    return replace(found, faults=(*found.faults, *more)) if more else found


def emergency_line(one: dict[str, Any]) -> str:
    """Return a recorded action in a line."""
    stop = " and stopped it" if one["stop"] else ""
    return printable(
        f"  {one['action']} by event {one['event']}{stop}: recorded at {one['recorded_at']} while the kernel could not be reached,"
        f" spool {one['spool']}, signature {one['signature']}"
    )


def _entry(kernel_id: str, event: EventRecord) -> EmergencyEntry | None:
    try:
        return entry_in(kernel_id, json.loads(event.data_json))
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _verdict(entry: EmergencyEntry, keys: EmergencyKeys) -> str:
    if keys.named(entry.signed_by, entry.kernel_id) is None:
        return NO_KEY
    return VERIFIED if entry.genuine(keys.named) else MISMATCH

"""Emergency actions that a sidecar had recorded, as ``interlock audit verify`` shows them (T8)."""

from __future__ import annotations

import json

import pytest

from interlock.cli.audit.emergencies import emergency_line, recorded_emergencies, with_forged
from interlock.domain.chain.chain import EventRecord, Integrity, Verification
from interlock.domain.kernel.definition import kernel_id_of
from interlock.domain.kernel.emergency import EmergencyEntry
from interlock.runtime.keys.derivation import Keyring
from interlock.runtime.keys.emergency_keys import EmergencyKeys
from interlock.runtime.settings.model import Settings

pytestmark = pytest.mark.req("KRN-2")

RING, BINDING = Keyring({1: bytes(range(32))}), bytes(range(40, 72))
KERNEL = kernel_id_of("me", "", "team")
NO_FAULT = Verification((), 2, 0, 0, "")


def sealed(signed_by: str, **changed: str) -> EventRecord:
    """The event of a recorded stop that was signed by that key, with other evidence where a test says so."""
    entry = EmergencyEntry("ab" * 16, 7, KERNEL, "me", "", "team", "leave", True, "", "k", 5_000, signed_by)
    key = EmergencyKeys(RING, BINDING).named(signed_by, KERNEL) or b"gone"
    told = {
        "spool": entry.spool, "number": "7", "at_ms": "5000", "signed_by": signed_by, "signature": entry.signed(key).signature,
        "stop": "1", "child": "", **changed,
    }  # fmt: skip
    data = json.dumps({"action": "leave", "key": "k", "recorded": told})
    return EventRecord(KERNEL, 4, "", "KERNEL_EMERGENCY", 3, "2026-01-01T00:00:00Z", data, 1, "")


@pytest.mark.parametrize(
    ("event", "settings", "verdict"),
    [
        (sealed("master-1"), {}, "VERIFIED"),
        (sealed("binding"), {"binding_key": BINDING.hex()}, "VERIFIED"),
        (sealed("binding"), {}, "KEY_NOT_AT_HAND"),
        (sealed("master-2"), {}, "KEY_NOT_AT_HAND"),
        (sealed("master-1", at_ms="5001"), {}, "MISMATCH"),
        (sealed("master-1", stop="0"), {}, "MISMATCH"),
        (sealed("master-1", child="writer"), {}, "MISMATCH"),
        (sealed("master-1", signature="0" * 64), {}, "MISMATCH"),
    ],
)  # fmt: skip
def test_the_signature_of_a_recorded_action_is_checked(event, settings, verdict):
    """With whatever key is at hand; one that does not hold is a fault of the trail."""
    [found] = recorded_emergencies(KERNEL, [event], Settings(**settings), RING)
    assert found["signature"] == verdict
    assert f"signature {verdict}" in emergency_line(found)
    whole = with_forged(NO_FAULT, [found])
    faults = [(one.index, one.reason) for one in whole.faults]
    assert faults == ([(4, "EMERGENCY_SIGNATURE_MISMATCH")] if verdict == "MISMATCH" else [])
    assert (whole.integrity is Integrity.BROKEN) == (verdict == "MISMATCH")


def test_an_action_that_was_sealed_at_once_is_not_shown():
    """Nothing was recorded before; what cannot be read is for the chain to tell."""
    plain = EventRecord(KERNEL, 2, "", "KERNEL_EMERGENCY", 3, "", json.dumps({"action": "leave", "key": "k"}), 1, "")
    broken = EventRecord(KERNEL, 3, "", "KERNEL_EMERGENCY", 3, "", "{", 1, "")
    assert recorded_emergencies(KERNEL, [plain, broken], Settings(), RING) == []

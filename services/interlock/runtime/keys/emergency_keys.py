"""The keys of emergency actions that are recorded while their kernel cannot be reached (docs/adr/0057)."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from interlock.domain.errors import unavailable
from interlock.runtime.keys.derivation import EMERGENCY, Keyring, given_key, load_keyring
from interlock.runtime.keys.masters import decoded
from interlock.runtime.settings.model import Settings

BINDING_KEY, MASTER = "binding", "master-"


@dataclass(frozen=True)
class EmergencyKeys:
    """Keys by name: those of the master key's versions, or the one of ``binding_key``, which sidecars without a master key have."""

    keyring: Keyring | None
    binding: bytes | None = None

    @property
    def current(self) -> str:
        """Name of the key that signs now."""
        return f"{MASTER}{self.keyring.current}" if self.keyring else BINDING_KEY

    def named(self, name: str, subject: str) -> bytes | None:
        """Return a key for one kernel, or for no kernel in particular; ``None`` for one that is not at hand."""
        if name == BINDING_KEY and self.binding is not None:
            return _derived(self.binding, subject)
        version = name.removeprefix(MASTER)
        if self.keyring is None or not name.startswith(MASTER) or not version.isdecimal():
            return None
        return self.keyring.derive(int(version), subject, EMERGENCY)


def emergency_keys(settings: Settings) -> EmergencyKeys:
    """Return the keys of a process: a sidecar with ``binding_key`` needs no master key, and makes none. Refused as ``load_keyring``."""
    if settings.binding_key is None:
        return EmergencyKeys(load_keyring(settings))
    return EmergencyKeys(None, decoded(settings.binding_key.get_secret_value()))


def keys_at_hand(settings: Settings) -> EmergencyKeys:
    """Return the same keys for whoever only looks: no master key is made. Refused with MASTER_KEY_MISSING where there is none."""
    if settings.binding_key is None and given_key(settings) is None and settings.master_keys_file is None:
        raise unavailable(
            "MASTER_KEY_MISSING", f"there is no master key in {settings.state_dir} to read with what was recorded", retry_after_ms=0,
            hint="set INTERLOCK_BINDING_KEY, INTERLOCK_MASTER_KEY or INTERLOCK_STATE_DIR as the sidecar has them",
        )  # fmt: skip
    return emergency_keys(settings)


def verifying_keys(settings: Settings, keyring: Keyring) -> EmergencyKeys:
    """Return all keys that are at hand to check a signature with."""
    given = settings.binding_key
    return EmergencyKeys(keyring, None if given is None else decoded(given.get_secret_value()))


def _derived(key: bytes, subject: str) -> bytes:
    """Return HKDF-SHA256 of 32 bytes, as the keys of the master key are derived."""
    return hmac.digest(hmac.digest(subject.encode(), key, "sha256"), EMERGENCY + b"\x01", "sha256")

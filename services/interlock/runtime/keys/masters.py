"""Master keys as values: by version, with the time at which each begins to sign, parsed from hexadecimal text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from interlock.domain.errors import Refused, unavailable

MINIMUM_BYTES = 32


@dataclass(frozen=True)
class Masters:
    """Master keys by version, when each begins to sign (Unix microseconds; absent: at once), and the lowest that still signs."""

    by_version: Mapping[int, bytes] = field(repr=False)
    not_before: Mapping[int, int] = field(default_factory=dict)
    minimum: int = 1

    def current(self, now: int) -> int:
        """Return the highest version whose time has come."""
        return max(version for version in self.by_version if self.not_before.get(version, 0) <= now)


def decoded(text: str) -> bytes:
    """Return a master key from its hexadecimal text. Refused with MASTER_KEY_WEAK."""
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        raise _weak("it is not hexadecimal") from None
    if len(key) < MINIMUM_BYTES:
        raise _weak(f"it has {len(key)} bytes, {MINIMUM_BYTES} are needed")
    # A text is a repetition of a shorter one exactly when it occurs inside its own doubling.
    if len(set(key)) < MINIMUM_BYTES // 4 or key in (key + key)[1:-1]:
        raise _weak("it repeats itself like a placeholder")
    return key


def _weak(why: str) -> Refused:
    return unavailable("MASTER_KEY_WEAK", f"the master key is refused: {why}", retry_after_ms=0)

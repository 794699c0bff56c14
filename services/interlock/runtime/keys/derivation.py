"""The master key and the keys derived from it (SPEC-007 §3.1, SPEC-015 §4.3)."""

from __future__ import annotations

import hmac
import os
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from interlock.domain.errors import unavailable
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.keys import keys_file
from interlock.runtime.keys.masters import MINIMUM_BYTES, Masters, decoded
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import Reread, read_content

SIGN = b"crp-session-sign-v3"
HMAC = b"crp-session-hmac-v3"
GRANT = b"interlock-delegation-grant-v1"
CONTINUE = b"interlock-continuation-v1"
RECORD = b"interlock-session-record-v1"
BINDING = b"interlock-binding-v1"
EMERGENCY = b"interlock-emergency-v1"
FINGERPRINT = b"interlock-master-fingerprint-v1"
LIVE = frozenset({SIGN, GRANT})
"""Purposes that need a version which still signs. For other purposes a version works as long as it is kept."""

OWN_KEY = "master.key"


class Keyring:
    """Master keys by version. The highest version whose time has come signs; all versions verify."""

    def __init__(self, masters: Mapping[int, bytes], *, clock: Clock = system_clock) -> None:
        self._fixed = Masters(masters)
        self._clock = clock

    @property
    def masters(self) -> Mapping[int, bytes]:
        """The current keys."""
        return self._now().by_version

    @property
    def current(self) -> int:
        """The version for new sessions."""
        return self._now().current(self._clock())

    @property
    def versions(self) -> tuple[int, ...]:
        """All versions, the one for new sessions first: the order in which a signature that names none is tried."""
        held = self._now().by_version
        return tuple(sorted(held, key=lambda version: (version != self.current, -version)))

    @property
    def oldest(self) -> int:
        """The lowest version that is kept: the one that changes least often."""
        return min(self._now().by_version)

    def derive(self, version: int, session_id: str, info: bytes) -> bytes | None:
        """Return a session's 32-byte key for one purpose; ``None`` for an unknown version, or one that no longer signs."""
        held = self._now()
        if version not in held.by_version:
            held = self._again()
        master = held.by_version.get(version)
        if master is None or (info in LIVE and version < held.minimum):
            return None
        return _derive(master, session_id, info)

    def _now(self) -> Masters:
        return self._fixed

    def _again(self) -> Masters:
        """Read the keys again: another process may know a newer version."""
        return self._fixed


class FileKeyring(Keyring):
    """Master keys in a file that is reloaded when it changes: a rotation needs no restart and fails no call (TOK-4)."""

    def __init__(self, held: Reread[Masters], *, clock: Clock = system_clock) -> None:
        super().__init__({}, clock=clock)
        self._held = held

    def _now(self) -> Masters:
        return self._held.now()

    def _again(self) -> Masters:
        return self._held.refresh()


@lru_cache(maxsize=65_536)
def _derive(master: bytes, session_id: str, info: bytes) -> bytes:
    """Return HKDF-SHA256 of 32 bytes (RFC 5869). It is two HMACs; the library for it would cost every sidecar seven megabytes."""
    extracted = hmac.digest(session_id.encode(), master, "sha256")
    return hmac.digest(extracted, info + b"\x01", "sha256")


def load_keyring(settings: Settings, *, clock: Clock = system_clock) -> Keyring:
    """Return the keyring of the settings. Without a given key, make a master key below ``state_dir``.

    Refused with MASTER_KEY_WEAK, MASTER_KEY_UNREADABLE, KEY_FILE_EXPOSED, MASTER_KEYS_INVALID or MASTER_KEYS_ROLLED_BACK: no
    process starts with a guessable key, one that every user of the machine has, or older keys than this deployment has used.
    """
    given = settings.master_key
    if settings.master_keys_file is not None:
        first = None if given is None else decoded(given.get_secret_value())
        return FileKeyring(keys_file.watched(settings.master_keys_file, settings.state_dir, first=first), clock=clock)
    text = given.get_secret_value() if given is not None else _own_key(settings.state_dir)
    masters = Masters({1: decoded(text)})
    keys_file.check_not_rolled_back(masters, settings.state_dir)
    return Keyring(masters.by_version, clock=clock)


def given_key(settings: Settings) -> bytes | None:
    """Return the single master key of a deployment without a keys file; ``None`` before its first start."""
    if settings.master_key is not None:
        return decoded(settings.master_key.get_secret_value())
    return decoded(_own_key(settings.state_dir)) if (settings.state_dir / OWN_KEY).exists() else None


def fingerprint(master: bytes) -> str:
    """Return 16 hex digits that distinguish master keys and reveal nothing about them."""
    return _derive(master, "", FINGERPRINT)[:8].hex()


def _own_key(state_dir: Path) -> str:
    path = state_dir / OWN_KEY
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        return read_content(path, secret=True).decode("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise unavailable("MASTER_KEY_UNREADABLE", f"{path}: {type(error).__name__}", retry_after_ms=0) from None


def _create(path: Path) -> None:
    """Write a new key. Of two processes that try at once, the first wins and both read the same key."""
    scratch = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(scratch, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        file.write(secrets.token_hex(MINIMUM_BYTES))
        file.flush()
        os.fsync(file.fileno())
    try:
        os.link(scratch, path)
    except FileExistsError:
        pass
    finally:
        scratch.unlink()

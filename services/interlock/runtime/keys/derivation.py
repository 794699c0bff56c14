"""The master key and the keys derived from it (SPEC-007 §3.1, SPEC-015 §4.3)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from interlock.domain.errors import unavailable
from interlock.runtime.clock import Clock, system_clock
from interlock.runtime.keys import keys_file
from interlock.runtime.keys.masters import MINIMUM_BYTES, Masters, decoded
from interlock.runtime.settings.model import Settings
from interlock.runtime.settings.rereading import Reread

SIGN = b"crp-session-sign-v3"
HMAC = b"crp-session-hmac-v3"
GRANT = b"interlock-delegation-grant-v1"
CONTINUE = b"interlock-continuation-v1"
RECORD = b"interlock-session-record-v1"
FINGERPRINT = b"interlock-master-fingerprint-v1"
LIVE = frozenset({SIGN, GRANT})
"""What only a version that still signs is used for; everything else stays readable as long as the version is kept."""

OWN_KEY = "master.key"


class Keyring:
    """Master keys by version; the highest whose time has come signs, all of them verify."""

    def __init__(self, masters: Mapping[int, bytes], *, clock: Clock = system_clock) -> None:
        self._fixed = Masters(masters)
        self._clock = clock

    @property
    def masters(self) -> Mapping[int, bytes]:
        """The keys as they are now."""
        return self._now().by_version

    @property
    def current(self) -> int:
        """Version that new sessions use."""
        return self._now().current(self._clock())

    def derive(self, version: int, session_id: str, info: bytes) -> bytes | None:
        """Return a session's 32-byte key for one purpose; ``None`` for a version that is not here, or signs no more."""
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
        """Look again, for a version that another process may have learned of before this one."""
        return self._fixed


class FileKeyring(Keyring):
    """Master keys of a file, which is read again when it changes: a rotation restarts nothing and fails no call (TOK-4)."""

    def __init__(self, held: Reread[Masters], *, clock: Clock = system_clock) -> None:
        super().__init__({}, clock=clock)
        self._held = held

    def _now(self) -> Masters:
        return self._held.now()

    def _again(self) -> Masters:
        return self._held.refresh()


@lru_cache(maxsize=65_536)
def _derive(master: bytes, session_id: str, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=session_id.encode(), info=info).derive(master)


def load_keyring(settings: Settings, *, clock: Clock = system_clock) -> Keyring:
    """Return the keyring of the settings, making a master key below ``state_dir`` when none is given.

    Refused with MASTER_KEY_WEAK, MASTER_KEY_UNREADABLE, MASTER_KEYS_INVALID or MASTER_KEYS_ROLLED_BACK; nothing starts on a
    guessable key, or on older keys than this deployment has used.
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
    """Return the one master key that a deployment has without a file of keys; ``None`` before its first start."""
    if settings.master_key is not None:
        return decoded(settings.master_key.get_secret_value())
    return decoded(_own_key(settings.state_dir)) if (settings.state_dir / OWN_KEY).exists() else None


def fingerprint(master: bytes) -> str:
    """Return 16 hex digits that tell two master keys apart and say nothing of either."""
    return _derive(master, "", FINGERPRINT)[:8].hex()


def _own_key(state_dir: Path) -> str:
    path = state_dir / OWN_KEY
    try:
        state_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
        if not path.exists():
            _create(path)
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise unavailable("MASTER_KEY_UNREADABLE", f"{path}: {type(error).__name__}", retry_after_ms=0) from None


def _create(path: Path) -> None:
    """Write a fresh key; of two processes that try at once, the first wins and both read the same."""
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

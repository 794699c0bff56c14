"""The master key and the keys derived from it (SPEC-007 §3.1, SPEC-015 §4.3)."""

from __future__ import annotations

import os
import secrets
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from interlock.domain.errors import Refused, unavailable
from interlock.runtime.config import Settings

SIGN = b"crp-session-sign-v3"
HMAC = b"crp-session-hmac-v3"
GRANT = b"interlock-delegation-grant-v1"
MINIMUM_BYTES = 32


@dataclass(frozen=True)
class Keyring:
    """Master keys by version; the highest version signs, all of them verify."""

    masters: dict[int, bytes] = field(repr=False)

    @property
    def current(self) -> int:
        """Version that new sessions use."""
        return max(self.masters)

    def derive(self, version: int, session_id: str, info: bytes) -> bytes | None:
        """Return a session's 32-byte key for one purpose; ``None`` for a version that is not here."""
        master = self.masters.get(version)
        return None if master is None else _derive(master, session_id, info)


@lru_cache(maxsize=65_536)
def _derive(master: bytes, session_id: str, info: bytes) -> bytes:
    return HKDF(algorithm=SHA256(), length=32, salt=session_id.encode(), info=info).derive(master)


def load_keyring(settings: Settings) -> Keyring:
    """Return the keyring of the settings, making a master key below ``state_dir`` when none is given.

    Refused with MASTER_KEY_WEAK or MASTER_KEY_UNREADABLE; nothing starts on a guessable key.
    """
    given = settings.master_key
    text = given.get_secret_value() if given is not None else _own_key(settings.state_dir)
    return Keyring({1: _decoded(text)})


def _decoded(text: str) -> bytes:
    try:
        key = bytes.fromhex(text.strip())
    except ValueError:
        raise _weak("it is not hexadecimal") from None
    if len(key) < MINIMUM_BYTES:
        raise _weak(f"it has {len(key)} bytes, {MINIMUM_BYTES} are needed")
    if len(set(key)) < MINIMUM_BYTES // 4:
        raise _weak("it repeats itself like a placeholder")
    return key


def _weak(why: str) -> Refused:
    return unavailable("MASTER_KEY_WEAK", f"the master key is refused: {why}", retry_after_ms=0)


def _own_key(state_dir: Path) -> str:
    path = state_dir / "master.key"
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

"""A value from files that is reloaded when they change; the last good value remains in force.

The files are checked on use, at most once a second, and compared by content: a rounded time stamp cannot hide a change, and no
background task is needed.
"""

from __future__ import annotations

import hashlib
import stat
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Generic, TypeVar

import structlog
from prometheus_client import Counter, Gauge

from interlock.domain.errors import Refused, unavailable

log = structlog.get_logger()

RELOADS = Counter(
    "interlock_file_reloads", "Times that a watched file changed, by setting and outcome.", ["setting", "outcome"]
)
FAULTY = Gauge("interlock_file_faulty", "1 while the file as it is now is not in force.", ["setting"])

PERIOD_S = 1.0
LARGEST_BYTES = 1_048_576

T = TypeVar("T")


class Reread(Generic[T]):
    """The result of *read* for the contents of *paths*, in that order. *setting* names it in logs and metrics.

    The *secret* files must not be world-readable. Invalid files are refused at the start. Later, an invalid change is logged
    once and the good value remains.
    """

    def __init__(
        self, paths: Sequence[Path], read: Callable[[Sequence[bytes]], T], *, setting: str, secret: Sequence[Path] = ()
    ) -> None:
        self.paths, self.setting, self._read, self._private = tuple(paths), setting, read, frozenset(secret)
        self._looking = threading.Lock()
        self._fault = ""
        contents = self._contents()
        self._seen = _digest(contents)
        self._value = read(contents)
        self._looked_at = time.monotonic()
        FAULTY.labels(setting).set(0)

    def now(self) -> T:
        """Return the value in force, at most ``PERIOD_S`` old."""
        if time.monotonic() - self._looked_at >= PERIOD_S:
            self.refresh()
        return self._value

    def refresh(self) -> T:
        """Check the files now, and return the value in force."""
        with self._looking:
            self._looked_at = time.monotonic()
            try:
                self._look()
            except Refused as refused:
                self._refuse(refused)
            except Exception as error:  # noqa: BLE001 - a file that breaks its reader must not stop the users of the good value
                self._refuse(unavailable("FILE_UNUSABLE", type(error).__name__, retry_after_ms=0))
        return self._value

    def _contents(self) -> list[bytes]:
        return [read_content(path, secret=path in self._private) for path in self.paths]

    def _look(self) -> None:
        contents = self._contents()
        seen = _digest(contents)
        if seen == self._seen:
            self._in_force()
            return
        self._value = self._read(contents)
        self._seen = seen
        self._in_force()
        RELOADS.labels(self.setting, "accepted").inc()
        log.info("file.reloaded", setting=self.setting)

    def _in_force(self) -> None:
        if self._fault:
            self._fault = ""
            FAULTY.labels(self.setting).set(0)

    def _refuse(self, refused: Refused) -> None:
        fault = str(refused)
        if fault == self._fault:
            return
        self._fault = fault
        FAULTY.labels(self.setting).set(1)
        RELOADS.labels(self.setting, "refused").inc()
        log.error("file.refused", setting=self.setting, reason=refused.reason, hint=refused.message)


def read_content(path: Path, *, secret: bool = False) -> bytes:
    """Return the bytes of a regular file.

    Refused with FILE_UNREADABLE or FILE_TOO_LARGE, and with KEY_FILE_EXPOSED a *secret* that everyone may read or that
    others than its owner may change. Its group may read it, as a mounted secret is.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise _unusable("FILE_UNREADABLE", path, "it is not a regular file")
        if secret and mode & stat.S_IRWXO:
            raise _unusable("KEY_FILE_EXPOSED", path, "everyone on this machine may read or change it", "chmod o= it")
        if secret and mode & stat.S_IWGRP:
            raise _unusable("KEY_FILE_EXPOSED", path, "its group may change it", "chmod g-w it")
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise _unusable("FILE_UNREADABLE", path, type(error).__name__) from None
    if len(content) > LARGEST_BYTES:
        raise _unusable("FILE_TOO_LARGE", path, f"it has more than {LARGEST_BYTES} bytes")
    return content


def _digest(contents: Sequence[bytes]) -> bytes:
    return hashlib.sha256(b"".join(hashlib.sha256(content).digest() for content in contents)).digest()


def _unusable(reason: str, path: Path, why: str, hint: str = "") -> Refused:
    metadata = {"hint": hint} if hint else {}
    return unavailable(reason, f"{path}: {why}", retry_after_ms=0, **metadata)

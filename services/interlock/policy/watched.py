"""A settings file that is re-read when it changes. Its last valid state stays in force (AGT-1).

The whole file is read about once a second and compared by its hash. Reading a file of this size is cheap, and a hash cannot
miss a change as a rounded modification time could.
"""

from __future__ import annotations

import asyncio
import hashlib
import stat
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

import structlog
from prometheus_client import Counter, Gauge

from interlock.domain.errors import Refused, invalid, unavailable
from interlock.runtime.settings import strict_yaml

log = structlog.get_logger()

RELOADS = Counter(
    "interlock_policy_file_reloads",
    "Times that a watched file changed, by setting and outcome.",
    ["setting", "outcome"],
)
FAULTY = Gauge("interlock_policy_file_faulty", "1 while the file as it is now is not in force.", ["setting"])

LARGEST_BYTES = 1_048_576
PERIOD_S = 1.0

T = TypeVar("T")


@dataclass(frozen=True)
class InForce(Generic[T]):
    """The last valid state of a file, its hash, and why the current file is not in force (empty if it is)."""

    value: T
    hash: str
    fault: str


class WatchedFile(Generic[T]):
    """One file. *read* converts its document to a value or refuses it; *setting* names it in logs and metrics."""

    def __init__(self, path: Path, read: Callable[[Any], T], *, setting: str) -> None:
        self.path, self.setting, self._read = path, setting, read
        content = read_content(path)
        self._seen = digest(content)
        self.now = InForce(self._parsed(content), self._seen, "")
        self._looking = threading.Lock()
        FAULTY.labels(setting).set(0)

    def refresh(self) -> None:
        """Read the file again. An unusable file is reported once, and the last valid state stays in force."""
        with self._looking:
            try:
                self._look()
            except Refused as refused:
                self._refuse(refused)

    def _look(self) -> None:
        before, self._seen = self._seen, ""  # an unreadable file counts as new once it can be read again
        content = read_content(self.path)
        self._seen = digest(content)
        if self._seen != before:
            value = self.now.value if self._seen == self.now.hash else self._parsed(content)
            self.now = InForce(value, self._seen, "")
            FAULTY.labels(self.setting).set(0)
            RELOADS.labels(self.setting, "accepted").inc()
            log.info("policy.file.reloaded", setting=self.setting)

    def _parsed(self, content: bytes) -> T:
        return self._read(parse_document(content, self.path))

    def _refuse(self, refused: Refused) -> None:
        fault = f"{refused.reason}: {refused.message}"
        if fault == self.now.fault:
            return
        self.now = replace(self.now, fault=fault)
        FAULTY.labels(self.setting).set(1)
        RELOADS.labels(self.setting, "refused").inc()
        log.error("policy.file.refused", setting=self.setting, reason=refused.reason, hint=refused.message)

    async def watch(self) -> None:
        """Refresh about once a second, in one thread at a time, until cancelled."""
        while True:
            await asyncio.sleep(PERIOD_S)
            try:
                await asyncio.to_thread(self.refresh)
            # A defect must not end the watch; the last valid state stays in force.
            except Exception:
                log.exception("policy.file.not_read", setting=self.setting)


def digest(content: bytes) -> str:
    """Return ``sha256:<hex>`` of a file's bytes."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


def read_content(path: Path) -> bytes:
    """Return the bytes of a regular file; refused with FILE_UNREADABLE or FILE_TOO_LARGE.

    One that everyone may change is FILE_UNSAFE: whoever writes it decides who is an agent or a reviewer here.
    """
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):
            raise _unreadable(path, "it is not a regular file")
        if mode & stat.S_IWOTH:
            raise unavailable(
                "FILE_UNSAFE", f"{path}: everyone on this machine may change it", retry_after_ms=0, hint="chmod o-w it"
            )
        with path.open("rb") as file:
            content = file.read(LARGEST_BYTES + 1)
    except OSError as error:
        raise _unreadable(path, type(error).__name__) from None
    if len(content) > LARGEST_BYTES:
        raise invalid("FILE_TOO_LARGE", f"{path} has more than {LARGEST_BYTES} bytes")
    return content


def _unreadable(path: Path, why: str) -> Refused:
    return unavailable("FILE_UNREADABLE", f"{path}: {why}", retry_after_ms=0)


def parse_document(content: bytes, path: Path) -> Any:
    """Return the one YAML document of a file that holds no secret; refused with FILE_MALFORMED, which names the error and its place."""
    return strict_yaml.parse_yaml(content, path, secret=False)

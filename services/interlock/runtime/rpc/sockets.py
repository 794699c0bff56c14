"""A Unix socket that only its owner may open, held by one process at a time."""

from __future__ import annotations

import contextlib
import fcntl
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from interlock.domain.errors import Refused, unavailable

PRIVATE = 0o600


class OwnedSocket:
    """The place of a socket. While it is held, no other process binds there; the kernel ends that with the process."""

    def __init__(self, path: Path) -> None:
        """Take the place. Refused with PORT_IN_USE if another process has it, SOCKET_FOLDER_UNSAFE if others may replace it."""
        self.path = path
        _prepare(path.parent)
        self._lock = _locked(path)
        path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def binding(self) -> Iterator[str]:
        """Bind the target that this yields inside the block: the socket is never open to others, not even at first."""
        before = os.umask(0o177)
        try:
            yield f"unix:{self.path}"
            self.path.chmod(PRIVATE)
        finally:
            os.umask(before)

    def release(self) -> None:
        """Remove the socket and give the place up."""
        if self._lock is None:
            return
        self.path.unlink(missing_ok=True)
        os.close(self._lock)
        self._lock = None


def require_free(path: Path) -> None:
    """Refuse a place that cannot be taken, with the reasons of ``OwnedSocket``."""
    OwnedSocket(path).release()


def _prepare(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = folder.lstat()
    except OSError as error:
        raise _unsafe(folder, type(error).__name__) from None
    if not stat.S_ISDIR(found.st_mode):
        raise _unsafe(folder, "it is not a folder")
    if found.st_uid not in {0, os.geteuid()}:
        raise _unsafe(folder, "it belongs to another user")
    if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise _unsafe(folder, "other users may replace what is in it")


def _locked(path: Path) -> int | None:
    try:
        lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, PRIVATE)
    except OSError as error:
        raise _unsafe(path.parent, type(error).__name__) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise unavailable(
            "PORT_IN_USE",
            f"another process serves on {path}",
            retry_after_ms=0,
            hint="end that process, choose another INTERLOCK_STATE_DIR, or name another socket, unix:/PATH, in the "
            "service's address",
        ) from None
    return lock


def _unsafe(folder: Path, why: str) -> Refused:
    return unavailable(
        "SOCKET_FOLDER_UNSAFE",
        f"no socket can be private in {folder}: {why}",
        retry_after_ms=0,
        hint="choose a folder that only the owner of this process may change",
    )

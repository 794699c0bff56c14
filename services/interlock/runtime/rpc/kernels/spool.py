"""The spool: emergency actions that were recorded here and are not sealed yet, in a file that processes of one state folder share.

A line is on the disk, and the head that names it, before anybody is told. Whatever does not verify is put aside for a person to look at;
what can be believed by its own signature goes on (``interlock/domain/kernel/emergency.py``).
"""

from __future__ import annotations

import contextlib
import copy
import fcntl
import os
import secrets
import threading
from collections.abc import Iterator, Mapping
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

import structlog

from interlock.domain.errors import Kind, Refused, unavailable
from interlock.domain.kernel.emergency import (
    EmergencyEntry,
    Spool,
    SpoolHead,
    begun_line,
    emergency_line,
    read_spool,
)
from interlock.domain.kernel.state import refusal
from interlock.runtime.keys import keys_file
from interlock.runtime.keys.emergency_keys import EmergencyKeys

log = structlog.get_logger()

SPOOL, HEAD, LOCK, DOUBTED, LOOKED_AT = "spool", "head", "lock", "doubted-", "seen-"
Seen = tuple[int, int, int] | None
NEVER: Seen = (0, 0, 0)
"""Before the file was looked at."""


class SpoolFile:
    """The spool of a folder. What it says to have written is durable. Methods block; they may be called in threads."""

    def __init__(self, folder: Path, keys: EmergencyKeys, most_bytes: int) -> None:
        self.folder, self._keys, self._most = folder, keys, most_bytes
        self._path = folder / SPOOL
        self._writing = threading.Lock()
        self._seen = NEVER
        self.spool = Spool()
        """The spool as it was last read or written; never changed in place."""
        self.doubted = False
        """Whether something here cannot be believed, and nobody has looked at it."""

    def changed(self) -> bool:
        """Tell whether the file is another than the one that was read: one call of the system."""
        return _seen(self._path) != self._seen

    def look(self) -> Spool:
        """Return the spool as it is now. While another process writes, and has answered nobody yet, it is what it was."""
        if self._seen == NEVER and not self.folder.exists():
            self._seen = None
        if self.changed():
            with contextlib.suppress(BlockingIOError), self._locked(fcntl.LOCK_EX | fcntl.LOCK_NB):
                self._read()
        elif self.doubted:
            self.doubted = self._any_doubted()
        return self.spool

    def peek(self) -> Spool:
        """Return the spool with its faults, and change nothing: for whoever only looks."""
        return self._found()

    def record(self, entry: EmergencyEntry, now_us: int) -> EmergencyEntry:
        """Sign an entry and write it; return it, or the one that is there under its key.

        Refused with KERNEL_KEY_REUSED, KERNEL_EMERGENCIES_FULL or KERNEL_EMERGENCY_UNRECORDED.
        """
        with self._changing():
            for one in self.spool.of_kernel(entry.kernel_id):
                if one.key == entry.key:
                    if one.same_ask(entry):
                        return one
                    raise refusal("KERNEL_KEY_REUSED")
            if not self.spool.number:
                self._write_head(
                    self._keys.current, SpoolHead(0, 0, "")
                )  # from here on, one that is missing was taken away
                self._begin(Spool(spool=secrets.token_hex(16)))
            # By the clock, so that a folder that was set back gives no number twice.
            number = max(self.spool.latest + 1, now_us)
            signed_by = self._keys.current
            entry = replace(entry, spool=self.spool.spool, number=number, signed_by=signed_by)
            entry = entry.signed(self._key(signed_by, entry.kernel_id))
            self._append(emergency_line(entry), most=self._most)
            return entry

    def note(self, number: int, what: str, **more: Any) -> None:
        """Note what became of an entry: ``sealed``, ``stuck`` with a reason, ``again``, or ``settled`` by a person."""
        with self._changing():
            if number in self.spool.open:
                self._append({"what": what, "of": number, **more})
            if not self.spool.open or self.spool.size > self._most // 2:
                self._begin(self.spool)

    def looked_at(self) -> list[str]:
        """Note that a person has looked at what cannot be believed; return its files, which stay."""
        with self._locked(fcntl.LOCK_EX):
            doubted = sorted(one for one in self.folder.glob(DOUBTED + "*"))
            names = [LOOKED_AT + one.name.removeprefix(DOUBTED) for one in doubted]
            for one, name in zip(doubted, names, strict=True):
                one.rename(one.with_name(name))
            return names

    @contextlib.contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            with self._locked(fcntl.LOCK_EX):
                if self.changed():
                    self._read()
                yield
        except OSError as error:
            raise unavailable(
                "KERNEL_EMERGENCY_UNRECORDED", f"{self.folder}: {type(error).__name__}", retry_after_ms=0
            ) from None

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._writing if not how & fcntl.LOCK_NB else _at_once(self._writing):
            lock = os.open(self.folder / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(lock, how)
                yield
            finally:
                os.close(lock)

    def _read(self) -> None:
        """Read the spool; put it aside where it does not verify."""
        seen, found = _seen(self._path), self._found()
        known = self.spool
        if (found.generation, found.number) < (known.generation, known.number):
            found.faults.append("the spool went back to what it was before")
        if not found.faults:
            self._seen, self.spool, self.doubted = seen, found, self._any_doubted()
            return
        log.error(
            "kernel.emergencies_doubted", folder=str(self.folder), faults=found.faults, open_count=len(found.open)
        )
        if found.spool in {"", known.spool}:  # what this process knows to be open, and what became of the rest
            found.open = {n: one for n, one in found.open.items() if n in known.open or n > known.latest} | known.open
        self._set_aside(found, known)

    def _set_aside(self, found: Spool, known: Spool) -> None:
        stamp = secrets.token_hex(4)
        for name in (SPOOL, HEAD):
            with contextlib.suppress(FileNotFoundError):
                (self.folder / name).rename(self.folder / f"{DOUBTED}{stamp}-{name}")
        if not self._any_doubted():  # all of it is gone
            (self.folder / f"{DOUBTED}{stamp}-gone").touch(mode=0o600)
        latest = max([found.latest, known.latest, *found.open])
        kept = replace(
            found, spool=found.spool or known.spool or secrets.token_hex(16), latest=latest,
            generation=max(found.generation, known.generation), open=dict(sorted(found.open.items())),
        )  # fmt: skip
        self._begin(kept)
        self.doubted = True

    def _found(self) -> Spool:
        head = _text(self.folder / HEAD)  # first: one that is written meanwhile may be ahead of it, and never behind
        return read_spool(_text(self._path), head, self._keys.named)

    def _begin(self, old: Spool) -> None:
        """Begin the next generation with what is open, in a new file."""
        signed_by = self._keys.current
        key, new = self._key(signed_by, ""), Spool()
        bodies: list[Mapping[str, Any]] = [
            begun_line(old, signed_by=signed_by),
            *map(emergency_line, old.open.values()),
        ]
        bodies += [{"what": "stuck", "of": number, "reason": reason} for number, reason in old.stuck.items()]
        lines = []
        for body in bodies:
            lines.append(new.line(body, key))
            new.take(lines[-1])
        keys_file.write(self._path, "".join(lines).encode())
        self._wrote(new)

    def _append(self, body: Mapping[str, Any], *, most: int = 0) -> None:
        new = copy.deepcopy(self.spool)
        line = new.line(body, self._key(new.signed_by, ""))
        if most and new.size + len(line) > most:
            raise Refused(
                Kind.EXHAUSTED, "KERNEL_EMERGENCIES_FULL", "too many emergency actions wait here to be sealed", retry_after_ms=1000
            )  # fmt: skip
        with self._path.open("r+b", buffering=0) as file:
            file.truncate(new.size)  # a line that was cut off while it was written
            file.seek(new.size)
            try:
                _write_whole(file, line.encode())
            except OSError:
                file.truncate(new.size)
                raise
        new.take(line)
        self._wrote(new)

    def _wrote(self, new: Spool) -> None:
        self._write_head(new.signed_by, SpoolHead(new.generation, new.number, new.mac))
        self.spool, self._seen = new, _seen(self._path)

    def _write_head(self, signed_by: str, head: SpoolHead) -> None:
        self._key(signed_by, "")
        keys_file.write(self.folder / HEAD, head.text(signed_by, self._keys.named).encode())
        folder = os.open(self.folder, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)

    def _key(self, name: str, subject: str) -> bytes:
        key = self._keys.named(name, subject)
        if key is None:
            raise unavailable("KERNEL_EMERGENCY_UNRECORDED", f"the key {name} is not at hand", retry_after_ms=0)
        return key

    def _any_doubted(self) -> bool:
        return next(self.folder.glob(DOUBTED + "*"), None) is not None


@contextlib.contextmanager
def _at_once(lock: threading.Lock) -> Iterator[None]:
    if not lock.acquire(blocking=False):
        raise BlockingIOError
    try:
        yield
    finally:
        lock.release()


def _write_whole(file: FileIO, data: bytes) -> None:
    if file.write(data) != len(data):
        raise OSError("the disk took a part of the line")
    os.fsync(file.fileno())


def _seen(path: Path) -> Seen:
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_ino, found.st_size, found.st_mtime_ns


def _text(path: Path) -> str | None:
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None

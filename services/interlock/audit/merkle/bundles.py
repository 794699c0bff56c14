"""A log in a folder for an auditor: its entries, their hashes, its checkpoints and, on request, its reports (docs/audit.md).

The export is written page by page, so that memory does not grow with the log, and continues where an interrupted one ended.
A folder is read as if an attacker had written it: bounded lines, regular files, only the names of the layout.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from interlock.audit.merkle.folder import LogFolder, UnusableError
from interlock.audit.merkle.sessions import WINDOWS, DatabaseSessions, window_line
from interlock.audit.store.log import LogReader, StoredReport
from interlock.domain.chain.chain import WindowRecord
from interlock.domain.errors import Refused, conflict
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.note import checkpoint_in, verifier_key
from interlock.domain.merkle.tiles import (
    CHECKPOINT,
    ENTRIES,
    HISTORY,
    LONGEST_LINE,
    MANIFEST,
    REPORTS,
    Line,
    format_line,
    generation_folder,
    parse_generation,
    parse_line,
    tile_path,
)
from interlock.domain.merkle.tree import TILE_WIDTH

FORMAT = "interlock-audit-bundle/1"
PAGE = 1024
LONGEST_MANIFEST = 65_536
LONGEST_REPORT = 67_108_864
WINDOW_NAME = re.compile(r"crp_win_[0-9a-f]{32}", re.ASCII)

Page = list[tuple[bytes, bytes]]
"""Entries with their stored leaf hashes; an entry is empty if its bytes are gone."""


class LogSource(Protocol):
    """A source of a log to export."""

    async def checkpoints(self) -> tuple[str, Sequence[str]]:
        """Return the verifier key's text, and the notes."""

    def pages(self, start: int) -> AsyncIterator[Page]:
        """Yield the entries from a position on."""

    async def report(self, window_id: str) -> bytes | None:
        """Return the report of a sealed window; ``None`` when it was erased."""

    def windows(self, size: int) -> Iterable[WindowRecord] | None:
        """Return the rows of the windows of the first *size* entries; ``None`` where this source has none."""


@dataclass(frozen=True)
class BundleManifest:
    """A bundle's own description. It is trusted only to find the parts of the bundle."""

    size: int
    reports: bool
    windows: bool = False
    """Whether the rows of the windows are there."""


class LocalSource:
    """The database as a source. ``opened`` returns the canonical JSON of a stored report."""

    def __init__(self, log: LogReader, verifier: str, opened: Callable[[StoredReport], bytes] | None = None) -> None:
        self._log, self._verifier, self._opened = log, verifier, opened

    async def checkpoints(self) -> tuple[str, Sequence[str]]:
        """Return the verifier key's text, and the notes."""
        return self._verifier, [note for _, note in self._log.checkpoints()]

    async def pages(self, start: int) -> AsyncIterator[Page]:
        """Yield the entries from a position on."""
        end = self._log.log_size()
        for first in range(start, end, PAGE):
            yield page_of(self._log, first, min(first + PAGE, end))

    def windows(self, size: int) -> Iterable[WindowRecord] | None:
        """Yield the rows of the windows whose seals are among the first *size* entries, and those that have no seal."""
        sessions = DatabaseSessions(self._log).each()
        return (window for session in sessions for window in session.windows_within(size))

    async def report(self, window_id: str) -> bytes | None:
        """Return the report of a sealed window; ``None`` when it was erased."""
        stored = self._log.report(window_id=window_id)
        return self._opened(stored) if stored and stored.body and self._opened else None


def page_of(log: LogReader, start: int, end: int) -> Page:
    """Return entries of the database, re-encoded from what is stored."""
    return [(encode_entry(one.event) if one.event else b"", one.leaf_hash) for one in log.entries(start, end)]


async def export(source: LogSource, out: Path, *, reports: bool) -> BundleManifest:
    """Write the log of *source* to the folder *out*, starting where an earlier export of it ended.

    Refused with BUNDLE_OF_ANOTHER_LOG if the folder holds another log, or an earlier state that this log no longer extends.
    """
    await asyncio.to_thread(out.mkdir, parents=True, exist_ok=True)
    folder = LogFolder(out)
    tiles = _Tiles(folder)
    # Before the entries: what is signed while they are written is of entries that are not among them.
    key, notes = await source.checkpoints()
    with _appending(out / ENTRIES) as file:
        for text, leaf in lines_in(file):
            tiles.add(leaf)
            await _write_report(source, folder, text, reports)
        before, last = tiles.size, tiles.last
        async for page in source.pages(max(0, before - 1)):
            for entry, leaf in page:
                if last:
                    _require_same(last, leaf)
                    last = b""
                    continue
                await _write_report(source, folder, entry, reports)
                file.write(format_line(entry, leaf) + b"\n")
                tiles.add(leaf)
        if last:
            raise _another()
        file.flush()
        os.fsync(file.fileno())
    tiles.end()
    _write_checkpoints(folder, key, notes)
    windows = _write_windows(source, folder, tiles.size)
    manifest = BundleManifest(tiles.size, reports, windows)
    described = {"format": FORMAT, "reports": reports, "size": tiles.size, **({"windows": True} if windows else {})}
    content = json.dumps(described) + "\n"
    folder.write((MANIFEST,), content.encode(), replace=True)
    return manifest


def _require_same(last: bytes, leaf: bytes) -> None:
    if last != leaf:
        raise _another()


def _another() -> Refused:
    return conflict(
        "BUNDLE_OF_ANOTHER_LOG", "that folder holds the entries of another log", hint="give an empty folder"
    )


def _write_checkpoints(folder: LogFolder, key: str, notes: Iterable[str]) -> None:
    name = verifier_key(key).name
    for note in notes:
        checkpoint = checkpoint_in(note)
        home = generation_folder(parse_generation(name, checkpoint.origin) or 1)
        # Those of a larger size than the log too: they are what contradicts a log that lost its end.
        folder.write((*home, HISTORY, str(checkpoint.size)), note.encode(), replace=False)
        folder.write((*home, CHECKPOINT), note.encode(), replace=True)


def _write_windows(source: LogSource, folder: LogFolder, size: int) -> bool:
    rows = source.windows(size)
    if rows is not None:
        folder.write((WINDOWS,), b"".join(map(window_line, rows)), replace=True)
    return rows is not None


async def _write_report(source: LogSource, folder: LogFolder, entry: bytes, wanted: bool) -> None:  # noqa: FBT001 - a filter
    if not wanted or b'"event_type":"WINDOW_SEALED"' not in entry:
        return
    window_id = str(json.loads(entry)["window_id"])
    name = (REPORTS, f"{window_id}.json")
    if not WINDOW_NAME.fullmatch(window_id) or (folder.path / Path(*name)).exists():
        return
    report = await source.report(window_id)
    if report is not None:
        folder.write(name, report, replace=False)


class _Tiles:
    """Writes the level-0 tiles of a bundle from hashes in order."""

    def __init__(self, folder: LogFolder) -> None:
        self._folder, self._hashes, self._last = folder, b"", b""
        self.size = 0

    @property
    def last(self) -> bytes:
        """The hash that was added last."""
        return self._last

    def add(self, leaf: bytes) -> None:
        self._hashes += leaf
        self._last = leaf
        self.size += 1
        if self.size % TILE_WIDTH == 0:
            self._folder.write(tile_path(0, self.size // TILE_WIDTH - 1), self._hashes, replace=True)
            self._folder.drop_partial(1, 0, self.size // TILE_WIDTH - 1)
            self._hashes = b""

    def end(self) -> None:
        if self._hashes:
            path = tile_path(0, self.size // TILE_WIDTH, self.size % TILE_WIDTH)
            self._folder.write(path, self._hashes, replace=True)


def manifest_in(folder: LogFolder) -> BundleManifest:
    """Return a bundle's description. Raises ``UnusableError``."""
    text = folder.read((MANIFEST,), LONGEST_MANIFEST)
    try:
        found: Any = json.loads(text or b"")
    except (ValueError, RecursionError):
        found = None
    if (
        not isinstance(found, dict)
        or found.get("format") != FORMAT
        or found.keys() - {"windows"} != {"format", "reports", "size"}
    ):
        raise UnusableError(f"{MANIFEST}: not a bundle of an audit log ({FORMAT})")
    if type(found["size"]) is not int or not 0 <= found["size"] < 2**63 or type(found["reports"]) is not bool:
        raise UnusableError(f"{MANIFEST}: not a bundle of an audit log ({FORMAT})")
    return BundleManifest(found["size"], found["reports"], found.get("windows") is True)


def lines_in(file: BinaryIO) -> Iterator[Line]:
    """Yield the entries of a file from its current position. Raises ``UnusableError`` for a line that is too long."""
    read = file.readline
    while text := read(LONGEST_LINE + 2):
        if len(text) > LONGEST_LINE + 1:
            raise UnusableError(f"{ENTRIES}: a line of more than {LONGEST_LINE} bytes")
        yield parse_line(text[:-1] if text.endswith(b"\n") else text)


def _appending(path: Path) -> BinaryIO:
    """Open the entries of an export at their start, cut back to the last complete line."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
    file = os.fdopen(descriptor, "r+b")
    file.truncate(_whole(file))
    file.seek(0)
    return file


def _whole(file: BinaryIO) -> int:
    at = file.seek(0, os.SEEK_END)
    while at > 0:
        start = max(0, at - 65_536)
        file.seek(start)
        found = file.read(at - start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        at = start
    return 0

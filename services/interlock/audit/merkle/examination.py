"""Examining a log: a bundle with or without an anchor, or the database itself (AUD-6)."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from interlock.audit.merkle.bundles import LONGEST_REPORT, PAGE, WINDOW_NAME, lines_in, manifest_in
from interlock.audit.merkle.checkpoint_key import holds
from interlock.audit.merkle.folder import LogFolder, UnusableError
from interlock.audit.merkle.sessions import (
    SESSION_KEY,
    WINDOWS,
    BundleSessions,
    DatabaseSessions,
    keyless,
    with_sessions,
)
from interlock.audit.store.log import LogReader
from interlock.domain.chain.chain import content_hash
from interlock.domain.merkle.bundle import Examined, Examiner, Finding, Head
from interlock.domain.merkle.entry import encode_entry
from interlock.domain.merkle.note import MalformedNoteError, VerifiedCheckpoint, VerifierKey, checkpoint_in, open_note
from interlock.domain.merkle.tiles import ENTRIES, REPORTS, Line, generation_origin, parse_generation, parse_line
from interlock.domain.merkle.tree import HASH_BYTES, STORED_LEVELS, TILE_WIDTH, complete_root

Tell = Callable[[Finding], None]


def examine_bundle(path: Path, key: VerifierKey, anchor_path: Path | None) -> Examined:
    """Examine a bundle. Raises ``OSError`` or ``UnusableError`` if it cannot be read at all."""
    bundle, anchor = LogFolder(path), LogFolder(anchor_path) if anchor_path else None
    manifest = manifest_in(bundle)
    told: list[Finding] = []
    heads = [*heads_in(bundle, key, told.append, anchored=False)]
    if anchor is not None:
        heads += heads_in(anchor, key, told.append, anchored=True)
    examiner = Examiner(heads, _reports(bundle) if manifest.reports else None)
    for finding in told:
        examiner.add(finding)
    leaves = _Leaves(bundle, manifest.size, anchor, heads, examiner.add)
    with contextlib.ExitStack() as files:
        entries = files.enter_context(_regular(path / ENTRIES))
        windows = files.enter_context(_regular(path / WINDOWS)) if manifest.windows else None
        found = examiner.run(lines_in(entries), leaves.known(), whole=leaves.whole)
        return with_sessions(found, BundleSessions(entries, windows).each())


def examine_log(
    log: LogReader, key: VerifierKey, anchor_path: Path | None, *, key_of: SESSION_KEY = keyless
) -> Examined:
    """Examine a database: every stored entry against its leaf, the stored tree, its checkpoints, its anchor, its sessions.

    Published leaves take precedence over stored ones. With *key_of* every HMAC is checked too.
    """
    told: list[Finding] = []
    heads = [*_opened_heads(((size, note) for size, note in log.checkpoints()), key, told.append)]
    anchor = LogFolder(anchor_path) if anchor_path else None
    if anchor is not None:
        heads += heads_in(anchor, key, told.append, anchored=True)
    examiner = Examiner(heads)
    for finding in (*told, *_node_faults(log)):
        examiner.add(finding)
    size = log.log_size()
    leaves = _Leaves(_Own(log), size, anchor, heads, examiner.add)
    found = examiner.run(_stored_lines(log, size), leaves.known(), whole=True)
    return with_sessions(found, DatabaseSessions(log).each(), key_of)


def heads_in(folder: LogFolder, key: VerifierKey, tell: Tell, *, anchored: bool) -> Iterator[Head]:
    """Yield the checkpoints of a folder with valid signatures; report the others to *tell*."""
    where = "anchor" if anchored else "bundle"
    for generation in folder.generations():
        sizes = folder.sizes(generation)
        largest = 0
        for size in sizes:
            opened = _opened(folder, generation, size, key, tell, where)
            if opened is not None:
                largest = max(largest, opened.checkpoint.size)
                yield _head(opened, generation, anchored)
        latest = _opened(folder, generation, None, key, tell, where)
        if latest is not None:
            yield _head(latest, generation, anchored)
            if latest.checkpoint.size < largest:
                tell(Finding("checkpoint", latest.checkpoint.size, "ROLLED_BACK", f"the {where} had one of {largest}"))


def _opened(  # noqa: PLR0917 - what it looks for, and where
    folder: LogFolder, generation: int, size: int | None, key: VerifierKey, tell: Tell, where: str
) -> VerifiedCheckpoint | None:
    """Return a checkpoint; *size* ``None`` means the latest. A faulty one is reported and gives ``None``."""
    named = key.named(generation_origin(key.name, generation))
    try:
        note = folder.latest(generation) if size is None else folder.checkpoint(generation, size)
        if not note:
            tell(Finding("checkpoint", size or 0, "CHECKPOINT_MISSING", where))
            return None
        opened = open_note(note, named, holds)
    except (MalformedNoteError, UnusableError) as error:
        reason = "SIGNATURE_INVALID" if isinstance(error, MalformedNoteError) else "CHECKPOINT_UNUSABLE"
        tell(Finding("checkpoint", size or 0, reason, f"{where}: {error}"))
        return None
    if size not in {None, opened.checkpoint.size}:
        tell(Finding("checkpoint", size or 0, "CHECKPOINT_MISPLACED", f"{where}: it is of {opened.checkpoint.size}"))
        return None
    return opened


def _opened_heads(notes: Iterable[tuple[int, str]], key: VerifierKey, tell: Tell) -> Iterator[Head]:
    for size, note in notes:
        try:
            generation = parse_generation(key.name, checkpoint_in(note).origin)
            opened = open_note(note, key.named(generation_origin(key.name, generation or 1)), holds)
        except MalformedNoteError as error:
            tell(Finding("checkpoint", size, "SIGNATURE_INVALID", f"log: {error}"))
            continue
        if opened.checkpoint.size != size:
            tell(Finding("checkpoint", size, "CHECKPOINT_MISPLACED", f"log: it is of {opened.checkpoint.size}"))
        yield _head(opened, generation, anchored=False)


def _head(opened: VerifiedCheckpoint, generation: int, anchored: bool) -> Head:  # noqa: FBT001 - every call names it
    checkpoint = opened.checkpoint
    return Head(checkpoint.size, checkpoint.root, anchored, generation, opened.signed_at)


class _Own:
    """The leaf hashes of a database, with the interface of a folder."""

    def __init__(self, log: LogReader) -> None:
        self._log = log

    def leaves(self, generation: int, size: int) -> Iterator[bytes]:
        del generation
        for start in range(0, size, PAGE):
            end = min(start + PAGE, size)
            found = {entry.position: entry.leaf_hash for entry in self._log.entries(start, end)}
            for position in range(start, end):
                leaf = found.get(position, b"")
                yield leaf if len(leaf) == HASH_BYTES else bytes(HASH_BYTES)


class _Leaves:
    """The known leaf hash of each position: from the anchor as far as it reaches, then from the log itself."""

    def __init__(
        self, own: LogFolder | _Own, size: int, anchor: LogFolder | None, heads: Iterable[Head], tell: Tell
    ) -> None:
        heads = list(heads)
        self._own, self._size, self._tell = own, size, tell
        newest = max((head.generation for head in heads), default=1)
        anchored = [head for head in heads if head.anchored and head.generation == newest]
        best = max(anchored, key=lambda head: head.size, default=None)
        # An anchor of an earlier generation holds hashes of lost entries; only its checkpoints are examined.
        self._anchor = anchor if best is not None else None
        self._anchored, self._generation = (best.size, best.generation) if best else (0, 1)
        self.whole = self._reaches()

    def known(self) -> Iterator[bytes]:
        """Yield the hashes in order."""
        own = _readable(self._own.leaves(1, self._size))
        position = 0
        if self._anchor is not None:
            differed = False
            for leaf in _readable(self._anchor.leaves(self._generation, self._anchored)):
                mine = next(own, None)
                if mine not in {None, leaf} and not differed:
                    differed = True
                    self._tell(Finding("tile", position, "TILE_DIFFERS_FROM_ANCHOR"))
                position += 1
                yield leaf
        yield from own

    def _reaches(self) -> bool:
        """Return whether every hash is there. Report the first missing tile: later entries are then checked by checkpoints alone."""
        if isinstance(self._own, _Own):
            return True
        for folder, generation, size, where in (
            (self._own, 1, self._size, "bundle"),
            (self._anchor, self._generation, self._anchored, "anchor"),
        ):
            if folder is None:
                continue
            for start in range(0, size, TILE_WIDTH):
                try:
                    there = folder.hashes(generation, 0, start // TILE_WIDTH, min(TILE_WIDTH, size - start))
                    reason = "" if there else "TILE_MISSING"
                except UnusableError:
                    reason = "TILE_UNUSABLE"
                if reason:
                    self._tell(Finding("tile", start, reason, where))
                    return False
        return True


def _readable(leaves: Iterator[bytes]) -> Iterator[bytes]:
    """Yield hashes up to the first unreadable one, which has been reported before."""
    with contextlib.suppress(UnusableError):
        yield from leaves


def _stored_lines(log: LogReader, size: int) -> Iterator[Line]:
    """Yield the stored entries, hashed anew from their fields if these are there."""
    for start in range(0, size, PAGE):
        end = min(start + PAGE, size)
        found = {entry.position: entry for entry in log.entries(start, end)}
        for position in range(start, end):
            entry = found.get(position)
            if entry is not None and entry.event is not None:
                yield parse_line(encode_entry(entry.event))
            else:
                yield b"", entry.leaf_hash if entry is not None else bytes(HASH_BYTES)


def _node_faults(log: LogReader) -> Iterator[Finding]:
    """Yield a finding for each stored inner node that differs from the hash of the nodes below it."""
    size = log.log_size()
    for level in STORED_LEVELS:
        for index in range(size >> level):
            first = index * TILE_WIDTH
            end = first + TILE_WIDTH
            below = log.leaf_hashes(first, end) if level == STORED_LEVELS[0] else log.nodes(level - 8, first, end)
            stored = log.nodes(level, index, index + 1)
            if len(below) != TILE_WIDTH or stored != [complete_root(below)]:
                yield Finding("tile", index << level, "NODE_MISMATCH", f"level {level}")


def _reports(folder: LogFolder) -> Callable[[str], str | None]:
    def report_hash(window_id: str) -> str | None:
        if not WINDOW_NAME.fullmatch(window_id):
            return None  # a forged entry may name anything; it must not choose a file
        found = folder.read((REPORTS, f"{window_id}.json"), LONGEST_REPORT)
        return None if found is None else content_hash(found)

    return report_hash


def _regular(path: Path) -> BinaryIO:
    """Open a regular file, not through a link: other kinds of file might never end."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise UnusableError(f"{path.name}: {error.strerror}") from None
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UnusableError(f"{path.name}: not a regular file")
    return os.fdopen(descriptor, "rb")

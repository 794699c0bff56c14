"""The second place of trust: checkpoints are published to a folder that another party keeps (AUD-6, A-27).

The anchor is read before it is written: a checkpoint that does not extend the published ones is not published (I6). Leaf
hashes are written first, then the history, then the newest checkpoint, each durably before the next. A crash therefore
leaves an anchor that is complete up to an earlier checkpoint, and the next round publishes the rest again.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from interlock.audit.merkle.checkpoint_key import CheckpointKey
from interlock.audit.merkle.folder import LogFolder, UnusableError
from interlock.audit.store.fence import CHAIN_TRUNCATED, LOG_FORKED, Lost, generation_in, last_loss
from interlock.audit.store.log import AuditLog
from interlock.domain.merkle.entries import LOG_SESSION, Losses
from interlock.domain.merkle.note import MalformedNoteError, VerifiedCheckpoint
from interlock.domain.merkle.tiles import CHECKPOINT, HISTORY, generation_folder, tile_path, tiles_between
from interlock.domain.merkle.tree import HASH_BYTES, STORED_LEVELS, TILE_HEIGHT, TILE_WIDTH, StoredTree, tree_root

LOCK = ".lock"
_NO_LOCKS = frozenset({errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOLCK})


class AnchorFailedError(Exception):
    """The anchor cannot be used now. ``reason`` is ANCHOR_UNREACHABLE, ANCHOR_UNUSABLE, ANCHOR_FOREIGN or ANCHOR_BUSY."""

    def __init__(self, reason: str, hint: str) -> None:
        super().__init__(f"{reason}: {hint}")
        self.reason, self.hint = reason, hint


@dataclass(frozen=True)
class Newest:
    """The newest checkpoint of an anchor."""

    generation: int
    size: int
    root: bytes
    note: str


class Anchor:
    """An anchor in a folder. Every method may raise ``AnchorFailedError``, and may hang with the folder's medium."""

    def __init__(self, path: Path, key: CheckpointKey) -> None:
        self.path, self._key, self._folder = path, key, LogFolder(path)

    def newest(self) -> Newest | None:
        """Return the newest checkpoint, by the history as well as the file of that name; ``None`` if there is none."""
        with self._failing():
            generations = self._folder.generations()
            if not generations:
                return None
            return self._newest_of(generations[-1])

    def publish(self, audit_log: AuditLog, size: int, note: str) -> None:
        """Publish a checkpoint of *audit_log*. Raises ``LostError`` if it does not extend the published ones."""
        with self._failing(), self._locked():
            before = self.newest()
            lost = missing(audit_log, before, self)
            if lost is not None:
                raise LostError(lost)
            generation = generation_in(audit_log)
            here = before if before is not None and before.generation == generation else None
            if here is None or size > here.size:
                self._write_tiles(audit_log, generation, here.size if here else 0, size)
                name = (*generation_folder(generation), HISTORY, str(size))
                self._folder.write(name, note.encode(), replace=False)
            elif here.note != self._folder.latest(generation):
                note = here.note  # a crash came between the history and the newest checkpoint
            else:
                return
            self._folder.write((*generation_folder(generation), CHECKPOINT), note.encode(), replace=True)

    def leaves(self, newest: Newest) -> Iterator[bytes]:
        """Yield the published leaf hashes up to the first that is missing."""
        with self._failing():
            yield from self._folder.leaves(newest.generation, newest.size)

    def _newest_of(self, generation: int) -> Newest | None:
        sizes = self._folder.sizes(generation)
        notes = [self._folder.latest(generation)]
        notes += [self._folder.checkpoint(generation, sizes[-1])] if sizes else []
        opened = [self._opened(text, generation) for text in notes if text]
        best = max(opened, key=lambda found: found.checkpoint.size, default=None)
        return Newest(generation, best.checkpoint.size, best.checkpoint.root, best.note) if best else None

    def _opened(self, text: str, generation: int) -> VerifiedCheckpoint:
        try:
            return self._key.open(text, generation)
        except MalformedNoteError as error:
            raise AnchorFailedError(
                "ANCHOR_FOREIGN", f"{self.path} holds a checkpoint of another log: {error}"
            ) from None

    def _write_tiles(self, audit_log: AuditLog, generation: int, old_size: int, new_size: int) -> None:
        tree = StoredTree(lambda level, start, end: _stored(audit_log, level, start, end))
        for level, index, width in tiles_between(old_size, new_size):
            first = index * TILE_WIDTH
            if level * TILE_HEIGHT in (0, *STORED_LEVELS):
                hashes = _stored(audit_log, level * TILE_HEIGHT, first, first + width)
            else:
                hashes = [tree.node(level * TILE_HEIGHT, at) for at in range(first, first + width)]
            content = b"".join(hashes)
            assert len(content) == width * HASH_BYTES
            self._folder.write(
                (*generation_folder(generation), *tile_path(level, index, width)), content, replace=False
            )
            if width == TILE_WIDTH:
                self._folder.drop_partial(generation, level, index)

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Keep other processes from publishing meanwhile. A medium without locks must have a single writer."""
        descriptor = os.open(self.path / LOCK, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise AnchorFailedError("ANCHOR_BUSY", f"another process publishes to {self.path}") from None
            except OSError as error:
                if error.errno not in _NO_LOCKS:
                    raise
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise AnchorFailedError("ANCHOR_FOREIGN", f"{self.path} holds other hashes than this log's") from None
        except OSError as error:
            raise AnchorFailedError("ANCHOR_UNREACHABLE", f"{self.path}: {type(error).__name__}") from None
        except UnusableError as error:
            raise AnchorFailedError("ANCHOR_UNUSABLE", f"{self.path}: {error}") from None


class LostError(Exception):
    """The anchor holds entries that the log does not."""

    def __init__(self, lost: Lost) -> None:
        super().__init__(lost.cause)
        self.lost = lost


def missing(audit_log: AuditLog, newest: Newest | None, anchor: Anchor) -> Lost | None:
    """Return the published entries that the log lacks; ``None`` if the log extends the anchor."""
    if newest is None:
        return None
    size = audit_log.log_size()
    loss = last_loss(audit_log.events(LOG_SESSION, after=0, limit=10_000))
    generation = loss.generation if loss else 1
    if newest.generation <= generation:
        if newest.size <= size and _root(audit_log, newest.size) == newest.root:
            return None
        if loss is not None and newest.generation < generation and _is_that(newest, loss):
            return None
    cause = CHAIN_TRUNCATED if newest.size > size else LOG_FORKED
    kept = _kept(audit_log, min(size, newest.size), newest, anchor)
    return Lost(cause, newest.size, kept, newest.root, max(generation, newest.generation))


def _is_that(newest: Newest, loss: Losses.Loss) -> bool:
    """Return whether a reviewer acknowledged the loss of exactly this published checkpoint."""
    return newest.size == loss.anchored_size and loss.anchored_root in {"", newest.root.hex()}


def _kept(audit_log: AuditLog, size: int, newest: Newest, anchor: Anchor) -> int:
    """Return the position up to which the log's leaf hashes equal the published ones."""
    position = 0
    with contextlib.suppress(AnchorFailedError):
        own: list[bytes] = []
        for published in anchor.leaves(newest):
            at = position % TILE_WIDTH
            own = audit_log.leaf_hashes(position, min(position + TILE_WIDTH, size)) if at == 0 else own
            if at >= len(own) or own[at] != published:
                break
            position += 1
    return position


def _root(audit_log: AuditLog, size: int) -> bytes:
    try:
        return tree_root(size, StoredTree(lambda level, start, end: _stored(audit_log, level, start, end)).node)
    except LookupError:
        return b""  # the stored tree is incomplete, so it has no root


def _stored(audit_log: AuditLog, level: int, start: int, end: int) -> list[bytes]:
    return audit_log.nodes(level, start, end) if level else audit_log.leaf_hashes(start, end)

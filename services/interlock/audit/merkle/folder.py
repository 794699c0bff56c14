"""A log's checkpoints and tiles in a folder, read and written so that no content of it can lead outside (C2SP tlog-tiles).

Every name is derived, never taken from a file. No symbolic link is followed below the folder, only regular files are read,
and never beyond the size that such a file can have. Each file is on the disk before any file that names it.
"""

from __future__ import annotations

import contextlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from interlock.domain.merkle.note import LONGEST_NOTE
from interlock.domain.merkle.tiles import CHECKPOINT, HISTORY, MOST_GENERATIONS, generation_folder, hashes_in, tile_path
from interlock.domain.merkle.tree import HASH_BYTES, TILE_WIDTH

_NUMBER = re.compile(r"0|[1-9][0-9]{0,18}", re.ASCII)
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class UnusableError(Exception):
    """A part of the folder breaks the layout: a link, not a regular file, too large, or not UTF-8."""


class LogFolder:
    """A folder with all generations of a log. Every method may raise ``OSError`` or ``UnusableError``."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def generations(self) -> list[int]:
        """Return the generations that have checkpoints in the folder."""
        with self._folder(()) as top:
            names = os.listdir(top) if top is not None else []  # noqa: PTH208 - of a descriptor
        later = sorted(int(name) for name in names if _NUMBER.fullmatch(name) and 1 < int(name) <= MOST_GENERATIONS)
        return [number for number in (1, *later) if self.sizes(number) or self.latest(number)]

    def latest(self, generation: int) -> str:
        """Return the newest checkpoint; empty if there is none."""
        return self._note((*generation_folder(generation), CHECKPOINT))

    def sizes(self, generation: int) -> list[int]:
        """Return the sizes of all checkpoints of the history, the smallest first."""
        with self._folder((*generation_folder(generation), HISTORY)) as history:
            names = os.listdir(history) if history is not None else []  # noqa: PTH208 - of a descriptor
        return sorted(int(name) for name in names if _NUMBER.fullmatch(name))

    def checkpoint(self, generation: int, size: int) -> str:
        """Return the checkpoint of that size; empty if there is none."""
        return self._note((*generation_folder(generation), HISTORY, str(size)))

    def hashes(self, generation: int, level: int, index: int, width: int) -> list[bytes]:
        """Return the hashes of a tile, from the full tile if the partial one is gone; empty if there is neither."""
        for wide in dict.fromkeys((width, TILE_WIDTH)):
            found = self.read((*generation_folder(generation), *tile_path(level, index, wide)), TILE_WIDTH * HASH_BYTES)
            if found is not None:
                if len(found) != wide * HASH_BYTES:
                    raise UnusableError(f"tile {level}/{index}: {len(found)} bytes")
                return hashes_in(found)[:width]
        return []

    def leaves(self, generation: int, size: int) -> Iterator[bytes]:
        """Yield the leaf hashes of the first *size* entries, up to the first missing tile."""
        for start in range(0, size, TILE_WIDTH):
            tile = self.hashes(generation, 0, start // TILE_WIDTH, min(TILE_WIDTH, size - start))
            yield from tile
            if not tile:
                return

    def read(self, parts: Sequence[str], limit: int) -> bytes | None:
        """Return a file's bytes; ``None`` if there is no such file."""
        with self._folder(parts[:-1]) as folder:
            if folder is None:
                return None
            with _opened(folder, parts) as descriptor:
                return None if descriptor is None else _content(descriptor, parts, limit)

    def write(self, parts: Sequence[str], content: bytes, *, replace: bool) -> None:
        """Write a file durably and atomically. Unless *replace*, a file with other content raises ``FileExistsError``."""
        folder = self._made(parts[:-1])
        try:
            scratch = f".{parts[-1]}.{os.getpid()}.{os.urandom(4).hex()}"
            _write_scratch(folder, scratch, content)
            try:
                if replace:
                    os.rename(scratch, parts[-1], src_dir_fd=folder, dst_dir_fd=folder)
                else:
                    os.link(scratch, parts[-1], src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:
                if self.read(parts, len(content) + 1) != content:
                    raise
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(scratch, dir_fd=folder)
            os.fsync(folder)
        finally:
            os.close(folder)

    def drop_partial(self, generation: int, level: int, index: int) -> None:
        """Delete the partial tiles of a full tile, if the medium allows it."""
        *parts, _ = (*generation_folder(generation), *tile_path(level, index, 1))
        with contextlib.suppress(OSError), self._folder(parts) as folder:
            if folder is not None:
                for name in os.listdir(folder):  # noqa: PTH208 - of a descriptor
                    os.unlink(name, dir_fd=folder)
                with self._folder(parts[:-1]) as above:
                    os.rmdir(parts[-1], dir_fd=above)

    def _note(self, parts: Sequence[str]) -> str:
        found = self.read(parts, LONGEST_NOTE)
        try:
            return (found or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise UnusableError("/".join(parts) + ": not UTF-8") from None

    @contextlib.contextmanager
    def _folder(self, parts: Sequence[str]) -> Iterator[int | None]:
        """Lend a descriptor of a folder below the path, opened without following links; ``None`` if it is missing."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                try:
                    below = os.open(part, _FOLDER, dir_fd=descriptor)
                except FileNotFoundError:
                    yield None
                    return
                except NotADirectoryError:
                    raise UnusableError("/".join(parts) + ": not a folder") from None
                os.close(descriptor)
                descriptor = below
            yield descriptor
        finally:
            os.close(descriptor)

    def _made(self, parts: Sequence[str]) -> int:
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in parts:
            try:
                os.mkdir(part, 0o755, dir_fd=descriptor)
                os.fsync(descriptor)
            except FileExistsError:
                pass
            except BaseException:
                os.close(descriptor)
                raise
            try:
                below = os.open(part, _FOLDER, dir_fd=descriptor)
            finally:
                os.close(descriptor)
            descriptor = below
        return descriptor


@contextlib.contextmanager
def _opened(folder: int, parts: Sequence[str]) -> Iterator[int | None]:
    try:
        descriptor = os.open(parts[-1], _READ, dir_fd=folder)
    except FileNotFoundError:
        yield None
        return
    except OSError as error:
        raise UnusableError("/".join(parts) + f": {error.strerror}") from None
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise UnusableError("/".join(parts) + ": not a regular file")
        yield descriptor
    finally:
        os.close(descriptor)


def _content(descriptor: int, parts: Sequence[str], limit: int) -> bytes:
    found = b""
    while len(found) <= limit and (more := os.read(descriptor, limit + 1 - len(found))):
        found += more
    if len(found) > limit:
        raise UnusableError("/".join(parts) + f": more than {limit} bytes")
    return found


def _write_scratch(folder: int, name: str, content: bytes) -> None:
    descriptor = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644, dir_fd=folder)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(descriptor)

"""The layout of a log's hashes and checkpoints in a folder (C2SP tlog-tiles), and the lines of its entries.

An anchor, which has no entries, and a bundle for an auditor, which has them, share this layout. To its readers, a log that was
truncated and continued is another log. It gets a generation, which ends its origin and names its folder (``origin/2``, ``2/``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from interlock.domain.merkle.tree import HASH_BYTES, TILE_HEIGHT, TILE_WIDTH, leaf_hash

CHECKPOINT = "checkpoint"
HISTORY = "checkpoints"
ENTRIES = "entries.ndjson"
MANIFEST = "bundle.json"
REPORTS = "reports"
LONGEST_LINE = 4_194_304
"""Maximum bytes of an entry: 64 KiB of data, escaped twice, and a session's record, with a margin."""
MOST_GENERATIONS = 1000

Line = tuple[bytes, bytes]
"""The bytes of an entry, empty when they are gone, and its leaf hash."""

_HIDDEN = re.compile(rb'\{"leaf":"([0-9a-f]{64})"\}')
_GENERATION = re.compile(r"[1-9][0-9]{0,2}", re.ASCII)


def tile_path(level: int, index: int, width: int = TILE_WIDTH) -> tuple[str, ...]:
    """Return the path of a tile below the log's folder, such as ``tile/0/x001/x234/067.p/12``."""
    groups = [f"{index % 1000:03d}"]
    while index >= 1000:
        index //= 1000
        groups.insert(0, f"x{index % 1000:03d}")
    partial = () if width == TILE_WIDTH else (f"{groups.pop()}.p", str(width))
    return ("tile", str(level), *groups, *partial)


def tiles_between(old_size: int, new_size: int) -> Iterator[tuple[int, int, int]]:
    """Return level, index and width of every tile that a log of *new_size* has and a log of *old_size* has not."""
    level = 0
    while (count := new_size >> TILE_HEIGHT * level) > 0:
        before = old_size >> TILE_HEIGHT * level
        for index in range(before // TILE_WIDTH, -(-count // TILE_WIDTH)):
            if (width := min(TILE_WIDTH, count - index * TILE_WIDTH)) and index * TILE_WIDTH + width > before:
                yield level, index, width
        level += 1


def hashes_in(tile: bytes) -> list[bytes]:
    """Return the hashes of a tile."""
    return [tile[at : at + HASH_BYTES] for at in range(0, len(tile), HASH_BYTES)]


def generation_origin(name: str, generation: int) -> str:
    """Return the origin of one generation of a log."""
    return name if generation == 1 else f"{name}/{generation}"


def parse_generation(name: str, origin: str) -> int:
    """Return the generation of the log *name* in *origin*; 0 for another log."""
    if origin == name:
        return 1
    number = origin.removeprefix(f"{name}/")
    found = number != origin and _GENERATION.fullmatch(number) is not None and int(number) > 1
    return int(number) if found else 0


def generation_folder(generation: int) -> tuple[str, ...]:
    """Return the folder of a generation, below the log's folder."""
    return () if generation == 1 else (str(generation),)


def format_line(entry: bytes, leaf: bytes) -> bytes:
    """Return the line of an entry in a bundle. An entry whose bytes are gone is written as its hash."""
    return entry or b'{"leaf":"' + leaf.hex().encode() + b'"}'


def parse_line(text: bytes) -> Line:
    """Return the entry and the leaf hash in a line of a bundle."""
    found = _HIDDEN.fullmatch(text) if text.startswith(b'{"leaf"') else None
    return (b"", bytes.fromhex(found[1].decode())) if found else (text, leaf_hash(text))


def runs(positions: Iterable[int]) -> list[tuple[int, int]]:
    """Return rising positions as runs [first, end)."""
    found: list[tuple[int, int]] = []
    for position in positions:
        if found and found[-1][1] == position:
            found[-1] = (found[-1][0], position + 1)
        else:
            found.append((position, position + 1))
    return found


def beyond(positions: Sequence[tuple[int, int]], covered: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the parts of the rising runs in *positions* outside all runs in *covered*. One pass: a log may have millions."""
    left: list[tuple[int, int]] = []
    others = sorted(covered)
    at, reached = 0, 0  # the first *at* of the others end at *reached* or before
    for run in positions:
        first, end = max(run[0], min(reached, run[1])), run[1]
        while at < len(others) and others[at][0] < end:
            if others[at][0] > first:
                left.append((first, others[at][0]))
            reached = max(reached, others[at][1])
            first, at = max(first, min(reached, end)), at + 1
        if first < end:
            left.append((first, end))
    return left

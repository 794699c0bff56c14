"""The Merkle tree over all entries of the log: hashes, roots and proofs (RFC 6962 §2.1, RFC 9162 §2.1).

``leaf = sha256(0x00 || entry)``, ``node = sha256(0x01 || left || right)``; the two prefixes prevent an entry from passing as
a node. A tree of n leaves has a left subtree with the largest power of two below n and a right subtree with the rest. A proof
consists of hashes of complete subtrees, named by level and index: leaves ``[index << level, (index + 1) << level)``.
"""

from __future__ import annotations

import hmac
from collections.abc import Callable, Iterable, Iterator, Sequence
from hashlib import sha256

HASH_BYTES = 32
EMPTY_ROOT = sha256(b"").digest()
"""Root of a tree without leaves."""
TILE_HEIGHT = 8
TILE_WIDTH = 1 << TILE_HEIGHT
"""Levels of the stored hashes. Complete subtrees of 256 and 65,536 leaves are stored, so that a proof reads few hashes."""
STORED_LEVELS = (TILE_HEIGHT, 2 * TILE_HEIGHT)

NodeOf = Callable[[int, int], bytes]
"""Returns the hash of a complete subtree, by level and index."""
ReadHashes = Callable[[int, int, int], Sequence[bytes]]
"""Returns the stored hashes of a level (0, 8 or 16) from a first index to an end index (exclusive)."""


def leaf_hash(entry: bytes) -> bytes:
    """Return the hash of an entry."""
    return sha256(b"\x00" + entry).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of an inner node."""
    return sha256(b"\x01" + left + right).digest()


def complete_root(hashes: Sequence[bytes]) -> bytes:
    """Return the root over *hashes*, whose number is a power of two: a value of a level in ``STORED_LEVELS``."""
    if not hashes or len(hashes) & (len(hashes) - 1):
        raise ValueError("a complete subtree has a power of two of leaves")
    row = list(hashes)
    while len(row) > 1:
        row = [node_hash(row[at], row[at + 1]) for at in range(0, len(row), 2)]
    return row[0]


def merkle_root(hashes: Iterable[bytes]) -> bytes:
    """Return the root of the tree with these leaf hashes."""
    frontier = Frontier()
    for leaf in hashes:
        frontier.append(leaf)
    return frontier.root()


class Frontier:
    """A tree that grows leaf by leaf and keeps only the roots of its complete subtrees, the largest first."""

    def __init__(self, size: int = 0, peaks: Sequence[bytes] = ()) -> None:
        if size.bit_count() != len(peaks):
            raise ValueError("a frontier has one peak for each bit of its size")
        self.size, self._peaks = size, list(peaks)

    @classmethod
    def at(cls, size: int, node: NodeOf) -> Frontier:
        """Return the frontier of the first *size* leaves."""
        return cls(size, [node(level, index) for level, index in _complete(0, size)])

    def append(self, leaf: bytes) -> None:
        """Add a leaf hash."""
        carried, peaks, size = leaf, self._peaks, self.size
        while size & 1:
            carried = sha256(b"\x01" + peaks.pop() + carried).digest()
            size >>= 1
        peaks.append(carried)
        self.size += 1

    def root(self) -> bytes:
        """Return the root over all leaves so far."""
        return _joined(self._peaks) if self._peaks else EMPTY_ROOT


def tree_root(size: int, node: NodeOf) -> bytes:
    """Return the root of the first *size* leaves."""
    return Frontier.at(size, node).root()


def inclusion_proof(index: int, size: int, node: NodeOf) -> list[bytes]:
    """Return the audit path of leaf *index* in the tree of *size* leaves, from the leaf up (RFC 9162 §2.1.3.1)."""
    if not 0 <= index < size:
        raise ValueError("the leaf is not in the tree")
    path, start, end = [], 0, size
    while end - start > 1:
        middle = start + _split(end - start)
        inside, sibling = ((start, middle), (middle, end)) if index < middle else ((middle, end), (start, middle))
        path.append(_range_root(*sibling, node))
        start, end = inside
    return path[::-1]


def consistency_proof(old_size: int, new_size: int, node: NodeOf) -> list[bytes]:
    """Return the proof that the first *old_size* leaves are a prefix of the first *new_size* (RFC 9162 §2.1.4.1)."""
    if not 0 < old_size <= new_size:
        raise ValueError("the earlier tree has at least one leaf and is no larger than the later one")
    path, start, end = [], 0, new_size
    while old_size != end:
        middle = start + _split(end - start)
        if old_size <= middle:
            path.append(_range_root(middle, end, node))
            end = middle
        else:
            path.append(_range_root(start, middle, node))
            start = middle
    if start:  # otherwise it is the earlier root, which the verifier has
        path.append(_range_root(start, end, node))
    return path[::-1]


def verify_inclusion(leaf: bytes, index: int, size: int, proof: Sequence[bytes], root: bytes) -> bool:
    """Return whether *proof* links the leaf hash at *index* to *root*, the root of *size* leaves (RFC 9162 §2.1.3.2)."""
    if not 0 <= index < size or not _hashes((leaf, root, *proof)):
        return False
    at, last, found = index, size - 1, leaf
    for sibling in proof:
        if last == 0:
            return False
        if at & 1 or at == last:
            found = node_hash(sibling, found)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            found = node_hash(found, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and hmac.compare_digest(found, root)


def verify_consistency(
    old_size: int, new_size: int, proof: Sequence[bytes], *, old_root: bytes, new_root: bytes
) -> bool:
    """Return whether *proof* shows that the earlier tree is a prefix of the later one (RFC 9162 §2.1.4.2)."""
    if not 0 < old_size <= new_size or not _hashes((old_root, new_root, *proof)):
        return False
    if old_size == new_size:
        return not proof and hmac.compare_digest(old_root, new_root)
    path = list(proof) if old_size & (old_size - 1) else [old_root, *proof]
    if not path:
        return False
    at, last = old_size - 1, new_size - 1
    while at & 1:
        at, last = at >> 1, last >> 1
    old, new = path[0], path[0]
    for sibling in path[1:]:
        if last == 0:
            return False
        if at & 1 or at == last:
            old, new = node_hash(sibling, old), node_hash(sibling, new)
            while not at & 1 and at:
                at, last = at >> 1, last >> 1
        else:
            new = node_hash(new, sibling)
        at, last = at >> 1, last >> 1
    return last == 0 and hmac.compare_digest(old, old_root) and hmac.compare_digest(new, new_root)


class StoredTree:
    """Hashes of complete subtrees, from the stored levels 0 (leaves), 8 and 16. Reads a block at a time."""

    def __init__(self, read: ReadHashes) -> None:
        self._read = read
        self._blocks: dict[tuple[int, int], Sequence[bytes]] = {}

    def node(self, level: int, index: int) -> bytes:
        """Return the hash of a complete subtree. Raises ``LookupError`` where the store is incomplete."""
        base = min(level - level % TILE_HEIGHT, STORED_LEVELS[-1])
        start, end = index << level - base, (index + 1) << level - base
        return complete_root(self._hashes(base, start, end))

    def _hashes(self, level: int, start: int, end: int) -> Sequence[bytes]:
        if end - start > TILE_WIDTH:
            found: Sequence[bytes] = self._read(level, start, end)
        else:
            block = start - start % TILE_WIDTH
            if (level, block) not in self._blocks:
                self._blocks[level, block] = self._read(level, block, block + TILE_WIDTH)
            found = self._blocks[level, block][start - block : end - block]
        if len(found) != end - start:
            raise LookupError("the stored tree is incomplete")
        return found


def _range_root(start: int, end: int, node: NodeOf) -> bytes:
    """Return the root over a range of leaves that the tree's shape defines."""
    return _joined([node(level, index) for level, index in _complete(start, end)])


def _joined(peaks: Sequence[bytes]) -> bytes:
    """Return the root over complete subtrees, the largest first."""
    found = peaks[-1]
    for peak in reversed(peaks[:-1]):
        found = node_hash(peak, found)
    return found


def _complete(start: int, end: int) -> Iterator[tuple[int, int]]:
    """Split a range, aligned at its start, into complete subtrees, the largest first."""
    while start < end:
        level = (end - start).bit_length() - 1
        yield level, start >> level
        start += 1 << level


def _split(size: int) -> int:
    """Return the largest power of two below *size*, which is at least 2."""
    return 1 << ((size - 1).bit_length() - 1)


def _hashes(found: Iterable[bytes]) -> bool:
    return all(len(one) == HASH_BYTES for one in found)

"""Merkle proofs: what verifies is the one true proof of a true leaf or root, whatever it was put together from (A-27)."""

from __future__ import annotations

from hashlib import sha256

from interlock.domain.merkle import tree

WORDS = (b"i\x00\x08\x00", b"i\x06\x07\x06", b"c\x03\x07", b"c\x04\x08", b"c\x01\x02", b"c\x08\x08")
MOST = 40
LEAVES = tuple(tree.leaf_hash(b"entry %d" % n) for n in range(MOST))


def node(level: int, index: int) -> bytes:
    """The hash of a complete subtree of the true tree."""
    if level == 0:
        return LEAVES[index]
    return tree.node_hash(node(level - 1, 2 * index), node(level - 1, 2 * index + 1))


ROOTS = tuple(tree.merkle_root(LEAVES[:size]) for size in range(MOST + 1))
POOL = (*LEAVES, *(node(level, at) for level in (1, 2, 3, 4) for at in range(MOST >> level)), *ROOTS)


def TestOneInput(data: bytes) -> None:
    """A proof put together from true hashes and others verifies only where it is the proof that the log would give."""
    if len(data) < 4:
        return
    size = 1 + data[1] % MOST
    if data[:1] == b"i":
        _inclusion(data[2], size, data[3], hashes(data[4:]))
    elif data[:1] == b"c":
        _consistency(data[2], size, data[3], hashes(data[4:]))
    else:
        _own(data[2] % size, size)


def hashes(data: bytes) -> list[bytes]:
    """Return one hash for each byte: of the true tree, or, past that, one that nobody has seen."""
    return [POOL[byte] if byte < len(POOL) else sha256(bytes([byte])).digest()[: 31 + byte % 2] for byte in data[:12]]


def _inclusion(index: int, size: int, leaf: int, proof: list[bytes]) -> None:
    claimed = POOL[leaf % len(POOL)]
    if tree.verify_inclusion(claimed, index, size, proof, ROOTS[size]):
        assert claimed == LEAVES[index]
        assert proof == tree.inclusion_proof(index, size, node)


def _consistency(old: int, new: int, root: int, proof: list[bytes]) -> None:
    claimed = POOL[root % len(POOL)]
    if tree.verify_consistency(old, new, proof, old_root=claimed, new_root=ROOTS[new]):
        assert claimed == ROOTS[old]
        assert proof == tree.consistency_proof(old, new, node)


def _own(index: int, size: int) -> None:
    """The log's own proofs hold, and every cut of one fails."""
    proof = tree.inclusion_proof(index, size, node)
    assert tree.verify_inclusion(LEAVES[index], index, size, proof, ROOTS[size])
    assert not any(
        tree.verify_inclusion(LEAVES[index], index, size, proof[:cut], ROOTS[size]) for cut in range(len(proof))
    )
    longer = tree.consistency_proof(index + 1, size, node)
    assert tree.verify_consistency(index + 1, size, longer, old_root=ROOTS[index + 1], new_root=ROOTS[size])
    assert tree.tree_root(size, node) == ROOTS[size]


def seeds() -> dict[str, bytes]:
    """True proofs of several shapes, spelled by their places in the pool."""
    found = {"own": b"o\x0c\x05\x00", "own_last": b"o\x27\x27\x00"}
    for index, size in ((0, 8), (6, 7), (4, 5), (0, 1), (10, 39)):
        proof = bytes(POOL.index(one) for one in tree.inclusion_proof(index, size, node) if one in POOL)
        found[f"inclusion_{index}_of_{size}"] = b"i" + bytes([size - 1, index, index]) + proof
    for old, new in ((3, 7), (4, 8), (1, 2), (6, 8), (7, 7), (20, 39)):
        proof = bytes(POOL.index(one) for one in tree.consistency_proof(old, new, node) if one in POOL)
        found[f"consistency_{old}_of_{new}"] = b"c" + bytes([new - 1, old, POOL.index(ROOTS[old])]) + proof
    return found

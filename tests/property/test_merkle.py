"""The Merkle tree against another implementation, against the RFC's own tree, and against forged proofs."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256

import pymerkle
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.merkle.tree import (
    EMPTY_ROOT,
    TILE_WIDTH,
    Frontier,
    StoredTree,
    complete_root,
    consistency_proof,
    inclusion_proof,
    leaf_hash,
    merkle_root,
    node_hash,
    tree_root,
    verify_consistency,
    verify_inclusion,
)

# The example of RFC 6962 §2.1.3 has seven leaves; these eight entries and roots are those of the Certificate Transparency
# reference tests, which every implementation of RFC 6962 is held against.
ENTRIES = [
    bytes.fromhex(text)
    for text in ("", "00", "10", "2021", "3031", "40414243", "5051525354555657", "606162636465666768696a6b6c6d6e6f")
]
ROOTS = [
    "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
    "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
    "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
    "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
    "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
    "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
    "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
]
PATHS = {
    (0, 8): (
        "96a296d224f285c67bee93c30f8a309157f0daa35dc5b87e410b78630a09cfc7",
        "5f083f0a1a33ca076a95279832580db3e0ef4584bdff1f54c8a360f50de3031e",
        "6b47aaf29ee3c2af9af889bc1fb9254dabd31177f16232dd6aab035ca39bf6e4",
    ),
    (5, 8): (
        "bc1a0643b12e4d2d7c77918f44e0f4f79a838b6cf9ec5b5c283e1f4d88599e6b",
        "ca854ea128ed050b41b35ffc1b87b8eb2bde461e9e3b5596ece6b9d5975a0ae0",
        "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
    ),
}


def leaves_of(count: int) -> list[bytes]:
    return [leaf_hash(b"entry %d" % n) for n in range(count)]


def tree_of(leaves: Sequence[bytes]) -> StoredTree:
    """Return the tree as it is stored: leaves, and complete subtrees of 2^8 of them."""
    nodes = {0: leaves, 8: [], 16: []}
    for level in (8, 16):
        below = nodes[level - 8]
        whole = range(TILE_WIDTH, len(below) + 1, TILE_WIDTH)
        nodes[level] = [complete_root(below[end - TILE_WIDTH : end]) for end in whole]
    return StoredTree(lambda level, start, end: nodes[level][start:end])


@pytest.mark.req("AUD-6")
def test_the_reference_tree_has_its_published_roots_and_paths():
    """The known answers of RFC 6962's own tests, leaf by leaf."""
    leaves = [leaf_hash(entry) for entry in ENTRIES]

    assert [merkle_root(leaves[:size]).hex() for size in range(1, 9)] == ROOTS
    assert sha256(b"").digest() == EMPTY_ROOT == merkle_root([])
    for (index, size), path in PATHS.items():
        found = inclusion_proof(index, size, tree_of(leaves).node)
        assert tuple(one.hex() for one in found) == path


@pytest.mark.req("AUD-6")
def test_every_small_tree_has_the_roots_of_another_implementation():
    """Roots, and all proofs between all sizes up to 33, agree with pymerkle."""
    theirs, leaves = pymerkle.InmemoryTree(algorithm="sha256"), leaves_of(33)
    for size, _ in enumerate(leaves, 1):
        theirs.append_entry(b"entry %d" % (size - 1))
        root, node = theirs.get_root(size), tree_of(leaves[:size]).node
        assert tree_root(size, node) == root
        for index in range(size):
            proof = inclusion_proof(index, size, node)
            assert verify_inclusion(leaves[index], index, size, proof, root)
        for old in range(1, size + 1):
            proof = consistency_proof(old, size, node)
            assert verify_consistency(old, size, proof, old_root=theirs.get_root(old), new_root=root)


@given(st.integers(1, 3 * 65_536), st.data())
def test_proofs_from_stored_nodes_verify_in_trees_of_many_blocks(size, data):
    """A tree that is only partly in memory proves the same: nodes of levels 8 and 16 stand for what lies below."""
    index, old = data.draw(st.integers(0, size - 1)), data.draw(st.integers(1, size))
    tree = _Uniform(size)
    root = tree_root(size, tree.stored().node)

    assert verify_inclusion(_LEAF, index, size, inclusion_proof(index, size, tree.stored().node), root)
    old_root = tree_root(old, tree.stored().node)
    proof = consistency_proof(old, size, tree.stored().node)
    assert verify_consistency(old, size, proof, old_root=old_root, new_root=root)


_LEAF = leaf_hash(b"the same everywhere")
_ROW = [_LEAF]
for _ in range(16):
    _ROW.append(node_hash(_ROW[-1], _ROW[-1]))


class _Uniform:
    """A tree of equal leaves, so that a large one costs nothing."""

    def __init__(self, size: int) -> None:
        self.size = size

    def stored(self) -> StoredTree:
        def read(level: int, start: int, end: int) -> list[bytes]:
            return [_ROW[level]] * max(0, min(end, self.size >> level) - start)

        return StoredTree(read)


@given(st.integers(1, 300), st.data())
def test_a_proof_holds_for_nothing_else(size, data):
    """Another leaf, index, size, root, a changed, dropped, doubled or swapped hash: none verifies."""
    leaves = leaves_of(size)
    index = data.draw(st.integers(0, size - 1))
    node = tree_of(leaves).node
    proof, root = inclusion_proof(index, size, node), tree_root(size, node)

    wrong = leaf_hash(b"another")
    assert not verify_inclusion(wrong, index, size, proof, root)
    assert not verify_inclusion(leaves[index], index, size, proof, wrong)
    assert not verify_inclusion(leaves[index], index, size, [*proof, wrong], root)
    assert not any(verify_inclusion(leaves[index], other, size, proof, root) for other in range(size) if other != index)
    for at in range(len(proof)):
        assert not verify_inclusion(leaves[index], index, size, [*proof[:at], *proof[at + 1 :]], root)
        assert not verify_inclusion(leaves[index], index, size, [*proof[:at], wrong, *proof[at + 1 :]], root)
        assert not verify_inclusion(leaves[index], index, size, [*proof[:at], proof[at][:31], *proof[at + 1 :]], root)


@given(st.integers(2, 300), st.data())
def test_no_consistency_can_be_shown_between_logs_that_differ(size, data):
    """A log that changed one early entry has no proof from the honest one, whatever hashes it offers."""
    old = data.draw(st.integers(1, size - 1))
    changed = data.draw(st.integers(0, old - 1))
    honest = leaves_of(size)
    forged = [*honest[:changed], leaf_hash(b"forged"), *honest[changed + 1 :]]
    old_root, new_root = merkle_root(honest[:old]), merkle_root(forged)

    for leaves in (honest, forged):
        proof = consistency_proof(old, size, tree_of(leaves).node)
        assert not verify_consistency(old, size, proof, old_root=old_root, new_root=new_root)


@given(st.lists(st.binary(max_size=8), max_size=70))
def test_a_frontier_grows_to_the_same_root(entries):
    """Leaf by leaf, and taken up in the middle, the root is that of the whole."""
    leaves = [leaf_hash(entry) for entry in entries]
    half = len(leaves) // 2
    grown = Frontier.at(half, tree_of(leaves).node)
    for leaf in leaves[half:]:
        grown.append(leaf)

    assert grown.root() == merkle_root(leaves)
    assert grown.size == len(leaves)


def test_an_entry_cannot_stand_for_a_node():
    """The prefix keeps the two apart: an entry made of two hashes is not their node (second preimage)."""
    left, right = leaves_of(2)

    assert leaf_hash(left + right) != node_hash(left, right)


@pytest.mark.parametrize("sizes", [(0, 1), (2, 1), (-1, 3)])
def test_proofs_of_impossible_sizes_are_refused(sizes):
    """Nothing is proved about a tree that is empty or larger than the later one."""
    old, new = sizes
    with pytest.raises(ValueError, match="earlier"):
        consistency_proof(old, new, tree_of(leaves_of(4)).node)
    assert not verify_consistency(old, new, [], old_root=EMPTY_ROOT, new_root=EMPTY_ROOT)

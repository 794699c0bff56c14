"""The Merkle tree at its edges: proofs hash by hash, forgeries that lead to the right root, and what a store lacks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import sha256

import pytest

from interlock.domain.merkle.tree import (
    EMPTY_ROOT,
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

LEAVES = [sha256(b"%d" % n).digest() for n in range(20)]
SIZES = range(1, len(LEAVES) + 1)
OTHER = sha256(b"another").digest()


def half(count: int) -> int:
    """The largest power of two below a number of leaves."""
    return 1 << math.ceil(math.log2(count)) - 1


def mth(leaves: Sequence[bytes]) -> bytes:
    """MTH of RFC 6962 §2.1, as the RFC writes it, over leaf hashes."""
    if len(leaves) == 1:
        return leaves[0]
    k = half(len(leaves))
    return sha256(b"\x01" + mth(leaves[:k]) + mth(leaves[k:])).digest()


def path(m: int, leaves: Sequence[bytes]) -> list[bytes]:
    """PATH of RFC 6962 §2.1.1."""
    if len(leaves) == 1:
        return []
    k = half(len(leaves))
    return [*path(m, leaves[:k]), mth(leaves[k:])] if m < k else [*path(m - k, leaves[k:]), mth(leaves[:k])]


def subproof(m: int, leaves: Sequence[bytes], *, known: bool = True) -> list[bytes]:
    """SUBPROOF of RFC 6962 §2.1.2."""
    if m == len(leaves):
        return [] if known else [mth(leaves)]
    k = half(len(leaves))
    if m <= k:
        return [*subproof(m, leaves[:k], known=known), mth(leaves[k:])]
    return [*subproof(m - k, leaves[k:], known=False), mth(leaves[:k])]


def node(level: int, index: int) -> bytes:
    """A complete subtree of LEAVES."""
    leaves = LEAVES[index << level : (index + 1) << level]
    assert len(leaves) == 1 << level, "only complete subtrees are asked for"
    return mth(leaves)


# --- hashes and roots


@pytest.mark.req("AUD-6")
def test_leaves_and_nodes_are_hashed_with_their_own_prefix():
    """RFC 6962 §2.1: 0x00 before an entry, 0x01 before two hashes."""
    assert leaf_hash(b"entry") == sha256(b"\x00entry").digest()
    assert node_hash(b"left", b"right") == sha256(b"\x01leftright").digest()
    assert sha256(b"").digest() == EMPTY_ROOT == merkle_root([]) == tree_root(0, node) == Frontier().root()


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("levels", range(5))
def test_the_root_over_a_power_of_two_is_the_root_of_their_tree(levels):
    """From one hash, which is its own root, to sixteen."""
    hashes = LEAVES[: 1 << levels]

    assert complete_root(hashes) == mth(hashes)


@pytest.mark.parametrize("count", [0, 3, 5, 6, 7, 12])
def test_the_root_over_anything_else_is_a_defect_that_says_so(count):
    """What is stored at a level is complete."""
    with pytest.raises(ValueError, match=r"^a complete subtree has a power of two of leaves$"):
        complete_root(LEAVES[:count])


@pytest.mark.parametrize(("size", "peaks"), [(0, 1), (1, 0), (2, 2), (3, 1), (7, 2), (8, 3)])
def test_a_frontier_with_too_few_or_too_many_peaks_is_a_defect_that_says_so(size, peaks):
    """The bits of the size are the complete subtrees."""
    with pytest.raises(ValueError, match=r"^a frontier has one peak for each bit of its size$"):
        Frontier(size, LEAVES[:peaks])


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", SIZES)
def test_a_frontier_taken_up_anywhere_grows_to_the_roots_of_the_rfc(size):
    """At every size, by every leaf after it; the caller's peaks are not changed by that."""
    peaks = [node(level, index) for level, index in _bits(size)]
    grown, given = Frontier(size, peaks), list(peaks)
    for count in range(size, len(LEAVES)):
        assert (grown.size, grown.root()) == (count, mth(LEAVES[:count]))
        grown.append(LEAVES[count])

    assert (grown.size, grown.root(), peaks) == (len(LEAVES), mth(LEAVES), given)


def _bits(size: int) -> list[tuple[int, int]]:
    """Level and index of each complete subtree of a tree, the largest first."""
    return [(level, (size >> level + 1) * 2) for level in reversed(range(5)) if size >> level & 1]


# --- proofs


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", SIZES)
def test_proofs_are_those_of_the_rfc_hash_by_hash(size):
    """Every leaf and every earlier size, against the RFC's recursive definitions."""
    leaves = LEAVES[:size]

    assert tree_root(size, node) == mth(leaves)
    for index in range(size):
        assert inclusion_proof(index, size, node) == path(index, leaves)
    for old in range(1, size + 1):
        assert consistency_proof(old, size, node) == subproof(old, leaves)


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", SIZES)
def test_proofs_of_the_rfc_verify(size):
    """Made without the code under test."""
    leaves, root = LEAVES[:size], mth(LEAVES[:size])

    for index in range(size):
        assert verify_inclusion(leaves[index], index, size, path(index, leaves), root)
    for old in range(1, size + 1):
        assert verify_consistency(old, size, subproof(old, leaves), old_root=mth(leaves[:old]), new_root=root)


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize(("index", "size"), [(-1, 4), (4, 4), (5, 4), (1, 1), (0, 0), (0, -1)])
def test_a_leaf_outside_the_tree_has_no_proof(index, size):
    """Neither made nor believed, whatever the hashes."""
    with pytest.raises(ValueError, match=r"^the leaf is not in the tree$"):
        inclusion_proof(index, size, node)
    for proof in ([], [LEAVES[0]], path(3, LEAVES[:4])):
        assert not any(verify_inclusion(leaf, index, size, proof, mth(LEAVES[:4])) for leaf in LEAVES[:4])
    assert not verify_inclusion(LEAVES[0], index, size, [], LEAVES[0])


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize(("old", "new"), [(0, 4), (0, 0), (5, 4), (-1, 4)])
def test_a_tree_that_is_empty_or_larger_is_no_beginning(old, new):
    """Not even of one with the same root."""
    said = r"^the earlier tree has at least one leaf and is no larger than the later one$"
    with pytest.raises(ValueError, match=said):
        consistency_proof(old, new, node)
    for root in (EMPTY_ROOT, mth(LEAVES[:4])):
        assert not verify_consistency(old, new, [], old_root=root, new_root=root)
    assert not verify_consistency(old, new, subproof(2, LEAVES[:4]), old_root=EMPTY_ROOT, new_root=mth(LEAVES[:4]))


@pytest.mark.req("AUD-6")
def test_a_tree_begins_with_itself_and_needs_no_proof_of_it():
    """The two roots are equal and the proof is empty, or it does not hold."""
    root = mth(LEAVES[:6])

    assert verify_consistency(6, 6, [], old_root=root, new_root=root)
    assert not verify_consistency(6, 6, [], old_root=root, new_root=OTHER)
    assert not verify_consistency(6, 6, [root], old_root=root, new_root=root)


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", range(2, 21))
def test_no_proof_is_no_proof(size):
    """Between two sizes something has to be shown, whatever the roots, even equal ones."""
    for old in range(1, size):
        for new_root in (mth(LEAVES[:size]), mth(LEAVES[:old])):
            assert not verify_consistency(old, size, [], old_root=mth(LEAVES[:old]), new_root=new_root), old


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", SIZES)
def test_an_inclusion_proof_that_stops_early_proves_nothing(size):
    """Not even against the root of the smaller tree that its hashes lead to."""
    leaves = LEAVES[:size]
    for index in range(size):
        full = path(index, leaves)
        for kept in range(len(full)):
            reached = _climbed(index, size, full[:kept])
            assert not verify_inclusion(leaves[index], index, size, full[:kept], reached), (index, kept)


def _climbed(index: int, size: int, proof: Sequence[bytes]) -> bytes:
    """The root of the part of the tree that so many hashes of a proof lead to."""
    start, end = 0, size
    for _ in range(len(path(index, LEAVES[:size])) - len(proof)):
        middle = start + half(end - start)
        start, end = (start, middle) if index < middle else (middle, end)
    return mth(LEAVES[start:end])


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", SIZES)
def test_an_inclusion_proof_that_goes_on_past_the_root_proves_nothing(size):
    """Not even against what the root and the hash too many make together, on either side."""
    leaves, root = LEAVES[:size], mth(LEAVES[:size])
    for index in range(size):
        longer = [*path(index, leaves), OTHER]
        for beyond in (node_hash(root, OTHER), node_hash(OTHER, root), root):
            assert not verify_inclusion(leaves[index], index, size, longer, beyond), index


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", SIZES)
def test_a_consistency_proof_of_another_length_proves_nothing(size):
    """One hash fewer or more, with roots that would fit: those of a smaller tree, or of one with the hash added."""
    leaves, root = LEAVES[:size], mth(LEAVES[:size])
    for old in range(1, size):
        proof, old_root = subproof(old, leaves), mth(leaves[:old])
        shorter = [old_root, root, *(mth(leaves[:smaller]) for smaller in range(old, size))]
        assert not any(verify_consistency(old, size, proof[:-1], old_root=old_root, new_root=one) for one in shorter)
        for new_root in (root, node_hash(root, OTHER), node_hash(OTHER, root)):
            for earlier in (old_root, node_hash(OTHER, old_root)):
                longer = [*proof, OTHER]
                assert not verify_consistency(old, size, longer, old_root=earlier, new_root=new_root), old


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("size", range(2, 21))
def test_both_roots_of_a_consistency_proof_are_held_against_it(size):
    """A sound proof with one root exchanged."""
    leaves, root = LEAVES[:size], mth(LEAVES[:size])
    for old in range(1, size):
        proof, old_root = subproof(old, leaves), mth(leaves[:old])
        assert not verify_consistency(old, size, proof, old_root=OTHER, new_root=root), old
        assert not verify_consistency(old, size, proof, old_root=old_root, new_root=OTHER), old


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("wrong", [b"", b"x" * 31, b"x" * 33])
def test_what_is_not_as_long_as_a_hash_is_none_even_where_the_root_fits(wrong):
    """Otherwise the end of one hash could be read as the beginning of the next."""
    assert not verify_inclusion(wrong, 0, 1, [], wrong)
    assert not verify_inclusion(LEAVES[0], 0, 2, [wrong], node_hash(LEAVES[0], wrong))
    assert not verify_inclusion(LEAVES[0], 0, 2, [LEAVES[1]], wrong)
    assert not verify_consistency(3, 3, [], old_root=wrong, new_root=wrong)
    assert not verify_consistency(1, 2, [wrong], old_root=LEAVES[0], new_root=node_hash(LEAVES[0], wrong))
    assert not verify_consistency(1, 2, [LEAVES[1]], old_root=wrong, new_root=node_hash(wrong, LEAVES[1]))
    assert not verify_consistency(1, 2, [LEAVES[1]], old_root=LEAVES[0], new_root=wrong)


# --- what is stored

ROW = [LEAVES[0]]
for _ in range(40):
    ROW.append(node_hash(ROW[-1], ROW[-1]))


class Store:
    """The stored levels of a tree of equal leaves, so that a large one costs nothing; it notes what was read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.read: list[tuple[int, int, int]] = []

    def __call__(self, level: int, start: int, end: int) -> list[bytes]:
        self.read.append((level, start, end))
        return [ROW[level]] * max(0, min(end, self.size >> level) - start)


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize(
    ("level", "index", "read"),
    [
        (0, 0, (0, 0, 256)),
        (0, 255, (0, 0, 256)),
        (0, 256, (0, 256, 512)),
        (7, 3, (0, 256, 512)),
        (8, 3, (8, 0, 256)),
        (8, 256, (8, 256, 512)),
        (15, 1, (8, 0, 256)),
        (16, 1, (16, 0, 256)),
        (17, 2, (16, 0, 256)),
        (23, 1, (16, 0, 256)),
        (24, 1, (16, 256, 512)),
        (25, 0, (16, 0, 512)),
        (25, 1, (16, 512, 1024)),
    ],
)
def test_a_subtree_is_read_from_the_stored_level_below_it(level, index, read):
    """Leaves, subtrees of 256 and of 65,536, one block of 256 hashes at a time; above those, as many as it takes."""
    store = Store(1 << 27)

    assert StoredTree(store).node(level, index) == ROW[level]
    assert store.read == [read]


@pytest.mark.req("AUD-6")
def test_a_block_that_was_read_is_not_read_again():
    """A proof asks for neighbours of one block; another block, and the same one of another level, are others."""
    store = Store(1 << 24)
    tree = StoredTree(store)

    for level, index in [(0, 5), (3, 1), (0, 5), (0, 300), (8, 5), (9, 1), (7, 2), (24, 0), (17, 3), (24, 0)]:
        assert tree.node(level, index) == ROW[level]

    assert store.read == [(0, 0, 256), (0, 256, 512), (8, 0, 256), (16, 0, 256)]


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize(
    ("size", "level", "index"),
    [(300, 0, 299), (300, 2, 74), (511, 7, 2), (512, 8, 1), (65_536 * 256, 24, 0), (65_536 * 1024, 26, 0)],
)
def test_the_last_complete_subtree_is_found_and_the_next_one_is_missing(size, level, index):
    """A store that holds less than was asked for never gives a shorter subtree's hash instead."""
    assert StoredTree(Store(size)).node(level, index) == ROW[level]
    with pytest.raises(LookupError, match=r"^the stored tree is incomplete$"):
        StoredTree(Store(size)).node(level, index + 1)


@pytest.mark.parametrize(("size", "level", "index"), [(3, 2, 0), (65_536 * 511, 25, 0)])
def test_a_subtree_that_is_stored_in_part_is_missing(size, level, index):
    """One hash short is as incomplete as none, in one block and in many."""
    with pytest.raises(LookupError, match=r"^the stored tree is incomplete$"):
        StoredTree(Store(size)).node(level, index)

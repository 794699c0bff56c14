"""A-27: in a real log of 200 entries, whatever is done to one entry is found, with its index (AUD-6)."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from interlock.domain.merkle.bundle import Examined, Examiner
from interlock.domain.merkle.tiles import Line, parse_line
from tests.support.audit.auditors import Evidence, build_evidence, edits

pytestmark = pytest.mark.req("AUD-6")

SIZE = 200


@pytest.fixture(scope="module")
def evidence(tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    """A bundle of a real service's log, and its anchor."""
    found = build_evidence(tmp_path_factory.mktemp("log"))
    assert len(found.lines) == SIZE
    return found


class Log:
    """The log in memory, to be examined thousands of times."""

    def __init__(self, evidence: Evidence) -> None:
        self.lines, self.leaves, self.heads = evidence.parts()

    def examine(self, lines: Sequence[Line]) -> Examined:
        return Examiner(self.heads).run(lines, self.leaves, whole=True)

    def named(self, lines: Sequence[Line]) -> set[int]:
        """Return the indexes that the examination of a tampered log names."""
        found = self.examine(lines)
        assert found.verdict == "BROKEN"
        assert found.found == len(found.findings)
        return {finding.index for finding in found.findings if finding.what == "entry"}


@pytest.fixture(scope="module")
def log(evidence: Evidence) -> Log:
    """The same, read once."""
    return Log(evidence)


def test_a27_the_untouched_log_is_whole(log):
    """What the tests below change is, without that, VALID to its last entry."""
    found = log.examine(log.lines)

    assert (found.verdict, found.size, found.anchored, found.signed) == ("VALID", SIZE, SIZE, SIZE)


def test_a27_every_single_deletion_is_found_by_its_index(log):
    """One line less, anywhere."""
    for at in range(SIZE):
        assert log.named([*log.lines[:at], *log.lines[at + 1 :]]) == {at}


def test_a27_every_tail_cut_is_found_from_its_first_missing_entry(log):
    """The end is gone, from one entry to all of them."""
    for kept in range(SIZE):
        assert log.named(log.lines[:kept]) == set(range(kept, SIZE))


def test_a27_every_adjacent_swap_is_found_by_both_indexes(log):
    """Two neighbours changed places."""
    for at in range(SIZE - 1):
        swapped = [*log.lines[:at], log.lines[at + 1], log.lines[at], *log.lines[at + 2 :]]
        assert log.named(swapped) == {at, at + 1}


def test_a27_swaps_of_any_two_entries_are_found_by_both_indexes(log):
    """Two entries far apart changed places."""
    chance = random.Random(27)
    for one in range(SIZE):
        other = chance.choice([at for at in range(SIZE) if abs(at - one) > 1])
        swapped = list(log.lines)
        swapped[one], swapped[other] = swapped[other], swapped[one]
        assert log.named(swapped) == {one, other}


def test_a27_every_insertion_is_found_by_its_index(log):
    """An invented line more, anywhere."""
    for at in range(SIZE + 1):
        invented = parse_line(b'{"invented":%d}' % at)
        assert log.named([*log.lines[:at], invented, *log.lines[at:]]) == {at}


def test_a27_every_duplicate_is_found_by_its_index(log):
    """Each entry a second time, right behind itself."""
    for at in range(SIZE):
        assert log.named([*log.lines[: at + 1], log.lines[at], *log.lines[at + 1 :]]) == {at + 1}


@pytest.mark.long
def test_a27_every_replay_of_an_earlier_entry_is_found_by_its_index(log):
    """Another entry of the log again, somewhere behind it."""
    chance = random.Random(28)
    for at in range(2, SIZE + 1):
        replayed = chance.choice(log.lines[: at - 1])
        assert log.named([*log.lines[:at], replayed, *log.lines[at:]]) == {at}


def test_a27_an_edit_of_every_entry_is_found_by_its_index(log):
    """One field of each entry, another field from entry to entry."""
    for at, (text, _) in enumerate(log.lines):
        changed = list(edits(text))
        assert _edited(log, at, changed[at % len(changed)][1]) == {at}


@pytest.mark.long
def test_a27_an_edit_of_every_field_of_every_entry_is_found_by_its_index(log):
    """Nine fields of 200 entries, and a single bit of each."""
    for at, (text, _) in enumerate(log.lines):
        flipped = bytes([*text[:-1], text[-1] ^ 1])
        for changed in (*(line for _, line in edits(text)), flipped):
            assert _edited(log, at, changed) == {at}


def _edited(log: Log, at: int, changed: bytes) -> set[int]:
    assert changed != log.lines[at][0]
    return log.named([*log.lines[:at], parse_line(changed), *log.lines[at + 1 :]])


def test_a27_who_changes_the_hashes_too_is_found_by_the_anchor(evidence, log):
    """Entries and the bundle's own hashes agree; the published ones do not, and name the entry."""
    for at in range(0, SIZE, 9):
        lines = list(log.lines)
        lines[at] = parse_line(next(iter(edits(lines[at][0])))[1])
        assert log.named(lines) == {at}


def test_a27_without_an_anchor_a_signed_root_still_tells_between_which_checkpoints(evidence):
    """Entry and hash are changed together, and no anchor is at hand: the next signature does not hold for them."""
    lines, leaves, heads = evidence.parts(anchored=False)
    sizes = sorted({head.size for head in heads})
    for at in range(SIZE):
        changed = parse_line(next(iter(edits(lines[at][0])))[1])
        there = [*lines[:at], changed, *lines[at + 1 :]]
        found = Examiner(heads).run(there, [*leaves[:at], changed[1], *leaves[at + 1 :]], whole=True)
        failed = next(one for one in found.findings if one.what == "checkpoint")
        assert failed.reason == "ROOT_MISMATCH"
        assert failed.index == next(size for size in sizes if size > at)
        assert f"size {max((size for size in sizes if size <= at), default=0)}" in failed.detail

"""Disguises undone, and what only looks like one left as it stands (reliability.md A-24)."""

from __future__ import annotations

import codecs

import pytest

from interlock.dpe.text.disguises import undisguised
from interlock.dpe.text.text import Text

pytestmark = pytest.mark.req("DPE-1")


@pytest.mark.parametrize("row", ["| Cache | 16 GB | 2 TB |", "Backups: 40 GB, 3 TB"])
def test_units_are_no_words_in_rot13(row: str) -> None:
    """GB and TB are TO and GO when shifted, which is no message by itself."""
    assert undisguised(Text(row, tuple(range(len(row))), tuple(range(1, len(row) + 1)))).chars == row


def test_a_shifted_sentence_is_undone() -> None:
    """A sentence in rot13 is read."""
    shifted = codecs.encode("the keys are under the old mat", "rot13")
    text = Text(shifted, tuple(range(len(shifted))), tuple(range(1, len(shifted) + 1)))
    assert undisguised(text).chars == "the keys are under the old mat"


@pytest.mark.parametrize(
    "lines",
    [
        "HOST=a.example\nPORT=80\nTLS=true\nPOOL=4",
        "code,pages\nA1,120\nB2,150\nC3,90",
        "Guest: Ana\nRoom: 4\nNights: 2\nPaid: yes",
    ],
)
def test_lines_of_a_structure_are_no_broken_sentence(lines: str) -> None:
    """Short lines of keys or cells stay apart, while words that are broken over lines are joined."""
    plain = Text(lines, tuple(range(len(lines))), tuple(range(1, len(lines) + 1)))
    broken = "all the\nkeys are\nunder the\nold mat"
    text = Text(broken, tuple(range(len(broken))), tuple(range(1, len(broken) + 1)))

    assert undisguised(plain).chars == lines
    assert undisguised(text).chars == broken.replace("\n", " ")

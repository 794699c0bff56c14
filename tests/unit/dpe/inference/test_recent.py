"""What the models said of recent texts."""

from __future__ import annotations

from interlock.dpe.inference.recent import Recent


def test_texts_are_told_apart_by_their_bounds_and_order():
    """A pair is not its words joined, nor the pair the other way round."""
    kept: Recent[int] = Recent()
    kept.keep(1, "ab", "c")

    assert kept.recall("ab", "c") == 1
    assert kept.recall("a", "bc") is None
    assert kept.recall("c", "ab") is None


def test_the_one_longest_unused_goes_first():
    """It keeps so many, the latest used ones."""
    kept: Recent[int] = Recent(2)
    kept.keep(1, "a")
    kept.keep(2, "b")
    kept.recall("a")
    kept.keep(3, "c")

    assert [kept.recall(text) for text in "abc"] == [1, None, 3]

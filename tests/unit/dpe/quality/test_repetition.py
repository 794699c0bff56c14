"""Stage 7: 4-grams, sentences that mean the same, and the bands (SPEC-005 §9)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.domain.policy.directives import Repetition
from interlock.dpe.quality.repetition import (
    OVERLAP_BANDS,
    SEMANTIC_BANDS,
    EarlierSentence,
    band,
    grams,
    overlap,
    repeated,
    repetitions,
)

NONE, MINOR, SIGNIFICANT, SEVERE = Repetition


def shared(current: str, *windows: str) -> float:
    return overlap(grams([current]), [frozenset(grams([window])) for window in windows])


@pytest.mark.req("DPE-7")
def test_overlap_is_the_share_of_the_answers_own_grams():
    """Six words are three 4-grams; one of them was there before."""
    assert shared("one two three four five six", "zero one two three four") == pytest.approx(1 / 3)


@pytest.mark.req("DPE-7")
def test_any_earlier_window_counts():
    """Not only the last one."""
    assert shared("one two three four", "one two three four", "something else is said here") == 1.0


@pytest.mark.req("DPE-7")
def test_each_occurrence_counts():
    """Saying a copied line twice is copying twice."""
    assert shared("a b c d x y z a b c d", "a b c d") == pytest.approx(2 / 8)


@pytest.mark.req("DPE-7")
def test_case_space_and_punctuation_change_nothing():
    """Only words are compared."""
    assert shared("The EU  AI Act,\nclassifies systems!", "the eu ai act classifies SYSTEMS") == 1.0


@pytest.mark.req("DPE-7")
@pytest.mark.parametrize("text", ["", "Yes.", "one two three", "!!!"])
def test_fewer_than_four_words_have_no_overlap(text):
    """There is no 4-gram to share; the sentences decide alone."""
    assert shared(text, text) == 0.0


@pytest.mark.req("DPE-7")
def test_scripts_without_spaces_have_words_as_well():
    """Each character counts, so that a copied line shows."""
    assert shared("欧盟人工智能法", "欧盟人工智能法") == 1.0


@pytest.mark.req("DPE-7")
@pytest.mark.parametrize(
    ("bounds", "ratio", "level"),
    [
        (OVERLAP_BANDS, 0.0, NONE), (OVERLAP_BANDS, 0.0499, NONE), (OVERLAP_BANDS, 0.05, MINOR),
        (OVERLAP_BANDS, 0.1499, MINOR), (OVERLAP_BANDS, 0.15, SIGNIFICANT), (OVERLAP_BANDS, 0.28, SIGNIFICANT),
        (OVERLAP_BANDS, 0.30, SIGNIFICANT), (OVERLAP_BANDS, 0.3001, SEVERE), (OVERLAP_BANDS, 1.0, SEVERE),
        (OVERLAP_BANDS, 3 / 60, MINOR), (OVERLAP_BANDS, 0.1 * 3, SIGNIFICANT),
        (SEMANTIC_BANDS, 0.0999, NONE), (SEMANTIC_BANDS, 0.10, MINOR), (SEMANTIC_BANDS, 0.2499, MINOR),
        (SEMANTIC_BANDS, 0.25, SIGNIFICANT), (SEMANTIC_BANDS, 0.50, SIGNIFICANT), (SEMANTIC_BANDS, 0.5001, SEVERE),
    ],
)  # fmt: skip
def test_bands(bounds, ratio, level):
    """The table of §9.2, at and around every boundary, as printed."""
    assert band(ratio, bounds) is level


@pytest.mark.req("DPE-7")
def test_the_worse_of_both_ratios_is_the_level():
    """Either alone is enough, but for SEVERE, which takes sentences that say the same again."""
    same = repeated(["a", "b"], np.eye(2), [EarlierSentence("a", "w1")], np.eye(2)[:1], choice_index=0)

    assert repetitions(0.0, same, 2).level is SIGNIFICANT
    assert repetitions(0.06, (), 2).level is MINOR
    assert repetitions(0.31, (), 2).level is SIGNIFICANT
    assert repetitions(1.0, same, 2).level is SIGNIFICANT
    assert repetitions(0.0, same, 1).level is SEVERE
    assert repetitions(0.31, same, 2).ratio == 0.5


@pytest.mark.req("DPE-7")
def test_a_repeated_sentence_names_its_window():
    """Above 0.92 of cosine, not at it; of equally near ones the oldest."""
    vectors = np.array([[1.0, 0.0], [0.92, np.sqrt(1 - 0.92**2)]])
    told, rows = [EarlierSentence("x", "w1"), EarlierSentence("y", "w2")], np.array([[1.0, 0.0], [1.0, 0.0]])
    found = repeated(["same", "near"], vectors, told, rows, choice_index=3)

    assert [(each.text, each.window_id, each.choice_index) for each in found] == [("same", "w1", 3)]


@pytest.mark.req("DPE-7")
def test_without_earlier_windows_nothing_repeats():
    """A first window is NONE."""
    found = repetitions(
        shared("one two three four"), repeated(["a"], np.eye(1), [], np.zeros((0, 1)), choice_index=0), 1
    )

    assert (found.level, found.overlap, found.semantic) == (NONE, 0.0, 0.0)

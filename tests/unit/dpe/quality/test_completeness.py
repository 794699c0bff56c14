"""Stage 8: which needs are covered, and the bands (SPEC-005 §10)."""

from __future__ import annotations

import numpy as np
import pytest

from interlock.dpe.quality.completeness import completeness, level
from interlock.dpe.quality.queries import Need

NEEDS = (Need("causes of diabetes", "causes"), Need("symptoms of diabetes", "symptoms"))


def covered(rows: list[list[float]], *, needs=NEEDS, method="nli", sentences=None) -> list[bool]:
    """Row *i* is how near sentence *i* is to each need."""
    said = np.array(rows, dtype=np.float64).reshape(len(rows), len(needs))
    texts = sentences or [f"sentence {n}" for n in range(len(rows))]
    return [each.covered for each in completeness(needs, np.eye(len(needs)), texts, said, method=method).needs]


@pytest.mark.req("DPE-8")
@pytest.mark.parametrize(
    ("score", "name"),
    [
        (1.0, "COMPLETE"), (0.90, "COMPLETE"), (0.8999, "MOSTLY_COMPLETE"), (0.70, "MOSTLY_COMPLETE"),
        (0.6999, "PARTIAL"), (0.40, "PARTIAL"), (0.3999, "INCOMPLETE"), (0.0, "INCOMPLETE"), (7 / 10, "MOSTLY_COMPLETE"),
        (0.1 + 0.2 + 0.4, "MOSTLY_COMPLETE"),
    ],
)  # fmt: skip
def test_bands(score, name):
    """The table of §10.2, at and around every boundary."""
    assert level(score) == name


@pytest.mark.req("DPE-8")
def test_a_sentence_is_taken_for_the_need_that_it_is_nearest_to():
    """What is about the causes does not cover the symptoms, however like the two are."""
    assert covered([[0.80, 0.70]]) == [True, False]
    assert covered([[0.80, 0.70], [0.40, 0.60]]) == [True, True]
    assert covered([[0.80, 0.78]]) == [True, True]


@pytest.mark.req("DPE-8")
def test_what_is_about_nothing_asked_covers_nothing():
    """Even the nearest sentence must be about the need."""
    assert covered([[0.29, 0.10]]) == [False, False]
    assert covered([]) == [False, False]


@pytest.mark.req("DPE-8")
def test_the_plain_reading_of_the_text_is_selectable():
    """Above 0.70 of cosine, not at it."""
    assert covered([[0.71, 0.70]], method="cosine") == [True, False]


@pytest.mark.req("DPE-8")
def test_a_quantity_is_covered_by_a_number():
    """Not by a sentence about the thing."""
    need = (Need("how many people live in Canberra", "people"),)

    assert covered([[0.9]], needs=need, sentences=["Canberra is where many people live."]) == [False]
    assert covered([[0.9]], needs=need, sentences=["About 470,000 people live in Canberra."]) == [True]


@pytest.mark.req("DPE-8")
def test_a_comparison_is_covered_by_words_that_compare():
    """With what is compared named there or in the sentence before."""
    need = (Need("Comparison between the two", "comparison", ("Python", "Rust")),)

    assert covered([[0.1], [0.1]], needs=need, sentences=["Python is slow.", "Rust is fast."]) == [False]
    assert covered([[0.1]], needs=need, sentences=["Python is slower than Rust."]) == [True]
    assert covered([[0.1], [0.1]], needs=need, sentences=["Python is slow.", "Rust, however, is fast."]) == [True]
    assert covered([[0.1]], needs=need, sentences=["It is slower than before."]) == [False]


@pytest.mark.req("DPE-8")
def test_the_score_is_the_share_of_covered_needs():
    """One of two is 0.5, PARTIAL."""
    found = completeness(NEEDS, np.eye(2), ["x"], np.array([[0.8, 0.1]]), method="nli")

    assert (found.score, found.level) == (0.5, "PARTIAL")
    assert [each.relevance for each in found.needs] == pytest.approx([0.8, 0.1])

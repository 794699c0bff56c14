"""Support: P(entailment) and strange words as one calibrated probability (SPEC-005 §6)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.document import NliScores
from interlock.dpe.grounding.support import Vocabulary, calibrated, support

shares = st.floats(min_value=0.0, max_value=1.0)
counts = st.integers(min_value=0, max_value=200)


@pytest.mark.req("DPE-4")
@given(shares, shares, counts)
def test_a_surer_model_never_lowers_the_support(one, other, strange):
    """Monotone in P(entailment)."""
    low, high = sorted((one, other))

    assert support(low, strange) <= support(high, strange)


@pytest.mark.req("DPE-4")
@given(shares, counts, counts)
def test_more_strange_words_never_raise_the_support(entailment, one, other):
    """Monotone in the words that the envelope does not have."""
    few, many = sorted((one, other))

    assert support(entailment, few) >= support(entailment, many)


@pytest.mark.req("DPE-4")
@given(shares, shares, counts)
def test_the_three_classes_still_sum_to_one(entailment, split, strange):
    """What is not entailed stays split between neutral and contradiction as the model split it."""
    rest = 1.0 - entailment
    scores = calibrated(NliScores(entailment, rest * split, rest - rest * split), strange)

    assert scores.entailment + scores.neutral + scores.contradiction == pytest.approx(1.0)
    assert 0.0 < scores.entailment < 1.0
    assert min(scores.neutral, scores.contradiction) >= -1e-12


@pytest.mark.req("DPE-4")
def test_what_the_model_denies_is_never_supported():
    """A claim that copies every word and is surely not entailed stays below one half."""
    assert support(0.01, 0) < 0.5 < support(0.99, 0)


@pytest.mark.req("DPE-4")
@pytest.mark.parametrize(
    ("text", "strange"),
    [
        ("The towers were opened.", 0),
        ("The tower was demolished.", 1),
        ("Fifteen visitors in 1889, 30 %.", 1),
        ("It is there, and he has it.", 0),
        ("Opening hours", 0),
        ("The tower closed.", 1),
        ("ÉCLAIRS and naïveté", 2),
    ],
)
def test_strange_words_are_counted_without_their_forms(text, strange):
    """Endings, small words, figures and units do not count."""
    assert Vocabulary.of(["The tower opened early.", ""]).strange(text) == strange


@pytest.mark.req("DPE-4")
def test_a_name_with_figures_is_known_only_as_it_stands():
    """Model H200 is not model H100; a value is traced elsewhere."""
    known = Vocabulary.of(["The H100 draws 700 W in the tower."])

    assert known.strange("The H100 draws 700 W.") == 0
    assert known.strange("The H200 draws 650 W.") == 1
    assert known.strange("tower1 tower2 tower3") == 3

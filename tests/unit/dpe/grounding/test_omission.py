"""Stage 10 with the bands and the worked example of its text (SPEC-005 §12)."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from interlock.dpe.document import Fact
from interlock.dpe.grounding.envelope import Cut, Envelope
from interlock.dpe.grounding.omission import COVERED_FROM, omissions


def envelope(*importances: float) -> Envelope:
    """Facts at right angles to one another: fact *n* is the axis *n*."""
    facts = tuple(Fact(f"f{n}", f"Fact {n}.", weight) for n, weight in enumerate(importances))
    axes = np.eye(max(2, len(facts) + 1), dtype=np.float32)[: len(facts)]
    return Envelope(Cut(facts, tuple(fact.content for fact in facts), ()), axes[:0], axes)


def sentence(base: Envelope, fact: int, similarity: float) -> np.ndarray:
    """A sentence of a given cosine similarity with one fact, and none with the others."""
    row = np.zeros(base.whole.shape[1], dtype=np.float64)
    row[fact], row[-1] = similarity, np.sqrt(1.0 - similarity**2)
    return row


@pytest.mark.req("DPE-10")
def test_the_worked_example():
    """§12.3: CRITICAL:0, HIGH:1, MEDIUM:2 when the critical facts are covered and unimportant ones do not count."""
    base = envelope(0.95, 0.85, 0.82, 0.75, 0.70, 0.69)
    said = np.array([sentence(base, 0, 0.9), sentence(base, 1, 0.61)])
    found = omissions(base, said, used=frozenset())

    assert Counter(each.severity for each in found) == {"HIGH": 1, "MEDIUM": 2}
    assert [each.fact_id for each in found] == ["f2", "f3", "f4"]


@pytest.mark.req("DPE-10")
@pytest.mark.parametrize(
    ("importance", "severity"),
    [(1.0, "CRITICAL"), (0.90, "CRITICAL"), (0.899, "HIGH"), (0.80, "HIGH"), (0.799, "MEDIUM"), (0.70, "MEDIUM")],
)
def test_each_band_begins_where_the_text_says(importance, severity):
    """§12.2: from 0.90 critical, from 0.80 high, from 0.70 medium."""
    base = envelope(importance)

    assert [each.severity for each in omissions(base, np.zeros((0, 2)), used=frozenset())] == [severity]


@pytest.mark.req("DPE-10")
@pytest.mark.parametrize(("importance"), [0.0, 0.5, 0.699])
def test_a_fact_below_the_bands_may_be_left_out(importance):
    """Nothing below 0.70 is an omission."""
    assert omissions(envelope(importance), np.zeros((0, 2)), used=frozenset()) == []


@pytest.mark.req("DPE-10")
@pytest.mark.parametrize(("similarity", "covered"), [(0.6001, True), (0.75, True), (0.5999, False), (0.0, False)])
def test_a_sentence_covers_from_sixty_hundredths(similarity, covered):
    """One sentence is enough, and only from 0.60 on; the best of all sentences counts."""
    base = envelope(0.9)
    found = omissions(base, np.array([sentence(base, 0, 0.1), sentence(base, 0, similarity)]), used=frozenset())

    assert COVERED_FROM == 0.60
    assert (found == []) is covered
    assert covered or found[0].similarity == pytest.approx(max(0.1, similarity), abs=1e-4)


@pytest.mark.req("DPE-10")
def test_no_number_of_other_sentences_covers_a_fact():
    """Coverage does not add up: ten half-related sentences leave the fact out."""
    base = envelope(0.9)

    assert len(omissions(base, np.array([sentence(base, 0, 0.5)] * 10), used=frozenset())) == 1

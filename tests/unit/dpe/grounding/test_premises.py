"""Premises: what of the envelope a claim is put against (SPEC-005 §4.3, §6.2)."""

from __future__ import annotations

import pytest

from interlock.dpe.grounding.envelope import EvidenceUnit, content_words
from interlock.dpe.grounding.premises import around


def units(*texts: str, fact: int = 0) -> list[EvidenceUnit]:
    return [EvidenceUnit(fact, text, content_words(text), len(text.split())) for text in texts]


@pytest.mark.req("DPE-2")
def test_a_short_fact_is_a_premise_as_a_whole():
    """All its units, in their order."""
    assert around(units("a b", "c d", "e f"), 1, 10) == "a b c d e f"


@pytest.mark.req("DPE-2")
def test_a_long_fact_gives_what_is_around_the_unit():
    """Both sides by turns, and no more than fits."""
    assert around(units("a b", "c d", "e f", "g h"), 1, 4) == "c d e f"
    assert around(units("a b", "c d", "e f", "g h"), 1, 6) == "a b c d e f"
    assert around(units("a b", "c d"), 0, 1) == "a b"


@pytest.mark.req("DPE-2")
def test_another_fact_is_not_the_surroundings():
    """Neighbours in the envelope are strangers to each other."""
    assert around([*units("a b"), *units("c d", fact=1), *units("e f", fact=2)], 1, 100) == "c d"

"""The token budget of an envelope and the share of it that is used (SPEC-003 §7.2, §9)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.dag.saturation import saturation, token_budget

COUNT = st.integers(0, 10_000_000)


@pytest.mark.finding("F-19")
def test_the_budget_is_what_request_answer_and_margin_leave():
    """§7.2: the window less the request, 2,048 for the answer and 512 of margin, unless the answer is limited."""
    assert token_budget(128_000, request=1000) == 128_000 - 1000 - 2048 - 512
    assert token_budget(128_000, request=1000, response=100) == 128_000 - 1000 - 100 - 512
    assert token_budget(30, request=4, response=0, margin=0) == 26


@pytest.mark.finding("F-19")
def test_a_budget_that_is_spent_is_full():
    """Without room any context is pressure, and no division fails."""
    assert token_budget(1000, request=5000) == 0
    assert saturation(0, 0) == saturation(7, 0) == 1.0


@pytest.mark.finding("F-19")
@given(COUNT, COUNT, COUNT)
def test_saturation_is_a_share_and_grows_with_what_is_used(used, more, budget):
    """From 0.0 to 1.0, never less for more."""
    assert 0.0 <= saturation(used, budget) <= saturation(used + more, budget) <= 1.0

"""The lookup of fillers misses none that a comparison with each of them would find."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.comparison.bindings.evidence import FillerLookup, near
from interlock.dpe.comparison.bindings.fillers import Filler, FillerKind, same

WORDS = st.frozensets(
    st.sampled_from(["tower", "cross", "fire", "profit", "lower", "rise", "2019", "berlin"]), max_size=3
)
FILLERS = st.builds(
    lambda text, kind, words, inner: Filler(text, kind, next(iter(sorted(words)), ""), words, inner=inner),
    st.sampled_from(["cross fire", "crossfire", "the tower", "lower profit", "", "Berlin"]),
    st.sampled_from(list(FillerKind)), WORDS, WORDS,
)  # fmt: skip


@pytest.mark.finding("F-20")
@given(st.lists(FILLERS, max_size=12), FILLERS)
def test_all_that_are_the_same_or_near_are_found(known, asked):
    """So that an answer of four hundred claims is compared as one of two claims is."""
    found = FillerLookup.of(enumerate(known)).may_be(asked)
    wanted = {n for n, each in enumerate(known) if same(asked, each) or same(each, asked) or near(asked, each)}

    assert wanted <= set(found)
    assert found == sorted(set(found))

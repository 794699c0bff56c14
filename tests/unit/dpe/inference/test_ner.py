"""What the token classifier is given besides ids, and how its scores become names."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.dpe.inference.ner import (
    CAPITAL,
    MIXED,
    PLAIN,
    UPPER,
    TokenWindow,
    names_in,
    token_types,
    word_case,
)

LABELS = ("O", "B-PERSON", "I-PERSON", "B-ORG", "I-ORG")
TEXT = "Ada Lovelace met Acme Corp"
PLACES = [(0, 3), (4, 12), (13, 16), (17, 21), (22, 26)]


def scores(*labels: str) -> list[list[float]]:
    """Return scores in which each label given is the best of its token."""
    return [[4.0 if label == name else 0.0 for name in LABELS] for label in labels]


def window(*labels: str) -> TokenWindow:
    """Return the whole text in one window, with special tokens around it and one token for each word."""
    return TokenWindow([None, *range(5), None], [(0, 0), *PLACES, (0, 0)], scores("O", *labels, "O"))


@pytest.mark.parametrize(
    ("word", "case"),
    [
        ("bridge", PLAIN), ("1998", PLAIN), ("", PLAIN), ("Ada", CAPITAL), ("A", CAPITAL), ("NATO", UPPER),
        ("iPhone", MIXED), ("McDonald", MIXED), ("Émile", CAPITAL), ("ÉU", UPPER), ("B2B", UPPER), ("漢字", PLAIN),
    ],
)  # fmt: skip
def test_the_case_of_a_word_is_one_of_four(word, case):
    """Capitals of any alphabet count, digits do not."""
    assert word_case(word) == case


def test_every_token_of_a_word_has_the_case_of_the_word():
    """Lovelace in two pieces is capital twice; special tokens are plain."""
    words = [None, 0, 1, 1, 2, None]
    offsets = [(0, 0), (0, 3), (4, 8), (8, 12), (13, 16), (0, 0)]

    assert token_types(TEXT, words, offsets) == [PLAIN, CAPITAL, CAPITAL, CAPITAL, PLAIN, PLAIN]


def test_labels_become_spans_of_the_text():
    """B opens a name, I goes on with it, O ends it."""
    found = names_in([window("B-PERSON", "I-PERSON", "O", "B-ORG", "I-ORG")], LABELS)

    assert found == [(0, 12, "PERSON"), (17, 26, "ORG")]


@pytest.mark.parametrize(
    ("labels", "names"),
    [
        (("I-PERSON", "I-PERSON", "O", "O", "O"), ["Ada Lovelace"]),
        (("B-PERSON", "B-PERSON", "O", "O", "O"), ["Ada", "Lovelace"]),
        (("B-PERSON", "I-ORG", "O", "O", "O"), ["Ada", "Lovelace"]),
        (("B-PERSON", "O", "I-PERSON", "O", "O"), ["Ada", "met"]),
        (("O", "O", "O", "O", "O"), []),
    ],
)
def test_labels_that_do_not_fit_lose_no_name(labels, names):
    """An I without its B opens a name, a second B opens another, a change of kind does too."""
    assert [TEXT[start:end] for start, end, _ in names_in([window(*labels)], LABELS)] == names


def test_the_first_token_of_a_word_decides():
    """What the later tokens of a word say is not asked."""
    seen = TokenWindow([0, 0, 1], [(0, 2), (2, 3), (4, 12)], scores("B-PERSON", "O", "I-PERSON"))

    assert names_in([seen], LABELS) == [(0, 12, "PERSON")]


def test_a_word_in_two_windows_is_read_where_it_stands_deeper():
    """The edge of a window sees no context, so the other window's label counts, whichever comes first."""
    edge = TokenWindow([None, 0, 1], [(0, 0), *PLACES[:2]], scores("O", "O", "B-ORG"))
    deep = TokenWindow(
        [None, *range(5), None], [(0, 0), *PLACES, (0, 0)], scores("O", "O", "B-PERSON", "O", "O", "O", "O")
    )

    for windows in ([edge, deep], [deep, edge]):
        assert names_in(windows, LABELS) == [(4, 12, "PERSON")]


def test_a_word_that_an_edge_cuts_is_one_word():
    """Lovelace begins at the end of one window and ends in the next: one name with all of its letters."""
    first = TokenWindow([None, 0, 1, None], [(0, 0), (0, 3), (4, 8), (0, 0)], scores("O", "O", "B-PERSON", "O"))
    second = TokenWindow(
        [None, 1, 2, 3, 4, None],
        [(0, 0), (8, 12), *PLACES[2:], (0, 0)],
        scores("O", "B-ORG", "O", "B-ORG", "I-ORG", "O"),
    )

    assert names_in([first, second], LABELS) == [(4, 12, "PERSON"), (17, 26, "ORG")]


def test_scores_that_do_not_fit_are_an_error():
    """Too few scores, or scores for other labels, never become names in silence."""
    with pytest.raises(ValueError, match="as many scores"):
        names_in([TokenWindow([0, 1], PLACES[:2], scores("O"))], LABELS)
    with pytest.raises(ValueError, match="each label"):
        names_in([TokenWindow([0], PLACES[:1], [[0.0, 1.0]])], LABELS)


@given(st.lists(st.sampled_from(LABELS), min_size=5, max_size=5))
def test_names_are_in_order_and_never_overlap(labels):
    """Whatever the model says, names stand where the text has them, one after the other."""
    found = names_in([window(*labels)], LABELS)

    assert all(one[1] <= other[0] for one, other in pairwise(found))
    named = sum(label != "O" for label in labels)
    assert sum(TEXT[start:end].count(" ") + 1 for start, end, _ in found) == named

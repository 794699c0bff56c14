"""A parse as plain objects says what spaCy says (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.text.parse.trees import ParseTree
from tests.support.dpe import pipeline

pytestmark = [pytest.mark.models, pytest.mark.req("DPE-3")]

TEXTS = (
    "The tenant, who had signed in May, must repair the roof before the landlord's inspector returns it to her.",
    "“Prices rose by 4.5 %,” said Ada Lund of Acme Corp. on 3 March; they didn't fall, did they?",
    "Write to ann@example.org or see https://example.org/a?b=c   for  the form.\nIt costs 20 USD, or 18 EUR.",
    "What the red, the old and the new boats of the harbour need is paint, oil and time.",
    "1. Close valve 3.\n2. Open valve 7, not valve 8!",
    "ABC",
    "   ",
    "Nothing but he that she that they that we that you saw met knew liked left.",
)
OF_WORDS = (
    "text lower_ lemma_ pos_ tag_ dep_ i idx ent_type_ whitespace_ text_with_ws is_alpha is_digit is_punct is_quote is_space is_upper "
    "like_num like_url like_email"
).split()  # fmt: skip


@pytest.fixture(params=TEXTS)
def both(request):
    doc = pipeline().language.nlp.nlp(request.param)
    return doc, ParseTree(doc)


def places(words) -> list[int]:
    return [word.i for word in words]


def test_each_word_says_the_same_of_itself_and_of_its_neighbours(both):
    """Attributes, head, children to both sides, edges, subtree, ancestors and sentence of every word."""
    doc, tree = both
    assert len(tree) == len(doc)
    for token, word in zip(doc, tree, strict=True):
        assert [getattr(word, name) for name in OF_WORDS] == [getattr(token, name) for name in OF_WORDS]
        assert (len(word), str(word)) == (len(token), str(token))
        assert word.head.i == token.head.i
        for name in ("children", "lefts", "subtree", "ancestors"):
            assert places(getattr(word, name)) == places(getattr(token, name)), name
        assert (word.left_edge.i, word.right_edge.i) == (token.left_edge.i, token.right_edge.i)
        assert (word.sent.start, word.sent.end) == (token.sent.start, token.sent.end)
        assert [word.is_ancestor(each) for each in tree] == [token.is_ancestor(each) for each in doc]
        if token.i + 1 < len(doc):
            assert word.nbor().i == token.nbor().i


def test_spans_and_sentences_are_the_same(both):
    """Text, places of characters, roots and noun chunks, of sentences and of every span within the text."""
    doc, tree = both
    assert [each.text for each in tree.sents] == [each.text for each in doc.sents]
    assert [(each.start, each.end) for each in tree.noun_chunks] == [(each.start, each.end) for each in doc.noun_chunks]
    for start in range(len(doc)):
        for end in range(start + 1, min(len(doc), start + 9) + 1):
            theirs, ours = doc[start:end], tree[start:end]
            assert (ours.text, ours.start_char, ours.end_char, ours.root.i, len(ours)) == (
                theirs.text, theirs.start_char, theirs.end_char, theirs.root.i, len(theirs),
            )  # fmt: skip
            assert places(ours[1:]) == places(theirs[1:])
            assert (ours[-1].i, ours == tree[start:end], ours == tree[start : end - 1]) == (end - 1, True, False)


def test_characters_are_found_in_the_same_words(both):
    """A place in the space behind a word belongs to it; outside the text there is none."""
    doc, tree = both
    for start in range(len(doc.text)):
        for length in (1, 3, 40):
            theirs = doc.char_span(start, start + length, alignment_mode="expand")
            ours = tree.char_span(start, start + length)
            assert (ours is None) is (theirs is None), (start, length)
            if ours is not None:
                assert (ours.start, ours.text) == (theirs.start, theirs.text)


def test_slices_and_places_outside_the_text(both):
    """As of a list: what is beyond an end is cut, and a single place beyond it is an error."""
    doc, tree = both
    for start, end in ((-2, None), (3, 1), (0, 99), (None, -1)):
        assert places(tree[start:end]) == places(doc[start:end])
    for beyond in (tree.words[-1].nbor, lambda: tree.words[0].nbor(-1), lambda: tree[len(tree)]):
        with pytest.raises(IndexError):
            beyond()


def test_names_are_set_in_place_of_those_before():
    """The names classifier names, not the parser: a word keeps the kind of its latest name alone."""
    tree = pipeline().language.nlp("Ada Lund met Bo.")

    tree.name([span for span in (tree.char_span(0, 8, "PERSON"),) if span is not None])
    assert [(each.text, each.label_) for each in tree.ents] == [("Ada Lund", "PERSON")]
    assert [word.ent_type_ for word in tree] == ["PERSON", "PERSON", "", "", ""]
    assert [each.text for each in tree[0:3].ents] == ["Ada Lund"]
    assert tree[1:3].ents == []

    tree.name([tree[3:4]])
    assert [word.ent_type_ for word in tree] == [""] * 5


def test_a_deep_tree_is_walked_without_recursion():
    """A hostile text may hang each word on the one before it."""
    words = pipeline().language.nlp(" ".join(["that"] * 3000)).words
    for word, after in zip(words, [*words[1:], None], strict=True):
        word.children, word.lefts = ((after,) if after else ()), ()

    assert list(words[0].subtree) == words

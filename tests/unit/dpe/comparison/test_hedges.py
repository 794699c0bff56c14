"""Hedges: which words limit a statement, and in which construction alone (SPEC-005 §5.3)."""

from __future__ import annotations

import pytest

from interlock.dpe.comparison.hedges import group_at, is_uncounted, kept
from interlock.dpe.text.folding import fold
from interlock.dpe.text.lexing import lex


def groups(text: str) -> list[str]:
    tokens = lex(fold(text))
    return [found for place in range(len(tokens)) if (found := group_at(tokens, place))]


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("It is said to be the oldest.", ["hearsay"]),
        ("They were not widely believed to have left.", ["hearsay"]),
        ("The minister said to wait.", []),
        ("The road is due to open.", ["hearsay"]),
        ("The delay was due, to nobody's surprise.", []),
        ("He tried to leave.", ["expected"]),
        ("He tried the door.", []),
        ("She was charged with theft.", ["hearsay"]),
        ("She was charged ten dollars.", []),
        ("Up to ten people came.", ["bound"]),
        ("He looked up.", []),
        ("At least ten people came.", ["bound"]),
        ("It was approved subject to review.", ["conditional"]),
        ("It is the subject of a book.", []),
        ("The deputy mayor spoke.", ["office"]),
        ("The deputy, however, spoke.", []),
    ],
)
def test_a_word_limits_where_its_construction_does(text, found):
    """Passives of saying and verbs of trying before an infinitive, charges with their preposition, bounds, conditions."""
    assert groups(text) == found


@pytest.mark.req("DPE-3")
def test_one_doubt_stands_for_another():
    """Who may have done it has reportedly done it; a condition stands for no doubt."""
    tokens = lex(fold("It may rain if it is warm"))

    assert kept(tokens, [1]) == {"possible", "hearsay", "expected"}
    assert kept(tokens, [3]) == {"conditional"}


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "supposes"),
    [
        ("open as long as it is dry", True),
        ("open so long as it is dry", True),
        ("open for as long a time", False),
        ("should it rain, close the hatch", True),
        ("and should nobody answer, ring twice", True),
        ("you should ring twice", False),
        ("close it whenever it rains", True),
        ("take a key in case nobody is in", True),
        ("in the case of fire", False),
        ("lent on condition that it is insured", True),
    ],
)
def test_a_condition_has_other_words_than_if(text, supposes):
    """*As long as*, *in case*, *on condition* and *should it rain* keep the condition of a source."""
    tokens = lex(fold(text))

    assert ("conditional" in kept(tokens, range(len(tokens)))) is supposes


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "uncounted"), [("some cheese on it", True), ("some early rounds", False), ("some of it", False)]
)
def test_some_of_what_cannot_be_counted_limits_nothing(text, uncounted):
    """Some cheese is cheese; some rounds are not the rounds."""
    assert is_uncounted(lex(fold(text)), 0) is uncounted


@pytest.mark.req("DPE-3")
@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ("You may stay as long as the room is free.", True),
        ("Should the room be taken, ring us, and should it rain, come in.", True),
        ("You may stay on condition that you pay.", True),
        ("You should stay.", False),
        ("The table is as long as the wall", True),
        ("It takes long.", False),
    ],
)
def test_a_condition_in_other_words_keeps_the_condition(text, is_kept):
    """*As long as*, *on condition* and *should* that opens a clause stand for *if*; *should* behind its subject does not."""
    tokens = lex(fold(text))

    assert ("conditional" in kept(tokens, range(len(tokens)))) is is_kept

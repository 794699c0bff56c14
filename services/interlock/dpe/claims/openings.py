"""Words that only open a sentence: their capital tells no name (SPEC-005 §5.2)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from interlock.dpe.text.lexing import NUMBER, WORD, Lexeme, at
from interlock.dpe.text.names import COMMON_WORDS, forms_of, is_form_of_common, opens_sentence
from interlock.dpe.text.wordlists import word_set

_SHORTEST_PART = 3
_AFTER_AN_ORDER = word_set(
    "a an the this that these those it its it them him her your you my our their all any each both every some one two into on onto in"
    " with for from to at up off out over and or"
)
_MADE_OF_WORDS = ("ing", "ed", "ation", "ment", "ness", "ly")
"""Endings of words that are made of other words; a plural may be a surname."""


def only_opens(tokens: Sequence[Lexeme], first: int, last: int, known: Collection[str]) -> bool:
    """Whether a span is one word whose capital says nothing, since it opens its sentence, and in which the classifier saw no name.

    An order or a courtesy (*Dab its pollen*, *Congratulations, …*), a form of a common word (*Emptied bins have*) or of one of the
    words *known* from the sources (*Subletting is*, where they say *sublet*), a compound of common words.
    """
    word = tokens[first].text
    if last - first != 1 or not opens_sentence(tokens, first) or not (word.isalpha() and word[1:].islower()):
        return False
    following = at(tokens, last)
    if (
        following.kind == NUMBER
        or following.low in _AFTER_AN_ORDER
        or following.low.endswith("ing")
        or following.text in {",", "!"}
    ):
        return True
    low = tokens[first].low
    if following.kind == WORD and not following.capital and (is_form_of_common(low) or _is_made_of(low, known)):
        return True
    parts = ((low[:cut], low[cut:]) for cut in range(_SHORTEST_PART, len(low) - _SHORTEST_PART + 1))
    return any(head in COMMON_WORDS and tail.removesuffix("s") in COMMON_WORDS for head, tail in parts)


def is_made_of_known(tokens: Sequence[Lexeme], first: int, last: int, known: Collection[str]) -> bool:
    """Whether a span is one word that opens its sentence and is made of one of the words *known* from the sources, whatever the classifier saw."""
    following, word = at(tokens, last), tokens[first].text
    alone = last - first == 1 and opens_sentence(tokens, first) and word.isalpha() and word[1:].islower()
    return alone and following.kind == WORD and not following.capital and _is_made_of(word.lower(), known)


def _is_made_of(word: str, known: Collection[str]) -> bool:
    return word.endswith(_MADE_OF_WORDS) and any(form in known for form in forms_of(word) - {word})

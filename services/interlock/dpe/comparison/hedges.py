"""Hedges: words by which a statement limits its certainty, scope or conditions (SPEC-005 §5.3).

``HEDGES`` holds words that limit wherever they stand. Others limit in one construction only: a passive of saying or
thinking with an infinitive (is said to be, was widely believed to have been), a verb whose infinitive is not asserted
(tried to leave, plans to open), a participle with its charge (charged with, suspected of).
"""

from collections.abc import Iterable, Sequence

from interlock.dpe.text.lexing import WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set

# Grouped by what they limit. A claim that keeps one word of a group keeps the limit.
HEDGES = {
    word: group
    for group, words in {
        "possible": "may might could possibly perhaps potentially maybe possible potential conceivably plausibly "
        "plausible",
        "hearsay": "allegedly alleged alleges reportedly purportedly purported supposedly apparently rumoured rumored "
        "suspected unconfirmed accused ostensibly ostensible presumably presumed seemingly putative disputed",
        "expected": "probably probable likely expected expects projected forecast anticipated predicted planned plans "
        "planning proposed proposes intends intended aims estimated scheduled hopes seeks considering suggests suggest "
        "suggested appears appear seems seem attempted prospective theoretically hypothetically hypothetical",
        "conditional": "if unless conditionally conditional pending provisionally provisional tentatively tentative "
        "preliminary interim contingent provided providing assuming depending subject except draft temporarily "
        "temporary until",
        "partial": "partially partly partial nearly almost some most many several sometimes often usually generally "
        "normally commonly typically mainly mostly chiefly primarily predominantly largely occasionally rarely seldom "
        "frequently limited few",
        "bound": "up least",
        "office": "former formerly onetime acting deputy vice",
    }.items()
    for word in words.split()
}  # fmt: skip
CONDITIONS = word_set("if unless pending provided providing assuming depending subject except until contingent")
STRICT = word_set("if unless pending provided providing subject contingent")
"""A statement under one of these does not hold without it."""
_FOLLOWED = {"provided": "that", "providing": "that", "subject": "to", "depending": "on"}
_DOUBTS = frozenset({"possible", "hearsay", "expected"})
_BE = word_set("is are was were be been being am")
_BETWEEN = 2  # words between a form of be and its participle, or between some and its noun
# The infinitive after such a passive is reported or expected, not asserted.
_SAID_TO = word_set(
    "said reported believed thought claimed understood considered held deemed assumed feared supposed alleged rumoured "
    "rumored suspected expected estimated projected forecast predicted scheduled due set likely unlikely poised slated"
)
# Verbs that do not imply their infinitive.
_TRIED_TO = word_set(
    "try tries tried trying attempt attempts attempted attempting aim aimed aiming hope hoped hoping intend intending "
    "want wants wanted wanting seek sought seeking plan planned threaten threatens threatened threatening promise "
    "promises promised vow vows vowed offer offers offered pledge pledges pledged prepare prepares prepared preparing"
)
_CHARGED = {"charged": "with", "suspected": "of", "accused": "of"}
# What one may do, one can do, is allowed to or is free to.
_PERMITTED = word_set("can able allowed permitted entitled free option optional optionally ability permission right")
_SHOULD = frozenset({"should", "ought"})
"""What should be ready in May is expected to be."""
_BOUNDED = word_set("more higher above better later longer older greater larger over less lower fewer below")
"""After *or*, the other way to say *at least* or *up to*: 7.0 or higher."""
_PLURALS = word_set("of people men women children who those other others more")


def group_at(tokens: Sequence[Lexeme], index: int) -> str:
    """Return the group of ``HEDGES`` that the word at an index belongs to there, or an empty string."""
    low, following = at(tokens, index).low, at(tokens, index + 1)
    if following.low == "to" and (low in _TRIED_TO or (low in _SAID_TO and _is_passive(tokens, index))):
        return "expected" if low in _TRIED_TO else "hearsay"
    if _CHARGED.get(low) == following.low:
        return "hearsay"
    if low in _FOLLOWED and following.low != _FOLLOWED[low]:
        return ""  # what was provided, the subject of a book
    if low == "up":
        return "bound" if following.low == "to" else ""
    if low == "least":
        return "bound" if at(tokens, index - 1).low == "at" else ""
    group = HEDGES.get(low, "")
    denied = low == "could" and following.low in {"not", "n't", "n’t"}  # what could not be done was not done
    return "" if denied or (group == "office" and following.kind != WORD) else group


def kept(tokens: Sequence[Lexeme], places: Iterable[int]) -> frozenset[str]:
    """Return the groups that words keep. Doubts are interchangeable: "may have done it" keeps "reportedly"."""
    words = list(places)
    found = frozenset(group_at(tokens, place) for place in words) - {""}
    if any(at(tokens, place).low == "or" and at(tokens, place + 1).low in _BOUNDED for place in words):
        found |= {"bound"}
    if any(_conditions(tokens, place) for place in words):
        found |= {"conditional"}
    if any(at(tokens, place).low in _PERMITTED for place in words):
        found |= {"possible"}
    found = found | _DOUBTS if found & _DOUBTS else found
    return found | {"expected", "hearsay"} if any(at(tokens, place).low in _SHOULD for place in words) else found


def _conditions(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a word sets a condition in other words: *as long as*, *on condition*, *in case*, *should it rain, we stay*."""
    low, before, after = at(tokens, index).low, at(tokens, index - 1), at(tokens, index + 1)
    if (
        low in {"whenever", "wherever", "once"}
        or (low == "when" and index > 0)
        or (low == "when" and after.low not in _BE)
    ):
        return True
    if low in {"day", "date", "moment"}:
        return before.low == "the" and at(tokens, index - 2).low in {"on", "from"} and after.kind == WORD
    if low == "long":
        return before.low in {"as", "so"} and after.low == "as"
    if low in {"condition", "case"}:
        return before.low in {"on", "in"}
    if low == "event":
        return before.low == "the" and after.low != "in"
    opens = index == 0 or before.kind != WORD or before.low in {"and", "but", "or", "then"}
    return low == "should" and opens and after.kind == WORD


def is_uncounted(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether the word is the some of some cheese, which limits nothing."""
    after = [at(tokens, place) for place in range(index + 1, index + 2 + _BETWEEN)]
    plural = any(
        each.low in _PLURALS or (each.low.endswith("s") and not each.low.endswith(("ss", "us"))) for each in after
    )
    return at(tokens, index).low == "some" and after[0].kind == WORD and not plural


def _is_passive(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a form of be stands before a participle, with only adverbs between them."""
    for place in range(index - 1, index - 2 - _BETWEEN, -1):
        low = at(tokens, place).low
        if low in _BE:
            return True
        if not low.endswith("ly") and low not in {"not", "also", "now", "still"}:
            return False
    return False

"""Denials: which words of a sentence deny it, so that paraphrases of one polarity count alike (SPEC-005 §5.3).

*No later than*, *not only* and *no doubt* deny nothing. *Refused to sign*, *free of rust* and *stopped taking cash* deny without a
*not*, and *not impossible* denies twice. Pure functions of tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from interlock.dpe.text.lexing import WORD, Lexeme, at
from interlock.dpe.text.wordlists import word_set

NEGATORS = word_set(
    "not no never none neither nor without cannot nobody nothing nowhere unable fail fails failed failing lack "
    "lacks lacked lacking hardly scarcely barely"
)
EXCLUDING = word_set(
    "excluded excludes exclude unaffected spared exempt exempted prohibited forbidden banned waived prohibits forbids ineligible"
    " impossible unavailable omitted barred"
)
"""Words that say *not* of what they are about: not covered, not affected, not to be paid."""
ABSENT = word_set("missing absent")
_LEAVING = word_set("rule ruled rules left leave leaves")
"""What is *ruled out* or *left out* is not there."""
_POINTING = word_set("on to the")
_LOCATING = word_set("from in at on and since as for until where")
_AVOIDING = word_set("avoid avoided")
_ADVISING = word_set("must should shall please be being is are always best")
_OBLIGED = word_set("have has need needs ought best important advised")
_FAILING = word_set("fail fails failed failing")
_REFUSING = word_set(
    "refuse refuses refused refusing decline declines declined declining neglect neglects neglected omit omits"
)
CEASING = word_set("stop stops stopped cease ceases ceased")
_MEASURED = word_set("later more less fewer longer earlier sooner greater higher lower larger smaller older younger")
_BELITTLED = word_set("only just merely simply solely least necessarily")
_SAYS_NOTHING = {
    "no": word_set("doubt matter"),
    "nothing": word_set("but"),
    "none": word_set("other"),
}
_MOST_BETWEEN = 2
_MARKS = frozenset({",", ";", ":"})
_NEAR = 12


def is_negator(word: str) -> bool:
    """Whether a word negates what follows it."""
    return word in NEGATORS or word.endswith("n't")


def has_negator(text: str) -> bool:
    """Whether a text has a word that negates."""
    return any(is_negator(word.strip(".,;:!?")) for word in text.casefold().split())


def denies(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether the word at an index denies something there."""
    low, following = at(tokens, index).low, at(tokens, index + 1).low
    if excludes(tokens, index) or low == "unless":
        return True
    if low in {"free", "clear"}:
        return following in {"of", "from"} and at(tokens, index - 1).low != "set"
    if low in _REFUSING | _FAILING:
        return following == "to"
    if low in CEASING:
        return following.endswith("ing") or following == "to"
    if low == "except":
        return following in {"if", "when", "where", "in", "with", "on", "for"}
    return is_negator(low) and not _only_measures(tokens, index)


def excludes(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether the word at an index says *not* of what it is about, wherever that stands: *exempt*, *soap missing*, *must be avoided*.

    A *missing dog* is there, and who *leaves early to avoid the queue* leaves.
    """
    low, before, after = at(tokens, index).low, at(tokens, index - 1), at(tokens, index + 1)
    if low in EXCLUDING or (low in _LEAVING and after.low == "out" and before.low not in _POINTING):
        return True
    if low in ABSENT:
        return after.kind != WORD or after.low in _LOCATING
    if low in _AVOIDING:
        purpose = before.low == "to" and at(tokens, index - 2).low not in _OBLIGED
        return not purpose and (before.kind != WORD or before.low in _ADVISING | {"to"})
    return False


def _only_measures(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a negator belongs to a phrase that denies nothing: *no later than*, *not only*, *nothing but*, *neither … nor*."""
    low, following = at(tokens, index).low, at(tokens, index + 1).low
    if following in _SAYS_NOTHING.get(low, frozenset()) or at(tokens, index + 1).text == "-":
        return True  # no doubt; the no-claims discount
    if low == "no" and index and _answers(tokens, index):
        return True
    if low in {"no", "not", "never"} or low.endswith("n't"):
        if following in _BELITTLED:
            return True
        if following in _MEASURED and at(tokens, index + 2).low == "than":
            return True
        if low == "no" and _compares_all(tokens, index):
            return True
    return low == "nor" and any(at(tokens, place).low == "neither" for place in range(max(0, index - 30), index))


def _answers(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether a *no* only answers: *Ezra: no, I took it out*, *the red one, no, as it is not sold*."""
    before, after = at(tokens, index - 1).text, at(tokens, index + 1).text
    if before == ":" and after == ",":
        return True
    return (
        before in _MARKS
        and after in _MARKS
        and any(is_negator(at(tokens, place).low) for place in range(index + 1, index + 1 + _NEAR))
    )


def _compares_all(tokens: Sequence[Lexeme], index: int) -> bool:
    """Whether *no* with a comparative says that something is the most: *no dish is better than the eel*."""
    words = [at(tokens, place).low for place in range(index + 1, index + 16) if at(tokens, place).kind == WORD]
    if "than" not in words:
        return False
    before = words[words.index("than") - 1]
    return words.index("than") > _MOST_BETWEEN and (before.endswith("er") or before in _MEASURED | {"better", "worse"})


def places(tokens: Sequence[Lexeme], first: int, last: int) -> Iterator[int]:
    """Yield where the words of a sentence deny."""
    return (index for index in range(first, last) if denies(tokens, index))


_PLACING = word_set("at in on from to with after before by for if when under through via during within inside outside")
_AGAINST = {
    "with": word_set("without"), "after": word_set("before yet without until"), "before": word_set("after"),
    "if": word_set("unless without"), "when": word_set("unless without while"),
}  # fmt: skip
"""Words by which a claim tells of the other case: *only with a ticket*, *not without a ticket*."""
_BREAKS = word_set("because since as which who where but so and although while")
_RESTRICTING = word_set("only solely exclusively")
_LOOK_BACK = 6


def restricted(tokens: Sequence[Lexeme], first: int, last: int) -> Iterator[tuple[str, frozenset[int]]]:
    """Yield the preposition of each phrase that *only* restricts a sentence to, with the places of its words.

    *Only at Kisumu* and *from the southern quarry only*.
    """
    for index in range(first, last):
        if tokens[index].low not in _RESTRICTING:
            continue
        if at(tokens, index + 1).low in _PLACING and index + 1 < last:
            yield tokens[index + 1].low, frozenset(_until_break(tokens, index + 2, last))
        elif at(tokens, index + 1).kind != WORD or index + 1 == last:
            back = range(index - 1, max(first, index - _LOOK_BACK) - 1, -1)
            opening = next((place for place in back if tokens[place].low in _PLACING), None)
            if opening is not None:
                yield tokens[opening].low, frozenset(range(opening + 1, index))


def _until_break(tokens: Sequence[Lexeme], first: int, last: int) -> Iterator[int]:
    for index in range(first, last):
        if tokens[index].kind != WORD or tokens[index].low in _BREAKS:
            return
        yield index


def tells_the_other_case(word: str, preposition: str) -> bool:
    """Whether a word of a claim opens a phrase of the sort that a source restricts itself to: *at*, or *yet* for *after*."""
    return word == preposition or word in _AGAINST.get(preposition, frozenset())

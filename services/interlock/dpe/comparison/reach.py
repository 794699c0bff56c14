"""Reach: which words a negator denies, and whether two sentences that one of them denies are of one clause (SPEC-005 §5.3).

*Flats with a garden cannot be let, those with a yard can* denies nothing of a yard, and *it starts after the talk* says what *it does not
start until the talk is over* does.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from interlock.dpe.comparison import denials
from interlock.dpe.comparison.order import told_from_the_other_end
from interlock.dpe.text.lexing import at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame, FramedSentence
from interlock.dpe.values.quantities import same

PREFIXES = ("un", "dis", "non", "in", "im", "il", "ir")
BEFORE = "±before"  # the stem of both
_FINITE = word_set("is are was were has have had do does did will would shall should can could may might must")
_OPENING = frozenset({",", ";", ":", "but", "and", "while", "whereas", "–", "—", "for", "in", "on", "at"})
_RELATIVE = word_set("that which who")
_WEAK = word_set(
    "longer take takes taking taken make makes making made give gives given giving get gets getting need needs require requires"
    " required want wants able allow allowed allows let let's go goes going come comes keep use used using"
)
_PERMITTED = word_set("allowed permitted possible")
_SHORT = 4
_NEAR = 8
_ELLIPTIC = frozenset({"none", "nothing", "never", "not", "neither"})
_BREAKS = frozenset({"(", ")", "–", "—"})
_JOINS = word_set("but while whereas because since although though yet")
_STARTS = word_set("that because since as and but which who where") | {","}
_UNTIL = word_set("until till")
_AWAITING = word_set("until till before")
_THEN = word_set("after once when from only following earliest if")
_OTHERS = word_set("other others else rest remaining elsewhere otherwise")
_ALONE = word_set("only solely just alone exclusively")
_TOO_LITTLE = word_set("few little")
_SAYING = word_set("say says said saying")
_TURNING_DOWN = word_set(
    "decline declines declined declining refuse refuses refused refusing reject rejects rejected rejecting refusal"
)


def negators_near(sentence: FramedSentence, frame: Frame, other: FramedSentence, beside: Frame) -> list[str]:
    """Return the words of a sentence that deny something which both sentences have, in a clause that both have."""
    found: list[str] = []
    for index in denials.places(frame.tokens, sentence.first, sentence.last):
        low = frame.tokens[index].low
        if _is_said_alike((sentence, frame, index), (other, beside)) or of_two_clauses(
            (sentence, frame, index), (other, beside)
        ):
            continue
        if denials.excludes(frame.tokens, index):
            if low not in denials.ABSENT or _is_of(sentence, frame, index, other.bag):
                found.append(low)  # seepage is excluded: it is not covered
        elif not _prefers(sentence, frame, index, other.bag) and not _is_lacked(sentence, frame, index, other.bag):
            found += [low] if _reaches(sentence, frame, index, other.bag) else []
    return found


def _is_lacked(sentence: FramedSentence, frame: Frame, index: int, words: frozenset[str]) -> bool:
    """Whether a *without* is said of something else than *words* are about: *it came without the lamp that I had paid for*."""
    before = [word for place, word in sentence.stems if place < index]
    return frame.tokens[index].low == "without" and bool(before) and words.isdisjoint(before)


_Negator = tuple[FramedSentence, Frame, int]
_Side = tuple[FramedSentence, Frame]


def of_two_clauses(one: _Negator, other: _Side) -> bool:
    """Whether a word stands in a clause of its sentence that tells of something else than any clause of another sentence does.

    The clause has words of its own, and the nearest clause of the other sentence has words that stand elsewhere beside the word.
    """
    sentence, frame, index = one
    clauses = list(_clauses(sentence, frame))
    own = next((words for first, last, words in clauses if first <= index < last), frozenset[str]())
    rivals = [words for _, _, words in _clauses(*other) if words]
    if not own or not rivals:
        return False
    nearest = max(rivals, key=lambda words: len(words & own))
    elsewhere = frame.bag if len(clauses) > 1 or len(frame.sentences) > 1 else frozenset[str]()
    alone = {word for place, word in sentence.stems if word in own and place != index}
    return bool((nearest - own) & elsewhere) and bool(alone - other[0].bag - {BEFORE})


def _clauses(sentence: FramedSentence, frame: Frame) -> Iterator[tuple[int, int, frozenset[str]]]:
    """Yield the clauses of a sentence, cut where a mark or a conjunction surely opens another, with their content words."""
    first = sentence.first
    for index in range(sentence.first, sentence.last + 1):
        if (
            index == sentence.last
            or frame.tokens[index].text in _BREAKS
            or _opens_clause(frame, first, index, sentence)
        ):
            yield first, index, frozenset(word for place, word in sentence.stems if first <= place < index)
            first = index


def _opens_clause(frame: Frame, first: int, index: int, sentence: FramedSentence) -> bool:
    if frame.tokens[index].low in _JOINS:
        return index > first
    return frame.tokens[index].text in {",", ":"} and _says(frame, first, index) and _says(frame, index, sentence.last)


def _says(frame: Frame, first: int, last: int) -> bool:
    return any(is_finite(frame.tokens[place].low) for place in range(first, last))


def is_finite(low: str) -> bool:
    return low in _FINITE or low.endswith("n't") or low == "cannot"


def _is_of(sentence: FramedSentence, frame: Frame, index: int, words: frozenset[str]) -> bool:
    """Whether what a clause says to be missing is spoken of in *words*: *he saw that a bolt was missing* denies nothing of him."""
    first = index
    while first > sentence.first and frame.tokens[first - 1].low not in _STARTS | _BREAKS:
        first -= 1
    return any(word in words for place, word in sentence.stems if first <= place < index)


def tells_alike(one: _Side, other: _Side) -> bool:
    """Whether one of two sentences says with a negator what the other says without: *not until May*, *from May*."""
    return any(
        _is_said_alike((*mine, index), its)
        for mine, its in ((one, other), (other, one))
        for index in denials.places(mine[1].tokens, mine[0].first, mine[0].last)
    )


def _is_said_alike(one: _Negator, other: _Side) -> bool:
    """Whether another sentence says in other words what a sentence does with a negator."""
    sentence, frame, index = one
    mine, theirs = _lows(sentence, frame), _lows(*other)
    if _is_awaited_alike(one, other, theirs):
        return True
    if at(frame.tokens, index + 1).low == "enough":
        return any(low == "too" and after in _TOO_LITTLE for low, after in pairwise(theirs))
    if any(low == "too" and "to" in theirs[n : n + _NEAR] for n, low in enumerate(theirs)):
        return True  # too few to run it: they could not run it
    if sentence.first < index and frame.tokens[index - 1].low in _SAYING:
        return not _TURNING_DOWN.isdisjoint(theirs)  # said no to the request: declined it
    # The others are not: only this one is.
    return any(not (_OTHERS.isdisjoint(one) or _ALONE.isdisjoint(two)) for one, two in ((mine, theirs), (theirs, mine)))


def _is_awaited_alike(one: _Negator, other: _Side, theirs: list[str]) -> bool:
    """Whether what is not so until something is so once that is, as another sentence says: *not open until May*, *open from May*."""
    sentence, frame, index = one
    fronted = frame.tokens[sentence.first].low in _AWAITING  # until then, it may not
    behind = {frame.tokens[place].low for place in range(sentence.first if fronted else index + 1, sentence.last)}
    if _AWAITING.isdisjoint(behind):
        return False
    if told_from_the_other_end(text_of(*other), text_of(sentence, frame)):
        return True
    if not _AWAITING.isdisjoint(theirs) or any(map(denials.is_negator, theirs)):
        return False
    once = not _THEN.isdisjoint(theirs)
    return once or (not _UNTIL.isdisjoint(behind) and "before" not in theirs and _has_what_is_awaited(one, other))


def _has_what_is_awaited(one: _Negator, other: _Side) -> bool:
    """Whether a sentence has all that stands behind the *until* of another."""
    sentence, frame, index = one
    start = next((place for place in range(index, sentence.last) if frame.tokens[place].low in _UNTIL), sentence.last)
    words = {word for place, word in sentence.stems if place > start}
    values = [value for value in sentence.values if value.first > start]
    told = all(any(same(value, each) for each in other[0].values) for value in values)
    return bool(words or values) and told and words <= other[0].bag


def text_of(sentence: FramedSentence, frame: Frame) -> str:
    """Return the words and marks of a sentence in small letters."""
    return " ".join(_lows(sentence, frame))


def _lows(sentence: FramedSentence, frame: Frame) -> list[str]:
    return [token.low for token in frame.tokens[sentence.first : sentence.last]]


def _reaches(sentence: FramedSentence, frame: Frame, index: int, words: frozenset[str]) -> bool:
    """Whether what a negator denies is said in *words* too, as it is or with a prefix that denies it."""
    scope = _denied_words(sentence, frame, index)
    if not scope and at(frame.tokens, index + 1).low in _PERMITTED:
        before = _elliptic_words(sentence, frame, index)  # crossing by train is not possible: there is no train
        return 2 * len(words.intersection(before)) >= len(before) > 0
    contrasts = bool(scope) and frame.tokens[index].low == "not" and at(frame.tokens, index - 1).text == ","
    if (
        frame.tokens[index].low in _ELLIPTIC
        and not contrasts
        and (not scope or at(frame.tokens, index + 1).low in _OPENING)
    ):
        if own := _elliptic_words(sentence, frame, index):  # of the southern region nothing is said of the northern one
            return all(word in words and not word.startswith("±") for word in own)
        return any(word in words for _, word in sentence.stems)  # a refund until Friday, after that none
    return any(word in words or any(prefix + word in words for prefix in PREFIXES) for word in scope)


def _denied_words(sentence: FramedSentence, frame: Frame, index: int) -> list[str]:
    """Return the content words that a negator denies: the next, or the one behind words that tell nothing of their own."""
    after = [(place, word) for place, word in sentence.stems if place > index]
    while len(after) > 1 and _is_weak(frame.tokens[after[0][0]].low):
        after = after[1:]
    obliged = any(at(frame.tokens, place).low == "to" for place in range(index + 1, index + 4))
    if len(after) == 1 and frame.tokens[after[0][0]].low in _PERMITTED:
        return []  # not allowed at all: what stands before it is denied
    return [word for _, word in after[: 2 if obliged else 1]]  # need not submit a form: needs no form


def _is_weak(low: str) -> bool:
    return low in _WEAK or low in denials.EXCLUDING or (low.endswith("ly") and len(low) > _SHORT)


def _elliptic_words(sentence: FramedSentence, frame: Frame, index: int) -> list[str]:
    """Return the words of its clause that a negator at the end of it denies: *the other region was not*."""
    first = index
    while first > sentence.first and frame.tokens[first - 1].low not in _OPENING | _RELATIVE:
        first -= 1
    return [word for place, word in sentence.stems if first <= place <= index and word != BEFORE]


def _prefers(sentence: FramedSentence, frame: Frame, index: int, words: frozenset[str]) -> bool:
    """Whether a negator only prefers a phrase to another, and *words* are of the preferred one: *not on Mondays, but on Tuesdays*."""
    lows = [frame.tokens[place].low for place in range(index, sentence.last)]
    if "but" not in lows or any(low in _FINITE for low in lows[lows.index("but") :]):
        return False
    cut = index + lows.index("but")
    denied = [word for place, word in sentence.stems if index < place < cut]
    preferred = [word for place, word in sentence.stems if place > cut]
    return any(word not in words for word in denied) and any(word in words for word in preferred)

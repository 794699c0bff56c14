"""A value in its own piece of a sentence: *icaridin worked for 7 hours, DEET for 6* does say that DEET worked for 6 hours (SPEC-005 §5.3).

A sentence that lists several values leaves out in its later pieces what they share with the first: the verb, the noun, the unit. Compared
word by word, such a piece has less of a claim than the first one, whose value then seems to be the one that the claim has changed. It has
not, where its value stands in another piece of the same sentence and says there all that this piece says.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from interlock.dpe.text.lexing import Lexeme, at
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame, FramedSentence
from interlock.dpe.values.quantities import ORDINAL, Value, same

_CUTS = word_set(", ; and but or while whereas against – — ( )")
_TURNING = word_set("more less fewer higher lower not no never neither nor none without cannot")
_MOSTLY = 0.75


def stands_in_own_piece(value: Value, rival: Value, claim: Frame, fact: Frame) -> bool:
    """Whether the sentence of *rival*, the source's value that a claim seems to have changed, gives *value* in the piece that the claim tells.

    All that the piece says must be the claim's, and the claim may not say all that the rival's piece says: *icaridin worked for 6 hours*
    has the value of a piece that tells of DEET.
    """
    source = next((each for each in fact.sentences if each.first <= rival.first < each.last), None)
    if source is None or value.vague or value.label:
        return False
    spans = _spans(source, fact)
    held = next(((first, last) for first, last in spans if first <= rival.first < last), None)
    for other in source.values:
        own = next(((first, last) for first, last in spans if first <= other.first < last), None)
        if own is None or own == held or not _is_one(value, other, rival):
            continue
        if (
            _is_told(own, other, value, source, claim)
            and (_is_whole(rival, source, fact) or not _tells_all(held, rival, source, claim))
            and _turning(fact.tokens[own[0] : own[1]]) == _turning(claim.tokens)
        ):
            return True
    return False


def is_part_of(value: Value, whole: Value, frame: Frame) -> bool:
    """Whether a text counts *value* as a part of the *whole* of a thing: 18 of the 24 pallets."""
    between = [at(frame.tokens, place).low for place in range(value.last, whole.first)]
    return between[:1] == ["of"] and len(between) <= 2 and set(between) <= {"of", "the", "its", "their", "our", "all"}


def _is_whole(value: Value, source: FramedSentence, fact: Frame) -> bool:
    """Whether a sentence opens with *value* as the whole of which it counts parts: *of the 30 swans, 18 left*."""
    before = [at(fact.tokens, place).low for place in range(source.first, value.first)]
    return before[:1] == ["of"] and set(before) <= {"of", "the", "its", "their", "our", "all", "these", "those"}


def _is_one(value: Value, other: Value, rival: Value) -> bool:
    """Whether a source's value is the claim's: the same one, or its figure without the unit that the rival, which stands before it, has."""
    if other.vague or (value.kind == ORDINAL) != (other.kind == ORDINAL):
        return False
    if same(value, other):
        return not value.bound or value.bound == other.bound
    shortened = bool(value.unit) and not other.unit and rival.unit == value.unit and rival.first < other.first
    if not shortened or value.amount is None or other.amount is None or other.moment is not None:
        return False
    return value.amount / value.factor == other.amount and value.factor == rival.factor


def _spans(source: FramedSentence, fact: Frame) -> list[tuple[int, int]]:
    """Return the pieces of a sentence, as spans of tokens: what stands between its commas and joints."""
    taken = {place for each in source.values for place in range(each.first, each.last)}
    cuts = [n for n in range(source.first, source.last) if n not in taken and fact.tokens[n].low in _CUTS]
    bounds = [source.first, *cuts, source.last]
    return [(first, last) for first, last in pairwise(bounds) if last > first]


def _is_told(span: tuple[int, int], other: Value, value: Value, source: FramedSentence, claim: Frame) -> bool:
    """Whether a claim says what a piece says beside its value: its words, and its other values."""
    words, beside = _words(span, other, source), _beside(span, other, source)
    if not words and not beside:
        return False
    mine = [each for each in claim.values if each is not value]
    return len(words & claim.bag) >= _MOSTLY * len(words) and _are_among(beside, mine)


def _tells_all(span: tuple[int, int] | None, rival: Value, source: FramedSentence, claim: Frame) -> bool:
    """Whether a claim says all that the piece of the rival says beside it, and so may mean that one."""
    if span is None:
        return True
    return _words(span, rival, source) <= claim.bag and _are_among(_beside(span, rival, source), claim.values)


def _beside(span: tuple[int, int], value: Value, source: FramedSentence) -> list[Value]:
    return [each for each in source.values if span[0] <= each.first < span[1] and each is not value and not each.vague]


def _are_among(values: Sequence[Value], others: Sequence[Value]) -> bool:
    return all(any(same(each, other) for other in others) for each in values)


def _turning(tokens: Sequence[Lexeme]) -> frozenset[str]:
    """Return the words that turn what stands beside a value: *30 fewer than planned* says nothing of 30 more."""
    return frozenset(token.low for token in tokens if token.low in _TURNING or token.low.endswith("n't"))


def _words(span: tuple[int, int], value: Value, source: FramedSentence) -> frozenset[str]:
    return frozenset(
        word for place, word in source.stems if span[0] <= place < span[1] and not value.first <= place < value.last
    )

"""Denied values: what a claim says that a value is not (SPEC-005 §5.3).

*It does not start at 7 pm* contradicts no source that has 8 pm. *It starts at 7 pm, not at 8 pm* does, though it names both.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison import denials
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame, FramedSentence, frame
from interlock.dpe.values.quantities import DATE, Value, comparable

_BOUNDS = word_set(
    "within until till by before after than least most over under from since above below between up only to beyond"
)
"""Words that make a value a limit: what is denied of a limit is not the value."""
_BREAKS = frozenset({",", ";", ":", "—", "–", "but", "and", "because", "since", "as"})
_BETWEEN = word_set("not no longer on at for in of by the a , ; – — but and rather than instead it is was costs starts")
_DENIES = word_set("not rather instead longer")
_MOST_BETWEEN = 7
_FARTHEST = 6


def denied_values(sentence: FramedSentence, claim: Frame, fact: Frame) -> list[Value]:
    """Return the values that a sentence denies and that the source does not state either. A source that denies anything has none."""
    values = [value for value in sentence.values if not value.vague]
    if not values or any(True for _ in denials.places(fact.tokens, 0, len(fact.tokens))):
        return []
    return [value for value in values if _is_denied(value, sentence, claim) and _is_another(value, fact)]


def denies_another(sentence: FramedSentence, claim: Frame, fact: Frame) -> bool:
    """Whether all that a sentence denies is a value that the source does not state either; its other values are the source's."""
    denied = denied_values(sentence, claim, fact)
    rest = [value for value in sentence.values if not value.vague and value not in denied]
    negators = sum(1 for _ in denials.places(claim.tokens, sentence.first, sentence.last))
    return bool(denied) and negators == 1 and all(any(True for _ in fact.table.equals(each)) for each in rest)


def denies_another_value(claim: str, source: str) -> bool:
    """Whether a sentence, which may say more, denies a value that its source does not state either."""
    told, stated = frame(claim), frame(source)
    return any(denies_another(sentence, told, stated) for sentence in told.sentences)


def _is_another(value: Value, fact: Frame) -> bool:
    stated = [other for other in fact.values if comparable(value, other)]
    return bool(stated) and next(fact.table.equals(value), None) is None


def _is_denied(value: Value, sentence: FramedSentence, claim: Frame) -> bool:
    """Whether a negator stands before a value, in its own clause, and the value is no limit."""
    if value.first <= sentence.first or claim.tokens[value.first - 1].low in _BOUNDS:
        return False
    for place in range(value.first - 1, max(sentence.first, value.first - 1 - _FARTHEST) - 1, -1):
        low = claim.tokens[place].low
        if low in _BREAKS:
            return False
        if low == "not" or low.endswith("n't"):
            return denials.denies(claim.tokens, place)
    return False


def exchanged_values(sentence: FramedSentence, claim: Frame, fact: Frame) -> Iterator[tuple[Value, Value]]:
    """Yield each value that a sentence states in the place of the one that it denies and the source states: *not 480 but 840*."""
    if any(True for _ in denials.places(fact.tokens, 0, len(fact.tokens))):
        return
    for one, other in zip(sentence.values, sentence.values[1:], strict=False):
        between = [claim.tokens[place].low for place in range(one.last, other.first)]
        if len(between) > _MOST_BETWEEN or len(set(between) - _BETWEEN) > 1:
            continue
        told, denied = (one, other) if _DENIES & set(between) else (other, one)
        if told is other and not _is_denied(one, sentence, claim):
            continue
        if _is_swapped(told, denied, fact):
            yield told, next(iter(fact.table.equals(denied)))


def _is_swapped(told: Value, denied: Value, fact: Frame) -> bool:
    exact = told.kind == denied.kind == DATE or not (told.bound or denied.bound)
    return (
        exact
        and comparable(told, denied)
        and _is_another(told, fact)
        and next(fact.table.equals(denied), None) is not None
    )

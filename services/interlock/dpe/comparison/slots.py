"""Slots: a value or a name of the source that a claim replaces, found by the words around it (SPEC-005 §5.3).

For claims that do not copy their source. Every other value of the claim must be the source's, and the words around must
be the same; otherwise the claim may be about another case.
"""

from collections.abc import Iterator

from interlock.dpe.comparison.denials import places
from interlock.dpe.text.known_names import may_be_one
from interlock.dpe.text.names import Name
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame, FramedSentence, coverage, nearby, neighbours
from interlock.dpe.values.quantities import DATE, ORDINAL, Value, comparable
from interlock.dpe.values.units import TEMPERATURE

_VALUE_FRAME = 0.6  # share of the claim's words that the source sentence must have
_NAME_FRAME = 0.65
_COPY = 0.85
_SAME = 0.75
_ENDS = word_set("least most more less fewer")
_LOCAL = 0.34  # share of the words nearest to the slot
_REACH = 6
_TAKEN_OFF = word_set(
    "off deduct deducted deducts subtract subtracted minus less paid spent withdrawn loss owe owed debit refund"
)
"""Words that carry the minus of an amount."""


def contradicted_values(sentence: FramedSentence, claim: Frame, fact: Frame) -> Iterator[tuple[Value, Value]]:
    """Yield each value of a sentence that the source states differently, with the source's value."""
    missing = [value for value in sentence.values if next(fact.table.equals(value), None) is None]
    strangers = [value for value in missing if _tells_cases_apart(value, fact)]
    for value in sentence.values:
        if value not in missing:
            other = _sign_lost(value, sentence, claim, fact)
        else:
            other = _in_its_place(value, sentence, claim, fact) if all(each is value for each in strangers) else None
        if other is not None:
            yield value, other


def turned_bounds(sentence: FramedSentence, claim: Frame, fact: Frame) -> Iterator[tuple[Value, Value]]:
    """Yield each figure that the source has as an upper bound and the claim as a lower one, or the other way round: *up to six*.

    Both must say the same of it, and neither may deny anything: those above a limit may not do what those below it may.
    """
    if any(True for _ in places(claim.tokens, sentence.first, sentence.last)):
        return
    for value in (each for each in sentence.values if each.bound and not each.vague):
        for source in fact.sentences:
            others = [each for each in source.values if comparable(value, each) and each.amount == value.amount]
            told = others and not any(True for _ in places(fact.tokens, source.first, source.last))
            if told and all(each.bound and each.bound != value.bound for each in others):
                words = {
                    word
                    for index, word in sentence.stems
                    if not value.first <= index < value.last and word not in _ENDS
                }
                if len(words) > 1 and coverage(words, source, fact) >= _SAME:
                    yield value, others[0]


def _tells_cases_apart(value: Value, fact: Frame) -> bool:
    """Whether a value missing from the source may mean another case, such as another year."""
    if value.vague or value.kind == ORDINAL:
        return False
    return value.kind == DATE or value.unit in fact.units


def _in_its_place(value: Value, sentence: FramedSentence, claim: Frame, fact: Frame) -> Value | None:
    """Return the source's value with the same words around it."""
    words = {word for index, word in sentence.stems if not value.first <= index < value.last}
    close = nearby(sentence, value.first, value.last)
    best, best_score = None, 0.0
    if not words and not claim.bag:
        return None  # *up to three* alone says nothing of what it counts
    for source in fact.sentences:
        if fact.tokens[source.last - 1].text == "?":
            continue  # *we land at 23:50, is the desk open?* states nothing
        agreement = coverage(words, source, fact)
        if agreement < (_VALUE_FRAME if len(words) > 2 else 1.0):
            continue
        for other in source.values:
            local = _share(close, nearby(source, other.first, other.last, reach=_REACH))
            same_place = neighbours(claim, value.first, value.last) == neighbours(fact, other.first, other.last)
            score = agreement + local + 0.5 * same_place
            fits = local >= _LOCAL and (not value.vague or (same_place and agreement >= _COPY))
            if fits and score > best_score and _may_replace(value, other, claim):
                best, best_score = other, score
    return best


def _share(close: frozenset[str], around: frozenset[str]) -> float:
    return len(close & around) / len(close) if close else 1.0


def _may_replace(value: Value, other: Value, claim: Frame) -> bool:
    """Whether a source value is of the same kind, and the claim does not state it elsewhere."""
    if not comparable(value, other) or value.vague != other.vague or bool(value.label) != bool(other.label):
        return False
    if value.kind == ORDINAL and value.words != other.words:
        return False
    return next(claim.table.equals(other), None) is None


def _sign_lost(value: Value, sentence: FramedSentence, claim: Frame, fact: Frame) -> Value | None:
    """Return the source's value of the opposite sign, unless a word gives the direction."""
    if not value.amount or value.unit == TEMPERATURE or value.vague:
        return None
    equal = [other for other in fact.table.equals(value) if other.amount]
    if not equal or any((other.amount or 0.0) * value.amount > 0 for other in equal):
        return None
    directed = any(word.startswith("±") for word in sentence.bag | fact.bag)
    taken = any(token.low in _TAKEN_OFF for token in claim.tokens[sentence.first : sentence.last])
    return None if directed or taken else equal[0]


def replaced_name(name: Name, sentence: FramedSentence, claim: Frame, fact: Frame) -> Name | None:
    """Return the source's name in the same context as a name of the claim that the source lacks."""
    words = {word for index, word in sentence.stems if not name.first <= index < name.last}
    close = nearby(sentence, name.first, name.last)
    best, best_score = None, 0.0
    for source in fact.sentences:
        agreement = coverage(words, source, fact)
        if not words or agreement < (_NAME_FRAME if len(words) > 2 else 1.0):
            continue
        for other in source.names:
            sides = _equal_sides(claim, name, fact, other)
            local = _share(close, nearby(source, other.first, other.last, reach=_REACH))
            score = agreement + sides + local
            if not sides or local < _LOCAL or score <= best_score:
                continue
            if other.sure and not claim.evidence.knows(other.words) and not may_be_one(name.words, other.words):
                best, best_score = other, score
    return best


def _equal_sides(claim: Frame, name: Name, fact: Frame, other: Name) -> int:
    """Return how many of the words adjacent to two names are equal."""
    claim_sides, fact_sides = neighbours(claim, name.first, name.last), neighbours(fact, other.first, other.last)
    return sum(one == two for one, two in zip(claim_sides, fact_sides, strict=True))

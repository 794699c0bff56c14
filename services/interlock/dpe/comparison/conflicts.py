"""Values and names of a claim that contradict its source, found by direct comparison (SPEC-005 §5.3).

A conflict is one differing slot in a frame that agrees. There are two ways to find it: the claim copies a source
sentence except for a few places (alignment.py), or the words around a value are those around another value of the
source. When both a name and a value differ, the claim may be about something else, and nothing is reported.
"""

import re
from collections.abc import Iterator, Sequence

from interlock.dpe.comparison.alignment import Alignment, Edit, Element
from interlock.dpe.comparison.cases.cases import is_case
from interlock.dpe.comparison.cases.examples import lies_between
from interlock.dpe.comparison.cues import DATE_SHIFTED, ENTITY_SUBSTITUTED, MAGNITUDE_ALTERED, NUMBER_CHANGED, Cue
from interlock.dpe.comparison.denied_values import denied_values, exchanged_values
from interlock.dpe.comparison.exceptions import excepted
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.comparison.ranges import falls_within
from interlock.dpe.comparison.replaced.own_piece import stands_in_own_piece
from interlock.dpe.comparison.slots import contradicted_values, replaced_name, turned_bounds
from interlock.dpe.text.known_names import may_be_one
from interlock.dpe.text.lexing import WORD, at
from interlock.dpe.text.names import COMMON_WORDS, TITLES, Name, opens_sentence, plain
from interlock.dpe.values.frames import STOP, Frame, FramedSentence
from interlock.dpe.values.quantities import DATE, NUMBER, ORDINAL, Value, comparable, same
from interlock.dpe.values.units import PERCENT, POINTS

_FAITHFUL_COPY = 0.85
_LONGEST_EDIT = 6
_MOST_BESIDE = 2  # other words in an edit that replaces a name
_LONG_WORD = 4  # letters from which a headline capitalises a word
_SHORTEST_HEADLINE = 4  # number of such words
_BOUND_WORDS = 2
_COUNTED = 2  # words after a number that may be the counted noun
_CUT = re.compile(r"(?<=\w) ?([-,.]) ?(?=\w)")


def sentence_conflicts(
    sentence: FramedSentence, alignment: Alignment | None, claim: Frame, fact: Frame
) -> Iterator[Cue]:
    """Yield each value and name of a claim's sentence that its source states differently."""
    edits = alignment.edits if alignment and alignment.is_copy else ()
    edited = [pair for edit in edits for pair in _edited_values(edit) if not _as_written(*pair, claim, fact)]
    edited = [pair for pair in edited if not _counts_off(pair[0], claim)]
    values = [(value, source) for value, source in edited if not _counts_beside(value, source, claim, fact)]
    faithful = alignment is not None and alignment.copied >= _FAITHFUL_COPY
    names = [pair for edit in edits for pair in _edited_names(edit, claim, fact, faithful=faithful)]
    names = [pair for pair in names if not _is_excepted(pair[0], fact)]
    if values and names:
        return
    denied = denied_values(sentence, claim, fact)
    values = [pair for pair in values if pair[0] not in denied and not _is_apart(*pair, claim, fact)]
    values = list(dict.fromkeys([*values, *exchanged_values(sentence, claim, fact)]))
    unknown = [
        name
        for name in sentence.names
        if name.sure and not fact.evidence.knows(name.words) and not _is_meant(name, claim, fact)
    ]
    if not names and not unknown:
        aligned = {value.first for value, _ in values}
        values += [
            (value, source)
            for value, source in contradicted_values(sentence, claim, fact)
            if value.first not in aligned
            and value not in denied
            and not _counts_off(value, claim)
            and not _as_written(value, source, claim, fact)
            and not _is_apart(value, source, claim, fact)
            and not _counts_another(value, source, claim, fact)
        ]
    for value, source in values:
        supposed = is_case(value, claim, fact) or lies_between(value, fact.reading.text)
        if not supposed and not stands_in_own_piece(value, source, claim, fact):
            yield from _value_cues(value, source)
    for value, source in turned_bounds(sentence, claim, fact):
        yield Cue(NUMBER_CHANGED, _with_bound(source, fact), _with_bound(value, claim))
    for source_name, written in names:
        yield Cue(ENTITY_SUBSTITUTED, source_name, written)
    if len(unknown) == 1 and not names and not values:
        other = replaced_name(unknown[0], sentence, claim, fact)
        source_name = fact.written(other.first, other.last) if other is not None else ""
        if source_name and not _is_excepted(source_name, fact):
            written = claim.written(unknown[0].first, unknown[0].last)
            yield Cue(ENTITY_SUBSTITUTED, source_name, written, certain=False)


def _is_meant(name: Name, claim: Frame, fact: Frame) -> bool:
    """Whether a source calls a name by its last word, *the museum*, or the name is only the end of a code: *4L89*."""
    first, last = claim.tokens[name.first], claim.tokens[name.last - 1].low
    before = at(claim.tokens, name.first - 1)
    if name.first and first.glued and before.text[-1:].isalnum():
        return True
    return any(
        token.low == last and not token.capital and at(fact.tokens, place - 1).low in {"the", "its", "their", "this"}
        for place, token in enumerate(fact.tokens)
    )


def _with_bound(value: Value, frame: Frame) -> str:
    return frame.written(max(0, value.first - _BOUND_WORDS), value.last)


def _is_apart(value: Value, source: Value, claim: Frame, fact: Frame) -> bool:
    """Whether a time is one of a span of the source, or the source's time is one that it only excepts."""
    return value.moment is not None and (falls_within(value, claim, fact) or _is_excepted(source.text, fact))


def _is_excepted(source_name: str, fact: Frame) -> bool:
    """Whether a name of the source is what it excepts: *except on Mondays* says nothing of Tuesdays that names them."""
    found = (excepted(fact.written(each.first, each.last)) for each in fact.sentences)
    return any(each is not None and words_of("x " + source_name) - {"x"} <= each.one for each in found)


def _edited_values(edit: Edit) -> Iterator[tuple[Value, Value]]:
    """Yield the values of an edit, each with the source value that it replaces."""
    claim_values = [element.value for element in edit.claim if element.value is not None]
    source_values = [element.value for element in edit.source if element.value is not None]
    if len(edit.claim) > _LONGEST_EDIT or len(edit.source) > _LONGEST_EDIT:
        return
    for value, source in zip(claim_values, source_values, strict=False):
        if (
            not same(value, source)
            and value.vague == source.vague
            and (comparable(value, source) or _mistaken_kind(value, source))
            and not _one_figure(value, source)
        ):
            yield value, source


def _mistaken_kind(value: Value, source: Value) -> bool:
    """Whether a figure replaces one of another kind: 45 for 2045, 5 days for 5 %."""
    if NUMBER not in {value.kind, source.kind} or ORDINAL in {value.kind, source.kind} or value.label or source.label:
        return False
    years = {each.moment.years for each in (value, source) if each.moment}
    counts = {(each.amount, each.amount) for each in (value, source) if each.amount is not None}
    return not years & counts  # 2,000, and a 2000 that was read as a year


def _one_figure(value: Value, source: Value) -> bool:
    """Whether one side leaves out the unit of the other's figure: 28 for 28 days."""
    if value.amount is None or source.amount is None or bool(value.unit) == bool(source.unit):
        return False
    if {value.unit, source.unit} & {PERCENT, POINTS}:
        return False
    return value.amount / value.factor == source.amount / source.factor


def _counts_beside(value: Value, source: Value, claim: Frame, fact: Frame) -> bool:
    """Whether one side counts a thing and the other measures: 1 tablet, and 6 hours. One figure for both is a mistaken kind."""
    if bool(value.unit) == bool(source.unit) or value.amount is None or source.amount is None:
        return False
    bare, side = (value, claim) if not value.unit else (source, fact)
    following = at(side.tokens, bare.last)
    counts = following.kind == WORD and following.low not in STOP
    return counts and value.amount / value.factor != source.amount / source.factor


def _as_written(value: Value, source: Value, claim: Frame, fact: Frame) -> bool:
    """Whether one side has the other's figure with spaces in it: two - week, 3, 500, 31. 8 million."""
    claim_text, fact_text = claim.written(value.first, value.last), fact.written(source.first, source.last)
    return _has_cut(fact.reading.text, claim_text) or _has_cut(claim.reading.text, fact_text)


def _counts_another(value: Value, source: Value, claim: Frame, fact: Frame) -> bool:
    """Whether two bare numbers count different things: 11 games, and a 3 - 1 win."""
    if not value.kind == source.kind == NUMBER or value.unit or source.unit or value.vague or source.vague:
        return False
    claim_nouns, fact_nouns = _counted(value, claim), _counted(source, fact)
    before, other = at(claim.tokens, value.first - 1).low, at(fact.tokens, source.first - 1).low
    return bool(claim_nouns and fact_nouns) and not claim_nouns & fact_nouns and before != other


def _counts_off(value: Value, claim: Frame) -> bool:
    """Whether a number in words counts what the answer lists: two of them."""
    return value.words and not value.unit and [at(claim.tokens, value.last + n).low for n in (0, 1)] == ["of", "them"]


def _counted(value: Value, frame: Frame) -> frozenset[str]:
    """Return the content words right after a value, within its sentence."""
    sentence = next(each for each in frame.sentences if each.first <= value.first < each.last)
    return frozenset([word for place, word in sentence.stems if place >= value.last][:_COUNTED])


def _has_cut(text: str, figure: str) -> bool:
    """Whether a text has a figure only once the spaces inside numbers are removed."""
    figure, text = _joined(figure), text.casefold()
    found = rf"(?<![^\W_])(?<![^\W_][-,.]){re.escape(figure)}(?![^\W_])(?![-,.][^\W_])"
    return bool(re.search(found, _joined(text))) and figure not in text


def _joined(text: str) -> str:
    return _CUT.sub(r"\1", text.casefold())


def _edited_names(edit: Edit, claim: Frame, fact: Frame, *, faithful: bool) -> Iterator[tuple[str, str]]:
    """Yield the name in an edit with the source name that it replaces, as written."""
    claim_names, source_names = _capitals(edit.claim, claim), _capitals(edit.source, fact)
    if all(element.value is not None for element in (*claim_names, *source_names)):
        return  # a date for a date is a value
    if _has_date(claim_names) and _has_date(
        source_names
    ):  # and what stands beside it is compared with what stands beside the other
        claim_names, source_names = _but_dates(claim_names), _but_dates(source_names)
    if (
        not claim_names
        or not source_names
        or len(edit.claim) - len(claim_names) > _MOST_BESIDE
        or len(edit.source) - len(source_names) > _MOST_BESIDE
    ):
        return
    in_source = all(plain(claim.tokens[element.first].text) in fact.evidence.words for element in claim_names)
    in_claim = all(plain(fact.tokens[element.first].text) in claim.evidence.words for element in source_names)
    if (
        (in_claim and in_source)
        or ((in_claim or in_source) and not faithful)
        or _same_entity(claim_names, source_names, claim, fact)
    ):
        return  # moved, mentioned elsewhere, or another name of the same entity
    yield (
        fact.written(source_names[0].first, source_names[-1].last),
        claim.written(claim_names[0].first, claim_names[-1].last),
    )


def _has_date(elements: Sequence[Element]) -> bool:
    return any(element.value is not None for element in elements)


def _but_dates(elements: Sequence[Element]) -> list[Element]:
    return [element for element in elements if element.value is None]


def _capitals(elements: Sequence[Element], frame: Frame) -> list[Element]:
    """Return the elements that are part of a name: capitalised, and not by sentence start or title."""
    return [element for element in elements if _is_name_part(element, frame)]


def _is_name_part(element: Element, frame: Frame) -> bool:
    token, before = frame.tokens[element.first], at(frame.tokens, element.first - 1)
    if element.value is not None:
        return element.value.kind == DATE and token.capital  # Friday in the place of a name
    if not token.capital or token.low in STOP or (token.low in TITLES and not before.capital):
        return False
    if token.low in COMMON_WORDS and _is_headline(frame, element.first):
        return False
    certain = any(name.sure and name.first <= element.first < name.last for name in frame.names)
    return certain or not opens_sentence(frame.tokens, element.first)


def _is_headline(frame: Frame, place: int) -> bool:
    """Whether the sentence around a token capitalises all its longer words, so that capitals mark no names."""
    sentence = next(each for each in frame.sentences if each.first <= place < each.last)
    words = [frame.tokens[index] for index in range(sentence.first, sentence.last)]
    long = [token for token in words if token.kind == WORD and len(token.text) >= _LONG_WORD]
    return len(long) >= _SHORTEST_HEADLINE and all(token.capital for token in long)


def _same_entity(
    claim_elements: Sequence[Element], source_elements: Sequence[Element], claim: Frame, fact: Frame
) -> bool:
    """Whether two names may denote one entity: an alias, an abbreviation, a part, or another form of the word."""
    if len(claim_elements) == len(source_elements) == 1 and (
        _shortens(claim_elements[0], claim, source_elements[0], fact)
        or _shortens(source_elements[0], fact, claim_elements[0], claim)
    ):
        return True
    return may_be_one(
        [plain(claim.tokens[element.first].text) for element in claim_elements],
        [plain(fact.tokens[element.first].text) for element in source_elements],
    )


def _shortens(one: Element, frame: Frame, other: Element, source: Frame) -> bool:
    """Whether a word with a full stop may abbreviate another: Fla. for Florida, Mr for Mister."""
    short, long = plain(frame.tokens[one.first].text), plain(source.tokens[other.first].text)
    if at(frame.tokens, one.first + 1).text != "." or len(short) >= len(long) or short[:1] != long[:1]:
        return False
    rest = iter(long)
    return all(letter in rest for letter in short)


def _value_cues(value: Value, source: Value) -> Iterator[Cue]:
    """Yield the cues of a value conflict. An altered magnitude is also a changed number."""
    if source.kind == DATE:
        yield Cue(DATE_SHIFTED, source.text, value.text)
        return
    yield Cue(NUMBER_CHANGED, source.text, value.text)
    if _is_other_magnitude(value, source):
        yield Cue(MAGNITUDE_ALTERED, source.text, value.text)


def _is_other_magnitude(value: Value, source: Value) -> bool:
    """Whether a number at least doubled or halved, changed its scale or unit, or swapped its digits (15 and 51)."""
    if value.amount is None or source.amount is None or value.kind == ORDINAL:
        return False
    small, large = sorted((abs(value.amount), abs(source.amount)))
    if large >= 2 * small or value.factor != source.factor or value.scale != source.scale:
        return True
    return value.digits != source.digits and sorted(value.digits) == sorted(source.digits) and len(value.digits) > 1

"""Values and names of a claim that contradict its source, found by comparing them directly (SPEC-005 §5.3).

A conflict needs one slot that differs in a frame that agrees. Two ways lead to it: the claim copies a source sentence
but for a few places (alignment.py), or the words around a value are those around another value of the source. Where
both a name and a value differ the claim may speak of something else, and nothing is said here.
"""

from collections.abc import Iterator, Sequence

from interlock.dpe.alignment import Alignment, Edit, Element
from interlock.dpe.cues import DATE_SHIFTED, ENTITY_SUBSTITUTED, MAGNITUDE_ALTERED, NUMBER_CHANGED, Cue
from interlock.dpe.evidence import may_be_one
from interlock.dpe.frames import STOP, Frame, Sentence
from interlock.dpe.lexing import at
from interlock.dpe.names import TITLES, opens_sentence, plain
from interlock.dpe.quantities import DATE, NUMBER, ORDINAL, Value, comparable, same
from interlock.dpe.slots import contradicted_values, replaced_name

_FAITHFUL_COPY = 0.85
_LONGEST_EDIT = 6
_MOST_BESIDE = 2  # other words in an edit that replaces a name


def sentence_conflicts(sentence: Sentence, alignment: Alignment | None, claim: Frame, fact: Frame) -> Iterator[Cue]:
    """Yield each value and name of a claim's sentence that its source states otherwise."""
    edits = alignment.edits if alignment and alignment.is_copy else ()
    values = [pair for edit in edits for pair in _edited_values(edit)]
    faithful = alignment is not None and alignment.copied >= _FAITHFUL_COPY
    names = [pair for edit in edits for pair in _edited_names(edit, claim, fact, faithful=faithful)]
    if values and names:
        return
    strange = [name for name in sentence.names if name.sure and not fact.evidence.knows(name.words)]
    if not names and not strange:
        aligned = {value.first for value, _ in values}
        values += [pair for pair in contradicted_values(sentence, claim, fact) if pair[0].first not in aligned]
    for value, source in values:
        yield from _named(value, source)
    for source_name, written in names:
        yield Cue(ENTITY_SUBSTITUTED, source_name, written)
    if len(strange) == 1 and not names and not values:
        other = replaced_name(strange[0], sentence, claim, fact)
        if other is not None:
            source_name, written = (
                fact.written(other.first, other.last),
                claim.written(strange[0].first, strange[0].last),
            )
            yield Cue(ENTITY_SUBSTITUTED, source_name, written, certain=False)


def _edited_values(edit: Edit) -> Iterator[tuple[Value, Value]]:
    """Yield the values of an edit beside those of the source that they replace, in order."""
    mine = [element.value for element in edit.claim if element.value is not None]
    its = [element.value for element in edit.source if element.value is not None]
    if len(edit.claim) > _LONGEST_EDIT or len(edit.source) > _LONGEST_EDIT:
        return
    for value, source in zip(mine, its, strict=False):
        if (
            not same(value, source)
            and value.vague == source.vague
            and (comparable(value, source) or _mistaken_kind(value, source))
        ):
            yield value, source


def _mistaken_kind(value: Value, source: Value) -> bool:
    """Whether a figure stands where the source has one of another kind: 45 for 2045, 5 days for 5 %."""
    if NUMBER not in {value.kind, source.kind} or ORDINAL in {value.kind, source.kind} or value.label or source.label:
        return False
    years = {each.moment.years for each in (value, source) if each.moment}
    counts = {(each.amount, each.amount) for each in (value, source) if each.amount is not None}
    return not years & counts  # 2,000 and a 2000 that was taken for a year


def _edited_names(edit: Edit, claim: Frame, fact: Frame, *, faithful: bool) -> Iterator[tuple[str, str]]:
    """Yield the name in an edit beside the name of the source that it replaces, as written."""
    mine, its = _capitals(edit.claim, claim), _capitals(edit.source, fact)
    if all(element.value is not None for element in (*mine, *its)):
        return  # a date for a date: that is a value
    if not mine or not its or len(edit.claim) - len(mine) > _MOST_BESIDE or len(edit.source) - len(its) > _MOST_BESIDE:
        return
    known = all(plain(claim.tokens[element.first].text) in fact.evidence.words for element in mine)
    kept = all(plain(fact.tokens[element.first].text) in claim.evidence.words for element in its)
    if (kept and known) or ((kept or known) and not faithful) or _same_entity(mine, its, claim, fact):
        return  # moved, spoken of elsewhere, or another name of the same
    yield fact.written(its[0].first, its[-1].last), claim.written(mine[0].first, mine[-1].last)


def _capitals(elements: Sequence[Element], frame: Frame) -> list[Element]:
    """Return the elements that are part of a name: with a capital that no sentence or title gave them."""
    return [element for element in elements if _is_name_part(element, frame)]


def _is_name_part(element: Element, frame: Frame) -> bool:
    token, before = frame.tokens[element.first], at(frame.tokens, element.first - 1)
    if element.value is not None:
        return element.value.kind == DATE and token.capital  # Friday, in the place of a name
    if not token.capital or token.low in STOP or (token.low in TITLES and not before.capital):
        return False
    certain = any(name.sure and name.first <= element.first < name.last for name in frame.names)
    return certain or not opens_sentence(frame.tokens, element.first)


def _same_entity(mine: Sequence[Element], its: Sequence[Element], claim: Frame, fact: Frame) -> bool:
    """Whether two names may be names of one entity: an alias, an abbreviation, a part, another form of the word."""
    return may_be_one(
        [plain(claim.tokens[element.first].text) for element in mine],
        [plain(fact.tokens[element.first].text) for element in its],
    )


def _named(value: Value, source: Value) -> Iterator[Cue]:
    """Name a conflict: a magnitude is also a number that changed."""
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

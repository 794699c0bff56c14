"""Calculated support: claims whose values a record states or whose values follow by calculation (SPEC-005 §4, §5.2).

The models read figures badly: they find a correct total unlikely and the value of another row likely. Where every value of a
claim is accounted for, by the record that the claim is about or by an operation that its words name, and its other words are
those of the sources, the claim is supported. Where a claim states the value of another row for its own, it is distorted. Where
neither is sure, the models decide alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.comparison.cues import DATE_SHIFTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.comparison.polarity import is_negator
from interlock.dpe.document import Claim, Distortion, NliScores
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.cells import cells_of, label_of, restated
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.scopes import Scope, Scopes, Slot, of_texts, scopes, stems_of
from interlock.dpe.grounding.support import Vocabulary
from interlock.dpe.text.lexing import WORD
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.derived import DIFFERS, DOWN, UP, Operand, derives, words_of
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.frames import frame, stem
from interlock.dpe.values.keys import read_key
from interlock.dpe.values.moments import covers
from interlock.dpe.values.quantities import NUMBER, ORDINAL, Value, comparable, same
from interlock.dpe.values.units import TIME

SURE = NliScores(0.97, 0.02, 0.01)
REFUTED = NliScores(0.02, 0.08, 0.90)
MOST_STRANGE = 2
MOST_CLAIMS = 400
MOST_SAID = 40
_ROUNDS = 2
_FIGURE = re.compile(r"\d[\d.,]*(?<![.,])")
_LEAST = word_set("cheapest lowest smallest least shortest earliest fewest youngest lightest slowest minimum")
_MOST = word_set("highest largest biggest most longest latest dearest greatest oldest heaviest fastest maximum priciest")
_OPERATING = frozenset(
    stem(word)
    for word in word_set(
        "total totals difference increase decrease growth percent percentage points point year years month months day days hour hours"
        " minute minutes come comes make makes amount equal equals is per person people each apiece both two take takes journey trip"
        " duration long last lasts leave leaves arrive arrives get gets go goes went cost costs pay price margin widen widened narrow"
        " narrowed rise rose risen grew grow fall fell drop dropped increased decreased average sum together half twice double run runs"
        " until end ends expire expires need needs more less up down earlier later over roughly about just so change compared charged"
        " you yours your us our operating respectively worth lasted valid till due apart old again"
    )
)


@dataclass(frozen=True)
class Settled:
    """What calculation shows of a claim: the values accounted for, what it takes from another row, whether it is supported."""

    values: frozenset[str]
    moved: tuple[Distortion, ...]
    supported: bool
    premise: str = ""


def settle(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    envelope: Envelope,
    *,
    query: str,
    own: str,
    sentences: Mapping[str, str],
) -> dict[str, ClaimEvidence]:
    """Return the evidence with what calculation adds to it. *own* are the user's words, whose values may be operands."""
    if not any(read(claim.text).values for claim in claims[:MOST_CLAIMS]):
        return dict(evidence)
    known = scopes(envelope)
    said = of_texts([text for text in own.splitlines() if text.strip()][-MOST_SAID:], len(known.all))
    vocabulary = Vocabulary.of([*envelope.cut.texts, query, own])
    found = dict(evidence)
    around = _around(claims, sentences)
    tabular = {scope.text for scope in known.all if scope.slots}
    for claim in claims[:MOST_CLAIMS]:
        settled = _settled(claim, known, said, vocabulary, around[claim.claim_id])
        if settled is not None:
            found[claim.claim_id] = _with(evidence[claim.claim_id], settled)
    return {name: replace(each, tabular=each.source in tabular) for name, each in found.items()}


def _around(claims: Sequence[Claim], sentences: Mapping[str, str]) -> dict[str, str]:
    """Return the text that shows what each claim is about: its sentence, or the fields of the object that it is a field of."""
    objects: dict[tuple[int, int], list[Claim]] = {}
    for claim in claims:
        objects.setdefault((claim.choice_index, claim.output_index), []).append(claim)
    found = {claim.claim_id: sentences.get(claim.claim_id, claim.text) for claim in claims}
    for members in objects.values():
        labels = [label_of(claim.text) for claim in members]
        if len(labels) > 1 and None not in labels and len(set(labels)) == len(labels):
            whole = "; ".join(claim.text for claim in members)
            found |= {claim.claim_id: whole for claim in members}
    return found


def _with(evidence: ClaimEvidence, settled: Settled) -> ClaimEvidence:
    added = replace(evidence, settled=settled.values, moved=settled.moved)
    if settled.moved:
        return replace(added, scores=REFUTED, plain_scores=REFUTED)
    if not settled.supported:
        return added
    return replace(added, scores=SURE, plain_scores=SURE, premise=settled.premise or evidence.premise)


def _settled(claim: Claim, known: Scopes, said: Sequence[Scope], vocabulary: Vocabulary, around: str) -> Settled | None:
    if not known.all or not read(claim.text).values:
        return None
    text = restated(claim.text)
    reading = read(text)
    values = [value for value in reading.values if not value.vague]
    words = words_of(reading.tokens)
    named = [scope for group in known.named(claim.text).values() for scope in group]
    if not named and around != claim.text:
        named = [group[0] for group in known.named(around).values() if len(group) == 1]
    pool = _pool(f"{text} {around}", known, named, siblings=bool(words & DIFFERS))
    cells = list(_cells(claim, known))
    moved = tuple([*cells, *_moved(reading, values, named, known, words)])
    stated = {n for n, value in enumerate(values) if _is_stated(value, [*pool, *said])}
    made = _derived(values, stated, words, pool, said)
    bound = {n for n in stated if any(scope.slots and _in(values[n], scope) for scope in (named or pool))}
    covered = stated | made
    shown = made | bound if not moved else made
    texts = frozenset(each for n in shown for each in (values[n].text, *_figures(values[n].text)))
    complete = len(covered) == len(values) and bool(made or (bound and named))
    unknown = vocabulary.strange(_without_operations(claim.text))
    sure = complete and unknown <= MOST_STRANGE and not moved and not _doubtful(reading, words, [values[n] for n in sorted(stated)], pool, named)
    used = [scope.text for scope in (named or pool) if any(_in(values[n], scope) for n in covered)]
    return Settled(texts, moved, sure, " ".join(used[:4]))


def _pool(text: str, known: Scopes, named: Sequence[Scope], *, siblings: bool) -> list[Scope]:
    """Return the scopes that a claim may be about: the records it names, else all; and the sentences that share its words.

    *siblings*: the claim compares, so that the other records of a named one count as well.
    """
    groups = set() if siblings else {scope.group for scope in named}
    bag = frame(text).bag
    records = [scope for scope in known.all if scope.slots and (scope.group not in groups or scope in named)]
    return [*records, *(scope for scope in known.all if not scope.slots and (scope.stems & bag or _shares_value(text, scope)))]


def _shares_value(text: str, scope: Scope) -> bool:
    return any(same(value, other.value) for value in read(text).values for other in scope.operands if _is_exact(value))


def _is_exact(value: Value) -> bool:
    return bool(value.unit) or value.moment is not None


def _is_stated(value: Value, pool: Sequence[Scope]) -> bool:
    if value.kind == ORDINAL and value.words:
        return True
    return any(_in(value, scope) for scope in pool)


def _in(value: Value, scope: Scope) -> bool:
    return any(_equal(value, operand.value) or _bare(value, operand.value) for operand in scope.operands)


def _equal(value: Value, other: Value) -> bool:
    """Whether a value is stated by another: of a date, every part of it."""
    if value.moment is not None and other.moment is not None:
        return covers(other.moment, value.moment)
    return same(value, other)


def _figures(text: str) -> tuple[str, ...]:
    """Return the bare figure of a value, as a cell without its unit has it."""
    found = _FIGURE.search(text)
    if found is None:
        return ()
    figure = found.group()
    return (figure, figure.rstrip("0").rstrip(".")) if "." in figure else (figure,)


def _bare(value: Value, other: Value) -> bool:
    """Whether a field states a claim's figure without its unit, or the claim leaves out the field's."""
    if value.amount is None or other.amount is None or value.label or other.label or bool(value.unit) == bool(other.unit):
        return False
    return abs(value.amount / value.factor / value.scale - other.amount / other.factor / other.scale) < 1e-9


def _derived(values: Sequence[Value], stated: set[int], words: frozenset[str], pool: Sequence[Scope], said: Sequence[Scope]) -> set[int]:
    """Return which values follow from others. A value that was derived may be an operand of the next."""
    own = {n: Operand(values[n], frozenset(), -1) for n in stated}
    shown = [operand for scope in pool for operand in scope.operands]
    used = [each for each in shown if any(same(each.value, values[n]) for n in stated)]
    asked = [operand for scope in said for operand in scope.operands]
    operands = list(dict.fromkeys([*own.values(), *used, *shown, *asked]))
    counts = [
        each.value.amount for each in operands if each.value.kind == NUMBER and each.value.amount and each.value.amount.is_integer()
    ]
    made: set[int] = set()
    for _ in range(_ROUNDS):
        for group in _compounds(values):
            if set(group) <= stated | made:
                continue
            target = _joined([values[n] for n in group])
            if derives(target, words, operands, counts):
                made |= set(group)
                operands.insert(0, Operand(target, frozenset(), -1))
    return made - stated


def _compounds(values: Sequence[Value]) -> Iterator[tuple[int, ...]]:
    """Yield each value, and a time in two units as one: 4 hours and 46 minutes."""
    place = 0
    while place < len(values):
        value = values[place]
        following = values[place + 1] if place + 1 < len(values) else None
        near = following is not None and following.first - value.last <= 1
        if near and following is not None and value.unit == following.unit == TIME and value.factor > following.factor:
            yield place, place + 1
            place += 2
        else:
            yield (place,)
            place += 1


def _joined(parts: Sequence[Value]) -> Value:
    last = parts[-1]
    return replace(last, amount=sum(part.amount or 0.0 for part in parts), approximate=any(p.approximate for p in parts))


def _without_operations(text: str) -> str:
    """Return the words of a claim without those that name operations."""
    words = (token.text for token in frame(text).tokens if token.kind == WORD)
    return " ".join(word for word in words if stem(word.lower()) not in _OPERATING and word.lower() not in UP | DOWN)


# Findings


def _cells(claim: Claim, known: Scopes) -> Iterator[Distortion]:
    """Yield the cells of a row that state the value of another column's record: ``Revenue; 2023: 480; 2024: 412``."""
    row = cells_of(claim.text)
    if row is None:
        return
    label, cells = row
    noun = stems_of(read_key(label).noun)
    for head, cell in cells:
        named = [group[0] for group in known.named(head).values() if len(group) == 1]
        if len(named) != 1:
            continue
        place = next((n for n, slot in enumerate(named[0].slots) if slot.noun and slot.noun == noun), None)
        if place is None:
            continue
        own = named[0].slots[place].values[:1]
        others = [each for s in known.siblings(named[0]) if place < len(s.slots) for each in s.slots[place].values[:1]]
        for value in read(f"{label} {read_key(label).written(cell)}").values[-1:]:
            if own and not _alike(value, own[0]) and any(_alike(value, each) for each in others):
                yield Distortion(NUMBER_CHANGED, own[0].text, cell, named[0].fact_id)


def _alike(value: Value, other: Value) -> bool:
    return same(value, other) or _bare(value, other)


def _moved(reading: ValuesRead, values: Sequence[Value], named: Sequence[Scope], known: Scopes, words: frozenset[str]) -> Iterator[Distortion]:
    """Yield each value that a claim on one record takes from another, and each that is not the extreme it is said to be."""
    if len(named) == 1:
        yield from _of_another(reading, values, named[0], known)
        yield from _denied_field(reading, named[0])
    yield from _not_extreme(values, words, named, known)


def _of_another(reading: ValuesRead, values: Sequence[Value], record: Scope, known: Scopes) -> Iterator[Distortion]:
    siblings = known.siblings(record)
    for value in values:
        if _in(value, record) or value.kind == ORDINAL:
            continue
        for place, slot in enumerate(record.slots):
            own = next((each for each in slot.values if comparable(value, each)), None)
            others = [each for s in siblings if place < len(s.slots) for each in s.slots[place].values]
            if own is not None and any(same(value, each) for each in others) and _about(reading, value, slot, record):
                kind = DATE_SHIFTED if value.moment is not None else NUMBER_CHANGED
                yield Distortion(kind, own.text, value.text, record.fact_id)
                break


def _denied_field(reading: ValuesRead, record: Scope) -> Iterator[Distortion]:
    """Yield the fields that a record answers with *no* and a claim without any negation states."""
    bag = frame(reading.text).bag
    if any(is_negator(token.low) or token.low in {"no", "false", "none"} for token in reading.tokens):
        return
    for slot in record.slots:
        if slot.field.value == "no" and slot.noun and slot.noun <= bag:
            yield Distortion(NEGATION_FLIP, "no", slot.field.key.noun, record.fact_id)


def _about(reading: ValuesRead, value: Value, slot: Slot, record: Scope) -> bool:
    """Whether a claim's value is of a field: the claim has its noun, or no other field of the record could be meant."""
    bag = frame(reading.text).bag
    alike = [s for s in record.slots if any(comparable(value, each) for each in s.values)]
    return len(alike) == 1 or bool(slot.noun & bag and not any(s is not slot and s.noun >= slot.noun and s.noun <= bag for s in alike))


def _not_extreme(values: Sequence[Value], words: frozenset[str], named: Sequence[Scope], known: Scopes) -> Iterator[Distortion]:
    least, most = bool(words & _LEAST), bool(words & _MOST)
    if least == most or len(named) != 1:
        return
    record = named[0]
    siblings = known.siblings(record)
    for place, slot in enumerate(record.slots):
        own = slot.values[0] if len(slot.values) == 1 else None
        if own is None or own.amount is None or not own.unit or not any(same(own, value) for value in values):
            continue
        others = [s.slots[place].values[0] for s in siblings if place < len(s.slots) and len(s.slots[place].values) == 1]
        better = [each for each in others if each.amount is not None and (each.amount < own.amount if least else each.amount > own.amount)]
        if better and all(comparable(own, each) for each in others):
            extreme = (min if least else max)(better, key=lambda each: each.amount or 0.0)
            yield Distortion(NUMBER_CHANGED, extreme.text, own.text, record.fact_id)


def _doubtful(reading: ValuesRead, words: frozenset[str], values: Sequence[Value], pool: Sequence[Scope], named: Sequence[Scope]) -> bool:
    """Whether the words of a claim may say something else than its values: a negation, a direction that nothing shows."""
    if any(is_negator(token.low) for token in reading.tokens):
        return True
    up, down = bool(words & UP), bool(words & DOWN)
    if up == down:
        return False
    records = [scope for scope in (named or pool) if scope.slots]
    steps = list(_steps(values, [scope for scope in pool if scope.slots]))
    if steps:
        return any((step > 0) != up for step in steps if step)
    amounts = [value for value in values if value.amount is not None and value.moment is None]
    if {"from", "to"} <= words and len(amounts) > 1 and amounts[0].unit == amounts[1].unit:
        return ((amounts[1].amount or 0.0) > (amounts[0].amount or 0.0)) != up
    if not amounts and any(scope.when is not None for scope in records):
        return False  # only derived values: their direction was held against the years of their records
    return not any(word in frame(scope.text).bag for scope in pool for word in frame(reading.text).bag if word.startswith("±"))


def _steps(values: Sequence[Value], records: Sequence[Scope]) -> Iterator[float]:
    """Yield how an attribute whose value a claim states changes from one dated record to the next."""
    for one in records:
        for other in records:
            if one.when is None or other.when is None or one.when >= other.when or one.group != other.group:
                continue
            for place, slot in enumerate(other.slots):
                before, after = one.slots[place].values[:1], slot.values[:1]
                if before and after and before[0].amount is not None and after[0].amount is not None:
                    if any(same(after[0], value) for value in values) or any(same(before[0], value) for value in values):
                        yield after[0].amount - before[0].amount

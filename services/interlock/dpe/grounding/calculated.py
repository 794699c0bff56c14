"""Calculated support: claims whose values a record states or whose values follow by calculation (SPEC-005 §4, §5.2).

The models read figures badly: they find a correct total unlikely and the value of another row likely. Where every value of a
claim is accounted for, by the record that the claim is about or by an operation that its words name, and its other words are
those of the sources, the claim is supported. Where a claim states the value of another row for its own, it is distorted. Where
neither is sure, the models decide alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.comparison.cues import DATE_SHIFTED, NUMBER_CHANGED
from interlock.dpe.comparison.polarity import is_negator
from interlock.dpe.document import Claim, Distortion, NliScores
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.scopes import Scope, Scopes, Slot, of_texts, scopes
from interlock.dpe.grounding.support import Vocabulary
from interlock.dpe.text.lexing import WORD
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.derived import DOWN, UP, Operand, derives, words_of
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.frames import frame, stem
from interlock.dpe.values.quantities import NUMBER, ORDINAL, Value, comparable, same
from interlock.dpe.values.units import TIME

SURE = NliScores(0.97, 0.02, 0.01)
MOST_STRANGE = 2
MOST_CLAIMS = 400
MOST_SAID = 40
_ROUNDS = 2
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
    claims: Sequence[Claim], evidence: Mapping[str, ClaimEvidence], envelope: Envelope, *, query: str, own: str
) -> dict[str, ClaimEvidence]:
    """Return the evidence with what calculation adds to it. *own* are the user's words, whose values may be operands."""
    if not any(read(claim.text).values for claim in claims[:MOST_CLAIMS]):
        return dict(evidence)
    known = scopes(envelope)
    said = of_texts([text for text in own.splitlines() if text.strip()][-MOST_SAID:], len(known.all))
    vocabulary = Vocabulary.of([*envelope.cut.texts, query, own])
    found = dict(evidence)
    for claim in claims[:MOST_CLAIMS]:
        settled = _settled(claim, known, said, vocabulary)
        if settled is not None:
            found[claim.claim_id] = _with(evidence[claim.claim_id], settled)
    return found


def _with(evidence: ClaimEvidence, settled: Settled) -> ClaimEvidence:
    added = replace(evidence, settled=settled.values, moved=settled.moved)
    if not settled.supported or settled.moved:
        return added
    return replace(added, scores=SURE, plain_scores=SURE, premise=settled.premise or evidence.premise)


def _settled(claim: Claim, known: Scopes, said: Sequence[Scope], vocabulary: Vocabulary) -> Settled | None:
    reading = read(claim.text)
    values = [value for value in reading.values if not value.vague]
    if not values or not known.all:
        return None
    words = words_of(reading.tokens)
    named = [scope for group in known.named(claim.text).values() for scope in group]
    pool = _pool(claim.text, known, named)
    moved = tuple(_moved(reading, values, named, known, words))
    stated = {n for n, value in enumerate(values) if _is_stated(value, [*pool, *said])}
    made = _derived(values, stated, words, pool, said)
    bound = {n for n in stated if any(scope.slots and _in(values[n], scope) for scope in (named or pool))}
    covered = stated | made
    texts = frozenset(values[n].text for n in (made | bound if not moved else made))
    complete = len(covered) == len(values) and bool(made or (bound and named))
    unknown = vocabulary.strange(_without_operations(claim.text))
    sure = complete and unknown <= MOST_STRANGE and not moved and not _doubtful(reading, words, values, pool, named)
    used = [scope.text for scope in (named or pool) if any(_in(values[n], scope) for n in covered)]
    return Settled(texts, moved, sure, " ".join(used[:4]))


def _pool(text: str, known: Scopes, named: Sequence[Scope]) -> list[Scope]:
    """Return the scopes that a claim may be about: the records it names, else all; and the sentences that share its words."""
    groups = {scope.group for scope in named}
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
    return any(same(value, operand.value) or _bare(value, operand.value) for operand in scope.operands)


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


def _moved(reading: ValuesRead, values: Sequence[Value], named: Sequence[Scope], known: Scopes, words: frozenset[str]) -> Iterator[Distortion]:
    """Yield each value that a claim on one record takes from another, and each that is not the extreme it is said to be."""
    if len(named) == 1:
        yield from _of_another(reading, values, named[0], known)
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
        if own is None or own.amount is None or not any(same(own, value) for value in values):
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
    steps = list(_steps(values, [scope for scope in (named or pool) if scope.slots]))
    if steps:
        return any((step > 0) != up for step in steps if step)
    amounts = [value.amount for value in values if value.amount is not None and value.moment is None]
    if {"from", "to"} <= words and len(amounts) > 1 and values[0].unit == values[1].unit:
        return (amounts[1] > amounts[0]) != up
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

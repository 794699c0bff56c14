"""Calculated support: claims whose values a record states or whose values follow by calculation (SPEC-005 §4, §5.2).

The models read figures badly: they find a correct total unlikely and the value of another row likely. Where every value of a
claim is accounted for, by the record that the claim is about or by an operation that its words name, and its other words are
those of the sources, the claim is supported. Where a claim states the value of another row for its own, it is distorted. Where
neither is sure, the models decide alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.comparison.denials import is_negator
from interlock.dpe.document import Claim, NliScores
from interlock.dpe.grounding import attribution
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.follows import following
from interlock.dpe.grounding.placing.copied_rows import row_verdict
from interlock.dpe.grounding.placing.derivations import derived
from interlock.dpe.grounding.placing.fields import agreeing_fields
from interlock.dpe.grounding.placing.keyed import other_amounts
from interlock.dpe.grounding.placing.misplaced import (
    findings,
    holds,
    in_place,
    row_findings,
)
from interlock.dpe.grounding.placing.pins import pinned
from interlock.dpe.grounding.placing.records.answer import verdicts
from interlock.dpe.grounding.placing.records.reckoned import (
    Reckoning,
    figures,
    with_pins,
    with_row,
    with_states,
    with_told,
)
from interlock.dpe.grounding.placing.records.told import RecordVerdict
from interlock.dpe.grounding.placing.scopes import Scope, Scopes, of_texts, scopes
from interlock.dpe.grounding.placing.states import stated
from interlock.dpe.grounding.placing.wholes.of_list import is_extreme, not_of_list
from interlock.dpe.grounding.support import Vocabulary
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Floats, Inference
from interlock.dpe.text.lexing import WORD
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.cells import cells_of, label_of, restated
from interlock.dpe.values.extraction import ValuesRead, read
from interlock.dpe.values.frames import frame, stem
from interlock.dpe.values.quantities import NUMBER, ORDINAL, Value, same
from interlock.dpe.values.reckoning import implied
from interlock.dpe.values.reckoning.derived import DIFFERS, DOWN, UP, words_of

SURE = NliScores(0.97, 0.02, 0.01)
REFUTED = NliScores(0.02, 0.08, 0.90)
UNSURE = NliScores(0.30, 0.60, 0.10)
"""What is left of a denial by the model where a field has the state that the claim gives it."""
MOST_STRANGE = 2
MOST_CLAIMS = 400
MOST_SAID = 40
MOST_BEFORE = 6
MOST_IN_WORDS = 5
_PAIR = 2
MOST_TOKENS_OF_REST = 16
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


async def evidence(
    claims: Sequence[Claim],
    vectors: Floats,
    envelope: Envelope,
    inference: Inference,
    language: Language,
    *,
    titles: Collection[str],
    query: str,
    own: str,
    sentences: Mapping[str, str],
) -> dict[str, ClaimEvidence]:
    """Return the evidence on each claim: what the models say, and what calculation adds to it."""
    found = await attribution.evidence(
        claims, vectors, envelope, inference, titles=titles, query=query, sentences=sentences
    )
    return await language.run(
        lambda cancelled: settle(
            claims, found, envelope, query=query, own=own, sentences=sentences, titles=titles, cancelled=cancelled
        ),
        stage="2",
    )


def settle(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    envelope: Envelope,
    *,
    query: str,
    own: str,
    sentences: Mapping[str, str],
    titles: Collection[str] = (),
    cancelled: Cancelled = lambda: False,
) -> dict[str, ClaimEvidence]:
    """Return the evidence with what calculation adds to it. *own* are the user's words, whose values may be operands."""
    rows = {claim.claim_id for claim in claims if (row := cells_of(claim.text)) is not None and not _answers(row[1])}
    if not (rows or envelope.cut.records or any(read(claim.text).values for claim in claims[:MOST_CLAIMS])):
        return dict(evidence)
    known = scopes(envelope)
    said = of_texts([text for text in own.splitlines() if text.strip()][-MOST_SAID:], len(known.all))
    vocabulary = Vocabulary.of([*envelope.cut.texts, query, own])
    found = dict(evidence)
    around = _around(claims, sentences)
    tabular = {scope.text for scope in known.all if scope.slots}
    reckonings: dict[str, Reckoning] = {}
    read_now = [claim for claim in claims[:MOST_CLAIMS] if not evidence[claim.claim_id].copied]
    fields = agreeing_fields(claims[:MOST_CLAIMS], known) if envelope.cut.records else {}
    told = verdicts(read_now, sentences, envelope, known, query, titles=titles)
    for claim in claims[:MOST_CLAIMS]:
        if cancelled():
            break
        if evidence[claim.claim_id].copied:
            continue
        of_states = stated(claim, known)
        settled = with_states(
            _settled(
                claim,
                known,
                said,
                vocabulary,
                around[claim.claim_id],
                agreed=of_states.agree,
                topic=_topic(claim, claims, query),
            ),
            of_states,
            claim,
        )
        follows = pinned(claim, envelope.facts).with_(following(claim, envelope.facts, f"{query} {own}"))
        settled = with_row(with_pins(settled, follows), fields.get(claim.claim_id) or row_verdict(claim, known))
        settled = with_told(settled, told.get(claim.claim_id, RecordVerdict()), claim)
        if settled is not None:
            reckonings[claim.claim_id] = settled
            found[claim.claim_id] = _with(evidence[claim.claim_id], settled)
    rests = rows | {name for name, reckoned in reckonings.items() if reckoned.rest}
    return {name: replace(each, tabular=each.source in tabular or name in rests) for name, each in found.items()}


def _answers(cells: Sequence[tuple[str, str]]) -> bool:
    """Whether a row gives one answer, *Refundable; Saver: no*, which the *not* of a sentence may deny."""
    return len(cells) == 1 and cells[0][1].casefold() in {"yes", "no", "true", "false"}


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


def _topic(claim: Claim, claims: Sequence[Claim], query: str) -> str:
    """Return what was asked, and what the answer says before a claim."""
    place = (claim.choice_index, claim.output_index)
    before = [
        c.text for c in claims if (c.choice_index, c.output_index) == place and c.sentence_index < claim.sentence_index
    ]
    return " ".join([query, *before[-MOST_BEFORE:]])


def _with(evidence: ClaimEvidence, settled: Reckoning) -> ClaimEvidence:
    added = replace(evidence, settled=settled.values, moved=settled.moved, agreed=settled.agreed)
    if settled.moved:
        return replace(added, scores=REFUTED, plain_scores=REFUTED)
    if not settled.supported:
        denied = settled.agreed and evidence.scores.contradiction > evidence.scores.entailment
        return replace(added, scores=UNSURE, plain_scores=UNSURE) if denied else added
    return replace(added, scores=SURE, plain_scores=SURE, premise=settled.premise or evidence.premise, calculated=True)


def _settled(
    claim: Claim,
    known: Scopes,
    said: Sequence[Scope],
    vocabulary: Vocabulary,
    around: str,
    *,
    agreed: bool,
    topic: str,
) -> Reckoning | None:
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
    found = _accounts(reading, values, pool, named, said=said, known=known)
    untold = [value for n, value in enumerate(values) if n not in found.covered and not _is_stated(value, known.all)]
    moved = (
        *row_findings(claim, known),
        *findings(reading, values, untold, named, known),
        *not_of_list(reading, values, pool, topic),
    )
    moved = moved or tuple(other_amounts(reading, values, [values[n] for n in found.made], untold, known))
    keyed = found.stated if text != claim.text else frozenset()  # the unit of a field stands in its key
    shown = found.made | found.bound | keyed if not moved else found.made
    texts = frozenset(each for n in shown for each in (values[n].text, *figures(values[n].text)))
    nouned = all(_has_noun(reading, values[n], pool) for n in found.bound)
    sure = (
        len(found.covered) == len(values)
        and bool(found.new or (found.bound and (named or nouned)))
        and vocabulary.strange(_without_operations(claim.text)) <= MOST_STRANGE
        and not moved
        and (bool(found.rest) or agreed or not _is_negated(reading))
        and not _doubtful(reading, words, [values[n] for n in sorted(found.stated)], pool, named)
    )
    used = [scope.text for scope in (named or pool) if any(holds(values[n], scope) for n in found.covered)]
    # What starts in March and runs for two months ends in May: that is no opposite of it.
    dated = sure and any(values[n].moment is not None for n in found.new)
    return Reckoning(texts, moved, sure, " ".join(used[:4]), rest=bool(found.rest) or dated)


@dataclass(frozen=True)
class _Accounts:
    """Which values of a claim are accounted for, by number: stated, made by calculation, in a field of a record.

    ``new`` are those that follow and that nothing states; ``rest`` those that count what a source leaves.
    """

    stated: frozenset[int]
    made: frozenset[int]
    bound: frozenset[int]
    new: frozenset[int]
    rest: frozenset[int]

    @property
    def covered(self) -> frozenset[int]:
        """All values that are accounted for."""
        return self.stated | self.made


def _accounts(
    reading: ValuesRead,
    values: Sequence[Value],
    pool: Sequence[Scope],
    named: Sequence[Scope],
    *,
    said: Sequence[Scope],
    known: Scopes,
) -> _Accounts:
    numbered = list(enumerate(values))
    stated = {n for n, value in numbered if _is_stated(value, [*pool, *said])}
    told = {n for n in stated if any(holds(values[n], scope) for scope in [*pool, *said])}
    pooled = [operand for scope in pool for operand in scope.operands]
    simple = _is_negated(reading) and len(reading.tokens) <= MOST_TOKENS_OF_REST
    rest = {n for n, value in numbered if simple and implied.leaves(value, pooled)}
    extremes = {n for n, value in numbered if is_extreme(reading, value, pool)}
    made = derived(reading, values, stated, pool, said=said, known=known)
    bound = {n for n in stated if any(scope.slots and holds(values[n], scope) for scope in (named or pool))}
    new = (made - told) | rest | extremes
    return _Accounts(*map(frozenset, (stated, made | rest | extremes, bound, new, rest)))


def _is_negated(reading: ValuesRead) -> bool:
    return any(is_negator(token.low) for token in reading.tokens)


def _pool(text: str, known: Scopes, named: Sequence[Scope], *, siblings: bool) -> list[Scope]:
    """Return the scopes that a claim may be about: the records it names, else all; and the sentences that share its words.

    *siblings*: the claim compares, so that the other records of a named one count as well.
    """
    groups = set() if siblings else {scope.group for scope in named}
    bag = frame(text).bag
    records = [scope for scope in known.all if scope.slots and (scope.group not in groups or scope in named)]
    return [
        *records,
        *(scope for scope in known.all if not scope.slots and (scope.stems & bag or _shares_value(text, scope))),
    ]


def _shares_value(text: str, scope: Scope) -> bool:
    return any(same(value, other.value) for value in read(text).values for other in scope.operands if _is_exact(value))


def _is_exact(value: Value) -> bool:
    return bool(value.unit) or value.moment is not None


def _is_stated(value: Value, pool: Sequence[Scope]) -> bool:
    small = value.kind == NUMBER and (value.amount or 0.0) <= MOST_IN_WORDS and not value.fraction
    if value.words and (value.kind == ORDINAL or small):
        return True  # second; two of them
    return any(holds(value, scope) for scope in pool)


def _has_noun(reading: ValuesRead, value: Value, pool: Sequence[Scope]) -> bool:
    """Whether a claim has the noun of a field that states a value, and no other record of that kind could be meant."""
    bag = frame(reading.text).bag
    slots = [(slot, scope) for scope in pool for slot in scope.slots if slot.noun and slot.noun <= bag]
    of_value = [(slot, scope) for slot, scope in slots if any(same(value, each) for each in slot.values)]
    return bool(of_value) and len({scope.number for _, scope in slots if scope.group == of_value[0][1].group}) == 1


def _without_operations(text: str) -> str:
    """Return the words of a claim without those that name operations."""
    words = (token.text for token in frame(text).tokens if token.kind == WORD)
    return " ".join(word for word in words if stem(word.lower()) not in _OPERATING and word.lower() not in UP | DOWN)


def _doubtful(
    reading: ValuesRead, words: frozenset[str], values: Sequence[Value], pool: Sequence[Scope], named: Sequence[Scope]
) -> bool:
    """Whether the words of a claim may say something else than its values: a direction that nothing shows, another field."""
    if not in_place(reading, values, named or pool):
        return True
    up, down = bool(words & UP), bool(words & DOWN)
    if up == down:
        return False
    records = [scope for scope in (named or pool) if scope.slots]
    steps = [*_steps(values, [scope for scope in pool if scope.slots]), *_told_steps(pool)]
    if steps:
        return any((step > 0) != up for step in steps if step)
    amounts = [value for value in values if value.amount is not None and value.moment is None]
    if {"from", "to"} <= words and len(amounts) > 1 and amounts[0].unit == amounts[1].unit:
        return ((amounts[1].amount or 0.0) > (amounts[0].amount or 0.0)) != up
    if not amounts and any(scope.when is not None for scope in records):
        return False  # only derived values: their direction was held against the years of their records
    return not any(
        word in frame(scope.text).bag for scope in pool for word in frame(reading.text).bag if word.startswith("±")
    )


def _told_steps(pool: Sequence[Scope]) -> Iterator[float]:
    """Yield how the amount of a sentence changes between its two years: 8,000 in 2010 and 10,000 in 2020."""
    for scope in pool:
        stated = [] if scope.slots else [operand.value for operand in scope.operands]
        years = [value.moment.years[0] for value in stated if value.moment is not None and value.moment.years]
        amounts = [value.amount for value in stated if value.moment is None and value.amount is not None]
        if len(years) == len(amounts) == _PAIR and len(stated) == 2 * _PAIR and years[0] != years[1]:
            yield (amounts[1] - amounts[0]) * (1 if years[1] > years[0] else -1)


def _steps(values: Sequence[Value], records: Sequence[Scope]) -> Iterator[float]:
    """Yield how an attribute whose value a claim states changes from one dated record to the next."""
    for one in records:
        for other in records:
            if one.when is None or other.when is None or one.when >= other.when or one.group != other.group:
                continue
            for place, slot in enumerate(other.slots):
                before, after = one.slots[place].values[:1], slot.values[:1]
                if not (before and after) or before[0].amount is None or after[0].amount is None:
                    continue
                if any(same(end[0], value) for end in (before, after) for value in values):
                    yield after[0].amount - before[0].amount

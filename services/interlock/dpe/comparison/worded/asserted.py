"""The asserted and the denied: an answer that asserts what its sources deny, or the other way round, in words of its own (SPEC-005 §5.3).

*The hut has no stove* is at odds with *the hut was fitted with a stove* and with *No.* to *is the hut without a stove?*. Two clauses are
compared where one of them denies what both speak of: their event, or a thing of which one says that there is none; where what else the
source says of it is known from the answer or the question; and where no other clause of the sources says it as the answer does.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.general import GENERAL
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.told.assertions import NOTHING, Assertion, ToldSentence
from interlock.dpe.comparison.bindings.told.kin import meaning_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_MOSTLY, _HALF = 0.6, 0.5
_MANY = 3
_SHORT = 2
_GENERAL = GENERAL | {"firm"}
_EXCEPTION = meaning_of("exception")
_SAYING = frozenset(map(meaning_of, ("say", "tell", "know")))
_WISHING = frozenset(map(meaning_of, word_set("ask request want demand seek need await wait apply hope")))
_YET, _COMING = frozenset({"yet"}), word_set("will 'll shall going planned due to")
_STATES = word_set("use operation service force effect place")
_MONTHS = frozenset(
    map(key, word_set("january february march april may june july august september october november december"))
)
_DAYS = frozenset(
    map(
        key,
        word_set(
            "monday tuesday wednesday thursday friday saturday sunday mondays tuesdays wednesdays thursdays fridays saturdays sundays"
        ),
    )
)
_ANSWER = pattern(r"^(yes|no)\b\s*(?:[.,:;!–—-]|$)", ignore_case=True)
_ASKS = pattern(
    r"^(?:(?:and|but|so|also)\s+)?(?:do|does|did|is|are|was|were|has|have|had|can|could|will|would|may|must|should)\s",
    ignore_case=True,
)
_LIMITS = pattern(r"\b(?:but|except|only|unless|apart from)\b", ignore_case=True)
_OPEN = pattern(r"\b(?:or|only|any|still|already|yet|n't|not|no)\b", ignore_case=True)


@dataclass(frozen=True)
class _Case:
    """A clause of an answer, with the words of its sentence and those that are known of what it is about; or what *Yes* or *No* answers."""

    clause: Assertion
    whole: frozenset[str]
    known: frozenset[str]
    answers: bool = False


def asserted(
    answer: Sequence[ReadSentence], evidence: Evidence, asked: Sequence[ReadSentence] = ()
) -> Iterator[tuple[ReadSentence, Misbinding]]:
    """Yield each sentence of an answer that turns an assertion of its sources round, with what it turns."""
    known = frozenset().union(*(each.asserted.whole for each in (*answer, *asked)))
    before = NOTHING
    for number, sentence in enumerate(answer):
        cases = [] if sentence.text.rstrip().endswith("?") else list(_cases(sentence.asserted, before, known))
        if number == 0 and asked:
            cases.extend(_answered(sentence, asked[-1], known))
        found = next((each for case in cases for each in _turned(case, evidence)), None)
        if found is not None:
            yield sentence, found
        before = sentence.asserted


def bears_out(finding: Misbinding, sentence: ReadSentence, evidence: Evidence) -> bool:
    """Whether the very sentence that a finding is from says what a sentence says, with its polarity, and nothing nearer against it."""
    told = [
        each
        for passage in evidence.passages
        if passage.text == finding.evidence
        for each in passage.asserted.assertions
    ]
    agreed = against = 0
    for mine in sentence.asserted.assertions:
        for its in told if mine.keys & finding.about else ():
            for pivot in _common(mine, its):
                shared = mine.words & its.words - {pivot}
                if _contrary(mine, its, pivot, shared):
                    against = max(against, len(shared))
                elif not mine.stands(pivot):
                    agreed = max(agreed, len(shared))  # both deny it
    return agreed > against


def _cases(told: ToldSentence, before: ToldSentence, known: frozenset[str]) -> Iterator[_Case]:
    named = frozenset(word for each in before.assertions for word in each.actors | each.objects)
    for clause in told.assertions:
        if clause.pronoun:
            resolved = replace(
                clause,
                words=clause.words | named,
                heads=clause.heads | named,
                borrowed=clause.borrowed | (named - clause.words),
            )
            yield _Case(resolved, told.whole | before.whole, known)
        else:
            yield _Case(clause, told.whole, known)


def _answered(sentence: ReadSentence, question: ReadSentence, known: frozenset[str]) -> Iterator[_Case]:
    """Yield what *Yes* or *No* says to a question."""
    said = _ANSWER.match(sentence.text)
    clauses = question.asserted.assertions
    if said is None or not clauses or not _ASKS.match(question.text) or _OPEN.search(question.text):
        return
    main = clauses[0]
    denied = said[1].lower() == "no"
    yield _Case(
        replace(main, denied=main.denied is not denied, hypothetical=False, written=f"{said[1]}: {question.text}"),
        question.asserted.whole,
        known,
        answers=True,
    )


def _turned(case: _Case, evidence: Evidence) -> Iterator[Misbinding]:
    claim = case.clause
    if claim.hypothetical or claim.limited:
        return
    for passage in evidence.passages:
        if case.answers and _LIMITS.search(passage.text):
            continue  # *No, not on Mondays* and *yes, on other days* may both be said
        for source in passage.asserted.assertions:
            for pivot, shared in _opposed(case, source, passage.asserted.whole):
                if not _is_told(claim, pivot, shared, source, evidence):
                    yield Misbinding(
                        NEGATION_FLIP, "predicate", source.written, claim.written, passage.text, passage.fact_id,
                        about=claim.keys,
                    )  # fmt: skip


def _opposed(case: _Case, source: Assertion, its: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield what one of two clauses asserts and the other denies, with the words by which they are about one thing."""
    claim = case.clause
    if claim.words.isdisjoint(source.words) or source.hypothetical or source.limited or claim.times != source.times:
        return
    if claim.borrowed and claim.event in _SAYING:
        return  # *she could not say when* is of another saying than *she said that*
    if case.answers and claim.actors and source.actors and claim.actors.isdisjoint(source.actors):
        return  # what one did not do, another may have done
    if not _are_of_one_time(claim, source) or not _one_mood(claim, source):
        return
    known = claim.words | claim.case | claim.narrowed | case.known
    if not source.case <= known or 2 * len(source.narrowed & known) < len(source.narrowed):
        return
    if (claim.case | claim.narrowed) & (source.case | source.narrowed) and claim.unmet is not source.unmet:
        return
    for pivot in _common(claim, source):
        own = claim.words - claim.borrowed - {pivot} - _GENERAL - _STATES
        if len(own & its) < _HALF * len(own):
            continue
        shared = _about(case, source, its, pivot)
        if shared and _contrary(claim, source, pivot, shared):
            yield pivot, shared


def _tells_of_another_act(claim: Assertion, source: Assertion) -> bool:
    """Whether a clause only asks for a thing, *they asked for a net*, or denies it of its own verb alone: *you may use it, but not the van*."""
    if {claim.event, source.event} & _WISHING:
        return True
    if bool(claim.event) is bool(source.event) or not (claim.actors and source.actors):
        return False
    return claim.actors.isdisjoint(source.words) and source.actors.isdisjoint(claim.words)


def _is_told(claim: Assertion, pivot: str, shared: frozenset[str], contrary: Assertion, evidence: Evidence) -> bool:
    """Whether some clause of the sources says it as the claim does, of no less.

    What qualifies a noun of the claim tells the two clauses apart only where the contrary one has it: *the much loved programme* is the
    *very popular* one of a source that says nothing else of it.
    """
    telling = replace(claim, qualified=frozenset(pair for pair in claim.qualified if pair[0] in contrary.words))
    own = claim.words - claim.borrowed
    own = own if len(own) > 1 else claim.words
    least = shared & own
    return any(
        pivot == other and len(about & own) >= len(least) and not (least - about) & claim.actors
        for passage in evidence.passages
        for source in passage.asserted.assertions
        for other, about in _agreeing(telling, source)
    )


def _agreeing(claim: Assertion, source: Assertion) -> Iterator[tuple[str, frozenset[str]]]:
    for pivot in _common(claim, source):
        shared = claim.words & source.words - {pivot}
        alone = (
            not claim.words - claim.borrowed - {pivot}
        )  # *nobody was hurt* says all that *there were no injuries* does
        if (
            (shared or alone)
            and not _of_two(claim, source, shared | {pivot})
            and not _contrary(claim, source, pivot, shared)
        ):
            yield pivot, shared | {pivot} if alone else shared


def _about(case: _Case, source: Assertion, its: frozenset[str], pivot: str) -> frozenset[str]:
    """Return the words by which two clauses are about one thing; none where they may be of two."""
    claim = case.clause
    if pivot not in {claim.event, source.event} and _tells_of_another_act(claim, source):
        return frozenset()
    shared = (claim.words | claim.case) & (source.words | source.case) - {pivot}
    known = claim.words | case.known
    others = source.listed - known if source.listed & known else frozenset[str]()  # what is of a list is of each of it
    stated = {w for w in source.words - {pivot, source.event} - others - _GENERAL if not _is_date(w)}
    if len(stated & known) < _MOSTLY * len(stated) or _of_two(claim, source, shared | {pivot}):
        return frozenset()
    if not _is_of_all(claim, source, shared):
        return frozenset()
    if shared & (claim.heads | claim.case) & (source.heads | source.case) or (
        len(shared) > 1 and stated <= claim.words
    ):
        return shared
    if stated <= claim.words and pivot in claim.actors & source.things and claim.words - source.words <= _STATES:
        return shared | {pivot}  # *the mine was abandoned*, *the mine is in use*
    whole = (case.whole & its) - {pivot}
    loose = claim.pronoun or source.pronoun or not source.actors
    return whole if loose and len(whole) >= max(_MANY, _HALF * min(len(case.whole), len(its))) else frozenset()


def _are_of_one_time(claim: Assertion, source: Assertion) -> bool:
    return not _is_to_come(claim, source) and not _of_other_dates(claim, source) and _one_time(claim, source)


def _is_to_come(claim: Assertion, source: Assertion) -> bool:
    """Whether one clause says that something is not so yet, and the other that it will be."""
    for one, other in ((claim, source), (source, claim)):
        if _YET & set(one.written.split()) and _COMING & set(other.written.split()):
            return True
    return False


def _of_other_dates(claim: Assertion, source: Assertion) -> bool:
    """Whether both clauses have figures, or name months or days, and none of them is of both."""
    mine, its = claim.words - claim.borrowed, source.words - source.borrowed
    sorts = (frozenset(filter(_is_figure, mine | its)), _MONTHS | _DAYS)
    return any(mine & sort and its & sort and mine.isdisjoint(its & sort) for sort in sorts)


def _is_figure(word: str) -> bool:
    return word[:1].isdigit()


def _is_date(word: str) -> bool:
    return _is_figure(word) or word in _MONTHS


def _is_of_all(claim: Assertion, source: Assertion, shared: frozenset[str]) -> bool:
    """Whether, where one clause excepts what the other is of, that says nothing but what holds of the others."""
    for one, other in ((claim, source), (source, claim)):
        if shared & one.excepted:
            rest = one.words - one.excepted - {one.event}
            if len(rest & other.words) < _MOSTLY * len(rest):
                return False
    return True


def _of_two(claim: Assertion, source: Assertion, shared: frozenset[str]) -> bool:
    """Whether some noun of both is qualified otherwise in each: *business customers*, *private customers*."""
    for word in shared:
        mine, other = ({q for q, of in each.qualified if of == word} for each in (claim, source))
        if mine - other and other - mine:
            return True
    return False


def _contrary(claim: Assertion, source: Assertion, pivot: str, shared: frozenset[str]) -> bool:
    """Whether one clause asserts its pivot and the other denies it, of the words whose phrases one of them denies if there are such."""
    contrary = claim.stands(pivot) is not source.stands(pivot)
    if pivot == _EXCEPTION:
        return claim.denied  # *not even the ferry is an exception*
    if pivot in claim.against | source.against:
        return contrary
    return contrary is not bool(shared & (claim.against ^ source.against))


def _common(claim: Assertion, source: Assertion) -> Iterator[str]:
    """Yield what both clauses assert or deny: their event, or the thing of which one of them says that there is none."""
    if claim.event == _EXCEPTION and claim.actors & source.excepted:
        yield _EXCEPTION
        return
    if claim.event and claim.event == source.event:
        yield claim.event
        return
    yield from ({claim.event} & source.against) | ({source.event} & claim.against)
    light = not claim.event or not source.event
    for thing in sorted((claim.things & source.words) | (source.things & claim.words)):
        told = thing in claim.using | source.using | {claim.event, source.event}
        denied = thing in claim.against | source.against
        # Of a verb that says what is done with a thing, only what it denies itself is the same: *had no lift*, *was hit by the lift*.
        if told or (light and (denied or (not claim.event and not source.event and len(thing) > _SHORT))):
            yield thing
    if light:
        yield from sorted((claim.against & source.objects) | (source.against & claim.objects))
    if not claim.event and not source.event:
        yield from sorted(
            (claim.objects & source.words - source.actors) | (source.objects & claim.words - claim.actors)
        )
        mine, its = claim.words - claim.actors - claim.borrowed, source.words - source.actors
        if not claim.objects and not source.objects and (not mine or not its or mine & its):
            yield from sorted(claim.actors & source.actors)


def _one_time(claim: Assertion, source: Assertion) -> bool:
    spans = claim.spans ^ source.spans
    for one, other in ((claim, source), (source, claim)):
        if spans & one.spans and (other.spans or ("since" in one.spans and other.past) or one.past is not False):
            return "since" in one.spans and not other.spans and not other.past
    return claim.past is None or source.past is None or claim.past is source.past


def _one_mood(claim: Assertion, source: Assertion) -> bool:
    """Whether what one clause denies is what the other asserts: *cannot be paid* denies *is paid* and *must be paid*."""
    if claim.modality == source.modality:
        return True
    affirming, denying = (source, claim) if claim.denied else (claim, source)
    return (affirming.modality, denying.modality) in {("", "may"), ("must", "may"), ("may", "")}

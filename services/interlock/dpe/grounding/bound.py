"""Stage 3b, bindings: claims that put the source's words into the wrong slot (SPEC-005 §5.3).

A claim that a source entails by its words may still swap who did what to whom. The sentences of the answer, whose parse exists,
are compared with the evidence on its claims, parsed once and remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from heapq import nlargest
from typing import Any

from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.reading import Passages
from interlock.dpe.comparison.bindings.relations.order import steps
from interlock.dpe.comparison.cues import DATE_SHIFTED, NEGATION_FLIP, NUMBER_CHANGED
from interlock.dpe.comparison.groupings.group import Grouping
from interlock.dpe.comparison.groupings.listed import listed
from interlock.dpe.comparison.groupings.measured import Measures, measures
from interlock.dpe.comparison.groupings.paired import paired
from interlock.dpe.comparison.groupings.voices import Voices, voices
from interlock.dpe.comparison.pairings.compare import compare
from interlock.dpe.comparison.pairings.listed_steps import items, misordered
from interlock.dpe.comparison.pairings.swapped import swapped
from interlock.dpe.comparison.replaced.counted import COUNT
from interlock.dpe.comparison.replaced.spoken import reports
from interlock.dpe.comparison.worded.asserted import asserted, bears_out
from interlock.dpe.document import Claim, Distortion, Sentence
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.grounding.placing.cells import shared, taken
from interlock.dpe.grounding.placing.fields import moved_fields
from interlock.dpe.grounding.placing.holders import exchanged_holders
from interlock.dpe.grounding.placing.paired_cells import exchanged_cells
from interlock.dpe.grounding.placing.rows_told import Column, columns
from interlock.dpe.grounding.placing.scopes import Scopes, scopes
from interlock.dpe.grounding.support import content_stems
from interlock.dpe.inference.language import Cancelled, Language, batches, derived
from interlock.dpe.text.content_words import content_words
from interlock.dpe.values import extraction
from interlock.dpe.values.moments import covers
from interlock.dpe.values.quantities import same
from interlock.dpe.values.reckoning.conversions import wrong_conversions
from interlock.dpe.values.reckoning.counted import counts_in, settled_counts
from interlock.dpe.values.reckoning.spans import misnamed_weekdays, wrong_spans

_SHARED = 2
_TELLING = 2
_MOST_LISTS = 20
_LONGEST_LIST = 8000
_MARKS = 2  # what is left between the units of a premise is no text
Distortions = Mapping[str, tuple[Distortion, ...]]


async def distortions(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    before: Distortions,
    *,
    readings: Sequence[ChoiceReading],
    parses: Mapping[Sentence, Any],
    envelope: Envelope,
    asked: str,
    query: str,
    known: Passages,
    language: Language,
) -> dict[str, tuple[Distortion, ...]]:
    """Return the distortions *before* with the bindings of each claim that its sources contradict.

    *parses* has the parse of each sentence of prose; *asked* is what the user said, *query* the last of it.
    """
    checked = {claim.claim_id for claim in claims}

    def find(cancelled: Cancelled) -> dict[str, tuple[Distortion, ...]]:
        found: dict[str, tuple[Distortion, ...]] = {}
        for reading in readings:
            if not cancelled():
                own = [claim for claim in reading.checked if claim.claim_id in checked]
                sources = partial(
                    _evidence, own, evidence, envelope, known=known, language=language, cancelled=cancelled
                )
                question = partial(_question, query, known, language)
                bound = _without_states(
                    _without_fields(
                        _in_choice(own, reading, parses, sources, asked=question, cancelled=cancelled), own
                    ),
                    evidence,
                )
                found |= _without_derived(bound, own, envelope, asked)
        if envelope.cut.records:
            records = scopes(envelope)
            cells = {
                claim.claim_id: (*taken(claim, records), *shared(claim, records), *exchanged_holders(claim, records))
                for claim in claims
                if not cancelled()
            }
            found = with_bindings({name: each for name, each in cells.items() if each}, found)
            if not cancelled():
                found = with_bindings(moved_fields(claims, records), found)
        for reading in readings:
            if not cancelled() and (told := columns(reading.claims)):
                found = with_bindings(_of_rows(told, scopes(envelope), checked), found)
        return found

    converted = {
        claim.claim_id: (
            *_wrong_conversions(claim, evidence[claim.claim_id]),
            *_wrong_dates(claim, evidence[claim.claim_id]),
        )
        for claim in claims
    }
    wrong = {name: each for name, each in converted.items() if each}
    return with_bindings(with_bindings(wrong, before), await language.run(find, stage="3b"))


def _of_rows(told: Sequence[Column], known: Scopes, checked: Collection[str]) -> Distortions:
    return {name: each for name, each in exchanged_cells(told, known).items() if name in checked}


def _wrong_conversions(claim: Claim, shown: ClaimEvidence) -> tuple[Distortion, ...]:
    """Return the amounts that a claim converts wrongly: *210 miles is about 131 km*."""
    return tuple(
        Distortion(NUMBER_CHANGED, one.text, other.text, shown.fact_id, slot="conversion")
        for one, other in wrong_conversions(extraction.read(claim.text))
    )


def _without_fields(found: Distortions, claims: Sequence[Claim]) -> dict[str, tuple[Distortion, ...]]:
    """Return findings without predicates that only the key of a field turns: *Departure: 5 May* turns no *arrives*."""
    keys = {claim.claim_id: key.lower() for claim in claims for key, colon, _ in [claim.text.partition(": ")] if colon}
    return {
        name: tuple(
            one
            for one in each
            if one.type != NEGATION_FLIP or one.slot != "predicate" or one.claim_value not in keys.get(name, "")
        )
        for name, each in found.items()
    }


def _without_states(found: Distortions, evidence: Mapping[str, ClaimEvidence]) -> dict[str, tuple[Distortion, ...]]:
    """Return findings without turned predicates where the fields of a record bear out the states of a claim, and without any where they
    bear out all of it.
    """
    return {
        name: tuple(
            one
            for one in each
            if not evidence[name].agreed or (one.type != NEGATION_FLIP and not evidence[name].calculated)
        )
        for name, each in found.items()
    }


def _without_derived(found: Distortions, claims: Sequence[Claim], envelope: Envelope, asked: str) -> Distortions:
    """Return findings without counts that follow from other counts, *ten eggs are fine* of twelve with two broken, and without those
    that the user or an object of the sources states: what was asked for, and what a tool did.
    """
    if all(one.slot != COUNT for each in found.values() for one in each):
        return found
    texts = {claim.claim_id: claim.text for claim in claims}
    sources = [fact.content for fact in envelope.facts]
    objects = [source for source in sources if "{" in source]
    stated = {one.amount for text in (asked, *objects) for one in counts_in(text)}

    def left(name: str, each: tuple[Distortion, ...]) -> tuple[Distortion, ...]:
        text = texts.get(name, "")
        follow = settled_counts(text, sources) | {one.text for one in counts_in(text) if one.amount in stated}
        return tuple(one for one in each if one.slot != COUNT or one.claim_value not in follow)

    return {name: left(name, each) for name, each in found.items()}


def _wrong_dates(claim: Claim, shown: ClaimEvidence) -> Iterator[Distortion]:
    """Yield the periods and weekdays of a claim that its own dates refute, and that its source does not state."""
    reading = extraction.read(claim.text)
    stated = extraction.read(shown.premise).values
    for right, value in wrong_spans(reading):
        if not any(same(value, each) for each in stated):
            yield Distortion(NUMBER_CHANGED, right, value.text, shown.fact_id, slot="when")
    for right, value in misnamed_weekdays(reading):
        if not any(each.moment and value.moment and covers(each.moment, value.moment) for each in stated):
            yield Distortion(DATE_SHIFTED, right, value.text, shown.fact_id, slot="when")


def with_bindings(found: Distortions, bound: Distortions) -> dict[str, tuple[Distortion, ...]]:
    """Return the distortions of each claim, those of its bindings last. What was found already is not found again."""
    merged = dict(found)
    for name, each in bound.items():
        types = {one.type for one in merged.get(name, ())}
        merged[name] = (*merged.get(name, ()), *(one for one in each if one.type not in types))
    return merged


def _in_choice(
    claims: Sequence[Claim],
    reading: ChoiceReading,
    parses: Mapping[Sentence, Any],
    read: Callable[[Collection[str]], Evidence],
    *,
    asked: Callable[[], Sequence[ReadSentence]],
    cancelled: Cancelled,
) -> dict[str, tuple[Distortion, ...]]:
    told = {reading.sentences[claim.sentence_index] for claim in claims} & parses.keys()
    pairs = zip(reading.sentences, [None, *reading.sentences], strict=False)
    passages = {sentence: _behind(sentence, before, parses) for sentence, before in pairs if sentence in told}
    if not any(each.frames or each.limits for each in passages.values()):
        return {}
    sources = read([each.told for told_by in passages.values() for each in told_by.causes if each.told])
    mentioned = frozenset(word for each in passages.values() for word in each.content)
    found: dict[str, list[Distortion]] = {}
    for sentence, told_by in passages.items():
        if cancelled():
            break
        parts = [c for c in claims if reading.sentences[c.sentence_index] == sentence]
        for finding in compare(told_by, sources, mentioned):
            if finding.type == NEGATION_FLIP and finding.slot == "predicate" and bears_out(finding, told_by, sources):
                continue
            found.setdefault(_teller(parts, finding).claim_id, []).append(_distortion(finding))
    listed = [passages[each] for each in items(reading.sentences) if each in passages]
    crossed = () if cancelled() else (*swapped(list(passages.values()), sources), *misordered(listed, sources))
    for told_by, finding in crossed:
        parts = [c for c in claims if passages.get(reading.sentences[c.sentence_index]) is told_by]
        _add(found, _teller(parts, finding), finding)
    whole = [(n, _passage(parses[s])) for n, s in enumerate(reading.sentences) if s in parses]
    for told_by, finding in () if cancelled() else asserted([each for _, each in whole], sources, asked()):
        at = next(n for n, each in whole if each is told_by)
        following = [c for c in claims if c.sentence_index >= at]  # *Yes.* is told with what comes behind it
        first = min((c.sentence_index for c in following), default=at)
        if parts := [c for c in following if c.sentence_index == first]:
            _add(found, _teller(parts, finding), finding)
    return {name: tuple(dict.fromkeys(each)) for name, each in found.items()}


def _behind(sentence: Sentence, before: Sentence | None, parses: Mapping[Sentence, Any]) -> ReadSentence:
    """Return a sentence of an answer, with what it leaves to the one before it."""
    own = _passage(parses[sentence])
    return own if before is None or before not in parses else own.behind(_passage(parses[before]))


def _add(found: dict[str, list[Distortion]], claim: Claim, finding: Misbinding) -> None:
    """Add what is found of a claim, unless something of its sort is found of it already."""
    known = found.setdefault(claim.claim_id, [])
    if all(each.type != finding.type for each in known):
        known.append(_distortion(finding))


def _question(query: str, known: Passages, language: Language) -> Sequence[ReadSentence]:
    """Return the sentences of what the user asked last."""
    return known.of([query], language.nlp).get(query, ()) if query.strip() else ()


def _passage(parse: Any) -> ReadSentence:
    return derived(parse, ("passage", parse.start, parse.end), lambda: ReadSentence(parse))


def _evidence(
    claims: Sequence[Claim],
    evidence: Mapping[str, ClaimEvidence],
    envelope: Envelope,
    causes: Collection[str],
    *,
    known: Passages,
    language: Language,
    cancelled: Cancelled,
) -> Evidence:
    """Return the evidence on claims: their nearest units that share words with them, and what their best premises add.

    A parse costs more than all that is done with it, so that units about something else are left out. Of the *causes* that claims
    give, those units are evidence that tell most of one: they may be far from the rest of the claim.
    """
    units = dict(_units(claims, evidence, cancelled))
    for fact_id, text in _telling(causes, envelope, cancelled):
        units.setdefault(text, fact_id)
    read: dict[str, tuple[ReadSentence, ...]] = {}
    for texts in batches([text for text in units if text]):
        if cancelled():
            break
        read |= known.of(texts, language.nlp)
    listed = {text for text in read if any(r.sentence.rstrip(".") in text for _, r in envelope.cut.records)}
    passages = tuple(
        (each.as_record() if text in listed else each).placed(units[text])
        for text, found in read.items()
        for each in found
    )
    if cancelled():
        return Evidence(passages)
    steps_of = _steps(envelope, known, language)
    heard = _voices(envelope) if any(reports(claim.text) for claim in claims) else ()
    return Evidence(passages, steps_of, _groupings(envelope), _measures(envelope), heard)


def _voices(envelope: Envelope) -> tuple[Voices, ...]:
    """Return who speaks in the sources, source by source."""
    found = (voices(fact.content, fact.id) for fact in envelope.facts[:_MOST_LISTS])
    return tuple(each for each in found if each is not None)


def _measures(envelope: Envelope) -> tuple[Measures, ...]:
    """Return the figures that the sources give for things, source by source."""
    return tuple(each for fact in envelope.facts[:_MOST_LISTS] for each in measures(fact.content, fact.id))


def _groupings(envelope: Envelope) -> tuple[Grouping, ...]:
    """Return what the sources keep apart under labels, headings or by *respectively*."""
    return tuple(
        found
        for fact in envelope.facts[:_MOST_LISTS]
        for found in (*listed(fact.content, fact.id), *paired(fact.content, fact.id))
    )


def _steps(envelope: Envelope, known: Passages, language: Language) -> tuple[tuple[ReadSentence, ...], ...]:
    """Return the steps of the numbered lists of the sources, each read as one sentence."""
    listed = [
        (fact.id, steps(fact.content)) for fact in envelope.facts[:_MOST_LISTS] if len(fact.content) <= _LONGEST_LIST
    ]
    listed = [(name, texts) for name, texts in listed if texts]
    read = known.of([text for _, texts in listed for text in texts], language.nlp) if listed else {}
    return tuple(
        tuple(read[text][0].placed(name, text) for text in texts)
        for name, texts in listed
        if all(read.get(text) for text in texts)
    )


def _units(claims: Sequence[Claim], evidence: Mapping[str, ClaimEvidence], cancelled: Cancelled) -> Mapping[str, str]:
    """Return the texts that are evidence on claims, with their facts."""
    units: dict[str, str] = {}
    for claim in claims:
        if cancelled():
            break
        shown = evidence[claim.claim_id]
        units.setdefault(shown.source, shown.fact_id)
        stems = content_stems(claim.text)
        for fact_id, text in shown.others:
            if text not in units and len(stems & content_stems(text)) >= _SHARED:
                units[text] = fact_id
    for claim in claims:
        rest = evidence[claim.claim_id].premise
        if cancelled():
            break
        for text in units:
            rest = rest.replace(text, "")
        if len(rest.split()) > _MARKS:
            units.setdefault(rest.strip(), evidence[claim.claim_id].fact_id)
    return units


def _telling(told: Collection[str], envelope: Envelope, cancelled: Cancelled) -> Iterator[tuple[str, str]]:
    """Yield the units with most of the words of one of some texts, with their facts; the best few of each."""
    of_units = [_singular(unit.words) for unit in envelope.cut.units] if told else []
    for text in told:
        words = _singular(content_words(text))
        if cancelled() or len(words) < _SHARED:
            continue
        for count, number in nlargest(_TELLING, ((len(words & own), -n) for n, own in enumerate(of_units))):
            if count >= _SHARED and 2 * count >= len(words):
                unit = envelope.cut.units[-number]
                yield envelope.facts[unit.fact].id, unit.text


def _singular(words: Collection[str]) -> frozenset[str]:
    return frozenset(word.removesuffix("s") for word in words)


def _teller(parts: Sequence[Claim], finding: Misbinding) -> Claim:
    """Return the claim of a sentence that a finding is about: the one with most of its words."""
    return max(parts, key=lambda claim: len(finding.about & set(map(key, claim.text.split()))))


def _distortion(finding: Misbinding) -> Distortion:
    return Distortion(finding.type, finding.source_value, finding.claim_value, finding.fact_id, finding.slot)

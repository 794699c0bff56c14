"""What a short answer states of the question that was put, held against the sources (SPEC-005 §5.3).

*Was Elena charged?* – *She was, because she cancelled in time.* The claim has the words of its source and no verb to deny. The question is
put as a statement, affirmed and denied, and the model hears both: where the sources entail the other one and contradict the answer's,
the answer is turned. Two statements that differ in one word are compared, so that the words which they share say nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from interlock.dpe.claims.answered import asked, is_affirmed, stated
from interlock.dpe.claims.reading import ChoiceReading
from interlock.dpe.comparison.cues import NEGATION_FLIP
from interlock.dpe.document import Claim, Distortion
from interlock.dpe.grounding.envelope import Envelope
from interlock.dpe.inference.language import Cancelled, Language
from interlock.dpe.inference.port import Inference

_CONTRADICTED = 0.8
_ENTAILED = 0.45
_NEAREST = 2
_LONGEST_PREMISE = 200
SLOT = "answer"


async def turned_answers(
    claims: Sequence[Claim],
    readings: Sequence[ChoiceReading],
    query: str,
    envelope: Envelope,
    *,
    inference: Inference,
    language: Language,
) -> dict[str, tuple[Distortion, ...]]:
    """Return the first claim of each answer to a question of yes or no that the sources answer the other way."""
    question = asked(query)
    judged = {claim.claim_id for claim in claims}
    given = [(each, said) for each in readings if question and judged and (said := _said(each)) is not None]
    if not given or not envelope.cut.units:
        return {}
    yes, no = await language.run(partial(_both_ways, question, language.nlp), stage="3b")
    if not yes:
        return {}
    near = [unit for unit, _ in envelope.nearest((await inference.embed([yes]))[0])[:_NEAREST]]
    short = [unit for unit in near if envelope.cut.units[unit].tokens <= _LONGEST_PREMISE]
    if not short:
        return {}
    premise = envelope.collected(sorted(short), _LONGEST_PREMISE)
    heard = dict(zip((True, False), await inference.nli([(premise, yes), (premise, no)]), strict=True))
    fact = envelope.facts[envelope.cut.units[short[0]].fact].id
    return {
        first: (Distortion(NEGATION_FLIP, other, own, fact, slot=SLOT),)
        for reading, said in given
        for first in [each.claim_id for each in reading.checked if each.claim_id in judged][:1]
        for own, other in ((yes, no) if said else (no, yes),)
        if _is_turned(heard[said], heard[not said])
    }


def _said(reading: ChoiceReading) -> bool | None:
    return is_affirmed(reading.sentences[0].text) if reading.sentences else None


def _both_ways(question: str, nlp: Any, _: Cancelled) -> tuple[str, str]:
    parsed = nlp(question)
    return stated(parsed, affirmed=True), stated(parsed, affirmed=False)


def _is_turned(own: Sequence[float], other: Sequence[float]) -> bool:
    """Whether the sources contradict one statement and entail its denial, given P(entailment, neutral, contradiction) of both."""
    return float(own[2]) >= _CONTRADICTED and float(other[0]) >= _ENTAILED

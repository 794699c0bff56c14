"""What a user asserts, as evidence of a second rank: a claim that no source supports or denies may rest on it (ATT-5).

A source wins over the user: what one contradicts does not rest on the user's words. A question asserts nothing: *Is Sydney the
capital?* supports no answer. Orders of a system message count in the same way.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from interlock.dpe.document import Claim, Fact
from interlock.dpe.grounding import attribution, envelope
from interlock.dpe.grounding.attribution import ClaimEvidence
from interlock.dpe.grounding.envelope import Cut, Envelope, EvidenceUnit
from interlock.dpe.inference.port import Inference
from interlock.dpe.request import OWN_KINDS, SOURCE, SaidText
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_ASKS = word_set(
    "who whom whose what when where which why how is are was were do does did can could would will should shall has have had may"
    " wer wen wem was wann wo warum wie ist sind hat kann qui que quoi quand où pourquoi comment est quién qué cuándo dónde cómo es"
)

_SECOND_PERSON = {
    "i": "you", "me": "you", "my": "your", "mine": "yours", "myself": "yourself", "we": "you", "us": "you", "our": "your",
    "ours": "yours", "ourselves": "yourselves", "i am": "you are", "i was": "you were", "i'm": "you are", "we're": "you are",
    "i've": "you have", "we've": "you have", "i'd": "you would", "i'll": "you will",
}  # fmt: skip
_FIRST_PERSON = pattern(
    r"\b(?:I am|I was|I'm|I've|I'd|I'll|I|[Ww]e're|[Ww]e've|[Mm]e|[Mm]y|[Mm]ine|[Mm]yself|[Ww]e|us|[Oo]urs?|[Oo]urselves)\b"
)


@dataclass(frozen=True)
class SaidEvidence:
    """What claims rest on in the words of the user and of the system, by claim id, and the kind of each text by its id."""

    by_claim: Mapping[str, ClaimEvidence]
    kinds: Mapping[str, str]

    def with_sources(self, found: Mapping[str, ClaimEvidence]) -> SaidEvidence:
        """Return this with the evidence on claims that a source and these words hold together."""
        kinds = {each.fact_id: SOURCE for each in found.values()}
        return SaidEvidence({**self.by_claim, **found}, {**self.kinds, **kinds})


NOTHING_SAID = SaidEvidence({}, {})


def cut(
    said: Sequence[SaidText],
    *,
    limit: int,
    count: Callable[[Sequence[str]], list[int]],
    split: Callable[[str], Iterator[tuple[int, int]]],
    own: str = "",
) -> Cut:
    """Return what the user and the system assert, in units of at most *limit* tokens; *own* as there."""
    facts = [Fact(one.id, one.text, 0.0) for one in said if one.kind in OWN_KINDS]
    whole = envelope.cut(facts, limit=limit, count=count, split=split, own=own)
    units = (replace(unit, text=_addressed(unit.text)) for unit in whole.units if _asserts(unit))
    return replace(whole, units=tuple(units))


def _addressed(text: str) -> str:
    """Return a text of the user as an answer puts it: *my cat* is *your cat* there."""
    return str(_FIRST_PERSON.sub(_second_person, text))


def _second_person(match: Any) -> str:
    word = str(match.group())
    put = _SECOND_PERSON[word.lower()]
    return put.capitalize() if word[0].isupper() and (word != "I" or match.start() == 0) else put


def _asserts(unit: EvidenceUnit) -> bool:
    text = unit.text.strip()
    first = text.split(maxsplit=1)[0].lower().strip("\"'¿(") if text else ""
    return bool(text) and not text.endswith(("?", "？")) and first not in _ASKS


async def evidence(
    claims: Sequence[Claim],
    asserted: Cut,
    said: Sequence[SaidText],
    inference: Inference,
    *,
    titles: Collection[str],
    sentences: Mapping[str, str],
) -> SaidEvidence:
    """Return what each of *claims* rests on in the asserted units."""
    if not claims or not asserted.units:
        return NOTHING_SAID
    vectors = await inference.embed([*(unit.text for unit in asserted.units), *asserted.texts])
    base = Envelope(asserted, vectors[: len(asserted.units)], vectors[len(asserted.units) :])
    of_claims = await inference.embed([claim.text for claim in claims])
    found = await attribution.evidence(claims, of_claims, base, inference, titles=titles, query="", sentences=sentences)
    return SaidEvidence(found, {one.id: one.kind for one in said})

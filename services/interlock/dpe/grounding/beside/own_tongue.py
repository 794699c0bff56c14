"""Claims in the language of their sources, which is not English, and dates that a source writes in another language (ATT-8).

The rules that trace names and dates read English. In German every noun has a capital, in any language the first word of a sentence;
*22. April* and *30 juin* are dates. What such a claim states is looked up as in claims of another language than their sources.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from interlock.dpe.claims.reading import ChoiceReading, claim_sentences
from interlock.dpe.comparison.value_conflicts import EnvelopeValues
from interlock.dpe.document import Claim
from interlock.dpe.grounding.beside.across import Stated, compare, results_of
from interlock.dpe.grounding.placing.near import Told
from interlock.dpe.request import Request
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.tongues import ENGLISH, dates_in_english, tongue
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read

_WORD = pattern(r"[\p{L}'’-]+")
_TITLES = word_set(
    "herr herrn frau fräulein dr prof m mme mlle monsieur madame señor señora don doña sr sra signor signora dott senhor senhora"
    " meneer mevrouw dhr mevr"
)
_CAPITALISES_NOUNS = "de"


def without_readings(
    found: Mapping[str, Sequence[str]],
    readings: Sequence[ChoiceReading],
    texts: Sequence[str],
    request: Request,
    *,
    foreign: Mapping[str, object],
) -> dict[str, list[str]]:
    """Return the fabrications without what only a reading as English makes one.

    *foreign* are the claims in another language than the sources; those are compared by ``across``.
    """
    if not any(found.values()):
        return {name: list(each) for name, each in found.items()}
    dated = EnvelopeValues.of([each for text in texts for each in dates_in_english(text)])
    stated: Stated | None = None
    of_sources = sorted({each for text in texts if (each := tongue(text))})
    left = {name: list(each) for name, each in found.items()}
    for claim, spoken in _spoken(readings, [name for name, each in found.items() if each and name not in foreign]):
        # One that is too short to tell is taken to be in the language of its source.
        told = spoken or (of_sources[0] if len(of_sources) == 1 else None)
        if told is not None and told != ENGLISH:
            stated = stated or replace(
                Stated.of([*texts, request.own_words], Told.of(request)),
                results=results_of([each for reading in readings for each in reading.checked]),
            )
            left[claim.claim_id] = _unstated(left[claim.claim_id], claim, told, stated)
        left[claim.claim_id] = [each for each in left[claim.claim_id] if not _is_dated(each, dated)]
    return left


def _spoken(readings: Sequence[ChoiceReading], names: Sequence[str]) -> Iterator[tuple[Claim, str | None]]:
    """Yield the claims of these ids with the language of their sentence, or else of their answer."""
    sentences = claim_sentences(readings)
    for reading in readings:
        answer = tongue(" ".join(each.text for each in reading.sentences))
        for claim in reading.checked:
            if claim.claim_id in names:
                yield claim, tongue(sentences[claim.claim_id]) or answer


def _unstated(texts: Sequence[str], claim: Claim, spoken: str, stated: Stated) -> list[str]:
    """Return the findings that hold in the claim's own language."""
    wrong = compare(claim, spoken, stated).wrong
    return [each for each in texts if not _is_plain_word(each, claim.text, spoken) and _holds(each, wrong)]


def _holds(text: str, wrong: Sequence[str]) -> bool:
    """Whether a comparison of figures finds it too. Names without a figure are not compared there."""
    return not any(map(str.isdigit, text)) or any(each in text or text in each for each in wrong)


def _is_plain_word(text: str, claim: str, spoken: str) -> bool:
    """Whether a capital says nothing: of the first word of a claim, of a German noun; not of a word behind *Herr* or another name."""
    if _WORD.fullmatch(text) is None:
        return False
    words = _WORD.findall(claim)
    place = words.index(text) if text in words else 0
    before, after = (words[n : n + 1] if n >= 0 else [] for n in (place - 1, place + 1))
    named = any(word.lower() in _TITLES for word in before)
    if spoken == _CAPITALISES_NOUNS:
        return not named
    return place == 0 and not any(word[0].isupper() for word in after)


def _is_dated(text: str, dated: EnvelopeValues) -> bool:
    """Whether a date is one that a source writes in another language."""
    values = read(text).values
    return (
        bool(values)
        and all(each.moment is not None and each.moment.day is not None for each in values)
        and all(map(dated.has, values))
    )

"""Said by another: a claim that lets one say, ask, judge or decide what a source has another do (SPEC-005 §5.3).

The source must tell of the claim's one somewhere else, and nowhere of the same words: who is told of beside the speaker may be the same
one by another name, or may have said it too.
"""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.fillers import key
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.general import GENERAL
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.predicates import REPORTING
from interlock.dpe.comparison.bindings.relations.voiced import ToldVoice
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.wordlists import word_set

_LEAST = 2
_SURE = 3
"""Words that both say where they do not do it by the same act: who criticises a fee may not be who says that it rose."""
_HALF, _MOSTLY = 0.5, 0.6
_CLASSES = frozenset(map(key, word_set("expert specialist campaigner activist critic observer commentator")))
"""What a speaker is called for what is said, so that any voice may be one: *doctors warned* is *experts warned*."""
_OF_ITSELF = frozenset({"apologise", "complain", "object", "protest", "appeal"})
"""Acts that say much by themselves, so that one voice alone may be meant: *an apology came from …*."""


def voiced_by(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the voice to which *claim* gives another's words, or ``None``."""
    told = [(voice, source) for source in evidence.passages for voice in source.told.voices if voice.words]
    for own in claim.told.voices:
        if not own.words or own.words <= GENERAL | _CLASSES:
            continue
        best = _best(own, told)
        if best is None or has_negator(best[1].text) is not has_negator(claim.text):
            continue
        voice, source = best
        if _are_two(own, voice) and not _may_be_told(own, voice, source, evidence):
            return Misbinding(ENTITY_SUBSTITUTED, "said-by", voice.text, own.text, source.text, source.fact_id)
    return None


def _best(own: ToldVoice, told: list[tuple[ToldVoice, ReadSentence]]) -> tuple[ToldVoice, ReadSentence] | None:
    """Return the one voice that says what a claim lets one say."""
    fitting = [(voice, source) for voice, source in told if _says(own, voice)]
    return fitting[0] if fitting and all(voice.words == fitting[0][0].words for voice, _ in fitting) else None


def _says(own: ToldVoice, voice: ToldVoice) -> bool:
    said = own.said - voice.words - own.words
    shared = said & voice.said
    if own.act == voice.act and own.act in _OF_ITSELF:
        return len(shared) >= _HALF * len(said)
    least = _LEAST if own.act == voice.act or {own.act, voice.act} <= REPORTING else _SURE
    return len(shared) >= least and len(shared) >= _MOSTLY * len(said)


def _are_two(own: ToldVoice, voice: ToldVoice) -> bool:
    """Whether two voices are told apart by their names, or by all their words where one has none."""
    if own.names and voice.names:
        return not own.names & voice.names
    return not own.words & voice.words


def _are_one(own: ToldVoice, voice: ToldVoice) -> bool:
    return bool(own.names & voice.names if own.names and voice.names else own.words & voice.words)


def _may_say(own: ToldVoice, voice: ToldVoice) -> bool:
    """Whether what one says elsewhere may be what a claim has it say, in other words."""
    shared = own.said & voice.said
    return bool(shared) and (own.act == voice.act or len(shared) >= _LEAST)


def _speaks_in(mine: frozenset[str], its: frozenset[str], sentence: ReadSentence) -> bool:
    """Whether a sentence has one speak and tells of the other beside that, so that they are two."""
    return any(mine <= voice.words and not its & voice.words for voice in sentence.told.voices)


def _may_be_told(own: ToldVoice, voice: ToldVoice, source: ReadSentence, evidence: Evidence) -> bool:
    """Whether the sources do not tell of the claim's voice, or tell that it is the other one or says the same."""
    mine, its = own.names or own.words, voice.names or voice.words
    known = False
    if any(_are_one(own, each) and _may_say(own, each) for one in evidence.passages for each in one.told.voices):
        return True
    for each in evidence.passages:
        if not mine <= each.told.named:
            continue
        apart = own.names and voice.names and each is not source
        alike = own.act == voice.act or {own.act, voice.act} <= REPORTING
        if its & each.told.named and not apart and not (alike and _speaks_in(mine, its, each)):
            return True
        known = True
        shared = own.said & each.told.whole if each is not source else frozenset()
        if len(shared) >= _LEAST and len(shared) > _HALF * len(own.said):
            return True
    return not known

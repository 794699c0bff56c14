"""Words of another speaker: *Mei suggested the 6th*, where it is Oriol who does (SPEC-005 §5.3).

A claim that reports somebody's words is held against all that each speaker of a source says. Where nearly all of it is what another one
states, and nothing of it is said by the one whom the claim names alone, the words are the other's. An answer may take up the words of a
question, or agree to what was said before it, so that neither tells anything.
"""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.comparison.groupings.voices import SpeakingVoice, Voices, said_by
from interlock.dpe.text.patterns import pattern

_CLAUSES = pattern(r"[;,]\s(?:and|but|while|whereas|yet)\s|\s(?:while|whereas)\s")
_FILLING = words_of("x instead view opinion account order words fact thing way later soon week day")
_LEAST, _MOSTLY = 2, 0.6


def reports(text: str) -> bool:
    """Whether a claim reports anybody's words, so that the speakers of its sources are needed."""
    return any(said_by(clause) is not None for clause in _CLAUSES.split(text))


def spoken(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the speaker whose words *claim* gives to another, or ``None``."""
    if not evidence.voices or claim.text.rstrip().endswith("?"):
        return None
    for clause in _CLAUSES.split(claim.text.rstrip(" .!")):
        reported = said_by(clause)
        if reported is None:
            continue
        name, rest = words_of("x " + reported[0]) - {"x"}, words_of("x " + reported[1]) - _FILLING
        for known in evidence.voices:
            mine = known.named(name)
            other = _speaker(mine, rest, known) if mine is not None and not mine.agrees else None
            if other is not None and has_negator(reported[1]) is has_negator(other.text):
                return Misbinding(
                    ENTITY_SUBSTITUTED, "speaker", other.label, reported[0].strip(), other.text[:200], known.fact_id,
                    about=claim.content,
                )  # fmt: skip
    return None


def _speaker(mine: SpeakingVoice, rest: frozenset[str], known: Voices) -> SpeakingVoice | None:
    """Return the one other speaker who states what a claim reports, and of which the named one says nothing alone."""
    content = rest - {word for each in known.all for word in each.name}
    found = [each for each in known.all if each is not mine and _states(each, mine, content)]
    return found[0] if len(found) == 1 else None


def _states(other: SpeakingVoice, mine: SpeakingVoice, content: frozenset[str]) -> bool:
    shared = content & other.words
    alone = shared - mine.words - mine.asked
    figures = {word for word in content if word[0].isdigit()}
    return (
        len(alone) >= _LEAST
        and len(shared) >= _MOSTLY * len(content)
        and figures <= other.words
        and not content & (mine.words | mine.asked) - other.words
    )

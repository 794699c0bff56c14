"""Voices: who says what in a source, by the lines *Name: text* of a chat and by *X said that …* (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_TURN = pattern(
    r"^(?:[-*•>]\s*)?(?:\[[^\]\n]{1,30}\]\s*)?((?:Dr|Mr|Mrs|Ms|Prof|St|Fr)?\.?\s?\p{L}[^:\n.!?;]{0,40}?)(?:\s\([^)\n]*\))?:\s+(\S.*)$"
)
_SENTENCES = pattern(r"[.!?]['\"”’]?(?:\s+|\z)|\n+")
_TITLE = pattern(r"\A[^:]{1,40}:\s+")
_QUESTION = pattern(r"[^.!?\n]*\?")
_CLAUSES = pattern(r"[;,]\s(?:and |but |while |whereas |yet )?|\s(?:but|while|whereas)\s")
_SAYING = (
    r"say|says|said|think|thinks|thought|believes?|believed|suggests?|suggested|propos(?:es|ed)|offers?|offered|reports?|reported|claims?"
    r"|claimed|notes?|noted|mentions?|mentioned|argues?|argued|explains?|explained|writes?|wrote|warns?|warned|states?|stated|insists?"
    r"|insisted|admits?|admitted|acknowledges?|acknowledged|concedes?|conceded|demands?|demanded|recommends?|recommended|advis(?:es|ed)"
    r"|announces?|announced|promis(?:es|ed)|complains?|complained|objects?|objected|speaks?|spoke|gives?|gave|orders?|ordered"
    r"|holds?|held|maintains?|maintained|finds?|found|expects?|expected|predicts?|predicted|reckons?|reckoned"
)
_SAID = pattern(
    rf"\A(?:it (?:is|was) )?((?:[\p{{L}}\p{{N}}.'’-]+\s+){{1,6}}?)(?:who\s+|that\s+)?(?:has |have |had |also |now |even |nevertheless ){{0,2}}({_SAYING})\b",
    ignore_case=True,
)
_ACCORDING = pattern(r"\A(?:according to|for|in the view of)\s+((?:[\p{L}\p{N}.'’-]+\s?){1,5}),\s", ignore_case=True)
_AGREES = pattern(
    r"\A\W*(?:yes|yeah|yep|right|exactly|same|so (?:am|was|do|did|had|have|is)|me too|agreed|true|indeed|sure|ok|okay|good|fine|works|done"
    r"|of course|absolutely|correct|that's|no problem|will do|i (?:do|did|agree|think so))\b",
    ignore_case=True,
)
_NOT_NAMES = word_set(
    "he she it they we you i who that this these those there one some many most all both nobody everyone which what not never no does did"
    " do don't doesn't didn't will would could may might must can should if when"
)
"""Words of a pronoun, a denial or a mood, none of which says who surely said something."""
_LONGEST, _MOST, _LEAST = 8000, 12, 2


@dataclass(frozen=True)
class SpeakingVoice:
    """All that a source has one say, the questions apart, and whether the one agrees with anybody."""

    name: frozenset[str]
    words: frozenset[str]
    asked: frozenset[str]
    text: str
    label: str = ""
    agrees: bool = False


@dataclass(frozen=True)
class Voices:
    """Those who speak in one source."""

    all: tuple[SpeakingVoice, ...]
    fact_id: str = ""

    def named(self, words: frozenset[str]) -> SpeakingVoice | None:
        """Return the one whom words name, and nobody else: all of them are of the name, and one of no other name."""
        found = [each for each in self.all if words and words <= each.name]
        return found[0] if len(found) == 1 else None


def voices(text: str, fact_id: str) -> Voices | None:
    """Return who speaks in a text, where two or more do; ``None`` elsewhere."""
    if len(text) > _LONGEST:
        return None
    found: dict[frozenset[str], list[str]] = {}
    labels: dict[frozenset[str], str] = {}
    for name, said in (*_turns(text), *_told(text)):
        words = words_of("x " + name) - {"x"}
        if words:
            found.setdefault(words, []).append(said)
            labels.setdefault(words, name.strip())
    found = _merged(found)
    if not _LEAST <= len(found) <= _MOST:
        return None
    return Voices(tuple(_voice(name, labels[name], told) for name, told in found.items()), fact_id)


def _merged(found: dict[frozenset[str], list[str]]) -> dict[frozenset[str], list[str]]:
    """Return what each says, with that of *Pilar* under the one longer name, *agent Pilar*."""
    merged: dict[frozenset[str], list[str]] = {}
    for name, said in found.items():
        longer = [each for each in found if name < each]
        merged.setdefault(longer[0] if len(longer) == 1 else name, []).extend(said)
    return merged


def said_by(text: str) -> tuple[str, str] | None:
    """Return whom a clause has say something, and what; ``None`` where it reports nobody's words."""
    if (match := _ACCORDING.search(text)) is not None:
        return match[1], text[match.end() :]
    match = _SAID.search(text)
    if match is None or set(match[1].lower().split()) & _NOT_NAMES:
        return None
    return match[1], text[match.end() :]


def _voice(name: frozenset[str], label: str, told: list[str]) -> SpeakingVoice:
    asked = [match.group() for said in told for match in _QUESTION.finditer(said)]
    stated = " ".join(_QUESTION.sub(" ", said) for said in told)
    return SpeakingVoice(
        name, words_of("x " + stated), words_of("x " + " ".join(asked)), stated.strip(), label, any(map(_agrees, told))
    )


def _agrees(said: str) -> bool:
    return _AGREES.search(said) is not None


def _turns(text: str) -> Iterator[tuple[str, str]]:
    """Yield the turns of a conversation, of which a line without a name goes on with the last; a title may open the first."""
    turns: list[tuple[str, str]] = []
    for line in text.split("\n"):
        match = _TURN.search(line.strip())
        if match is not None:
            inner = _TURN.search(match[2])
            turns.append((inner[1], inner[2]) if inner is not None else (match[1], match[2]))
        elif turns:
            turns[-1] = (turns[-1][0], f"{turns[-1][1]} {line}")
    if len({name for name, _ in turns}) >= _LEAST:
        yield from turns


def _told(text: str) -> Iterator[tuple[str, str]]:
    """Yield the words that sentences report."""
    for sentence in _SENTENCES.split(text):
        found = None
        for clause in _CLAUSES.split(sentence):
            started = said_by(_TITLE.sub("", clause))
            if started is not None:
                if found is not None:
                    yield found
                found = started
            elif found is not None:
                found = (found[0], f"{found[1]} {clause}")
        if found is not None:
            yield found

"""Limits extended: *for firms as well as for households* for *only for firms*, *also by plane* for *only by boat* (SPEC-005 §5.3).

A source that limits something to one, with *only*, *alone*, *reserved for* or the like, denies it of all others. A claim that adds
another beside that one, or in its place with *also*, says more than its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.clauses import sense_of
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern

_PREPOSITION = r"(?:to|for|from|on|in|at|by|with|of|within|during|through|via|towards?)"
_STOPS = pattern(
    r"[,;:.!?()—–]|\b(?:and|but|which|who|that|is|are|was|were|can|may|must|will|has|have|if|when|while|because|so|not)\b|\n",
    ignore_case=True,
)
_ONLY = (
    pattern(rf"\b(?:only|solely|exclusively)\s+(?:({_PREPOSITION})\s+)?", ignore_case=True),
    pattern(
        r"\b(?:reserved|limited|restricted|confined)\s+(?:exclusively\s+)?(for|to)\s+(?:only\s+)?", ignore_case=True
    ),
)
_BEHIND = pattern(
    rf"\b({_PREPOSITION})\s+((?:[\p{{L}}\p{{N}}’'-]+\s+){{1,4}}?)(?:only|alone|exclusively)\s*(?:[,;:.!?]|\z)",
    ignore_case=True,
)
_CASES = pattern(
    r"^\s*(?:if|when|after|before|once|while|until|because|as|a|an|one|two|three|four|\p{N}+|\d+|be|been|some|part|half)\b",
    ignore_case=True,
)
"""Behind *only* a case, a number or a verb: no one of several."""
_BESIDE = (
    pattern(r"\bboth\s+([^.;:]{1,60}?)\s+and\s+([^.;:,]{1,50})", ignore_case=True),
    pattern(r"\bnot only\s+([^.;:]{1,60}?),?\s+but(?: also)?\s+([^.;:,]{1,50})", ignore_case=True),
    pattern(
        r"([^.,;:]{1,60}?),?\s+(?:as well as|and also|or also|and even|in addition to|besides|and equally|along with)\s+([^.,;:]{1,50})",
        ignore_case=True,
    ),
    pattern(
        rf"\b({_PREPOSITION}\s+[^.,;:]{{1,50}}?),?\s+(?:and|or)\s+({_PREPOSITION}\s+[^.,;:]{{1,40}})", ignore_case=True
    ),
)
_ALSO = pattern(
    rf"\b(?:also|even|equally|including)\s+(?:\p{{L}}+\s+){{0,3}}?({_PREPOSITION})\s+([^.,;:]{{1,40}})",
    ignore_case=True,
)
_TOO = pattern(rf"\b({_PREPOSITION})\s+([^.,;:]{{1,40}}?),?\s+(?:too|as well|also)\s*(?:[.,;:!]|\z)", ignore_case=True)
_ALL = pattern(
    r"\b(?:all|every|each|any)\s+(?:of\s+)?(?:the\s+|our\s+|its\s+|their\s+|your\s+|these\s+|those\s+)?([\p{L}’'-]+)",
    ignore_case=True,
)
_FORMS_OF = {"at": "on", "in": "on", "via": "by", "through": "by", "to": "for", "towards": "for", "toward": "for"}
_NOT_ONLY = pattern(r"\bnot only\b", ignore_case=True)
_EXCEPTS = pattern(r"\b(?:except|unless|only|not|but not|other than)\b", ignore_case=True)
_SURE = 2
_NEAR, _SUBJECT, _MOSTLY, _HALF = 6, 4, 0.6, 0.5


_Joined = tuple[frozenset[str], frozenset[str], str]
_Said = tuple[frozenset[str], str]
_Put = tuple[str, frozenset[str], str]


@dataclass(frozen=True)
class _Alone:
    """What a clause limits something to, with its preposition, and the other words of its sentence."""

    one: frozenset[str]
    preposition: str
    rest: frozenset[str]
    clause: frozenset[str]
    text: str


def extended(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* adds to what its source limits something to, or ``None``."""
    if has_negator(_NOT_ONLY.sub(" ", claim.text)) or claim.text.rstrip().endswith("?"):
        return None
    told = [(its, source) for source in evidence.passages for its in _alone(source.text)]
    said = _words(claim.text)
    if not told:
        return None
    beside, counted, also = list(_beside(claim.text)), list(_universal(claim.text)), list(_also(claim.text))
    for its, source in told:
        written = _added(beside, said, its, evidence) or _of_all(counted, said, its, evidence)
        if written := written or _instead(also, said, its, evidence):
            return Misbinding(CONTEXT_STRIPPED, "condition", its.text, written, source.text, source.fact_id)
    return None


def _added(joined_by: Sequence[_Joined], said: frozenset[str], its: _Alone, evidence: Evidence) -> str:
    """Return how a claim joins another to the one: *for firms as well as for households*."""
    for one, other, written in joined_by:
        rest = said - other
        joined = _is_beside(one, other, its, rest) and _is_of_it(rest, said, its)
        if joined and not _is_told(other, said, its, evidence):
            return written
    return ""


def _of_all(universal: Sequence[_Said], said: frozenset[str], its: _Alone, evidence: Evidence) -> str:
    """Return how a claim says of all what holds of the one: *all members* for *premium members only*."""
    for counted, written in universal:
        new = {sense_of(word) for word in said} - {sense_of(word) for word in its.one | its.rest}
        wide = counted & its.one and its.one - said and said & its.rest
        told = any(written.casefold() in each.text.casefold() for each in evidence.passages)
        if wide and not told and not new:
            return written
    return ""


def _instead(also: Sequence[_Put], said: frozenset[str], its: _Alone, evidence: Evidence) -> str:
    """Return how a claim puts another, with *also*, where the one stands: *also by plane* for *only by boat*."""
    for preposition, other, written in also:
        rest = said - other
        like = _form(preposition) == _form(its.preposition) and not other & (its.one | its.clause)
        close = len(rest & its.rest) >= max(1, _HALF * len(rest))
        if like and close and not said & its.one and not _is_told(other, said, its, evidence):
            return written
    return ""


def _form(preposition: str) -> str:
    return _FORMS_OF.get(preposition, preposition)


def _is_beside(one: frozenset[str], other: frozenset[str], its: _Alone, rest: frozenset[str]) -> bool:
    """Whether one of two that a claim joins is what its source limits something to, and the other is not in that clause."""
    return any(
        bool(mine & its.one)
        and len((mine | rest) & its.one) >= _MOSTLY * len(its.one)
        and bool(added - its.one)
        and not (added - its.one) & its.clause
        for mine, added in ((one, other), (other, one))
    )


def _is_of_it(rest: frozenset[str], said: frozenset[str], its: _Alone) -> bool:
    return bool(rest & (its.rest - its.one)) or not its.rest - its.one or len(said & its.one) >= _SURE


def _is_told(other: frozenset[str], said: frozenset[str], its: _Alone, evidence: Evidence) -> bool:
    """Whether another sentence allows it of what the claim adds, too."""
    for source in evidence.passages:
        for clause in _clauses(source.text):
            words = _words(clause)
            about = words & (said - other)
            if (
                other <= words
                and about
                and not words & its.one
                and not has_negator(clause)
                and not _EXCEPTS.search(clause)
            ):
                return len(about) > _HALF * len(said - other)
    return False


def _beside(text: str) -> Iterator[tuple[frozenset[str], frozenset[str], str]]:
    """Yield what stands on both sides of a word that joins two, and how that is written."""
    for form in _BESIDE:
        for match in form.finditer(text):
            one = _words(" ".join(match[1].split()[-_NEAR:]))
            other = _words(_until_stop(match[2]))
            if one - other and other - one:
                yield one - other, other - one, match[0].strip()


def _universal(text: str) -> Iterator[tuple[frozenset[str], str]]:
    """Yield what a text says something of all of: *all members*, *every class*."""
    if _EXCEPTS.search(text):
        return
    for match in _ALL.finditer(text):
        if counted := _words(match[1]):
            yield counted, match[0].strip()


def _also(text: str) -> Iterator[tuple[str, frozenset[str], str]]:
    for form in (_ALSO, _TOO):
        for match in form.finditer(text):
            if other := _words(_until_stop(match[2])):
                yield match[1].lower(), other, match[0].strip()


@remembered(bytes_a_character=10, from_length=60)
def _alone(text: str) -> tuple[_Alone, ...]:
    return tuple(each for clause in _clauses(text) for each in _each(clause, text))


def _each(clause: str, text: str) -> Iterator[_Alone]:
    if has_negator(_NOT_ONLY.sub(" ", clause)) and not _ONLY[0].search(clause):
        return
    for form in _ONLY:
        for match in form.finditer(clause):
            named = _until_stop(clause[match.end() :])
            if match.start() == 0:
                named = " ".join(named.split()[:_SUBJECT])
            if not _CASES.search(clause[match.end() :]) and not clause[: match.start()].lower().endswith("not "):
                yield from _one(named, match[1] or "", clause, text)
    for match in _BEHIND.finditer(clause):
        yield from _one(match[2], match[1] or "", clause, text)


def _one(named: str, preposition: str, clause: str, text: str) -> Iterator[_Alone]:
    one = _words(" ".join(named.split()[:_NEAR]))
    if one:
        words = _words(clause)
        yield _Alone(one, preposition.lower(), _words(text) - one, words, clause.strip())


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CUTS.split(text) if clause.strip()]


_CUTS = pattern(r"[;:]\s|[;\n]|\s(?:while|whereas|but)\s", ignore_case=True)


def _until_stop(text: str) -> str:
    found = _STOPS.search(text)
    return text[: found.start()] if found is not None else text


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}

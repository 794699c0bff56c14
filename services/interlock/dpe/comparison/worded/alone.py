"""One alone, one of two, or both: *only online* for *online or by letter*, *both keys* for *either key* (SPEC-005 §5.3)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_COMPARING = word_set("below above under over beyond beneath exceeds exceeded missed reached passed failed")
_BOTH = pattern(r"\bboth\b([^.;:]{1,60}?)\band\b([^.;:]{1,40})", ignore_case=True)
_EITHER = pattern(r"\beither\b([^.;:]{1,60}?)\bor\b([^.;:]{1,40})", ignore_case=True)
_OR = pattern(r"([^.,;:]{1,40})\bor\b([^.,;:]{1,40})", ignore_case=True)
_AS_WELL = pattern(r"([^.,;:]{1,40})\bas well as\b([^.,;:]{1,40})", ignore_case=True)
_ALIKE = pattern(r"([^.,;:]{1,40})\band\b([^.,;:]{1,30}?)\balike\b", ignore_case=True)
_VERB = pattern(r"\b(?:is|are|was|were|be|has|have|had|can|may|must|will|do|does|need|needs)\b", ignore_case=True)
_PARTS = pattern(r"[,;:]\s|\s(?:but|while|whereas)\s")
_OBLIGES = pattern(
    r"\b(?:must|needs?|needed|requir\w+|has to|have to|had to|enough|suffic\w+|obliged|compulsory|mandatory|obligatory)\b",
    ignore_case=True,
)
_MAY = pattern(r"\b(?:may|can|could|allow\w*|permit\w*|welcome|accept\w*)\b", ignore_case=True)
_ALONE = (
    (pattern(r"\b(?:only|solely|exclusively)\s+([^.,;:]+)", ignore_case=True), False),
    (pattern(r"\b(?:only|solely|exclusively)\s+be\s+([^.,;:]+?)\s*[.!]?\s*$", ignore_case=True), True),
    (pattern(r"([^.,;:]+?)\s+(?:alone|only)\s*[.!]?\s*$", ignore_case=True), True),
)
_OTHERWISE = pattern(
    r"^\s*(?:be|if|when|after|before|once|while|until|because|as|a few|some|part|half|one|two|three|\p{N})\b",
    ignore_case=True,
)
"""Behind *only* a case, a time or a number: no one of several."""
_LIMITED = pattern(r"\b(?:only|alone|solely|exclusively|except|unless|but|if|sole|without|not)\b", ignore_case=True)
_OF_EACH = pattern(r"\b(?:both|either|all|any|every|each|alike)\b((?:\s+[\p{L}\p{N}’'-]+){0,3})", ignore_case=True)
_JOINS = pattern(r"\s(?:and|or|as well as)\s", ignore_case=True)
_CLAUSES = pattern(r"[;:]\s|,\s(?:but|and|while|whereas)\s|\s(?:but|while|whereas)\s")
_NEAR = 4  # words beside *and* or *or* that may name a member
_MOST = 5  # words of what stands alone
_CLOSE = 2  # of what may be one that stands alone
_LEAST = 2
_MOSTLY = 0.6


@dataclass(frozen=True)
class _Two:
    """Two members, by the words that name them, and how they are written."""

    one: frozenset[str]
    other: frozenset[str]
    text: str

    def are(self, its: _Two) -> bool:
        """Whether two others are the same two, in any order."""
        return bool((self.one & its.one and self.other & its.other) or (self.one & its.other and self.other & its.one))


def one_or_both(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* says of both of two where its source says it of either, or of one alone where it says it of more; or ``None``."""
    return _demanded(claim, evidence) or _joined(claim, evidence) or _alone(claim, evidence)


def _joined(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the two of which a claim says one thing, where its source denies it of one: *of lectures but not of seminars*."""
    if has_negator(claim.text) or claim.text.rstrip().endswith("?"):
        return None
    for mine in (pair for form in (_BOTH, _AS_WELL, _ALIKE) for pair in _pairs(form, claim.text)):
        rest = _words(claim.text) - mine.one - mine.other
        for source in evidence.passages:
            parts = [(_words(part), has_negator(part)) for part in _PARTS.split(source.text)]
            for has, lacks in ((mine.one, mine.other), (mine.other, mine.one)):
                said = [(bool(has & words), bool(lacks & words), denied) for words, denied in parts]
                told = any(one and not denied for one, _, denied in said) and not any(
                    other and not denied for _, other, denied in said
                )
                if (
                    told
                    and any(other and denied and not one for one, other, denied in said)
                    and rest & _words(source.text)
                ):
                    return Misbinding(
                        CONTEXT_STRIPPED, "quantifier", source.text, mine.text, source.text, source.fact_id
                    )
    return None


def _demanded(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the two of which a claim demands both and its source one, or the other way round.

    Where both are allowed, each of them is: *by cash or by card* is *both cash and card*.
    """
    if _OBLIGES.search(claim.text) is None or _MAY.search(claim.text) or has_negator(claim.text):
        return None
    for own, others in ((_BOTH, (_OR,)), (_EITHER, (_BOTH,))):
        for mine in _pairs(own, claim.text):
            if any(mine.are(its) for source in evidence.passages for its in _pairs(own, source.text)):
                continue
            for source in evidence.passages:
                its = next((pair for each in others for pair in _pairs(each, source.text) if mine.are(pair)), None)
                if its is not None and not _is_denied(its, source.text):
                    return Misbinding(CONTEXT_STRIPPED, "quantifier", its.text, mine.text, source.text, source.fact_id)
    return None


def _is_denied(pair: _Two, text: str) -> bool:
    """Whether a sentence denies something of two that it names; behind a comma it speaks of something else."""
    before, _, after = text.partition(pair.text)
    return has_negator(before) or has_negator(pair.text) or has_negator(after.partition(",")[0])


def _pairs(form: Any, text: str) -> Iterator[_Two]:
    for match in form.finditer(text):
        verb = _VERB.search(match[2])
        ending = match[2][: verb.start()] if verb is not None else match[2]
        one, other = " ".join(match[1].split()[-_NEAR:]), " ".join(ending.split()[:_NEAR])
        left, right = _words(one), _words(other)
        if left - right and right - left:
            yield _Two(left - right, right - left, match[0].strip())


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}


def _alone(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return of what more than one a source says what a claim says of one alone."""
    if has_negator(claim.text):
        return None
    limited = ((clause, *each) for clause in _CLAUSES.split(claim.text) for each in _limited(clause))
    for clause, said, alone, last in limited:
        if any(said.casefold() in source.text.casefold() for source in evidence.passages):
            continue
        for one in _named(alone, last=last):
            rest = _words(clause) - one
            if len(rest) < _LEAST or _is_told(one, rest, evidence):
                continue
            compared = {word for word in clause.casefold().split() if word in _COMPARING}
            for source in evidence.passages:
                if any(c.isdigit() for c in alone.split()[0]) and alone.split()[0] in source.text.split():
                    continue  # *only 19 games* finds the 19 of the source few, and says nothing of others
                if not compared <= set(source.text.casefold().split()):
                    continue  # *only Mia is below the mark* says nothing of where the mark is
                told = next((more for each in _CLAUSES.split(source.text) if (more := _more(one, rest, each))), "")
                if told:
                    return Misbinding(CONTEXT_STRIPPED, "quantifier", told, said, source.text, source.fact_id)
    return None


def _limited(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield each phrase that says *only*, the words beside that, and whether what stands alone is at their end."""
    for form, last in _ALONE:
        for match in form.finditer(text):
            if not _OTHERWISE.search(match[1]):
                yield match[0].strip(), match[1], last


def _named(alone: str, *, last: bool) -> Iterator[frozenset[str]]:
    """Yield what may be the name of what stands alone: its next word, its next two words and so on."""
    words = alone.split()
    for count in range(1, min(_MOST, len(words)) + 1):
        if one := _words(" ".join(words[-count:] if last else words[:count])):
            yield one


def _is_told(one: frozenset[str], rest: frozenset[str], evidence: Evidence) -> bool:
    """Whether a clause of a source limits it to the one itself."""
    clauses = (each for source in evidence.passages for each in _CLAUSES.split(source.text) if _LIMITED.search(each))
    return any(one & (words := _words(each)) and len(rest & words) >= _MOSTLY * len(rest) for each in clauses)


def _more(one: frozenset[str], rest: frozenset[str], clause: str) -> str:
    """Return how a clause says of more than one what a claim says of one alone, or the empty string."""
    stated = _words(clause)
    if _LIMITED.search(clause) or len(rest & stated) < _MOSTLY * len(rest):
        return ""
    if not one <= stated:
        return next((m[0] for m in _OF_EACH.finditer(clause) if not _words(m[1].split()[0] if m[1] else "") & rest), "")
    joined = (m for m in _JOINS.finditer(clause) if _is_beside(one, rest, clause[: m.start()], clause[m.end() :]))
    return clause.strip() if any(True for _ in joined) else ""


def _is_beside(one: frozenset[str], rest: frozenset[str], before: str, after: str) -> bool:
    """Whether one of the two that *and* or *or* joins is what stands alone, and the other is nothing that the claim speaks of."""
    left, right = _words(" ".join(before.split()[-_CLOSE:])), _words(" ".join(after.split()[:_CLOSE]))
    return any(one <= mine and its and not its & (one | rest) for mine, its in ((left, right), (right, left)))

"""Exceptions exchanged: *only at Mill Lane* for *everywhere except at Mill Lane*, *all days but Monday* for *on Mondays only* (SPEC-005 §5.3)."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.exceptions import EXCEPTION, excepted
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern

_ONLY = pattern(
    r"\b(?:only|solely|exclusively)\s+(?:(?:at|in|on|for|to|by|with|from|before|after|during)\s+)?([^.,;:]{2,40})",
    ignore_case=True,
)
_APART = pattern(
    r"\b(?:except\w*|excluding|apart from|other than|but|bar|unless|others?|rest|remaining|only|alone)\b",
    ignore_case=True,
)
_CLAUSES = pattern(r"[;:]\s|[;\n]|,?\s(?:while|whereas|but)\s", ignore_case=True)
_MOSTLY = 0.5


def exchanged_exception(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the exception that *claim* makes of what its source says something of, or the other way round; or ``None``."""
    if claim.text.rstrip().endswith("?"):
        return None
    return _only_for_except(claim, evidence) or _except_for_some(claim, evidence)


def _only_for_except(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    match = _ONLY.search(claim.text)
    if match is None:
        return None
    alone, said = _words(match[1]), _words(claim.text)
    for source in evidence.passages:
        found = excepted(source.text)
        if found is None or not found.one <= alone or has_negator(claim.text) is not found.denied:
            continue
        rest = said - found.one
        if rest and len(rest & found.rest) >= _MOSTLY * len(rest) and not _is_said(found.one, rest, source, evidence):
            return Misbinding(CONTEXT_STRIPPED, EXCEPTION, source.text, match[0].strip(), source.text, source.fact_id)
    return None


def _except_for_some(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    mine = excepted(claim.text)
    if mine is None:
        return None
    own = mine.rest - mine.one
    for source in evidence.passages:
        for clause in _CLAUSES.split(source.text):
            alike = not _APART.search(clause) and has_negator(clause) is mine.denied
            if alike and mine.one <= _words(clause) and _is_near(own, _words(clause)):
                return Misbinding(CONTEXT_STRIPPED, EXCEPTION, clause.strip(), claim.text, source.text, source.fact_id)
    return None


def _is_near(own: frozenset[str], words: frozenset[str]) -> bool:
    """Whether a clause has most words of what a claim says of the others, and all figures among them."""
    figures = {word for word in own if word[0].isdigit()}
    return bool(own) and len(own & words) >= _MOSTLY * len(own) and figures <= words


def _is_said(one: frozenset[str], rest: frozenset[str], besides: ReadSentence, evidence: Evidence) -> bool:
    """Whether another sentence says the claim's own of the one."""
    return any(
        one <= (words := _words(each.text)) and bool(rest & words) and not has_negator(each.text)
        for each in evidence.passages
        if each.text != besides.text
    )


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}

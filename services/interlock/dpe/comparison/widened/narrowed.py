"""Limits added: *allowed outside peak hours* where a source says *allowed at all times* (SPEC-005 §5.3).

A source that says of something that it holds at all times, everywhere or without exception leaves no room for *only*, *except* or
*outside*. The claim must be of the same thing, and no source may limit it.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern

_ALWAYS = pattern(
    r"\b(?:at all times|at any time|any time|at any hour|always|around the clock|round the clock|24 hours a day|day and night|all year(?: round)?"
    r"|all day(?: long)?|every day|seven days a week|in all cases|in every case|in any case|without exception|without (?:any )?restrictions?"
    r"|without (?:any )?limits?|everywhere|throughout the \p{L}+|unconditionally|in all weathers?|to everyone|to everybody|by everyone|by anyone)\b",
    ignore_case=True,
)
_LIMITS = pattern(
    r"\b(?:only|solely|except(?: for)?|unless|outside|other than|apart from|but not|not (?:on|in|at|during|before|after|by|when|if)|provided(?: that)?"
    r"|as long as)\b",
    ignore_case=True,
)
_CLAUSES = pattern(r"[;]\s|[;\n]|,?\s(?:while|whereas|but)\s", ignore_case=True)
_LEAST = 2


def narrowed(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* limits and its source says holds always, or ``None``."""
    if claim.text.rstrip().endswith("?") or _ALWAYS.search(claim.text):
        return None
    limit = _LIMITS.search(claim.text)
    if limit is None:
        return None
    said = _words(claim.text)
    for source in evidence.passages:
        for subject, clause in _always(source.text):
            if subject <= said and not _is_limited(subject, evidence):
                return Misbinding(
                    CONTEXT_STRIPPED,
                    "condition",
                    clause,
                    claim.text[limit.start() :].strip(),
                    source.text,
                    source.fact_id,
                )
    return None


def _always(text: str) -> Iterator[tuple[frozenset[str], str]]:
    """Yield the words of what a clause says *always* of, and the clause."""
    for clause in _CLAUSES.split(text):
        match = _ALWAYS.search(clause)
        if match is None or has_negator(clause) or _LIMITS.search(clause):
            continue
        subject = _words(clause.replace(match[0], " "))
        if len(subject) >= _LEAST:
            yield subject, clause.strip()


def _is_limited(subject: frozenset[str], evidence: Evidence) -> bool:
    """Whether a clause of a source limits the same itself."""
    clauses = (clause for source in evidence.passages for clause in _CLAUSES.split(source.text))
    return any(
        _LIMITS.search(clause) and len(subject & _words(clause)) >= min(_LEAST, len(subject)) for clause in clauses
    )


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}

"""The spared bound: a claim that holds those to a rule whom its source exempts from it (SPEC-005 §5.3).

*Tankers are exempt from the levy* is at odds with *tankers have to pay the levy too*. An exemption for a time or in one case alone is left.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import EXCLUDING, has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern

_SPARES = pattern(
    r"^(.*?)\b(?:is|are|was|were|be|been|being|remains?|stays?)\s+(?:also\s+|still\s+|all\s+)?(?:exempt(?:ed)?|excused|spared|excepted)\b"
    r"(?:\s+from\s+(.*))?$",
    ignore_case=True,
)
_BINDS = pattern(
    r"\b(?:must|have to|has to|had to|needs? to|required|obliged|subject to|appl(?:y|ies) to|binds?|covers?|extends? to|owes?|liable)\b",
    ignore_case=True,
)
_AT_TIMES = pattern(
    r"\b(?:until|unless|if|when|while|provided|once|after|before|only|partly|part of|half|may be|can be|could be)\b",
    ignore_case=True,
)
_SPARED_TOO = pattern(
    r"\b(?:free|exempt\w*|except\w*|excus\w+|exclud\w+|spared|waive\w*|optional|voluntary|may|can)\b", ignore_case=True
)
_CLAUSES = pattern(r"[.;:—–]\s|,?\s(?:but|while|whereas)\s|\sand\s")
_MOSTLY = 0.6


def bound_though_spared(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return whom a source exempts and *claim* binds, or ``None``."""
    denied = has_negator(claim.text) or any(word in EXCLUDING for word in claim.text.lower().split())
    if denied or claim.text.rstrip().endswith("?") or _SPARED_TOO.search(claim.text) or not _BINDS.search(claim.text):
        return None
    for source in evidence.passages:
        for one, rule, text in _spared(source.text):
            if _is_of(claim.text, one, rule):
                return Misbinding(NEGATION_FLIP, "condition", text, claim.text, source.text, source.fact_id)
    return None


def _spared(text: str) -> Iterator[tuple[frozenset[str], frozenset[str], str]]:
    """Yield whom each clause exempts, from what, and its text."""
    for clause in _CLAUSES.split(text.strip().rstrip(".")):
        match = _SPARES.match(clause)
        if match is not None and not has_negator(clause) and not _AT_TIMES.search(match[0][match.end(1) :]):
            one = _words(match[1].partition(",")[0])
            if one:
                yield one, _words(match[2] or ""), clause.strip()


def _is_of(claim: str, one: frozenset[str], rule: frozenset[str]) -> bool:
    """Whether a claim is of those whom a clause exempts, and of what it exempts them from where it tells that."""
    said = _words(claim)
    return len(one & said) >= _MOSTLY * len(one) and (not rule or bool(rule & said - one))


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}

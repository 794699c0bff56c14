"""Included: a claim that says of what its source excepts what holds of all others (SPEC-005 §5.3)."""

from __future__ import annotations

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.exceptions import EXCEPTION, includes_exception, tells_exception

_OF_EXCEPTIONS = frozenset({NEGATION_FLIP, CONTEXT_STRIPPED})


def included(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the exception that *claim* counts among the others, or ``None``. Another source may say the same of it."""
    for source in evidence.passages:
        found = includes_exception(claim.text, source.text)
        others = (each for each in evidence.passages if each.text != source.text)
        if found is not None and not any(claim.content <= each.content for each in others):
            told = " ".join(sorted(found.one))
            return Misbinding(NEGATION_FLIP, "condition", f"except {told}", told, source.text, source.fact_id)
    return None


def without_told_exceptions(found: list[Misbinding], claim: ReadSentence) -> list[Misbinding]:
    """Return findings without the turned predicates and dropped limits of a source whose exception *claim* tells as one."""
    return [
        each
        for each in found
        if each.type not in _OF_EXCEPTIONS or each.slot == EXCEPTION or not tells_exception(claim.text, each.evidence)
    ]

"""Demands waived: *she need not take the test* where children get in *only if they pass a test* (SPEC-005 §5.3).

What a source sets as a condition, or demands with *must*, a claim says is not needed. A source that spares somebody from it, or a claim of
another case, is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import EXCLUDING, has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern

_WAIVES = pattern(
    r"\b(?:need not|needn['’]t|(?:do|does|did)(?: not|n['’]t) (?:have|need) to|(?:is|are|was|were) not (?:required|obliged|needed) to"
    r"|no need to|without (?:having|needing) to|(?:do|does|did)(?: not|n['’]t) (?:need|require)|without)\s+([^.,;:!?]{2,60})",
    ignore_case=True,
)
_DEMANDS = pattern(
    r"\b(?:only (?:if|when|with|after|once|on|against)|provided(?: that)?|(?:as|so) long as|on condition (?:that|of)|subject to"
    r"|must(?: first)?(?: be)?|(?:has|have) to(?: first)?|(?:is|are) required to|(?:is|are) obliged to|requires?|needs?)\s+([^.,;:!?]{2,80})",
    ignore_case=True,
)
_SPARES = pattern(
    r"\b(?:not|never|no|free|exempt\w*|except|unless|optional|voluntary|waived?|without|others?|otherwise)\b|n['’]t\b",
    ignore_case=True,
)
_CLAUSES = pattern(r"[;:]\s|[;\n]|,?\s(?:while|whereas|but|because|since)\s", ignore_case=True)
_CUTS = pattern(
    r"\b(?:if|when|unless|after|before|because|since|so|until|while|and|or|who|which|for|at|in|on|from|by)\b",
    ignore_case=True,
)
_LIGHT = words_of(
    "x take have get do pass make give be go come show bring hold carry use present provide submit wear buy pay ask need require"
)
_LEAST, _HALF = 2, 0.5
_MOST, _REACH = 8, 300  # what one clause waives, and how much before it is of its case


def waived(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* waives and its source demands, or ``None``."""
    if claim.text.rstrip().endswith("?"):
        return None
    for clause in _CLAUSES.split(claim.text):
        for thing, written, rest in _waived(clause):
            told = list(_demanded(thing, evidence))
            if not told or _is_spared(thing, evidence):
                continue
            for stated, part, source in told:
                said = _words(claim.text) - thing
                if _is_of_the_case(rest, said, part) and _is_closest(said, part, source.text):
                    return Misbinding(
                        NEGATION_FLIP, "condition", stated, written, source.text, source.fact_id, about=thing | rest
                    )
    return None


def _waived(clause: str) -> Iterator[tuple[frozenset[str], str, frozenset[str]]]:
    """Yield what a clause waives, how it is written, and the other words of the clause."""
    for match in islice(_WAIVES.finditer(clause), _MOST):
        before = clause[max(match.start() - _REACH, 0) : match.start()]
        if match[0].lower().startswith("without ") and (
            has_negator(before) or not match[0].lower().startswith("without")
        ):
            continue
        cut = _CUTS.search(match[1])
        thing = _words(match[1][: cut.start()] if cut is not None else match[1]) - _LIGHT
        if thing and not any(word[0].isdigit() for word in thing):
            yield thing, match[0].strip(), _words(before) - _LIGHT


def _demanded(thing: frozenset[str], evidence: Evidence) -> Iterator[tuple[str, str, ReadSentence]]:
    for source in evidence.passages:
        for part in _CLAUSES.split(source.text):
            for match in islice(_DEMANDS.finditer(part), _MOST):
                if thing <= _words(match[1]) and not has_negator(match[1]):
                    yield match[0].strip(), part, source


def _is_spared(thing: frozenset[str], evidence: Evidence) -> bool:
    """Whether a clause of a source that speaks of the thing spares anybody from it, too."""
    clauses = (part for source in evidence.passages for part in _CLAUSES.split(source.text))
    return any(
        thing & _words(part) and (_SPARES.search(part) or set(part.lower().split()) & EXCLUDING) for part in clauses
    )


def _is_of_the_case(rest: frozenset[str], said: frozenset[str], part: str) -> bool:
    """Whether a claim is of the case of a clause: its figures are that clause's, and it shares its other words, or has none."""
    words = _words(part)
    figures = {word for word in said if word[0].isdigit()}
    if figures - words:
        return False
    return not rest or len(rest & words) >= _HALF * len(rest) or len(said & words) >= _LEAST + 1


def _is_closest(said: frozenset[str], part: str, text: str) -> bool:
    """Whether a claim has more words of the clause that demands something than of any clause beside it, which may be of its case."""
    own = len(said & _words(part))
    return all(len(said & _words(each)) < own for each in _CLAUSES.split(text) if each != part and each.strip())


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}

"""All for some: *at whichever of the four sites* where a source says *at two of them, not at the others* (SPEC-005 §5.3).

A sentence that says something of some and the contrary of *the others* leaves nothing to say of all. A claim that does so in its words,
with *all*, *both*, *every*, *any* or *whichever*, takes the others in.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import EXCLUDING, has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern

_ALL = pattern(
    r"\b(?:all|both|every|each|any|whichever|no matter which|regardless of which|whatever|everywhere|throughout)\b\s*((?:[\p{L}\p{N}’'-]+\s*){1,5})",
    ignore_case=True,
)
_OTHERS = pattern(
    r"\b(?:the|all)\s+(?:two\s+|three\s+|four\s+|five\s+)?(?:other|remaining)\s+[\p{L}]|\b(?:the|all) others?\b|\bthe (?:other (?:one|two|three|four)|rest|remainder)\b"
    r"|\b(?:[\p{L}]+er ones|those (?:who|that|which|with|without|in|on|at|from|of)\b)|\bthe latter\b",
    ignore_case=True,
)
_CLAUSES = pattern(r"[;:]\s|[;\n]|,?\s(?:while|whereas|but)\s|,\s(?:and|not)\s", ignore_case=True)
_PARTS = pattern(r"[;:]\s|[;\n]|,?\s(?:while|whereas|but)\s", ignore_case=True)
_LIMITS = pattern(
    r"\b(?:except|excluding|unless|only|if|when|where|who|whose|apart from|other than|without|almost|nearly)\b",
    ignore_case=True,
)
_SAYS_NOT = pattern(
    r"\b(?:not|no|none|never|neither|nor|nothing|unaffected|exempt\w*|stays?|keeps?|remains?)\b|n['’]t\b",
    ignore_case=True,
)
_BOTH_OF = pattern(r"\bboth\b[^.;:]{1,60}\band\b", ignore_case=True)
_AT_ALL = pattern(
    r"\b(?:in all|after all|above all|all in|first of all|any more|any longer|any case|each other|all but|not all)\b|\bat all\s*(?:[,.;]|\z)",
    ignore_case=True,
)
_MOSTLY = 0.6


def of_others_too(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* says of all and its source of some, and not of the others; or ``None``."""
    if claim.text.rstrip().endswith("?"):
        return None
    for part in _PARTS.split(claim.text):
        match = _ALL.search(part)
        if match is None or _BOTH_OF.search(part) or _AT_ALL.search(part):
            continue
        said = _words(part)
        for source in evidence.passages:
            if any(each[0].casefold() not in source.text.casefold() for each in _LIMITS.finditer(part)):
                continue
            for some, others in _told(source.text):
                if _is_of_it(match[1], part, some, others) and not _is_told(said, source, evidence):
                    return Misbinding(
                        CONTEXT_STRIPPED,
                        "quantifier",
                        source.text,
                        match[0].strip(),
                        source.text,
                        source.fact_id,
                        about=said,
                    )
    return None


def _is_of_it(counted: str, part: str, some: str, others: str) -> bool:
    """Whether a claim says of all what a clause says of some: it counts what the clauses speak of, and names none of the some."""
    said, own = _words(part), _words(some)
    known = own | _words(others)
    first = next((word for each in counted.split() for word in _words(each) if word in known and word.isalpha()), "")
    named = {word for each in some.split()[1:] if each[:1].isupper() for word in _words(each)}
    if not first or named & said or has_negator(part) is not has_negator(some) or own <= said:
        return False
    rest = {word for word in said - {first} if not (word in _words(counted) and word[0].isdigit() and word not in own)}
    return bool(rest & own) and len(rest & own) >= _MOSTLY * len(rest)


def _is_told(said: frozenset[str], source: ReadSentence, evidence: Evidence) -> bool:
    """Whether another sentence says so of all itself."""
    return any(
        _ALL.search(each.text) and len(said & _words(each.text)) >= _MOSTLY * len(said)
        for each in evidence.passages
        if each.text != source.text
    )


@remembered(bytes_a_character=10, from_length=60)
def _told(text: str) -> tuple[tuple[str, str], ...]:
    return tuple(_each(text))


def _each(text: str) -> Iterator[tuple[str, str]]:
    """Yield each clause that says something of some, with the one behind it that says the contrary of the others."""
    if _ALL.search(text) and not _OTHERS.search(text):
        return
    clauses = [(match, text[start:end]) for start, end, match in _cut(text)]
    for (_, some), (cut, others) in pairwise(clauses):
        told = f"not {others}" if "not" in cut else others
        if not _OTHERS.search(told) or _OTHERS.search(some):
            continue
        if bool(_SAYS_NOT.search(told)) is not has_negator(some) and not set(some.lower().split()) & EXCLUDING:
            yield some, told


def _cut(text: str) -> Iterator[tuple[int, int, str]]:
    start, word = 0, ""
    for match in _CLAUSES.finditer(text):
        yield start, match.start(), word
        start, word = match.end(), match[0].lower()
    yield start, len(text), word


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}

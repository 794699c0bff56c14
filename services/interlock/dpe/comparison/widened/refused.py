"""Refused things taken: *the receipt or a photo of it* where *a photo is not accepted* (SPEC-005 §5.3).

A clause of a source says of a thing that it is not accepted, or sets it apart with *not for …* or *but neither …*. A claim that adds that
thing with *or*, *and* or *also*, or says that it will do, takes what the source refuses. So does one that ends with *and so do …*.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern

_TAKEN = (
    r"accepted|allowed|permitted|valid|enough|sufficient|recogni[sz]ed|covered|included|refund(?:ed|able)|eligible|admitted|entitled|acceptable"
    r"|possible|taken|granted|offered|served|available|welcome|affected|paid|provided|supported|exempt"
)
_NOUN = r"[\p{L}\p{N}&’'-]+"
_REFUSES = (
    pattern(
        rf"^\W*((?:{_NOUN}\s+){{1,8}}?)(?:is|are|was|were|will be|would be|can|may|must|does|do|shall)\s*(?:not|n['’]t|never|no longer)\s+(?:be\s+)?(?:\p{{L}}+ly\s+)?"
        rf"(?:{_TAKEN}|count|qualify|suffice|do)\b",
        ignore_case=True,
    ),
    pattern(
        rf"(?:,\s+(?:but\s+)?|\sbut\s+)not\s+((?:(?:to|for|on|in|at|by|with|from|of|during|when|the|a|an|any)\s+)*{_NOUN}(?:\s+{_NOUN}){{0,3}})\s*[.,;)]?\s*$",
        ignore_case=True,
    ),
    pattern(r"\bneither\s+([^.;:,]{1,40}?)\s+nor\s+([^.;:,]{1,40})", ignore_case=True),
)
_JOINED = pattern(r"\s+(?:or|and|nor)\s+|,\s+", ignore_case=True)
_DETERMINERS = r"(?:(?:to|for|on|in|at|by|with|from|of|during|the|a|an|any|some|its|their|your|his|her|our|also|even|those|these)\s+)*"
_ADDS = pattern(
    rf"(?:\bor|\band|\bas well as|\beven|\balso|\bincluding|\bin addition to|\bbesides|\beither|\bboth)\s+({_DETERMINERS}{_NOUN}(?:\s+{_NOUN}){{0,3}})",
    ignore_case=True,
)
_DOES = pattern(
    rf"(?:^|,)\W*({_DETERMINERS}{_NOUN}(?:\s+{_NOUN}){{0,3}})\s+(?:is|are|will|can|may)\s+(?:be\s+|also\s+|equally\s+)*(?:{_TAKEN}|do|fine|ok|okay)\b",
    ignore_case=True,
)
_SO_DO = pattern(
    rf"\b(?:and so|as)\s+(?:is|are|do|does|did|was|were|has|have|can|may|must|will)\s+((?:(?:the|a|an|all|its|their|your|those)\s+)*{_NOUN}(?:\s+{_NOUN}){{0,3}})\s*[.,;!]?\s*$"
    rf"|\b(?:the same|this also|it also|that also|likewise)\s+(?:goes|applies|holds|is true|counts)\s+(?:for|to|of)\s+((?:(?:the|a|an|all|its|their|your|those)\s+)*{_NOUN}(?:\s+{_NOUN}){{0,3}})",
    ignore_case=True,
)
_LIMITS = pattern(
    r"\b(?:except|excluding|unless|without|instead of|rather than|apart from|other than|than|whether|if)\b",
    ignore_case=True,
)
_CLAUSES = pattern(r"[;:]\s|[;\n]|\s(?:while|whereas|but)\s", ignore_case=True)
_PARTS = pattern(r"[;:]\s|[;\n]|\s(?:while|whereas)\s", ignore_case=True)
_VERB = pattern(
    r"\A(?:is|are|was|were|be|has|have|had|can|may|must|will|do|does|did|should|would|could|to)\b", ignore_case=True
)
_FREE = pattern(
    r"\p{L}-free\b|\bfree (?:of|from)\b|\bnon-\p{L}|\b(?:refus|reject|exclud|forbid|prohibit|bann)\p{L}|\bturn(?:s|ed)? (?:down|away)\b",
    ignore_case=True,
)
"""What denies without a *not*: *alcohol-free*, *refuses*."""
_LONG = 2


def refused(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return what *claim* takes and its source refuses, or ``None``."""
    if claim.text.rstrip().endswith("?"):
        return None
    return _taken(claim, evidence) or _likewise(claim, evidence)


def _taken(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    told = [(item, text, source) for source in evidence.passages for item, text in _items(source.text)]
    for part in _CLAUSES.split(claim.text) if told else ():
        if has_negator(part) or _LIMITS.search(part) or _FREE.search(part):
            continue
        for added, written in _added(part):
            for item, text, source in told:
                if not _is_named(item, added):
                    continue
                rest = _words(claim.text) - item
                if rest & (_words(source.text) - item) and not _is_told(item, rest, evidence):
                    return Misbinding(
                        NEGATION_FLIP, "condition", text, written, source.text, source.fact_id, about=added
                    )
    return None


def _is_named(item: frozenset[str], added: frozenset[str]) -> bool:
    """Whether words name a thing; of a long name all but one are enough: *frost damage*, *damage caused by frost*."""
    return item <= added or (len(item) > _LONG and len(item & added) >= len(item) - 1)


def _is_told(item: frozenset[str], rest: frozenset[str], evidence: Evidence) -> bool:
    """Whether a clause of a source speaks of the thing and of what a claim says of it without refusing it."""
    clauses = (part for source in evidence.passages for part in _PARTS.split(source.text))
    return any(
        item <= (words := _words(part)) and bool(rest & words - item) and not has_negator(part) for part in clauses
    )


def _added(part: str) -> Iterator[tuple[frozenset[str], str]]:
    for form in (_ADDS, _DOES):
        for match in form.finditer(part):
            if _VERB.match(match[1]) is None:
                yield _words(match[1]), match[0].strip()


@remembered(bytes_a_character=10, from_length=60)
def _items(text: str) -> tuple[tuple[frozenset[str], str], ...]:
    """Return the words of each thing that a text refuses, and the clause that does."""
    found: list[tuple[frozenset[str], str]] = []
    for part in _PARTS.split(text):
        for form in _REFUSES:
            for match in form.finditer(part):
                named = [piece for group in match.groups() if group for piece in _JOINED.split(group)]
                found.extend((words, part.strip()) for piece in named if (words := _words(piece)))
    return tuple(found)


def _likewise(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return of whom a source denies what a claim says of another with *and so do …*."""
    match = _SO_DO.search(claim.text)
    if match is None or _LIMITS.search(claim.text):
        return None
    before = claim.text[: match.start()]
    other, said = _words(match[1] or match[2]), _words(before)
    if not other or not said - other:
        return None
    for source in evidence.passages:
        clauses = [part for part in _CLAUSES.split(source.text) if other <= _words(part)]
        about = [part for part in clauses if _words(part) & said - other]
        if about and all(has_negator(part) is not has_negator(before) for part in about):
            return Misbinding(
                NEGATION_FLIP,
                "condition",
                about[0].strip(),
                match[0].strip(),
                source.text,
                source.fact_id,
                about=other | said,
            )
    return None


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}

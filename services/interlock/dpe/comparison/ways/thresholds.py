"""Sides of a figure: *trenches shallower than 2 m are shored* for *deeper than 2 m*, and *however deep they are* (SPEC-005 §5.3).

A clause of a claim that tells on which side of a figure something holds is held against the clause of the sources with the same figure that
says most of the same. Where that has the other side, and denies no more and no less, the claim has turned the case round. A claim that
says that the measure does not matter lifts the case.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.clauses import sense_of
from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import CONTEXT_STRIPPED, NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.bindings.turned import are_opposite
from interlock.dpe.comparison.cases.bounds import bounds
from interlock.dpe.comparison.denials import EXCLUDING, has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import frame
from interlock.dpe.values.quantities import NUMBER, Value, comparable
from interlock.dpe.values.units import TIME

_CLAUSES = pattern(r"[;:]\s|[—–\n]|,?\s(?:but|while|whereas|otherwise)\s|,\s(?:and|or)\s", ignore_case=True)
_TELLS = pattern(
    r"\b(?:(?:at )?(?:least|most)|(?:no |not )?(?:more|less|fewer|longer|shorter|higher|lower|older|younger|larger|bigger|smaller|heavier|lighter"
    r"|deeper|shallower|wider|narrower|taller|later|earlier|warmer|colder|greater) than|over|under|above|below|beyond|within|up to|from"
    r"|or (?:more|less|fewer|over|under|older|younger|longer|above|below)|aged?|exceed\w*|and (?:over|under|above|below|older|younger))\b",
    ignore_case=True,
)
_IN_TIME = pattern(
    r"\b(?:by|before|after|until|till|since|from|starting|within)\s+(?:[\p{L}]+\s+){0,2}?\z", ignore_case=True
)
_KINDS = {
    "spared": word_set("free exempt spared waived optional voluntary unlimited enough sufficient"),
    "limited": word_set("except only unless otherwise others instead rest"),
    "may": word_set("may can could allowed permitted able free"),
}
_SIZES = (
    ("few fewer many small large big numerous size number", (NUMBER,)),
    ("old young age", (TIME, NUMBER)),
    ("long short length duration tall", (TIME, "length")),
    ("heavy light weight", ("mass",)),
    ("far near distance high low height deep shallow depth wide narrow width size", ("length",)),
    ("much little high low expensive cheap large small big amount value price sum worth", ("MONEY", NUMBER)),
    ("early late often time hour day date when", (TIME, "DATE")),
)
_LIFTS = pattern(
    r"\b(?:however|no matter how)\s+([\p{L}]+)\b|\b(?:of|at|for|with|in)\s+any\s+([\p{L}]+)\b"
    r"|\b(?:regardless|irrespective) of\s+(?:(?:the|its|their|your|his|her)\s+)?([\p{L}]+)\b"
    r"|\b(?:whatever|no matter what)\s+(?:(?:the|its|their|your|his|her)\s+)?([\p{L}]+)\b|\bno matter\s+(when)\b|\bat any (time|hour)\b",
    ignore_case=True,
)
_LEAST, _MOSTLY, _MOST = 2, 0.5, 12


@dataclass(frozen=True)
class _Sided:
    """A figure that bounds what a clause says, on which side that holds, and the other words of the clause."""

    value: Value
    above: bool
    around: frozenset[str]
    denied: bool
    kind: frozenset[str]
    text: str
    timed: bool = False
    """It is a time before or after which something holds: what is so by week 8 may be done after week 8."""


def turned_threshold(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the figure that *claim* has on the other side of what its source says, or lifts, or ``None``."""
    if claim.text.rstrip().endswith("?"):
        return None
    own, lifts = _sided(claim.text), list(_LIFTS.finditer(claim.text))
    told = [(its, source) for source in evidence.passages for its in _sided(source.text)] if own or lifts else []
    for mine in own:
        alike = [(its, source) for its, source in told if _is_one(mine.value, its.value)]
        ahead = "before" in mine.text.lower().split()  # *no later than a day before* is *at least a day before*
        found = None if ahead or mine.timed or any(its.timed for its, _ in alike) else _turned(mine, alike)
        if found is not None:
            its, source = found
            return Misbinding(
                NEGATION_FLIP, "condition", its.text, mine.text, source.text, source.fact_id, about=mine.around
            )
    return _lifted(claim, told) if lifts else None


def tells_the_other_side(claim: str, source: str) -> bool:
    """Whether a claim denies of one side of a figure what its source says of the other: *under 18 may not*, *those of 18 or over may*."""
    return any(
        _is_one(mine.value, its.value) and mine.above is not its.above and mine.denied is not its.denied
        for mine in _sided(claim)
        for its in _sided(source)
    )


def _turned(mine: _Sided, told: Sequence[tuple[_Sided, ReadSentence]]) -> tuple[_Sided, ReadSentence] | None:
    """Return the clause that says most of what a claim's says, where that is of the other side; ``None`` where one is of its own."""
    shared = [(len(mine.around & its.around), its, source) for its, source in told]
    most = max((count for count, _, _ in shared), default=0)
    if most < max(1, _MOSTLY * len(mine.around)) or (most < _LEAST <= len(mine.around)):
        return None
    best = [(its, source) for count, its, source in shared if count == most]
    if any(its.above is mine.above or not _says_the_same(mine, its) for its, _ in best):
        return None
    return best[0]


def _says_the_same(mine: _Sided, its: _Sided) -> bool:
    """Whether a clause says of its case nothing else than another of its own, as far as both tell."""
    new = mine.around - its.around
    if its.denied is not mine.denied or _are_opposed(mine, its) or its.kind != mine.kind:
        return False
    return 2 * len(new) <= len(mine.around & its.around) and not any(word[0].isdigit() for word in new)


def _are_opposed(mine: _Sided, its: _Sided) -> bool:
    """Whether two clauses say opposite things of their cases: *over 10 kg are banned*, *under 10 kg are allowed*."""
    own, other = mine.around - its.around, its.around - mine.around
    return any(are_opposite(sense_of(one), sense_of(two)) for one in own for two in other)


def _is_one(one: Value, other: Value) -> bool:
    return comparable(one, other) and (one.moment == other.moment) and one.amount == other.amount


def _lifted(claim: ReadSentence, told: Sequence[tuple[_Sided, ReadSentence]]) -> Misbinding | None:
    """Return the bound of a source that a claim says does not matter: *however small the group is*."""
    for match in _LIFTS.finditer(claim.text) if told else ():
        word = next(each for each in match.groups() if each).lower()
        scales = {scale for words, each in _SIZES if word in words.split() for scale in each}
        clause = next(c for c in _clauses(claim.text) if match[0] in c)
        around = words_of("x " + clause.replace(match[0], " ")) - {"x"}
        if not scales or any(match[0].casefold() in source.text.casefold() for _, source in told):
            continue
        for its, source in told:
            like = {its.value.kind, its.value.unit} & scales
            if like and _is_near(around, its) and _denies(clause) is its.denied:
                return Misbinding(
                    CONTEXT_STRIPPED, "condition", its.text, match[0], source.text, source.fact_id, about=around
                )
    return None


def _is_near(around: frozenset[str], its: _Sided) -> bool:
    shared = len(around & its.around)
    return shared >= min(_LEAST, len(its.around)) and 2 * shared >= len(its.around)


@remembered(bytes_a_character=10, from_length=60)
def _sided(text: str) -> tuple[_Sided, ...]:
    return tuple(_each(text))


def _clauses(text: str) -> list[str]:
    return [clause for clause in _CLAUSES.split(text) if clause.strip()]


def _each(text: str) -> Iterator[_Sided]:
    for clause in _clauses(text):
        read = frame(clause)
        found = [(value, bound) for sentence in read.sentences for value, bound in bounds(sentence, read)]
        for value, bound in found[:_MOST]:
            before = clause[: max(clause.find(value.text), 0)]
            if (bound.low is None) is (bound.high is None):
                continue
            timed = _IN_TIME.search(before) is not None
            rest = _TELLS.sub(" ", clause.replace(value.text, " "))
            around = words_of("x " + rest) - {"x"}
            if around:
                yield _Sided(value, bound.high is None, around, _denies(rest), _kind(rest), clause.strip(), timed=timed)


def _denies(text: str) -> bool:
    return has_negator(text) is not bool(set(text.lower().replace(",", " ").split()) & EXCLUDING)


def _kind(text: str) -> frozenset[str]:
    """Return what a clause says of its case in general: that it is free of something, may be, or must be."""
    words = set(text.lower().replace(",", " ").split())
    return frozenset(name for name, members in _KINDS.items() if words & members)

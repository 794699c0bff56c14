"""Words for a share against the share itself: *most of the staff cycle*, where 41 % or two of six do (SPEC-005 §5.3).

A source that gives the share in so many words says whether it is most, few or all. The claim may say nothing besides: all its words
stand with the share.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.cues import NUMBER_CHANGED
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import NUMBER, Value
from interlock.dpe.values.units import PERCENT

_THE = r"(?:\s+(?:of\s+)?(?:the|these|those|its|their|our|his|her)\s+([\p{L}'’-]+))"
_OF = r"(?:\s+of\s+(?:the|these|those|its|their|our|his|her|all)\s+([\p{L}'’-]+))"
_QUANTIFIERS = (
    (pattern(rf"\A(?:most{_OF}|most\s+([\p{{L}}'’-]+s))\b", ignore_case=True), 0.5, 1.0),
    (pattern(rf"\A(?:(?:the|a)\s+(?:great\s+|vast\s+|large\s+|clear\s+)?majority|(?:more\s+than|over|well\s+over)\s+half){_OF}", ignore_case=True), 0.5, 1.0),
    (pattern(rf"\A(?:a\s+(?:small\s+)?minority|(?:less|fewer)\s+than\s+half|under\s+half|only\s+a\s+few|few){_OF}", ignore_case=True), 0.0, 0.5),
    (pattern(rf"\A(?:all{_THE}|all\s+([\p{{L}}'’-]+s)|every\s+one{_OF})\b", ignore_case=True), 1.0, 1.0),
    (pattern(rf"\A(?:none{_OF})\b", ignore_case=True), 0.0, 0.0),
)  # fmt: skip
"""What opens a clause and says how much of a thing, with the least and the most that it may be."""
_CLAUSES = pattern(r"[,;:]\s|\s(?:and|but|while|whereas|because|since|so)\s")
_WITHIN = pattern(
    r"\A\s+(?:out\s+of|of|in)\s+(?:the\s+|its\s+|their\s+|our\s+|these\s+|those\s+|every\s+)?\z", ignore_case=True
)
_LIMITED = pattern(r"\b(?:at least|at most|up to|if|when|only|almost|nearly|about|around|than|over|under|another|more|further)\b", ignore_case=True)  # fmt: skip
_LEAST, _UNKNOWN = 2, -1.0


@dataclass(frozen=True)
class _Share:
    """A share from 0 to 1, or ``_UNKNOWN`` where it is only limited, the words that stand with it, and how it is written; ``bare``: of what is not said beside it."""

    share: float
    words: frozenset[str]
    text: str
    bare: bool


def portioned(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the word of *claim* for a share that the share in its sources is not, or ``None``."""
    if claim.text.rstrip().endswith("?") or has_negator(claim.text):
        return None
    for clause in _CLAUSES.split(claim.text.rstrip(" .!")):
        for quantifier, least, most in _QUANTIFIERS:
            found = quantifier.search(clause)
            if found is None:
                continue
            noun = words_of("x " + next(group for group in found.groups() if group)) - {"x"}
            rest = words_of("x " + clause[found.end() :]) - {"x"} - noun
            told = [
                (each, source)
                for source in evidence.passages
                for each in _shares(source.text)
                if len(rest) >= _LEAST - (not each.bare) and (rest if each.bare else rest | noun) <= each.words
            ]
            if len({each.share for each, _ in told}) == 1 and not _may_be(told[0][0].share, least, most):
                each, source = told[0]
                return Misbinding(
                    NUMBER_CHANGED, "share", each.text, found[0], source.text, source.fact_id, about=claim.content
                )
    return None


def _may_be(share: float, least: float, most: float) -> bool:
    """Whether a share is what a word says; half may be both most and few, and of one that is only limited nothing is known."""
    return share == _UNKNOWN or least <= share <= most


@remembered(bytes_a_character=10, from_length=60)
def _shares(text: str) -> tuple[_Share, ...]:
    return () if has_negator(text) else tuple(_each(text))


def _each(text: str) -> Iterator[_Share]:
    start = 0
    cuts = [(match.start(), match.end()) for match in _CLAUSES.finditer(text)]
    values = [v for v in read(text).values if v.amount is not None and not (v.vague or v.label or v.bound)]
    for first, last in (*cuts, (len(text), len(text))):
        piece, inside = text[start:first], [v for v in values if start <= v.start and v.end <= first]
        read_as = _share(text, inside)
        if read_as is not None:
            share, written = read_as
            of = piece[piece.find(written) + len(written) :].lstrip().lower()
            bare = len(inside) == 1 and not of.startswith("of ")
            limited = _LIMITED.search(piece) is not None
            yield _Share(_UNKNOWN if limited else share, words_of("x " + piece.replace(written, " ")), written, bare)
        start = last


def _share(text: str, values: list[Value]) -> tuple[float, str] | None:
    """Return the one share of a piece, with how it is written: *41 %*, *a third*, *two of the six*, *one in nine*."""
    if len(values) == 1 and values[0].unit == PERCENT:
        return (values[0].amount or 0.0) / 100, values[0].text
    if len(values) == 1 and values[0].fraction and not values[0].unit and 0 < (values[0].amount or 0.0) < 1:
        return values[0].amount or 0.0, values[0].text
    if len(values) != _LEAST or any(each.unit or each.kind != NUMBER for each in values):
        return None
    part, whole = values
    if _WITHIN.search(text[part.end : whole.start]) is None or not 0 < (part.amount or 0.0) <= (whole.amount or 0.0):
        return None
    return (part.amount or 0.0) / (whole.amount or 1.0), text[part.start : whole.end]

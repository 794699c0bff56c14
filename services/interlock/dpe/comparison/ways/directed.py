"""The way of a figure: *20 % fewer* for *rose by 20 %*, *gained 2 kg* for *lost 2 kg* (SPEC-005 §5.3).

Every place of the sources that states the figure says which way something went by it, and a claim says the opposite, whatever words
both have for that. A figure that a source also states without a way says nothing of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import NEGATION_FLIP, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.memory.remembered import remembered
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import ORDINAL, Value, comparable

_UP = (
    r"ris(?:e|es|ing)|rose|risen|grow(?:s|n|ing)?|grew|growth|increas(?:e|es|ed|ing)|climb(?:s|ed|ing)?|gain(?:s|ed|ing)?|jump(?:s|ed)?"
    r"|surg(?:e|es|ed)|soar(?:s|ed)?|expand(?:s|ed)?|rais(?:e|es|ed|ing)|add(?:s|ed|ing)?|up|upwards|lengthen(?:s|ed)?|extend(?:s|ed)?"
    r"|put on|(?:go|goes|going|went|gone) up|(?:put|puts) up"
)
_DOWN = (
    r"fall(?:s|en|ing)?|fell|drop(?:s|ped|ping)?|declin(?:e|es|ed|ing)|decreas(?:e|es|ed|ing)|shrinks?|shrank|shrunk"
    r"|reduc(?:e|es|ed|ing|tions?)|cut|cuts|cutting|lower(?:s|ed|ing)|los(?:e|es|t|ing|s)|shed|sank|slipp?(?:s|ed)?|plung(?:e|es|ed)"
    r"|slump(?:s|ed)?|deduct(?:s|ed|ing|ions?)?|subtract(?:s|ed)?|down|downwards|trimm?(?:s|ed)?|slash(?:es|ed)?|shorten(?:s|ed)?"
    r"|(?:take|takes|took|taken|taking|knock|knocks|knocked) off|(?:go|goes|going|went|gone|come|comes|coming|came) down"
)
_MORE = r"more|higher|greater|larger|bigger|heavier|longer|taller|up|dearer|pricier|wider|deeper|older|above|extra|increase|rise|gain|growth|raise"
_LESS = r"less|fewer|lower|smaller|lighter|shorter|down|cheaper|narrower|shallower|younger|below|off|decrease|drop|fall|decline|cut|reduction|loss"
_HEDGES = r"(?:by|a|an|about|around|roughly|some|nearly|almost|only|just|another|a further|further|well|over|more than|less than|up to)"
_FILLER = r"(?:[\p{L}’'-]+\s+){0,4}?"
_SIDES = ((1, _UP, _MORE), (-1, _DOWN, _LESS))
_BY = [
    (sign, pattern(rf"\b(?:{verbs})\s+(?:{_FILLER}by\s+)?(?:{_HEDGES}\s+)*\z", ignore_case=True))
    for sign, verbs, _ in _SIDES
]
_OF = [
    (
        sign,
        pattern(rf"\b(?:{verbs}|{nouns})\s+(?:in [\p{{L}} ’'-]{{1,40}}? )?of\s+(?:{_HEDGES}\s+)*\z", ignore_case=True),
    )
    for sign, verbs, nouns in _SIDES
]
_TO = [
    (
        sign,
        pattern(
            rf"\b(?:{verbs})\s+(?:{_FILLER})?(?:\d\S*\s+(?:%\s+|percent\s+)?)?(?:from\s+\S+(?:\s+\S+){{0,2}}?\s+)?to\s+(?:{_HEDGES}\s+)*\z",
            ignore_case=True,
        ),
    )
    for sign, verbs, _ in _SIDES
]
_AFTER = [
    (sign, pattern(rf"\A\s*(?:a (?:year|month|week|day) )?(?:{nouns})\b", ignore_case=True))
    for sign, _, nouns in _SIDES
]
_DONE = [
    (1, pattern(r"\A[^,.;:]{0,40}?\b(?:is|are|was|were|be|been|being)\s+(?:then\s+|also\s+)?(?:added|gained)\b", ignore_case=True)),
    (-1, pattern(r"\A[^,.;:]{0,40}?\b(?:is|are|was|were|be|been|being)\s+(?:then\s+|also\s+)?(?:deducted|subtracted|taken off|knocked off|lost)\b",
                 ignore_case=True)),
    (-1, pattern(r"\A\s*(?:was |were |is |are )?off\b", ignore_case=True)),
]  # fmt: skip
_SHARED = pattern(r"\A[^.;:]{0,60}?(?:\band\b|,|\bwhile\b)[^.;:]{1,60}?\bby\s+\z", ignore_case=True)
_CLAUSES = pattern(
    r"[;:]\s|[;\n]|,\s|\s(?:and|but|while|whereas|because|although|though|so|after which|which|who)\s", ignore_case=True
)
_THAN = pattern(r"\bthan\b", ignore_case=True)
_THEN = pattern(
    r"\bthan\s+(?:it\s+|they\s+)?(?:had\s+)?(?:in\s+|on\s+|at\s+|during\s+)?(?:(?:the|a|an|its|their|last)\s+)*(?:same\s+|first\s+)?"
    r"(?:year|month|week|day|quarter|season|previous|preceding|prior|last|before|earlier|expected|planned|usual|previously|\d{4})\b(?:\s+(?:before|earlier|ago)\b)?",
    ignore_case=True,
)
_OTHERWISE = pattern(
    r"\b(?:if|unless|would|had been|used to|until then|previously|formerly|before|earlier than|instead|rather|compared with (?:now|today)"
    r"|than (?:now|today|this))\b",
    ignore_case=True,
)
"""Where a claim looks back, or supposes something, the figure may go the other way."""
_WORDS = words_of(
    "x increase decrease rise fall more less fewer higher lower grew gained lost dropped added deducted cut up down year month week"
)


_REACH = 160
"""How far from a figure its way stands."""


@dataclass(frozen=True)
class _Moved:
    """A figure, which way something went by it, or to it, (0 where that is not said), and the words of its clause."""

    value: Value
    sign: int
    form: str
    around: frozenset[str]
    text: str


def directed(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the figure of *claim* that goes the other way in all its sources, or ``None``."""
    if claim.text.rstrip().endswith("?") or _OTHERWISE.search(_THEN.sub(" ", claim.text)):
        return None
    own = [each for each in _moves(claim.text) if each.sign]
    if not own or has_negator(claim.text):
        return None
    for mine in own:
        told = [(its, source) for source in evidence.passages for its in _moves(source.text) if _is_one(mine, its)]
        if not told or any(its.sign * mine.sign >= 0 or its.form != mine.form for its, _ in told):
            continue
        for its, source in told:
            about = (claim.content | words_of("x " + claim.text)) & (source.content | words_of("x " + source.text))
            if about - _WORDS - words_of("x " + mine.value.text) - {"x"} and not has_negator(its.text):
                return Misbinding(
                    NEGATION_FLIP, "direction", its.text, mine.text, source.text, source.fact_id, about=mine.around
                )
    return None


def _is_one(mine: _Moved, its: _Moved) -> bool:
    """Whether two figures are one: of one unit and amount."""
    return comparable(mine.value, its.value) and abs(mine.value.amount or 0.0) == abs(its.value.amount or 0.0)


@remembered(bytes_a_character=10, from_length=60)
def _moves(text: str) -> tuple[_Moved, ...]:
    return tuple(_each(text))


def _each(text: str) -> Iterator[_Moved]:
    cuts = [(match.start(), match.end()) for match in _CLAUSES.finditer(text)]
    last: tuple[int, int] = (0, 0)
    for value in read(text).values:
        if value.vague or value.label or value.kind == ORDINAL or value.moment is not None:
            continue
        first = max([value.start - _REACH, *(end for _, end in cuts if end <= value.start)])
        first = max(first, 0)
        ending = min([value.end + _REACH, len(text), *(start for start, _ in cuts if start >= value.end)])
        sign, form = _way(text[first : value.start], text[value.end : ending])
        if not sign and last[0] and _shares(text[last[1] : value.start]):
            sign, form = last[0], "by"
        if (than := _THAN.search(text[value.end : ending])) is not None and not _THEN.match(
            text[value.end : ending][than.start() :]
        ):
            sign = 0
        last = (sign, value.end) if form == "by" else (0, 0)
        yield _Moved(value, sign, form or "by", words_of("x " + text[first:ending]), text[first:ending].strip())


def _shares(between: str) -> bool:
    """Whether a figure shares the verb of the one before: *prices rise by 5 % and fees by 20 %*."""
    return _SHARED.search(between) is not None and not any(form.search(between) for _, form in _BY)


def _way(before: str, after: str) -> tuple[int, str]:
    for form, patterns, text in (
        ("to", _TO, before),
        ("by", _BY, before),
        ("by", _OF, before),
        ("by", _AFTER, after),
        ("by", _DONE, after),
    ):
        signs = {sign for sign, each in patterns if _found(each, text)}
        if len(signs) == 1:
            return signs.pop(), form
    return 0, ""


def _found(form: Any, text: str) -> bool:
    return form.search(text) is not None

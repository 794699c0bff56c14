"""Examples: values of a claim that no source states, since they stand for all of a span or are a case of a rule (SPEC-005 §5.2).

*On 10 November* in a closure from 3 to 14 November, *version 2.4.1* of the affected 2.2.0 to 2.4.3. Nobody invents such a value; whether
what is said of it is right is for other rules.
"""

from __future__ import annotations

from interlock.dpe.comparison.cases.cases import is_case, is_supposed
from interlock.dpe.comparison.ranges import in_span
from interlock.dpe.text.lexing import at
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.frames import Frame
from interlock.dpe.values.quantities import Value

_OPENING = 2
_INDEFINITE = word_set(
    "a an any every each if whoever someone somebody anyone anybody where when with suppose supposing nobody no"
)
_AT = word_set("on in at during")
_VERSION = r"(\d{1,4}(?:\.\d{1,4}){1,3})"
_VERSIONS = pattern(
    rf"(?:\b[vV])?\b{_VERSION}\s*(?:\bto\b|\bthrough\b|\buntil\b|\bup to\b|\band\b|[-–—])\s*(?:[vV])?{_VERSION}"
)


def is_example(value: Value, claim: Frame, fact: Frame) -> bool:
    """Whether a claim names a day or a version of a span that a source states, or a case on which it decides as the claim does."""
    dated = value.moment is not None and value.moment.minute is None and at(claim.tokens, value.first - 1).low in _AT
    return (dated and in_span(value, fact)) or lies_between(value, fact.reading.text) or is_case(value, claim, fact)


def supposes(value: Value, claim: Frame) -> bool:
    """Whether a claim tells a value of nothing definite, *a tower of*, *if*, *someone with*, which begins its sentence."""
    if value.moment is not None and at(claim.tokens, value.first - 1).low not in _AT:
        return False  # until when something holds is no example
    sentence = next((each for each in claim.sentences if each.first <= value.first < each.last), None)
    if sentence is None or not is_supposed(value, sentence, claim):
        return False
    opening = {token.low for token in claim.tokens[sentence.first : min(sentence.first + _OPENING, value.first)]}
    return bool(opening & _INDEFINITE)


def lies_between(value: Value, text: str) -> bool:
    """Whether a version is one of a range of versions that a text states."""
    own = _parts(value.label) if value.unit == "label:version" else ()
    return bool(own) and any(_parts(low) <= own <= _parts(high) for low, high in _VERSIONS.findall(text))


def _parts(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())

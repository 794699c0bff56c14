"""Routes turned round: *from the store to the shop*, where the source has it from the shop to the store (SPEC-005 §5.3).

Which verb says it is not asked: *moved*, *shifted* and *sent* are of one route. A source that also tells the way back, or only how far
it is, says nothing of a direction.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.comparison.bindings.evidence import Evidence
from interlock.dpe.comparison.bindings.findings import ENTITY_SUBSTITUTED, Misbinding
from interlock.dpe.comparison.bindings.passages import ReadSentence
from interlock.dpe.comparison.groupings.group import words_of
from interlock.dpe.text.patterns import pattern

_NOUN = r"""[^\s,.;:!?()"|]+(?:[.,]\d+)?"""
_ENDS = r"(?:by|in|on|at|when|for|because|and|or|so|with|without|after|before|during|since|until|while|if|as|that|which|who)"
_FROM = pattern(
    rf"\bfrom\s+({_NOUN}(?:\s+{_NOUN}){{0,7}}?)\s+(?:in)?to\s+({_NOUN}(?:\s+{_NOUN}){{0,4}})", ignore_case=True
)
_LABELS = pattern(
    r"""\bfrom"?:\s*"?([^\s,;"|][^,;\n"|]{0,40}?)"?[,;]?\s+"?to"?:\s*"?([^\s,;"|][^,;\n"|]{0,40})""", ignore_case=True
)
_END = pattern(rf"\s{_ENDS}\s", ignore_case=True)
_BACK = pattern(
    r"\b(?:back|returns?|returned|returning|vice versa|both (?:ways|directions)|either (?:way|direction)|round|swap\w*|swop\w*|exchang\w*"
    r"|revers\w*|opposite)\b",
    ignore_case=True,
)
_SAME_BOTH_WAYS = pattern(
    r"\b(?:distance|far|km|kilomet\w+|miles?|hours?|minutes?|between|connect\w*|links?|linked)\b", ignore_case=True
)
_DENIED = pattern(r"\b(?:not|never|no longer|cannot|instead of|rather than)\b|n['’]t\b", ignore_case=True)


def turned_route(claim: ReadSentence, evidence: Evidence) -> Misbinding | None:
    """Return the route that *claim* turns round and that no source tells as it does, or ``None``."""
    if any(each.search(claim.text) for each in (_DENIED, _BACK, _SAME_BOTH_WAYS)):
        return None
    for start, end, said in _routes(claim.text):
        told = [(route, source) for source in evidence.passages for route in _routes(source.text)]
        crossed = [(route, source) for route, source in told if _are_crossed(start, end, route[0], route[1])]
        if not crossed or any(_meet(start, a) and _meet(end, b) for (a, b, _), _ in told):
            continue
        if any(_BACK.search(each.text) and words_of(each.text) & (start | end) for each in evidence.passages):
            continue
        (_, _, stated), source = crossed[0]
        return Misbinding(ENTITY_SUBSTITUTED, "direction", stated, said, source.text, source.fact_id)
    return None


def _routes(text: str) -> Iterator[tuple[frozenset[str], frozenset[str], str]]:
    """Yield where each route of a text starts and ends, without the words of both, and how it is written."""
    for form in (_FROM, _LABELS):
        for match in form.finditer(text):
            ending = _END.search(match[2])
            start, end = _words(match[1]), _words(match[2][: ending.start()] if ending else match[2])
            if start - end and end - start:
                yield start - end, end - start, match[0]


def _words(text: str) -> frozenset[str]:
    return words_of("x " + text) - {"x"}


def _are_crossed(start: frozenset[str], end: frozenset[str], a: frozenset[str], b: frozenset[str]) -> bool:
    return _meet(start, b) and _meet(end, a) and not start & a and not end & b


def _meet(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether one end may be the other: the words of one are among those of the other."""
    return one <= other or other <= one

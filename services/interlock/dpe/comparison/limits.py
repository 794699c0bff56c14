"""Limits that a summary drops: conditions and doubts of the source that the summary states as fact (SPEC-004 §12.3).

Stage 3b finds a dropped limit where a claim copies its source (polarity.py). A summary shortens and rephrases, so it is
checked more strictly: a limit of the source sentence that a claim rests on must be kept by a sentence of the summary
that rests on the same source. The scope of a condition (pending review) is the text before it. The scope of a modal or
an adverb (may, allegedly) is its clause, or the text before it when commas set it off. A limit outside the scope of the
claim may be dropped.
"""

from __future__ import annotations

from collections.abc import Iterator

from interlock.dpe.text.content_words import content_words
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.frames import stem

_SCOPE_SHARE = 0.6
_LEAST_WORDS = 2

_CONDITION = pattern(
    r"\b(?:pending|subject to|provided that|unless|contingent (?:up)?on|conditional (?:up)?on|on (?:the )?condition that"
    r"|as long as|only if|if and when)\b",
    ignore_case=True,
)
_DOUBT = pattern(
    r"\b(?:conditionally|provisionally|tentatively|allegedly|reportedly|purportedly|supposedly|possibly|potentially|perhaps"
    r"|(?-i:may)|might|could (?:be|become|have|lead|cause|face|reach|rise|fall|cost|mean)"
    r"|(?:is|are|was|were) (?:expected|likely|believed|thought|alleged|rumou?red|reported|suspected|projected|due) to)\b",
    ignore_case=True,
)
_KEPT = pattern(
    r"\b(?:(?-i:may)|might|could|can|would|should|expect\p{L}*|plan\p{L}*|propos\p{L}*|likely|unlikely|possib\p{L}+|potential\p{L}*"
    r"|if|unless|pending|subject|provid\p{L}+|condition\p{L}*|contingent|provisional\p{L}*|tentativ\p{L}+|preliminary"
    r"|alleg\p{L}+|report\p{L}*|suspect\p{L}*|claim\p{L}*|accus\p{L}+|rumou?r\p{L}*|purport\p{L}*|suppos\p{L}+|believ\p{L}+"
    r"|thought|said|says|according|appear\p{L}*|seem\p{L}*|perhaps|maybe|probabl\p{L}+|apparently|aim\p{L}*|hop\p{L}+"
    r"|intend\p{L}*|forecast\p{L}*|project\p{L}*|estimat\p{L}+|awaits?|awaiting|waits?|depend\p{L}*|until|only|due|set to"
    r"|try\p{L}*|tries|tried|seek\p{L}*|consider\p{L}*|suggest\p{L}*|warn\p{L}*|fear\p{L}*|threat\p{L}*|risk\p{L}*|proposal)\b",
    ignore_case=True,
)
_CLAUSE = pattern(r"[,;:()—–]|\b(?:and|but|while|whereas|although|though|which|who|because|so)\b", ignore_case=True)


def lost(claim: str, source: str) -> str:
    """Return the limit that the source puts on a claim and that the claim drops, or an empty string."""
    if _KEPT.search(claim):
        return ""
    claim_words = _words(claim)
    for limit, scope in _limits(source):
        if len(scope & claim_words) >= max(_LEAST_WORDS, _SCOPE_SHARE * min(len(scope), len(claim_words))):
            return limit
    return ""


def keeps(sentence: str) -> bool:
    """Whether a sentence says that something is uncertain or not yet so."""
    return bool(_KEPT.search(sentence))


def _limits(source: str) -> Iterator[tuple[str, frozenset[str]]]:
    """Yield each limit of a sentence with the words in its scope."""
    for found in _CONDITION.finditer(source):
        yield found.group(), _words(source[: found.start()])
    for found in _DOUBT.finditer(source):
        start = max((m.end() for m in _CLAUSE.finditer(source, 0, found.start())), default=0)
        ending = _CLAUSE.search(source, found.end())
        end = ending.start() if ending else len(source)
        clause = _words(source[start : found.start()] + source[found.end() : end])
        before = _words(source[: found.start()])
        yield (
            found.group(),
            clause if len(clause) >= _LEAST_WORDS else before if len(before) >= _LEAST_WORDS else _words(source),
        )


def _words(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in content_words(text))

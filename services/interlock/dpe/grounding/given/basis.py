"""What a call gave to rest on, and the grounding mode that follows from it (SPEC-003 §13, ATT-8).

A system message is cut into facts like any other context, but what only instructs the model ("You are a helpful
assistant.") or tells the date states nothing that an answer could rest on. Facts that are all of that kind are no
source. One that states anything else makes all of them sources.
"""

from __future__ import annotations

from collections.abc import Sequence

from interlock.domain.risk.grounding import Basis, GroundingMode, applied
from interlock.dpe.document import Fact
from interlock.dpe.grounding.given.work import asks_for_work
from interlock.dpe.request import Request
from interlock.dpe.text.patterns import pattern, spaced

_INSTRUCTED = spaced(
    r"""
    \s*(?:[-*•]\s*|\d{1,2}[.)]\s+|\#{1,6}\s+)?
    (?:please\s+|always\s+|never\s+|only\s+|do\s+not\s+|don't\s+|you\s+(?:must|should|will|can|may|shall)\s+(?:\w+ly\s+|not\s+)?)*
    (?:
      you(?:'re|\s+are)\s+(?:an?|the|our|my|now|here|acting|responsible|expected|going)\b
    | your\s+(?:task|role|job|goal|name|purpose|mission|persona|objective)\b
    | (?:act|behave)\s+as\b | help\s+(?:the\s+)?(?:users?|customers?|people|them|me)\b | assist\b
    | (?:answer|reply|respond|write|speak|talk)\s
      (?:[^.]{0,40}\s)?(?:in|with|using|as|to|briefly|concisely|shortly|politely|honestly|clearly|directly|only|questions?)\b
    | (?:answer|reply|respond|think)\b[^.]{0,40}[.!]?\s*\z
    | be\s+(?:\w+ly\s+)?(?:concise|brief|short|helpful|polite|friendly|honest|kind|accurate|precise|clear|thorough|direct)\b
    | keep\s+(?:your|the|all)?\s*(?:answers?|responses?|replies|it|messages?|tone)\b
    | use\s+(?:the\s+|your\s+|these\s+|any\s+)?(?:provided\s+|given\s+|available\s+)?(?:tools?|functions?|markdown|json|bullet)
    | (?:today's\s+date|today|(?:the\s+)?(?:current|system)\s+(?:date|time)(?:\s+and\s+time)?)\s*(?:is|:)\s*[\w\s,:.+/-]{4,60}\z
    | du\s+bist\s+ein | sie\s+sind\s+ein | antworte | tu\s+es\s+une?\b | vous\s+êtes\s+une?\b | réponds\b | répondez\b
    | eres\s+una?\b | usted\s+es\s+una?\b | responde\b
    )
    """,
    ignore_case=True,
)
_SENTENCE_END = pattern(r"[.!?]\s+|\n+")
_LONGEST = 400
"""Characters of a sentence that only instructs; a longer one is taken to state something."""


def basis(facts: Sequence[Fact]) -> Basis:
    """Return whether any of *facts* states something."""
    return Basis.SOURCES if any(_states(fact.content) for fact in facts) else Basis.NO_SOURCES


def mode(request: Request) -> GroundingMode:
    """Return the grounding mode that applies to a request. Work on a program brings what the program does not have."""
    given, asked = basis(request.facts), request.grounding_mode
    if asked is GroundingMode.AUTO and given is Basis.SOURCES and asks_for_work(request.query, request.facts):
        asked = GroundingMode.OPEN
    return applied(asked, basis=given, required=request.grounding_required)


def shown(request: Request, texts: Sequence[str]) -> list[str]:
    """Return what the model was given, where *texts* are those of the facts: they count only when they state something."""
    return [*(texts if basis(request.facts) is Basis.SOURCES else ()), request.prompt]


def _states(text: str) -> bool:
    parts = [part for part in _SENTENCE_END.split(text.strip()) if any(map(str.isalnum, part))]
    return any(len(part) > _LONGEST or _INSTRUCTED.match(part) is None for part in parts)

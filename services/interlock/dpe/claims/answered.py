"""Answered questions: what a short answer to a question of yes or no states, in full (SPEC-005 §3.4).

*Was the fee charged?* – *It was, because …* has no word of its own to compare. The question put as a statement, affirmed or denied as
the answer does, has. Negative questions and those with a choice are left: what a *yes* to them means is not clear.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from interlock.dpe.claims.wording import SUBJECTS
from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.wordlists import word_set

_AUXILIARIES = word_set("do does did is are was were has have had can could may must should will would shall am")
_SAID = r"do|does|did|is|are|was|were|has|have|had|can|could|may|must|should|will|would"
_ELLIPTIC = pattern(
    r"(?:(?:yes|no)[,.:;!]?\s+)?(?:it|he|she|they|there|you|we|i|that|this|these|those)\s+"
    rf"({_SAID})(n't|n’t|\s+not)?(?:[.,;:!]|\s*\z|\s+(?:because|since|as|too|either)\b)",
    ignore_case=True,
)
_ANSWERING = pattern(r"(yes|no)\b", ignore_case=True)
_LIMITED = word_set("only unless except if but until provided though although partly mostly sometimes usually not")
_TURNED = word_set("n't not never no or any anything anyone")
_OTHER_SIDE = {
    "i": "you", "my": "your", "me": "you", "mine": "yours", "we": "you", "our": "your", "us": "you", "you": "we", "your": "our",
    "am": "are",
}  # fmt: skip
_LONGEST = 25


def is_affirmed(answer: str) -> bool | None:
    """Whether an answer's first sentence affirms the question or denies it, or ``None`` where it does neither plainly."""
    said = answer.lstrip("*_#-> ")
    if set(said.casefold().replace(",", " ").split()) & _LIMITED and _ELLIPTIC.match(said) is None:
        return None
    elliptic = _ELLIPTIC.match(said)
    if elliptic is not None:
        return not elliptic[2]
    plain = _ANSWERING.match(said)
    return plain[1].casefold() == "yes" if plain is not None else None


def asked(query: str) -> str:
    """Return the one question of a query that may be answered by yes or no, or an empty text."""
    questions = [part.strip() for part in query.replace("\n", ". ").split(". ") if part.strip().endswith("?")]
    found = questions[0] if len(questions) == 1 and questions[0].count("?") == 1 else ""
    words = found.rstrip("?").casefold().split()
    fits = words and words[0] in _AUXILIARIES and len(words) <= _LONGEST and not set(words) & _TURNED
    return found if fits and not any(word.endswith("n't") for word in words) else ""


def stated(question: Any, *, affirmed: bool) -> str:
    """Return a parsed question as a statement, affirmed or denied: *The fee was charged.* of *Was the fee charged?*."""
    tokens = [t for t in question if not (t.is_space or t.is_punct)]
    subject = next((t for t in tokens[1:] if t.dep_ in SUBJECTS or t.dep_ == "expl"), None)
    if subject is None:
        return ""
    inside = sorted(subject.subtree, key=lambda t: int(t.i))
    if inside[0].i != tokens[0].i + 1:
        return ""
    rest = [t for t in tokens if t.i > inside[-1].i]
    helping = _turned([tokens[0]])[0].lower()
    words = [*_turned(inside), helping, *([] if affirmed else ["not"]), *_turned(rest)]
    text = " ".join(words)
    return f"{text[0].upper()}{text[1:]}." if rest else ""


def _turned(tokens: Sequence[Any]) -> list[str]:
    """Return words as the one who answers says them: *my bank* as *your bank*."""
    return [_OTHER_SIDE.get(t.lower_, t.text) for t in tokens]

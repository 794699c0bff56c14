"""One order told from both its ends: *cool it before turning it out*, *turn it out after cooling it*; *older*, *the youngest* (SPEC-005 §5.3)."""

from __future__ import annotations

from typing import Any

from interlock.dpe.comparison.denials import has_negator
from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.frames import STOP, stem

_BEFORE = pattern(r"\bbefore\b", ignore_case=True)
_AFTER, _UNTIL = pattern(r"\bafter\b", ignore_case=True), pattern(r"\b(?:until|till)\b", ignore_case=True)
_THAN = pattern(r"\bthan\s+(?:the\s+|an?\s+)?(\p{L}+)", ignore_case=True)
_WORD = pattern(r"\p{L}+")


def told_from_the_other_end(one: str, other: str) -> bool:
    """Whether one text says *before* and the other *after* with what comes first and what comes then in each other's place."""
    for first, second in ((one, other), (other, one)):
        before, after = _BEFORE.search(first), _AFTER.search(second) or _not_until(second)
        if before and after:
            mine, theirs = _around(first, before), _around(second, after)
            straight = len(mine[0] & theirs[0]) + len(mine[1] & theirs[1])
            crossed = len(mine[0] & theirs[1]) + len(mine[1] & theirs[0])
            return crossed > straight
    return False


def _not_until(text: str) -> Any:
    """Return where a text says *until* of what is not so before: *it must not open until the plan is approved*."""
    until = _UNTIL.search(text)
    return until if until and has_negator(text[: until.start()]) else None


def _around(text: str, word: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Return what stands before and behind a word; of a clause that it opens a sentence with, what follows the clause is before it."""
    before, behind = text[: word.start()], text[word.end() :]
    if not _stems(before) and "," in behind:
        clause, _, main = behind.partition(",")
        return _stems(main), _stems(clause)
    return _stems(before), _stems(behind)


def is_the_lesser_end(claim: str, word: str, source: str) -> bool:
    """Whether *word* is a superlative of what a source compares with others: *Kim is older than Liv*, so that Liv is the youngest."""
    if not word.endswith("est"):
        return False
    behind = {stem(match[1].lower()) for match in _THAN.finditer(source)}
    return bool(behind & _stems(claim.lower().partition(word)[0]))


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _WORD.findall(text.lower()) if word not in STOP)

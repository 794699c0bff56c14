"""One order told from both its ends: *cool it before turning it out*, *turn it out after cooling it* (SPEC-005 §5.3)."""

from __future__ import annotations

from interlock.dpe.text.patterns import pattern
from interlock.dpe.values.frames import STOP, stem

_BEFORE, _AFTER = pattern(r"\bbefore\b", ignore_case=True), pattern(r"\bafter\b", ignore_case=True)
_WORD = pattern(r"\p{L}+")


def told_from_the_other_end(one: str, other: str) -> bool:
    """Whether one text says *before* and the other *after* with what comes first and what comes then in each other's place."""
    for first, second in ((one, other), (other, one)):
        before, after = _BEFORE.search(first), _AFTER.search(second)
        if before and after:
            mine = _stems(first[: before.start()]), _stems(first[before.end() :])
            theirs = _stems(second[: after.start()]), _stems(second[after.end() :])
            straight = len(mine[0] & theirs[0]) + len(mine[1] & theirs[1])
            crossed = len(mine[0] & theirs[1]) + len(mine[1] & theirs[0])
            return crossed > straight
    return False


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word) for word in _WORD.findall(text.lower()) if word not in STOP)

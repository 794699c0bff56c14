"""Whose turn it is where there is not room for all: who holds most waits for who holds less (SPEC-004 §17.4; A-38).

One caller that floods must not shut the others out, and nobody is counted who does not come: a caller alone has everything.
"""

from __future__ import annotations

from collections.abc import Mapping


def admits(who: str, held: Mapping[str, float], room: float) -> bool:
    """Whether a caller may have one more of *room*, by what each holds now.

    Beside the room that is free, what the one holds who holds most does not count against those who would still hold less: that one
    waits meanwhile. Callers that keep coming so end at equal shares; where all hold the same the room is the room, and never is more
    than twice of it held.
    """
    total, most = sum(held.values()), max(held.values(), default=0.0)
    return total + 1 <= room or (held.get(who, 0.0) + 1 < most and total - most + 1 <= room)

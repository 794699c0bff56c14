"""How much longer or shorter one span of hours is than another: *open from 9 to 17, then from 10 to 16* (SPEC-005 §5.2)."""

from __future__ import annotations

from itertools import combinations, pairwise

from interlock.dpe.grounding.placing.near import Near
from interlock.dpe.text.memory.remembered import LONG, remembered
from interlock.dpe.text.wordlists import word_set
from interlock.dpe.values.extraction import read
from interlock.dpe.values.quantities import Value
from interlock.dpe.values.reckoning.derived import DIFFERS
from interlock.dpe.values.units import TIME

_JOINTS = word_set("to until till and through - –")
_MOST_BETWEEN, _MOST_SPANS = 2, 12
_DAY_MINUTES, _MINUTE = 1440, 60.0


def differ_by(value: Value, near: Near) -> bool:
    """Whether a period is what two spans of hours of the sources differ by, and the claim compares."""
    if value.unit != TIME or not value.amount or near.told is None or not near.words & DIFFERS:
        return False
    found = [span for content in near.told.contents for span in _spans(content)][:_MOST_SPANS]
    return any(abs(abs(one - other) * _MINUTE - value.amount) < _MINUTE / 2 for one, other in combinations(found, 2))


@remembered(bytes_a_character=10, from_length=LONG)
def _spans(content: str) -> tuple[int, ...]:
    """Return the minutes of each span of hours that a text writes out."""
    reading = read(content)
    found: list[int] = []
    for one, other in pairwise(reading.values):
        between = [token.low for token in reading.tokens[one.last : other.first]]
        if not 0 < len(between) <= _MOST_BETWEEN or between[-1] not in _JOINTS:
            continue
        first, last = (each.moment.minute if each.moment is not None else None for each in (one, other))
        if first is not None and last is not None and first != last:
            found.append((last - first) % _DAY_MINUTES)
    return tuple(found)

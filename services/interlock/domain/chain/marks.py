"""Signed marks in a session's chain that declare what was removed (AUD-5, reliability.md A-44).

CONTENT_ERASED: the session's data key is destroyed, and the contents and reports sealed before it are gone. TRUNCATED:
retention removed the events, windows and reports before it; the mark repeats what the rest of the log needs of them. Both are
events of the session's own chain, so their HMACs vouch for them. Anything missing without a mark remains a fault.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

CONTENT_ERASED = "CONTENT_ERASED"
TRUNCATED = "TRUNCATED"


class Event(Protocol):
    """The fields of an event that are read here."""

    @property
    def sequence(self) -> int: ...
    @property
    def event_type(self) -> str: ...
    @property
    def data_json(self) -> str: ...


@dataclass(frozen=True)
class ChainMarks:
    """What the marks of a chain declare. A truncated chain continues from ``sequence`` and ``head``; otherwise they are (0, "")."""

    sequence: int = 0
    head: str = ""
    charged_micros: int = 0
    chain_tip: str = ""
    windows: int = 0
    erased_before: int = 0
    """Windows sealed before this sequence need no report. 0: nothing was erased."""
    found: tuple[Any, ...] = ()
    """The marks themselves, in order."""


def read_marks(events: Sequence[Event]) -> ChainMarks:
    """Return what the marks among *events*, ordered by sequence, declare. Their HMACs are verified elsewhere."""
    marked = [event for event in events if event.event_type in {CONTENT_ERASED, TRUNCATED}]
    if not marked:
        return ChainMarks()
    erased = max((event.sequence for event in marked if event.event_type == CONTENT_ERASED), default=0)
    kept: dict[str, Any] = {}
    first = events[0]
    if first.event_type == TRUNCATED and first.sequence > 1:
        kept = _kept(first)
    return ChainMarks(erased_before=erased, found=tuple(marked), **kept)


def _kept(mark: Event) -> dict[str, Any]:
    """Return what the first mark of a chain repeats of the removed part; empty where it does not match its own place."""
    data = json_object(mark.data_json)
    if data.get("last_sequence") != mark.sequence - 1:
        return {}
    return {
        "sequence": mark.sequence - 1,
        "head": str(data.get("head", "")),
        "charged_micros": _count(data.get("charged_micros")),
        "chain_tip": str(data.get("chain_tip", "")),
        "windows": _count(data.get("windows")),
    }


def is_erased(marks: Sequence[Event]) -> bool:
    """Return whether the marks of a valid chain declare its contents and reports erased."""
    return any(mark.event_type == CONTENT_ERASED for mark in marks)


def is_truncated(marks: Sequence[Event]) -> bool:
    """Return whether the marks of a valid chain declare its beginning truncated."""
    return any(mark.event_type == TRUNCATED and "last_sequence" in json_object(mark.data_json) for mark in marks)


def runs(positions: Sequence[int]) -> list[list[int]]:
    """Return rising *positions* as runs: the first of each and one past its last."""
    found: list[list[int]] = []
    for position in positions:
        if found and found[-1][1] == position:
            found[-1][1] += 1
        else:
            found.append([position, position + 1])
    return found


def _count(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else 0


def json_object(text: str) -> Mapping[str, Any]:
    """Return the JSON object of *text*; an empty one where it holds no object."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}

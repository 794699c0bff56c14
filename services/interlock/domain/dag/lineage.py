"""The history of a window: its ancestors, the texts of lineage and quality, and degradation (SPEC-004 §9, §13).

A window is a ``Step`` here. Parents are places in the list of all steps, and every parent comes before its child.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import groupby

from interlock.domain.dag.dag import TIERS, Node
from interlock.domain.ids import WindowId

LONGEST_TEXT = 256
"""Maximum number of windows whose parallels are shown. A longer parallel lineage has no text, and its quality no brackets."""

LINEAGE_KEPT, TIERS_KEPT = 64, 256
"""Latest windows of a lineage, and latest tiers, that a history holds: what is sent must not grow with a conversation."""


class Degradation(IntEnum):
    """A pattern in the tiers of a path (§13.2). The numbers equal ``interlock.api.session.v1.Degradation``."""

    NONE = 0
    FIRST_DROP = 1
    SUSTAINED = 2
    CRITICAL = 3
    PERSISTENT = 4


@dataclass(frozen=True)
class Step:
    """One window of a session, reduced to what a history needs. ``parents`` are places in the list of all steps."""

    window_id: WindowId
    number: int
    tier: str
    status: str
    pattern: str
    parents: tuple[int, ...]


@dataclass(frozen=True)
class History:
    """The history of a window, including the window itself if it exists: its latest windows and tiers.

    In the texts, brackets mark parallel windows. A lineage that is longer than ``LINEAGE_KEPT`` has no text.
    """

    lineage: tuple[WindowId, ...]
    tiers: tuple[str, ...]
    degradation: Degradation
    lineage_text: str
    quality_text: str


NO_HISTORY = History((), (), Degradation.NONE, "", "")


def as_steps(nodes: Sequence[Node]) -> list[Step]:
    """Return the nodes of a session as steps, in their order."""
    place = {node.window_id: at for at, node in enumerate(nodes)}
    return [
        Step(
            window_id=node.window_id,
            number=node.window_number,
            tier=node.seal.quality_tier,
            status=node.seal.status,
            pattern=node.pattern,
            parents=tuple(place[parent] for parent in node.parent_ids),
        )
        for node in nodes
    ]


def trace_history(steps: Sequence[Step], places: Sequence[int]) -> History:
    """Return the history of the windows at *places*, including these windows."""
    if not places:
        return NO_HISTORY
    above = closure(steps, places)
    if len(places) == 1 and len(above) == steps[places[0]].number:
        return _line(steps, above)
    ordered = sorted(above, key=lambda at: (steps[at].number, at))
    short = len(ordered) <= LONGEST_TEXT
    alone = _alone(steps, ordered) if short else set(ordered)
    levels = [
        [at for _, at in level] for _, level in groupby(((steps[at].number, at) for at in ordered), lambda e: e[0])
    ]
    return History(
        lineage=tuple(steps[at].window_id for at in ordered[-LINEAGE_KEPT:]),
        tiers=tuple(steps[at].tier for at in ordered[-TIERS_KEPT:]),
        degradation=find_degradation([max((steps[at].tier for at in level), key=_badness) for level in levels]),
        lineage_text=_written(steps, ordered) if len(ordered) <= LINEAGE_KEPT else "",
        quality_text=",".join(_level(steps, level, alone) for level in levels),
    )


def _line(steps: Sequence[Step], above: set[int]) -> History:
    """Return the history of a path without parallels. Its length is the number of its last window."""
    ordered = [steps[at] for at in sorted(above)]
    return history_of_line(
        [step.window_id for step in ordered[-LINEAGE_KEPT:]],
        [step.tier for step in ordered[-TIERS_KEPT:]],
        len(ordered),
    )


def history_of_line(latest: Sequence[WindowId], tiers: Sequence[str], length: int) -> History:
    """Return the history of a path of *length* windows without parallels, from its latest windows and tiers."""
    text = " -> ".join(latest) if length <= LINEAGE_KEPT else ""
    return History(tuple(latest), tuple(tiers), find_degradation(tiers), text, ",".join(tiers))


def closure(steps: Sequence[Step], places: Sequence[int]) -> set[int]:
    """Return the places of these windows and all their ancestors."""
    found: set[int] = set()
    waiting = list(places)
    while waiting:
        at = waiting.pop()
        if at not in found:
            found.add(at)
            waiting.extend(steps[at].parents)
    return found


def find_degradation(tiers: Sequence[str]) -> Degradation:
    """Return the pattern at the end of a path's tiers (SPEC-004 §13.2). Only its last three windows count."""
    *_, before, last = (0, 0, *map(TIERS.index, tiers))
    if len(tiers) > 1 and last == before == _badness("D"):
        return Degradation.PERSISTENT
    if len(tiers) < 2 or last <= before:
        return Degradation.NONE
    if len(tiers) > 2 and before > _badness(tiers[-3]):
        return Degradation.CRITICAL if tiers[-1] == "D" else Degradation.SUSTAINED
    return Degradation.FIRST_DROP


def _badness(tier: str) -> int:
    return TIERS.index(tier)


def _level(steps: Sequence[Step], level: Sequence[int], alone: set[int]) -> str:
    text = ",".join(steps[at].tier for at in level)
    return text if alone.issuperset(level) else f"[{text}]"


def _related(steps: Sequence[Step], members: Sequence[int]) -> dict[int, int]:
    """Return, for each member, a bit set of the members on a common path with it, itself included."""
    inside = sum(1 << at for at in members)
    before: dict[int, int] = {}
    for at in sorted(members):
        before[at] = 1 << at
        for parent in steps[at].parents:
            before[at] |= before.get(parent, 0)
    related = dict(before)
    for at in members:
        mark = 1 << at
        for other in members:
            if before[at] >> other & 1:
                related[other] |= mark
    return {at: bits & inside for at, bits in related.items()}


def _alone(steps: Sequence[Step], members: Sequence[int]) -> set[int]:
    """Return the members that ran in parallel with no other member."""
    everyone = sum(1 << at for at in members)
    return {at for at, bits in _related(steps, members).items() if bits == everyone}


def _written(steps: Sequence[Step], members: Sequence[int]) -> str:
    """Return the members as ``a -> [b -> c, d] -> e``: a row where all paths meet, brackets where windows ran in parallel."""
    related = _related(steps, members)
    everyone = sum(1 << at for at in members)
    row: list[str] = []
    section: list[int] = []
    for at in [*members, None]:
        if at is not None and related[at] != everyone:
            section.append(at)
            continue
        if section:
            row.append(_parallel(steps, section))
            section = []
        if at is not None:
            row.append(steps[at].window_id)
    return " -> ".join(row)


def _parallel(steps: Sequence[Step], section: Sequence[int]) -> str:
    """Return the windows between two meeting points: their threads in brackets, or level by level where threads cross."""
    threads = _threads(steps, section)
    if len(threads) > 1:
        return "[" + ", ".join(_written(steps, thread) for thread in threads) + "]"
    levels = groupby(section, lambda at: steps[at].number)
    return " -> ".join("[" + ", ".join(steps[at].window_id for at in level) + "]" for _, level in levels)


def _threads(steps: Sequence[Step], section: Sequence[int]) -> list[list[int]]:
    """Return the parts of the section that no path joins, each in order, sorted by their first windows."""
    related = _related(steps, section)
    parts: list[int] = []
    for at in section:
        joined = related[at]
        for part in [part for part in parts if part & joined]:
            parts.remove(part)
            joined |= part
        parts.append(joined)
    found = [[at for at in section if part >> at & 1] for part in parts]
    return sorted(found, key=lambda part: section.index(part[0]))

"""The windows of a session as the one text that its hash holds: an entry for each, in order (``lua/common.lua``)."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.domain.binding.links import Links
from interlock.domain.dag.dag import BRANCH, FAILED, FAN_IN, FAN_OUT, LINEAR, Node
from interlock.domain.dag.lineage import LINEAGE_KEPT, TIERS_KEPT, History, Step, history_of_line, trace_history
from interlock.domain.ids import WindowId
from interlock.domain.session.state import VOID

NONE = "-"
"""How an absent value is spelled among words that are parted by spaces."""

LETTERS = {LINEAR: "L", FAN_OUT: "O", FAN_IN: "I", BRANCH: "B", VOID: "V"}
PATTERN_OF = {letter: pattern for pattern, letter in LETTERS.items()}
STATUS_LETTERS = {"COMPLETED": "C", "HALTED": "H", "HELD": "E", FAILED: "F"}
STATUS_OF = {letter: status for status, letter in STATUS_LETTERS.items()}

_WINDOW = "crp_win_"


def steps_from(dag: bytes, nodes: int) -> list[Step]:
    """Return the windows of a session from its ``dag`` field, which must hold as many as *nodes*."""
    steps: list[Step] = []
    for entry in dag.decode().split(";")[:nodes]:
        place = len(steps)
        # 32 hex digits, a blank, tier, status, pattern, places of the parents
        parents = (
            tuple(int(at) - 1 for at in entry[36:].split(".")) if len(entry) > 36 else (place - 1,) if place else ()
        )
        steps.append(
            Step(
                window_id=WindowId(_WINDOW + entry[:32]),
                number=1 + max([steps[at].number for at in parents], default=0),
                tier=entry[33],
                status=STATUS_OF[entry[34]],
                pattern=PATTERN_OF[entry[35]],
                parents=parents,
            )
        )
    if len(steps) != nodes:
        raise ValueError("the windows of a session are not all there")
    return steps


_ENTRY = 37
"""Length of an entry in ``dag`` that continues the one before it, with its semicolon; others name their parents."""


def entry_at(dag: bytes, index: int) -> str:
    """Return the entry of a window; in a line every entry has the same length."""
    if len(dag) == _ENTRY * dag.count(b";"):
        return dag[_ENTRY * (index - 1) : _ENTRY * index].decode()
    return dag.split(b";")[index - 1].decode()


def line_from(dag: bytes) -> list[WindowId] | None:
    """Return the windows of a session in which each continues the one before it; ``None`` for any other."""
    if len(dag) != _ENTRY * dag.count(b";"):
        return None
    text = dag.decode()
    return [WindowId(_WINDOW + text[at : at + 32]) for at in range(0, len(text), _ENTRY)]


def ends_failed(dag: bytes) -> bool:
    """Tell whether the last window of a line was given up."""
    return dag[34 - _ENTRY : 35 - _ENTRY] == b"F"


def links_from(dag: bytes, nodes: int) -> Links:
    """Return how the windows hang together. A line is cut out of the text: most sessions are one."""
    line = line_from(dag)
    if line is not None and len(line) == nodes:
        return Links(line, None, {nodes - 1} if ends_failed(dag) else ())
    steps = steps_from(dag, nodes)
    failed = {at for at, step in enumerate(steps) if step.status == FAILED}
    return Links([step.window_id for step in steps], [step.parents for step in steps], failed)


def history_of(dag: bytes, nodes: int, places: Sequence[int]) -> History:
    """Return what led to the windows at *places*. A path without parallels is cut out of the text: most are one."""
    if len(places) != 1:
        return trace_history(steps_from(dag, nodes), places)
    if len(dag) == _ENTRY * dag.count(b";"):
        text = dag.decode()[: _ENTRY * (places[0] + 1)]
        latest = range(max(0, len(text) - _ENTRY * LINEAGE_KEPT), len(text), _ENTRY)
        lineage = [WindowId(_WINDOW + text[at : at + 32]) for at in latest]
        return history_of_line(lineage, text[33::_ENTRY][-TIERS_KEPT:], places[0] + 1)
    entries = dag.decode().split(";")[:nodes]
    path = _path(entries, places[0])
    if path is None:
        return trace_history(steps_from(dag, nodes), places)
    lineage = [WindowId(_WINDOW + entries[at][:32]) for at in path[-LINEAGE_KEPT:]]
    return history_of_line(lineage, [entries[at][33] for at in path[-TIERS_KEPT:]], len(path))


def _path(entries: Sequence[str], place: int) -> list[int] | None:
    """Return the places from the root to *place*; ``None`` where one of them has several parents."""
    path = []
    while place >= 0:
        path.append(place)
        from_ = entries[place][36:]
        if "." in from_:
            return None
        place = int(from_) - 1 if from_ else place - 1
    return path[::-1]


def dag_text(nodes: Sequence[Node]) -> str:
    """Return the text of these windows."""
    place = {node.window_id: at for at, node in enumerate(nodes, 1)}
    entries = []
    for at, node in enumerate(nodes, 1):
        parents = ".".join(str(place[parent]) for parent in node.parent_ids)
        tier = NONE if node.failed else node.seal.quality_tier
        how = f"{tier}{STATUS_LETTERS[node.seal.status]}{LETTERS[node.pattern]}"
        entries.append(f"{node.window_id.removeprefix(_WINDOW)} {how}{'' if parents == str(at - 1) else parents};")
    return "".join(entries)

"""A window DAG as an SVG picture, drawn without another program: one row of frames per agent depth, one row per window number."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from interlock.api.session.v1 import session_pb2
from interlock.runtime.pictures.names import (
    COMPLETED,
    FAILED,
    HALTED,
    HELD,
    Drawn,
    delegations,
    drawn,
    title_lines,
    transfer_words,
)

_WIDE, _HIGH, _ACROSS, _DOWN, _FRAME, _HEAD, _BETWEEN = 240, 62, 28, 54, 18, 74, 64
_ARROW = 'viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8" markerHeight="8" markerUnits="userSpaceOnUse"'
_LEAST = 330
"""Minimum inner width of a frame, for its title."""

_COLOURS = {
    COMPLETED: ("#e8f5e9", "#2e7d32", ""),
    HALTED: ("#ffebee", "#b71c1c", ' stroke-width="3"'),
    HELD: ("#fff8e1", "#ff8f00", ' stroke-width="2"'),
    FAILED: ("#eeeeee", "#616161", ' stroke-dasharray="6 4"'),
}


@dataclass(frozen=True)
class _Panel:
    """A session's frame and the positions of its windows."""

    session: session_pb2.Session
    windows: Sequence[Drawn]
    places: dict[str, tuple[int, int]]
    x: int
    y: int
    width: int
    height: int


def svg(sessions: Sequence[session_pb2.Session]) -> str:
    """Return an SVG document."""
    panels = _panels(sessions)
    width = max((panel.x + panel.width for panel in panels), default=0) + _FRAME
    height = max((panel.y + panel.height for panel in panels), default=0) + _FRAME
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="12" role="img">'
    )
    lines = [
        head,
        "<title>Windows of an agent tree</title>",
        f'<defs><marker id="to" {_ARROW} orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>',
        f'<rect width="{width}" height="{height}" fill="#fff"/>',
    ]
    for panel in panels:
        lines.extend(_frame(panel))
    for parent, child in delegations(sessions):
        lines.append(_delegation(panels[parent], panels[child]))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _panels(sessions: Sequence[session_pb2.Session]) -> list[_Panel]:
    tops: dict[int, int] = {}
    sizes = [_size(drawn(session)) for session in sessions]
    top = _FRAME
    for depth in sorted({session.loop_depth for session in sessions}):
        tops[depth] = top
        top += max(size[1] for size, one in zip(sizes, sessions, strict=True) if one.loop_depth == depth) + _BETWEEN
    right: dict[int, int] = {}
    found = []
    for session, (width, height, places) in zip(sessions, sizes, strict=True):
        x = right.get(session.loop_depth, _FRAME)
        right[session.loop_depth] = x + width + _BETWEEN
        found.append(_Panel(session, drawn(session), places, x, tops[session.loop_depth], width, height))
    return found


def _size(windows: Sequence[Drawn]) -> tuple[int, int, dict[str, tuple[int, int]]]:
    """Return the width and height of a frame, and the corner of each window."""
    middles = _middles(windows)
    left = min(middles.values(), default=0.0)
    inner = max(int(max(middles.values(), default=0.0) - left) + _WIDE, _LEAST)
    margin = _FRAME + (inner - int(max(middles.values(), default=0.0) - left) - _WIDE) // 2
    levels = {number: level for level, number in enumerate(sorted({one.window.window_number for one in windows}))}
    places = {
        one.window.window_id: (
            margin + int(middles[one.window.window_id] - left),
            _HEAD + levels[one.window.window_number] * (_HIGH + _DOWN),
        )
        for one in windows
    }
    return inner + 2 * _FRAME, _HEAD + max(len(levels), 1) * (_HIGH + _DOWN) - _DOWN + _FRAME, places


def _middles(windows: Sequence[Drawn]) -> dict[str, float]:
    """Return the horizontal middle of each window: below the middle of its parents, siblings spread, without overlap."""
    step = _WIDE + _ACROSS
    rows: dict[int, list[Drawn]] = {}
    for one in windows:
        rows.setdefault(one.window.window_number, []).append(one)
    found: dict[str, float] = {}
    for _, row in sorted(rows.items()):
        wanted = []
        for one in row:
            siblings = [other for other in row if other.parents == one.parents]
            above = [found[parent] for parent in one.parents]
            middle = sum(above) / len(above) if above else 0.0
            wanted.append((middle + (siblings.index(one) - (len(siblings) - 1) / 2) * step, one))
        right = -math.inf
        for middle, one in sorted(wanted, key=lambda pair: pair[0]):
            right = found[one.window.window_id] = max(middle, right + step)
    return found


def _frame(panel: _Panel) -> Iterator[str]:
    x, y = panel.x, panel.y
    yield (
        f'<rect x="{x}" y="{y}" width="{panel.width}" height="{panel.height}" rx="8" fill="#fafafa" stroke="#90a4ae"/>'
    )
    for number, line in enumerate(title_lines(panel.session)):
        weight = ' font-weight="bold"' if number == 0 else ""
        yield f'<text x="{x + _FRAME}" y="{y + 22 + 17 * number}"{weight}>{_text(line)}</text>'
    if not panel.windows:
        yield f'<text x="{x + panel.width // 2}" y="{y + _HEAD + _HIGH // 2}" text-anchor="middle">no window yet</text>'
    for one in panel.windows:
        yield from _arrows(panel, one)
    for one in panel.windows:
        yield from _box(panel, one)


def _arrows(panel: _Panel, one: Drawn) -> Iterator[str]:
    told = {edge.source_id: transfer_words(edge) for edge in one.window.edges}
    to_x, to_y = _corner(panel, one.window.window_id)
    for parent in one.parents:
        from_x, from_y = _corner(panel, parent)
        start, end = (from_x + _WIDE // 2, from_y + _HIGH), (to_x + _WIDE // 2, to_y)
        yield f'<path d="M{start[0]} {start[1]}L{end[0]} {end[1]}" stroke="#37474f" fill="none" marker-end="url(#to)"/>'
        if told.get(parent):
            x, y = (start[0] + end[0]) // 2 + 6, (start[1] + end[1]) // 2
            yield f'<text x="{x}" y="{y}" font-size="10" fill="#37474f">{_text(told[parent])}</text>'


def _box(panel: _Panel, one: Drawn) -> Iterator[str]:
    x, y = _corner(panel, one.window.window_id)
    fill, stroke, extra = _COLOURS[one.status]
    yield f'<polygon points="{_outline(one.status, x, y)}" fill="{fill}" stroke="{stroke}"{extra}/>'
    head = f"Window {one.name}" + ("" if one.status == COMPLETED else f" {one.status}")
    lines = [head, ", ".join(one.facts[:-2]) or one.facts[0], ", ".join(one.facts[-2:])]
    if one.status == FAILED:
        lines = [head, ", ".join(one.facts)]
    for number, line in enumerate(lines):
        weight = ' font-weight="bold"' if number == 0 else ""
        middle = x + _WIDE // 2
        yield f'<text x="{middle}" y="{y + 18 + 16 * number}" text-anchor="middle"{weight}>{_text(line)}</text>'


def _outline(status: str, x: int, y: int) -> str:
    """Return the outline of a window: a box; halted, an octagon; held, a box with a cut top; failed, a trapezium."""
    right, low, cut = x + _WIDE, y + _HIGH, 14
    points = {
        HALTED: [
            (x + cut, y), (right - cut, y), (right, y + cut), (right, low - cut), (right - cut, low), (x + cut, low),
            (x, low - cut), (x, y + cut),
        ],
        HELD: [(x + cut, y), (right - cut, y), (right, y + cut), (right, low), (x, low), (x, y + cut)],
        FAILED: [(x, y), (right, y), (right - cut, low), (x + cut, low)],
    }.get(status, [(x, y), (right, y), (right, low), (x, low)])  # fmt: skip
    return " ".join(f"{a},{b}" for a, b in points)


def _delegation(parent: _Panel, child: _Panel) -> str:
    x, y = parent.x + parent.width // 2, parent.y + parent.height
    to_x, to_y = child.x + child.width // 2, child.y
    if to_y <= y:  # a child without a greater depth is drawn next to its parent
        x, y, to_x, to_y = parent.x + parent.width, parent.y + 20, child.x, child.y + 20
    return (
        f'<path d="M{x} {y}L{to_x} {to_y}" stroke="#1565c0" stroke-dasharray="8 5" stroke-width="2" fill="none" '
        'marker-end="url(#to)"><title>delegates to '
        f"{_text(child.session.agent.agent_type or 'an agent')}</title></path>"
    )


def _corner(panel: _Panel, window_id: str) -> tuple[int, int]:
    x, y = panel.places[window_id]
    return panel.x + x, panel.y + y


def _text(line: str) -> str:
    return escape("".join(char if char.isprintable() else " " for char in line))

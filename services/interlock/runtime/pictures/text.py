"""A window DAG for a terminal, in the form of SPEC-004 Appendix A."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from interlock.api.session.v1 import session_pb2
from interlock.domain.budget import Micros, as_decimal
from interlock.runtime.pictures.names import COMPLETED, FAILED, HALTED, HELD, Drawn, breaker_word, drawn, status_word

_MARKS = {COMPLETED: "", HALTED: "■ HALTED ", HELD: "◆ HELD ", FAILED: "✗ FAILED "}
_DEEP = 6
"""Levels that are indented like the appendix. A longer path would exceed the width of a terminal."""

Below = Mapping[str, Sequence[Drawn]]


def text(sessions: Sequence[session_pb2.Session]) -> str:
    """Return the sessions in order, each after its parent: trees, fan-ins, chain, quality and budgets."""
    blocks = ["\n".join(line.rstrip() for line in _session(session)) for session in sessions]
    if len(sessions) > 1:
        charged = as_decimal(Micros(sum(session.charged_micros for session in sessions)))
        blocks.append(f"All sessions: {charged} charged by {sum(len(session.windows) for session in sessions)} windows")
    return _plain("\n\n".join(blocks)) + "\n"


def _session(session: session_pb2.Session) -> Iterator[str]:
    yield f"Session: {session.session_id}"
    told = f"  {session.agent.agent_type or 'agent'}, depth {session.loop_depth}, {status_word(session)}"
    budget, charged = as_decimal(Micros(session.safety_budget_micros)), as_decimal(Micros(session.charged_micros))
    yield f"{told}, breaker {breaker_word(session)}, budget {budget}, charged {charged}"
    if session.HasField("ancestor_halt"):
        yield f"  ended by {session.ancestor_halt.session_id}: {session.ancestor_halt.reason}"
    if session.parent_session_id:
        yield f"  delegated by {session.parent_session_id}"
    yield ""
    windows = drawn(session)
    if not windows:
        yield "(no window yet)"
        return
    yield from _graph(windows)
    yield ""
    yield from _summary(windows)


def _graph(windows: Sequence[Drawn]) -> Iterator[str]:
    """Yield the tree of every window without exactly one parent. Before each fan-in comes what it joins."""
    by_id = {one.window.window_id: one for one in windows}
    below: dict[str, list[Drawn]] = {one.window.window_id: [] for one in windows}
    tops = []
    for one in windows:
        if len(one.parents) == 1:
            below[one.parents[0]].append(one)
        else:
            tops.append(one)
    deep = max(one.window.window_number for one in windows) > _DEEP
    for number, top in enumerate(tops):
        if number:
            yield ""
        if top.parents:
            yield from _joined(top, [by_id[parent] for parent in top.parents])
            if below[top.window.window_id]:
                yield ""
                yield f"Window {top.name}"
        else:
            yield _line(top)
        yield from _children(top, below, deep=deep)


def _line(one: Drawn) -> str:
    return f"Window {one.name} [{_MARKS[one.status]}{', '.join(one.facts)}]"


def _children(top: Drawn, below: Below, *, deep: bool) -> Iterator[str]:
    """Walk down without recursion: a session may have 10,000 windows in a row, which are drawn in one column."""
    indent = " " if deep else " " * 9
    waiting: list[tuple[Drawn, str, str]] = []

    def wait(parent: Drawn, before: str) -> None:
        children = below[parent.window.window_id]
        corners = ["├──► "] * (len(children) - 1) + ["└──► "]
        if deep and len(children) == 1:
            corners = ["▼ "]
        waiting.extend([(child, before, corner) for child, corner in zip(children, corners, strict=False)][::-1])

    wait(top, "")
    while waiting:
        one, before, corner = waiting.pop()
        if before and not deep:
            yield before + "│"
        yield f"{before}{corner}{_line(one)}"
        inner = {"├": "│" + indent, "└": " " + indent, "▼": ""}[corner[0]]
        wait(one, before + inner)


def _joined(one: Drawn, parents: Sequence[Drawn]) -> Iterator[str]:
    names = [f"Window {parent.name}" for parent in sorted(parents, key=lambda p: (-p.window.window_number, p.name))]
    width = max(map(len, names))
    arrow = len(names) - 1 if len(names) == 2 else len(names) // 2
    for number, name in enumerate(names):
        if number == arrow:
            corner = ("┴" if number == len(names) - 1 else "┼") + f"──► {_line(one)}"
        else:
            corner = "┐" if number == 0 else "┘" if number == len(names) - 1 else "┤"
        yield f"         {name:<{width}} ──{corner}"


def _summary(windows: Sequence[Drawn]) -> Iterator[str]:
    sealed = [one for one in windows if one.status != FAILED]
    yield "HMAC Chain:"
    names = {one.window.window_id: one.name for one in windows}
    for one in sealed:
        parents = ", ".join(f"W{names[parent]}" for parent in one.parents)
        yield f"  W{one.name}: {one.window.hmac[:19]}…" + (f" after {parents}" if parents else "")
    yield ""
    yield f"QualityHistory: {_levels(sealed, [one.window.quality_tier or '-' for one in sealed], ', ', ',')}"
    budgets = [as_decimal(Micros(one.window.safety_budget_micros)) for one in sealed]
    yield f"Safety Budget:  {_levels(sealed, budgets, ' → ', ', ')}"


def _levels(windows: Sequence[Drawn], values: Sequence[str], between: str, inner: str) -> str:
    """Return the values by window number, joined by *between*. Brackets, with *inner* inside, mark parallel windows."""
    levels: dict[int, list[str]] = {}
    parallel: set[int] = set()
    for one, value in zip(windows, values, strict=True):
        levels.setdefault(one.window.window_number, []).append(value)
        if one.name != str(one.window.window_number):
            parallel.add(one.window.window_number)
    return between.join(
        f"[{inner.join(found)}]" if number in parallel else inner.join(found)
        for number, found in sorted(levels.items())
    )


def _plain(drawing: str) -> str:
    """Return the drawing without characters that could move a terminal's cursor (reliability.md A-17)."""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in drawing)

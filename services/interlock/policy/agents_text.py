"""Edit one agent type in the text of a registry and keep everything else as its author wrote it, including comments."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any

import yaml

from interlock.domain.agents import AgentType, as_fields, read_registry
from interlock.domain.errors import Refused

_HEADING = "# Registered agent types (SPEC-012 §7.1). Written by interlock; it is read again within a second.\n"


def rewritten(text: str, agents: Mapping[str, AgentType], name: str) -> str:
    """Return *text* changed to describe *agents*, which differ from the text only in the type *name*.

    Only the lines of that type change if the text is in block style. Otherwise the whole text is written again.
    """
    edited = _edited(text, agents.get(name), name)
    with contextlib.suppress(Refused, yaml.YAMLError):
        if edited and read_registry(yaml.safe_load(edited)).by_name == agents:
            return edited
    return _HEADING + _dump({"agents": {each: as_fields(agents[each]) for each in sorted(agents)}})


def _edited(text: str, agent: AgentType | None, name: str) -> str:
    """Return the edited text; empty when it cannot be edited by lines. The caller checks the result."""
    node = _agents(text)
    if node is None:
        return ""
    lines = text.splitlines(keepends=True)
    if not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    names = [key.value for key, _ in node.value]
    starts = [key.start_mark.line for key, _ in node.value]
    last = len(lines) if node.end_mark.column else min(node.end_mark.line, len(lines))
    if name in names:
        at = names.index(name)
        start, end = starts[at], _end(lines, [*starts, last][at + 1])
    else:
        start = end = _end(lines, last)
    block = _indented({name: as_fields(agent)}, node.start_mark.column) if agent else []
    return "".join([*lines[:start], *block, *lines[end:]])


def _agents(text: str) -> Any:
    """Return the node of the agent types if it is in block style; ``None`` otherwise."""
    root = yaml.compose(text, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode) or root.flow_style:
        return None
    found = next((value for key, value in root.value if key.value == "agents"), None)
    return found if isinstance(found, yaml.MappingNode) and not found.flow_style and found.value else None


def _end(lines: list[str], before: int) -> int:
    """Return the line after the last content above line *before*. Comments in between belong to what follows."""
    while before > 0 and (not lines[before - 1].strip() or lines[before - 1].lstrip().startswith("#")):
        before -= 1
    return before


def _indented(document: Mapping[str, Any], column: int) -> list[str]:
    return [" " * column + line for line in _dump(document).splitlines(keepends=True)]


def _dump(document: Mapping[str, Any]) -> str:
    return yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=10_000)

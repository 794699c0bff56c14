"""Settings in an answer: sections and keys of INI and of an environment, and trees of YAML, with the span of each value (SPEC-005 §3).

``nights: 3`` and ``nights: 4`` of two entries contradict each other unless each is read with the name of its entry.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import yaml

from interlock.dpe.text.patterns import pattern
from interlock.dpe.text.structures.parts import KeyedMembers, KeyedValue, PlacedScalar, key_words, leaves

_LONGEST = 16_000
_MOST_DEPTH = 12
_LEAST = 2
_SECTION = re.compile(r"\s*\[{1,2}([\w.\- \"]{1,60})\]{1,2}\s*")
_ASSIGNED = pattern(
    r"\s*(?:export )?([\p{L}_][\p{L}\d_.-]{0,50})(?:=| ?= )(?:\"([^\"\n]{0,160})\"|'([^'\n]{0,160})'|([^\s=(){}\[\]'\"][^=(){};'\"\n]{0,160})|)\s*"
)
_COMMENT = ("#", ";")
_NESTED = re.compile(r"(?m)^[ \t]*(?:- [\w\"']|[\w\"' -]{1,60}:[ \t]*$)")
_LINE = pattern(r"\s*(?:- )*[\"']?[\p{L}\d_][\p{L}\d_ .()/%-]{0,50}[\"']?:(?:\s+\S.*|\s*)|\s*- \S.*|\s*-\s*")
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_DASHES = re.compile(rf"(?:-[ \t]+){{{_MOST_DEPTH}}}")


def assigned(chars: str) -> list[KeyedValue] | None:
    """Return the values of INI, TOML or an environment, all of whose lines assign one, or ``None`` for another text."""
    if len(chars) > _LONGEST:
        return None
    section, found, at = "", list[KeyedValue](), 0
    for line in chars.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        if head := _SECTION.fullmatch(bare):
            section = key_words(head[1].strip('"').replace(".", " "))
        elif setting := _ASSIGNED.fullmatch(bare):
            group = next((n for n in (2, 3, 4) if setting[n]), 0)
            if group:
                label = f"{section} {key_words(setting[1].replace('.', ' '))}".strip()
                found.append(
                    KeyedValue(label, at + setting.start(group), at + len(bare[: setting.end(group)].rstrip()))
                )
        elif bare.strip() and not bare.lstrip().startswith(_COMMENT):
            return None
        at += len(line)
    return found if len(found) >= _LEAST else None


def nested(chars: str) -> list[KeyedValue] | None:
    """Return the values of a tree of YAML that has entries or sections, or ``None`` for another text."""
    if len(chars) > _LONGEST or _NESTED.search(chars) is None or _is_deep(chars):
        return None
    lines = [line for line in chars.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if len(lines) <= _LEAST or not all(_LINE.fullmatch(line) for line in lines):
        return None
    try:
        tree = _tree(yaml.compose(chars, Loader=_LOADER), set(), 0)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    keys = list(_keys(tree))
    inside = [each for each in _below(tree) if len(each) > 1]
    if not inside or sum(" " in key for key in keys) * 2 > len(keys):
        return None
    return list(leaves(tree)) or None


def _below(tree: Any) -> Iterator[KeyedMembers]:
    """Yield the objects within a tree."""
    for child in _children(tree):
        if isinstance(child, KeyedMembers):
            yield child
        yield from _below(child)


def _keys(tree: Any) -> Iterator[str]:
    if isinstance(tree, KeyedMembers):
        yield from (key for key, _ in tree)
    for child in _children(tree):
        yield from _keys(child)


def _children(tree: Any) -> list[Any]:
    return (
        [child for _, child in tree] if isinstance(tree, KeyedMembers) else list(tree) if isinstance(tree, list) else []
    )


def _is_deep(chars: str) -> bool:
    """Whether a text nests deeper than any settings, which the parser would follow without a bound."""
    depth = 0
    for char in chars:
        depth += (char in "[{") - (char in "]}")
        if depth > _MOST_DEPTH:
            return True
    return _DASHES.search(chars) is not None


def _tree(node: Any, seen: set[int], depth: int) -> Any:
    if node is None or id(node) in seen or depth > _MOST_DEPTH:
        return PlacedScalar("", 0, 0)
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        return KeyedMembers((str(key.value), _tree(value, seen, depth + 1)) for key, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_tree(each, seen, depth + 1) for each in node.value]
    quoted = node.style in {'"', "'"}
    return PlacedScalar(str(node.value), node.start_mark.index + quoted, node.end_mark.index - quoted)

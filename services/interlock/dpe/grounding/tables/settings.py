"""Settings: what a file of keys and values states: YAML, INI, TOML, an environment, constants of a program, lists of pins (SPEC-003 §3).

A list of ``Key: value`` lines for people is read the same way; its text stays evidence beside its records.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import yaml

from interlock.dpe.grounding.tables import objects
from interlock.dpe.grounding.tables.record import Pairs, ReadSource
from interlock.dpe.text.patterns import pattern

_MOST_CHARACTERS = 32_000
_LEAST_LINES, _MOST_LINES = 2, 600
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
_KEYED = pattern(r"""\s*(?:- )?["']?[\p{L}_][\p{L}\d_ .()/%€$£°+-]{0,50}["']?:(?:\s+\S.*|\s*)""")
_ITEM = re.compile(r"\s*- \S.*|\s*-\s*")
_BULLET = re.compile(r"(?m)^[ \t]*[-*•][ \t]+(?=\*{0,2}[^\s*])")
_STRONG = re.compile(r"\*\*|__|`")
_SECTION = re.compile(r"\[{1,2}([\w.\- \"]{1,60})\]{1,2}")
_ASSIGNED = pattern(
    r"(?:export )?([\p{L}_][\p{L}\d_.-]{0,50})\s*=\s*"
    r"(\"[^\"]{0,160}\"|'[^']{0,160}'|\[[^\[\]]{0,160}\]|[^={}();\"'\s>~][^={}();\"']{0,160}|);?"
)
_PINNED = re.compile(r"([A-Za-z][\w.-]{0,50})(?:\[[\w,]{1,60}\])?\s*((?:[=~!<>]=|[<>]).{1,60})")
_CONSTANT = pattern(
    r"(?:(?:export|public|private|static|final|const|let|var|val|int|long|float|double|bool|boolean|String|str)\s+)*"
    r"([A-Z][A-Z\d_]{2,50})(?:\s*:\s*\w+)?\s*:?=\s*(\"[^\"]{0,80}\"|'[^']{0,80}'|-?[\d._]{1,20}|[Tt]rue|[Ff]alse|null|None|nil);?"
)
_DASHES = re.compile(rf"(?:-[ \t]+){{{objects.MOST_DEPTH}}}")
_EMPTY = frozenset({"", "null", "~", "none", "nil"})
_LISTED = re.compile(r"\[([^\[\]{}]{0,160})\]")
_LITERALS = {"True": "true", "False": "false"}


def of_lines(content: str) -> ReadSource:
    """Return the records of a text all of whose lines state keys and values, and those of the constants among other lines."""
    if len(content) > _MOST_CHARACTERS or "\n" not in content:
        return ReadSource((), content)
    lines = [line for line in content.splitlines() if line.strip()]
    plain = [line for line in lines if line.strip()[0] not in "#;" and line.strip() not in {"---", "..."}]
    if not _LEAST_LINES <= len(plain) <= _MOST_LINES:
        return ReadSource((), content)
    if (tree := _assigned(plain)) is not None:
        found = objects.of_tree(tree)
        return ReadSource(found, "" if found else content)
    tree = _keyed(content, plain) or _constants(plain)
    return ReadSource(objects.of_tree(tree) if tree else (), content)


def _assigned(lines: Sequence[str]) -> Pairs | None:
    """Return the sections and keys of INI, TOML, an environment or a list of pins, or ``None`` for another text."""
    whole = Pairs()
    section = whole
    for line in map(str.strip, lines):
        if head := _SECTION.fullmatch(line):
            section = Pairs()
            whole.append((head[1].strip('"'), section))
        elif found := _ASSIGNED.fullmatch(line):
            section.append((found[1], _literal(found[2])))
        elif pinned := _PINNED.fullmatch(line):
            section.append((pinned[1], pinned[2].removeprefix("==")))
        else:
            return None
    return whole


def _constants(lines: Sequence[str]) -> Pairs | None:
    """Return the constants of a program: names in capitals with a literal."""
    found = [match for line in lines if (match := _CONSTANT.fullmatch(line.strip()))]
    return Pairs((each[1], _literal(each[2])) for each in found) if len(found) >= _LEAST_LINES else None


def _literal(written: str) -> Any:
    """Return a value without its quotes, a list as its members, and nothing as ``None``."""
    text = written.split(" #", 1)[0].strip()
    if listed := _LISTED.fullmatch(text):
        return [each.strip().strip("\"'") for each in listed[1].split(",") if each.strip()]
    quoted = text[:1] in {'"', "'"}
    bare = text.strip("\"'")
    return None if not quoted and bare.lower() in _EMPTY else _LITERALS.get(bare, bare)


def _keyed(content: str, lines: Sequence[str]) -> Pairs | None:
    """Return the tree of YAML, or of a list of ``Key: value`` for people, or ``None`` for another text."""
    keyed = sum(_KEYED.fullmatch(line) is not None for line in lines)
    if keyed >= _LEAST_LINES and all(_KEYED.fullmatch(line) or _ITEM.fullmatch(line) for line in lines):
        tree = _yaml(content)
        if isinstance(tree, Pairs):
            return tree
    bare = [_STRONG.sub("", _BULLET.sub("", line)).strip() for line in lines]
    if not all(_KEYED.fullmatch(line) for line in bare):
        return None
    return Pairs((key.strip(), _literal(value)) for key, _, value in (line.partition(":") for line in bare))


def _yaml(content: str) -> Any:
    if _is_deep(content):
        return None
    try:
        node = yaml.compose(content, Loader=_LOADER)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return _tree(node, set(), 0)


def _is_deep(content: str) -> bool:
    """Whether a text nests deeper than any record, which the parser would follow without a bound."""
    depth = 0
    for char in content:
        depth += (char in "[{") - (char in "]}")
        if depth > objects.MOST_DEPTH:
            return True
    return _DASHES.search(content) is not None


def _tree(node: Any, seen: set[int], depth: int) -> Any:
    """Return a node with all pairs. What an alias repeats, and what lies too deep, is left out."""
    if node is None or id(node) in seen or depth > objects.MOST_DEPTH:
        return None
    seen.add(id(node))
    if isinstance(node, yaml.MappingNode):
        return Pairs((str(key.value), _tree(value, seen, depth + 1)) for key, value in node.value)
    if isinstance(node, yaml.SequenceNode):
        return [_tree(each, seen, depth + 1) for each in node.value]
    bare = not node.style and str(node.value).strip().lower() in _EMPTY
    return None if bare else _LITERALS.get(node.value, node.value)

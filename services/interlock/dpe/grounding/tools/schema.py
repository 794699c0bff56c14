"""Declared tools: what the schema of a function says of each of its parameters (ATT-5)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from interlock.dpe.request import DeclaredTool
from interlock.dpe.text.arguments import Path
from interlock.dpe.text.wordlists import word_set

_REFERENCES = 16
"""Most references that lead from one schema to the next."""


@dataclass(frozen=True)
class Parameter:
    """What the schema says of one value; empty where it says nothing."""

    choices: tuple[Any, ...] = ()
    """Values that the schema names itself: enum, const, default, examples."""
    has_default: bool = False
    description: str = ""
    only_reads: bool = False
    """Whether its function only looks something up."""
    of_the_tool: str = ""
    """Description of the whole function."""


NOTHING_SAID = Parameter()
_WORDS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_LOOKS_UP = word_set(
    "get read search list find lookup look fetch query retrieve show describe view check browse inspect count recall load"
)
_TELLS = _LOOKS_UP | word_set("return give tell report searche fetche")
_CHANGES = word_set(
    "set update delete remove create add send write post put pay book cancel transfer scale apply insert replace move run execute"
    " edit make save buy sell order restart reboot deploy kill drop disable enable rollback merge push commit upload drain rename charge"
    " invite block ban unlock lock reset archive clear cancel trigger launch schedule notify email message reply call patch upsert close"
    " open start stop reset purge refund submit publish approve grant mark store"
)


def only_reads(tool: str, description: str = "") -> bool:
    """Whether a function only looks something up, as its name says, or the first word of its description where its name has no verb.

    get_metrics, searchArticles; *ledger_summary: Return the totals of a quarter*; not get_or_create_user.
    """
    words = [word.lower() for word in _WORDS.findall(tool)]
    told = [word.lower() for word in _WORDS.findall(description)]
    if not words or _CHANGES.intersection(words):
        return False
    return words[0] in _LOOKS_UP or (
        told[:1] != [] and told[0].removesuffix("s") in _TELLS and not _CHANGES.intersection(told)
    )


@dataclass(frozen=True)
class Tools:
    """The declared tools by name."""

    by_name: Mapping[str, Mapping[str, Any]]
    descriptions: Mapping[str, str]

    @staticmethod
    def of(declared: Sequence[DeclaredTool]) -> Tools:
        """Read the declared tools. A schema that is no JSON object says nothing."""
        return Tools(
            {one.name: _schema(one.parameters_json) for one in declared}, {o.name: o.description for o in declared}
        )

    def parameter(self, tool: str, path: Path) -> Parameter:
        """Return what the schema of *tool* says of the value at *path*."""
        root = self.by_name.get(tool, {})
        schemas = list(_resolved(root, root))
        for key in path:
            schemas = [deeper for one in schemas for deeper in _members(root, one, key)]
        schemas += [item for one in schemas if "items" in one for item in _resolved(root, one["items"])]
        choices = [choice for one in schemas for choice in _choices(one)]
        return Parameter(
            choices=tuple(choices),
            has_default=any("default" in one for one in schemas),
            description=" ".join(str(one["description"]) for one in schemas if "description" in one),
            only_reads=only_reads(tool, self.descriptions.get(tool, "")),
            of_the_tool=self.descriptions.get(tool, ""),
        )


def _schema(text: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _members(root: Mapping[str, Any], schema: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    """Yield the schemas of a member of an object, also of an object that is an item of a list."""
    containers = [schema, *(_resolved(root, schema["items"]) if "items" in schema else ())]
    for one in containers:
        properties = one.get("properties")
        if isinstance(properties, dict) and key in properties:
            yield from _resolved(root, properties[key])
        elif isinstance(one.get("additionalProperties"), dict):
            yield from _resolved(root, one["additionalProperties"])


def _resolved(root: Mapping[str, Any], schema: Any, depth: int = 0) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and its alternatives, with references into the same document followed."""
    if not isinstance(schema, dict) or depth > _REFERENCES:
        return
    yield schema
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: Any = root
        for part in reference[2:].split("/"):
            found = found.get(part) if isinstance(found, dict) else None
        yield from _resolved(root, found, depth + 1)
    for name in ("anyOf", "oneOf", "allOf"):
        listed = schema.get(name)
        for one in listed if isinstance(listed, list) else ():
            yield from _resolved(root, one, depth + 1)


def _choices(schema: Mapping[str, Any]) -> Iterator[Any]:
    listed = schema.get("enum")
    yield from listed if isinstance(listed, list) else ()
    examples = schema.get("examples")
    yield from examples if isinstance(examples, list) else ()
    yield from (schema[name] for name in ("const", "default", "example") if name in schema)

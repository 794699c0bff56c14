"""The part of JSON Schema that payloads of signals are declared in: closed, so that a schema cannot cost more than its payload.

Patterns, references and combinations are left out: with them a schema from outside could run for ever or read elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from interlock.domain.decision.reading import canonical

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,), "array": (list,), "string": (str,), "number": (int, float), "integer": (int,), "boolean": (bool,),
}  # fmt: skip
_SIZES = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_BOUNDS = frozenset({"minimum", "maximum"})
_KEYWORDS = _SIZES | _BOUNDS | {
    "type", "properties", "required", "additionalProperties", "items", "enum", "description",
}  # fmt: skip


def schema_fault(schema: Any, depth: int = 6) -> str:
    """Return what is wrong with a schema, as a path and a word; empty where nothing is."""
    if not isinstance(schema, dict) or depth == 0:
        return "a schema is an object, at most six levels deep"
    if unknown := sorted(map(str, set(schema) - _KEYWORDS)):
        return f"{unknown[0][:64]} is not known"
    if schema.get("type") not in _TYPES:
        return f"type is one of {', '.join(_TYPES)}"
    for word in _SIZES & set(schema):
        if not isinstance(schema[word], int) or isinstance(schema[word], bool) or schema[word] < 0:
            return f"{word} is a whole number"
    for word in _BOUNDS & set(schema):
        if not isinstance(schema[word], int | float) or isinstance(schema[word], bool):
            return f"{word} is a number"
    return _lists_fault(schema) or _inner_fault(schema, depth)


def _lists_fault(schema: Mapping[str, Any]) -> str:
    required, words = schema.get("required", []), schema.get("enum", [""])
    if not isinstance(required, list) or not all(isinstance(one, str) for one in required):
        return "required is a list of names"
    if not isinstance(words, list) or not words:
        return "enum is a list of values"
    if not isinstance(schema.get("additionalProperties", True), bool):
        return "additionalProperties is true or false"
    return ""


def _inner_fault(schema: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties", {})
    if not isinstance(properties, dict):
        return "properties is an object"
    inner = {**properties, **({"items": schema["items"]} if "items" in schema else {})}
    for name, one in inner.items():
        if fault := schema_fault(one, depth - 1):
            return f"{str(name)[:64]}: {fault}"
    return ""


def fits(schema: Mapping[str, Any], value: Any) -> bool:
    """Return whether a value is as a checked schema says."""
    kind = schema["type"]
    if type(value) not in _TYPES[kind]:
        return False
    if "enum" in schema and canonical(value) not in {canonical(one) for one in schema["enum"]}:
        return False
    if kind in {"number", "integer"}:
        return bool(schema.get("minimum", value) <= value <= schema.get("maximum", value))
    if kind == "string":
        return bool(schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)))
    if kind == "array":
        return _list_fits(schema, value)
    return kind != "object" or _object_fits(schema, value)


def _list_fits(schema: Mapping[str, Any], value: list[Any]) -> bool:
    if not schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)):
        return False
    return "items" not in schema or all(fits(schema["items"], one) for one in value)


def _object_fits(schema: Mapping[str, Any], value: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    if any(name not in value for name in schema.get("required", [])):
        return False
    if not schema.get("additionalProperties", True) and set(value) - set(properties):
        return False
    return all(fits(properties[name], one) for name, one in value.items() if name in properties)

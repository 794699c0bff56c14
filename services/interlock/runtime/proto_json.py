"""Messages as JSON values, as ``json_format.MessageToDict`` gives them, at a fifth of its cost.

Every governed call stores its report and its settlement as JSON. The library looks up each field's kind and options anew for
each value; here they are looked up once per type of message. What our messages do not hold is left to the library.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from typing import Any

from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

_INT64 = frozenset({FieldDescriptor.CPPTYPE_INT64, FieldDescriptor.CPPTYPE_UINT64})
_AS_IT_IS = frozenset({
    FieldDescriptor.CPPTYPE_BOOL, FieldDescriptor.CPPTYPE_INT32, FieldDescriptor.CPPTYPE_UINT32,
    FieldDescriptor.CPPTYPE_STRING,
})  # fmt: skip

Convert = Callable[[Any], Any]


def as_json(message: Message, *, proto_names: bool = False) -> dict[str, Any]:
    """Return *message* as a JSON object. *proto_names*: with the fields' names of the proto, not in camel case."""
    plan = _plan(message.DESCRIPTOR, proto_names)
    if plan is None:
        found: dict[str, Any] = json_format.MessageToDict(message, preserving_proto_field_name=proto_names)
        return found
    held = {}
    for field, value in message.ListFields():
        name, convert = plan[field.number]
        held[name] = value if convert is None else convert(value)
    return held


@lru_cache(maxsize=512)
def _plan(kind: Any, proto_names: bool) -> Mapping[int, tuple[str, Convert | None]] | None:  # noqa: FBT001 - a key
    """Return number → name and conversion of each field; ``None`` where a field is of a kind that is left to the library."""
    plan: dict[int, tuple[str, Convert | None]] = {}
    for field in kind.fields:
        convert = _conversion(field, proto_names=proto_names)
        if convert is json_format.MessageToDict:
            return None
        plan[field.number] = (field.name if proto_names else field.json_name, convert)
    return plan


def _conversion(field: Any, *, proto_names: bool) -> Convert | None:
    """Return the conversion of a field's value, ``None`` where it is JSON already, and the library's for what is left to it."""
    if _is_map(field):
        key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
        one = _of_one(value, proto_names=proto_names)
        if one is json_format.MessageToDict or key.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
            return json_format.MessageToDict
        return lambda held: {str(k): held[k] if one is None else one(held[k]) for k in held}
    one = _of_one(field, proto_names=proto_names)
    if not field.is_repeated or one is json_format.MessageToDict:
        return one
    return list if one is None else lambda held: [one(each) for each in held]


def _of_one(field: Any, *, proto_names: bool) -> Convert | None:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_MESSAGE and not field.message_type.full_name.startswith("google."):
        return partial(as_json, proto_names=proto_names)
    if kind == FieldDescriptor.CPPTYPE_ENUM and not field.enum_type.is_closed:
        return _Names({number: value.name for number, value in field.enum_type.values_by_number.items()}).__getitem__
    if kind == FieldDescriptor.CPPTYPE_DOUBLE:
        return _double
    if kind in _INT64:
        return str
    if kind in _AS_IT_IS and field.type != FieldDescriptor.TYPE_BYTES:
        return None
    return json_format.MessageToDict


class _Names(dict[int, str]):
    """The names of an enum. A number without one stays a number."""

    def __missing__(self, number: int) -> int:
        return number


def _double(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _is_map(field: Any) -> bool:
    return bool(
        field.type == FieldDescriptor.TYPE_MESSAGE
        and field.message_type.has_options
        and field.message_type.GetOptions().map_entry
    )

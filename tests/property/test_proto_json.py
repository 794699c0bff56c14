"""The quick writer of messages as JSON gives what the library gives: stored reports and settlements are hashed."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from interlock.api.audit.v1 import audit_pb2
from interlock.api.dpe.v1 import dpe_pb2
from interlock.api.session.v1 import session_pb2
from interlock.runtime.proto_json import as_json

KINDS = (dpe_pb2.Report, session_pb2.CommitWindowRequest, dpe_pb2.AnalyzeRequest, audit_pb2.AppendRequest)
"""The stored messages, and others with maps, bytes and lists of messages."""

INTEGERS = {
    FieldDescriptor.CPPTYPE_INT32: (-(2**31), 2**31 - 1), FieldDescriptor.CPPTYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(2**63), 2**63 - 1), FieldDescriptor.CPPTYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.CPPTYPE_ENUM: (0, 40),
}  # fmt: skip


def one(draw: st.DrawFn, field: FieldDescriptor) -> Any:
    if field.cpp_type in INTEGERS:
        low, high = INTEGERS[field.cpp_type]
        return draw(st.integers(low, high) | st.sampled_from([low, high]))
    if field.cpp_type in {FieldDescriptor.CPPTYPE_DOUBLE, FieldDescriptor.CPPTYPE_FLOAT}:
        none = st.sampled_from([math.nan, math.inf, -math.inf])
        return draw(none | st.floats(width=32 if field.cpp_type == FieldDescriptor.CPPTYPE_FLOAT else 64))
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return draw(st.booleans())
    short = st.binary(max_size=4) if field.type == FieldDescriptor.TYPE_BYTES else st.text(max_size=4)
    return draw(short)


def fill(draw: st.DrawFn, message: Message, depth: int) -> None:
    """Set some fields of *message*, which may be a map's entry."""
    fields = message.DESCRIPTOR.fields
    for field in (
        draw(st.lists(st.sampled_from(list(fields)), unique_by=lambda each: each.number, max_size=8)) if fields else ()
    ):
        held = getattr(message, field.name)
        is_message = field.cpp_type == FieldDescriptor.CPPTYPE_MESSAGE
        if is_message and field.message_type.GetOptions().map_entry:
            key, value = (field.message_type.fields_by_name[name] for name in ("key", "value"))
            if value.cpp_type != FieldDescriptor.CPPTYPE_MESSAGE:
                held[one(draw, key)] = one(draw, value)
        elif is_message and depth:
            fill(draw, held.add() if field.is_repeated else _set(held), depth - 1)
        elif not is_message:
            held.append(one(draw, field)) if field.is_repeated else setattr(message, field.name, one(draw, field))


def _set(held: Message) -> Message:
    held.SetInParent()
    return held


@st.composite
def messages(draw: st.DrawFn) -> Message:
    message = draw(st.sampled_from(KINDS))()
    fill(draw, message, 3)
    return message


def numbers(value: Any) -> Iterator[float]:
    if isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from numbers(each)
    elif isinstance(value, float):
        yield value


@pytest.mark.req("AUD-1")
@given(messages())
def test_a_message_is_the_json_that_the_library_writes(message):
    """Field by field, under both kinds of names, with unknown enum values, 64-bit numbers and numbers that are none."""
    for proto_names in (False, True):
        found = as_json(message, proto_names=proto_names)
        assert json_format.MessageToDict(message, preserving_proto_field_name=proto_names) == found
        assert all(map(math.isfinite, numbers(found)))
        assert json.dumps(found) == json_format.MessageToJson(
            message, indent=None, preserving_proto_field_name=proto_names
        )

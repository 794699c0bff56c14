"""JSON that can be read in one way only (reliability.md A-21)."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.errors import Refused
from interlock.sidecar.openai import strictjson

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)  # fmt: skip


def reason(data: bytes) -> str:
    with pytest.raises(Refused) as caught:
        strictjson.loads(data, max_depth=8)
    return caught.value.reason


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", "INVALID_JSON"),
        (b"{", "INVALID_JSON"),
        (b"{} {}", "INVALID_JSON"),
        (b"{'a': 1}", "INVALID_JSON"),
        (b'{"a": 1,}', "INVALID_JSON"),
        (b'{"a": 1 /* note */}', "INVALID_JSON"),
        (b'{"a": NaN}', "INVALID_JSON"),
        (b'{"a": -Infinity}', "INVALID_JSON"),
        (b'{"a": 1e999}', "INVALID_JSON"),
        (b'{"a": ' + b"9" * 5000 + b"}", "INVALID_JSON"),
        (b'{"a": "\x00"}', "INVALID_JSON"),
        (b"\xef\xbb\xbf{}", "INVALID_JSON"),
        (b'{"a": 1, "a": 2}', "DUPLICATE_KEY"),
        (b'{"x": [{"a": 1, "\\u0061": 2}]}', "DUPLICATE_KEY"),
        (b'{"a": "\xff"}', "INVALID_UTF8"),
        (b'{"a": "\xc0\xaf"}', "INVALID_UTF8"),
        (b'{"a": "\xed\xa0\x80"}', "INVALID_UTF8"),
        (b'{"a": "\\ud800"}', "INVALID_UTF8"),
        (b'{"a": "\\uDC00x"}', "INVALID_UTF8"),
        (b'{"\\udfff": 1}', "INVALID_UTF8"),
        (b"[" * 9 + b"]" * 9, "JSON_TOO_DEEP"),
        (b'{"a":' * 9 + b"1" + b"}" * 9, "JSON_TOO_DEEP"),
        (b"[" * 1_000_000, "JSON_TOO_DEEP"),
    ],
)
def test_what_parsers_read_differently_is_refused(data, expected):
    """Each has its own constant reason, and none takes the parser's stack with it."""
    assert reason(data) == expected


@given(JSON)
def test_what_is_plain_json_is_read_as_the_standard_library_reads_it(value):
    """Nothing that is good is refused, and what is read is what was written."""
    data = json.dumps(value).encode()

    assert strictjson.loads(data, max_depth=64) == json.loads(data)
    assert strictjson.loads(strictjson.dumps(value), max_depth=64) == value


@pytest.mark.parametrize(
    "text", ['"[[[[[[[[[["', r'"\"[[[[[[[[[["', r'"\\"', r'"\\\"[[[[[[[[[[{{"', '"😀"', r'"\ud83d\ude00"']
)
def test_brackets_and_escapes_inside_strings_are_no_nesting(text):
    """A text full of brackets, quotes and backslashes is a text; a whole surrogate pair is a character."""
    assert strictjson.loads(text.encode(), max_depth=4) == json.loads(text)


def test_many_values_are_not_deep():
    """Depth is what is bounded: many shallow objects are read, and one too deep among them is not."""
    shallow = [{"a": [1]}] * 40

    assert strictjson.loads(json.dumps(shallow).encode(), max_depth=8) == shallow
    assert reason(json.dumps([*shallow, [[[[[[[[1]]]]]]]]]).encode()) == "JSON_TOO_DEEP"

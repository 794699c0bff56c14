"""Lines of the Merkle log: one text per event, and nothing else is one."""

from __future__ import annotations

import json
from dataclasses import asdict, fields, replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import EventRecord
from interlock.domain.merkle.entry import decode_entry, encode_entry

TEXT = st.text(st.characters(exclude_categories=()), max_size=12)
EVENTS = st.builds(
    EventRecord, TEXT, st.integers(1, 2**53), TEXT, TEXT, st.integers(1, 5), TEXT, TEXT, st.integers(1, 9), TEXT
)
ONE = EventRecord("crp_sess_1", 3, "", "DPE_COMPLETED", 2, "2026-11-21T10:00:00Z", '{"a":1}', 1, "sha256:00")


@pytest.mark.req("AUD-6")
@given(EVENTS)
def test_every_event_comes_back_from_its_line(event: EventRecord) -> None:
    """Whatever was stored, lone surrogates and line breaks too, is one line that reads back as itself."""
    line = encode_entry(event)
    assert b"\n" not in line
    assert decode_entry(line) == event


@pytest.mark.req("AUD-6")
@given(EVENTS)
def test_a_line_is_canonical_json(event: EventRecord) -> None:
    """Put together by hand, it is what any writer of canonical JSON makes of the fields."""
    stored = {"data" if name == "data_json" else name: value for name, value in asdict(event).items()}
    assert encode_entry(event) == canonical_json(stored).encode("utf-8", "surrogatepass")


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize("field", [field.name for field in fields(EventRecord)])
def test_every_stored_field_is_in_the_line(field: str) -> None:
    """A change of any field changes the line, or an auditor would not see it."""
    before = getattr(ONE, field)
    changed = replace(ONE, **{field: before + 1 if isinstance(before, int) else before + "x"})
    assert encode_entry(changed) != encode_entry(ONE)


@pytest.mark.req("AUD-6")
@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        encode_entry(ONE) + b" ",
        encode_entry(ONE).replace(b'"severity":2', b'"severity":2.0'),
        encode_entry(ONE).replace(b'"severity":2', b'"severity":true'),
        encode_entry(ONE).replace(b'"severity":2', b'"severity":2,"severity":2'),
        encode_entry(ONE).replace(b'"window_id":""', b'"window_id":"","x":1'),
        json.dumps(json.loads(encode_entry(ONE)), indent=1).encode(),
        b"\xff" + encode_entry(ONE),
        b"[" * 100_000,
    ],
)
def test_anything_else_is_no_entry(line: bytes) -> None:
    """Another spelling of the same event would have another hash; it is refused, and so is what is no event at all."""
    with pytest.raises(ValueError, match="not an entry"):
        decode_entry(line)

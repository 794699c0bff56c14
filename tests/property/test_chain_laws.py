"""Laws of the chain: no two inputs share an HMAC, what was appended verifies, what was changed does not."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interlock.audit import requests
from interlock.audit.export.export import to_line
from interlock.audit.requests import Note
from interlock.audit.sealing.seal import Sealer
from interlock.audit.sealing.verify import examine
from interlock.domain.chain.canonical import canonical_json
from interlock.domain.chain.chain import (
    EventRecord,
    Integrity,
    content_hash,
    event_hmac,
    unchained_window_hmac,
    window_hmac,
)
from interlock.domain.errors import Refused
from tests.support.audit.audit import KEYRING, Ticking, session_id, temporary_log, window_id

KEY = bytes(range(32))

# Small alphabets make accidents likely: the same characters on either side of a boundary.
texts = st.text(st.sampled_from("ab|:\u241f\n0"), max_size=4)
anything = st.text(st.characters(codec="utf-8"), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | anything,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(anything, inner, max_size=3),
    max_leaves=8,
)
objects = st.dictionaries(anything, json_values, max_size=4)


@pytest.mark.req("PRV-1")
@given(json_values)
@settings(max_examples=300)
def test_canonical_json_is_the_text_of_the_standard_encoder(value):
    """Made in another way, for speed: the text is the same."""
    standard = json.dumps(value, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))

    assert standard == canonical_json(value)


@pytest.mark.req("PRV-1")
@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_canonical_json_has_no_number_that_is_not_finite(number):
    """No parser outside Python reads one."""
    with pytest.raises(ValueError, match="not JSON compliant"):
        canonical_json({"a": [number]})


@pytest.mark.req("PRV-1")
@given(objects, st.sampled_from([None, 1]), st.booleans())
def test_data_of_an_event_become_canonical_however_they_were_written(value, indent, ascii_only):
    """A canonical text is taken as it is, any other is made canonical."""
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)

    assert canonical_json(value) == requests.json_object("data_json", text)
    assert canonical_json(value) == requests.json_object("data_json", canonical_json(value))


@pytest.mark.req("PRV-1")
@pytest.mark.parametrize(
    "text", ['{"a":1,"a":1}', '{"a":1,"a":2}', '{"b":{"a":1,"a":1}}', '[{"a":1,"a":1}]', '{"a":NaN}']
)
def test_data_that_two_parsers_read_differently_are_refused(text):
    """Repeated keys and numbers that are none, however canonical the rest is."""
    with pytest.raises(Refused) as refused:
        requests.json_object("data_json", text)

    assert refused.value.reason == "INVALID_JSON"


def window_input(draw_from):
    session, number, timestamp, response, report, parents = draw_from
    return {
        "session_id": session,
        "window_number": number,
        "timestamp": timestamp,
        "response_hash": response,
        "report_hash": report,
        "parent_hmacs": parents,
    }


windows = st.tuples(texts, st.integers(1, 12), texts, texts, texts, st.lists(texts, max_size=2).map(sorted)).map(
    window_input
)


@st.composite
def two_windows(draw):
    """A window and another one, often with the same characters behind other boundaries."""
    one = draw(windows)
    if draw(st.booleans()):
        return one, draw(windows)
    names = ["timestamp", "response_hash", "report_hash"]
    parts = "\u241f".join(one[name] for name in names).split("\u241f")
    cuts = sorted(draw(st.lists(st.integers(0, len(parts)), min_size=2, max_size=2)))
    fields = ["\u241f".join(parts[a:b]) for a, b in zip([0, *cuts], [*cuts, len(parts)], strict=True)]
    return one, {**one, **dict(zip(names, fields, strict=True))}


def hmac_or_none(make, *args, **fields):
    try:
        return make(*args, **fields)
    except Refused:
        return None


@pytest.mark.req("PRV-1")
@settings(max_examples=400)
@given(two_windows())
def test_two_windows_share_an_hmac_only_if_they_are_the_same(pair):
    """No field can pass its edge on to a neighbour (A-28)."""
    one, other = pair
    first, second = hmac_or_none(window_hmac, KEY, **one), hmac_or_none(window_hmac, KEY, **other)

    assert first is None or (first == second) == (one == other)


@pytest.mark.req("PRV-1")
@settings(max_examples=200)
@given(windows, windows)
def test_a_chained_hmac_is_never_an_unchained_one(one, other):
    """The two HMACs of a window cannot stand for each other."""
    del other["parent_hmacs"]
    first, second = hmac_or_none(window_hmac, KEY, **one), hmac_or_none(unchained_window_hmac, KEY, **other)

    assert first is None or first != second


events = st.builds(
    EventRecord, texts, st.integers(1, 12), texts, texts, st.integers(1, 5), texts, texts, st.just(1), st.just("")
)


@settings(max_examples=400)
@given(events, texts, events, texts)
def test_two_events_share_an_hmac_only_if_they_are_the_same(one, before_one, other, before_other):
    """Nor can an event's fields, though its data may hold anything."""
    first, second = (
        hmac_or_none(event_hmac, KEY, one, before_one),
        hmac_or_none(event_hmac, KEY, other, before_other),
    )

    assert first is None or (first == second) == ((one, before_one) == (other, before_other))


def appended(datas):
    sealer = Sealer(KEYRING, Ticking(), os.urandom)
    with temporary_log() as log:
        for position, data in enumerate(datas):
            note = Note("DPE_COMPLETED", 1 + position % 5, requests.json_object("data_json", json.dumps(data)), "")
            window = window_id(position) if position % 2 else ""
            [outcome] = log.commit([partial(sealer.record, session_id=session_id(), window_id=window, notes=[note])])
            assert outcome.error is None
        return log.chain(session_id())


@pytest.mark.req("PRV-2")
@settings(max_examples=60)
@given(st.lists(objects, min_size=1, max_size=6), st.data())
def test_whatever_was_appended_verifies_and_whatever_was_changed_does_not(datas, data):
    """For any data; the fault is at the event that was changed."""
    chain = appended(datas)
    assert examine(chain, session_id(), KEYRING).integrity is Integrity.UNVERIFIED

    index = data.draw(st.integers(0, len(chain.events) - 1))
    victim = chain.events[index]
    field, value = data.draw(
        st.one_of(
            st.tuples(st.sampled_from(["data_json", "event_type", "timestamp", "window_id", "hmac"]), anything),
            st.tuples(st.sampled_from(["severity", "key_version"]), st.integers(-3, 9)),
        ).filter(lambda change: getattr(victim, change[0]) != change[1])
    )
    changed = [*chain.events[:index], replace(victim, **{field: value}), *chain.events[index + 1 :]]

    found = examine(replace(chain, events=tuple(changed)), session_id(), KEYRING)

    assert found.integrity is Integrity.BROKEN
    assert found.faults[0].index == index + 1


@pytest.mark.req("AUD-4")
@settings(max_examples=150)
@given(objects, anything)
def test_one_event_is_one_line_whatever_it_holds(data, stray):
    """No data breaks a line, moves a cursor or turns the writing direction, and none is lost (A-17)."""
    text = canonical_json(data)
    event = EventRecord(session_id(), 1, stray, "DPE_COMPLETED", 2, "2026-05-25T10:00:00Z", text, 1, "sha256:00")

    line = to_line(event)

    assert len(line.splitlines()) == 1
    assert not any(ord(char) < 0x20 or 0x7F <= ord(char) < 0xA0 or char in "\u202e\u2066\ufeff" for char in line)
    parsed = json.loads(line)
    assert (parsed["data"], parsed["window_id"]) == (data, stray)
    assert content_hash(canonical_json(parsed["data"]).encode()) == content_hash(text.encode())


@settings(max_examples=200)
@given(st.one_of(objects.map(json.dumps), anything))
def test_json_is_canonical_or_refused(text):
    """What is accepted means the same, has one form, and that form is a fixed point."""
    try:
        canonical = requests.json_object("data_json", text)
    except Refused as refused:
        assert refused.reason in {"INVALID_JSON", "JSON_TOO_LARGE"}
        return
    assert json.loads(canonical) == json.loads(text or "{}")
    assert requests.json_object("data_json", canonical) == canonical

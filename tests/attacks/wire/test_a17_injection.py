"""A-17: nothing in an export, a stream or a listing can steer a terminal, split a line or fool a reader."""

from __future__ import annotations

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from interlock.audit.export import ocsf
from interlock.audit.export.export import to_line
from interlock.audit.store.log_sql import SqliteLog
from interlock.audit.streams.delivery import Courier
from interlock.audit.streams.sinks import Sink
from interlock.cli.main import app
from interlock.domain.chain.chain import EventRecord
from interlock.runtime.egress.fetch import Egress
from tests.support.audit.audit import MASTER, Attacker, build, session_id

pytestmark = pytest.mark.req("AUD-4")

HOSTILE = (
    "\x1b[2J\x1b]0;owned\x07", "line\nbreak", "carriage\rreturn", "\x00", "\x7f", "\x9b31m", "\u2028\u2029\x85\x0b\x0c",
    "\u202etxt.exe", "\u2066a\u2069", "\u200b\u200d\ufeff\xad", "\U000e0041\U000e0042", "\ud800", "=HYPERLINK(1)", "</script>",
)  # fmt: skip
ANY = st.text(st.characters(), max_size=40) | st.sampled_from(HOSTILE)


def record(**fields) -> EventRecord:
    values = {
        "session_id": session_id(), "sequence": 1, "window_id": "", "event_type": "SAFETY_HALT", "severity": 5,
        "timestamp": "2026-05-25T10:00:00Z", "data_json": "{}", "key_version": 1, "hmac": "sha256:" + "0" * 64,
    }  # fmt: skip
    return EventRecord(**{**values, **fields})


def harmless(line: str) -> bool:
    """One line, in which every character is one that a reader sees and no terminal obeys."""
    return len(line.splitlines()) == 1 and not any(
        unicodedata.category(char) in {"Cc", "Cs", "Zl", "Zp"} or char in "\u200e\u200f\u061c" or char in BIDI
        for char in line
    )


BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\ufeff\u200b\u200d\xad"


@given(st.dictionaries(ANY.filter(str.isprintable), ANY, max_size=3), ANY, ANY)
def test_a17_one_event_is_one_line_and_says_what_was_stored(data, kind, window):
    """Whatever texts an event holds, even ones that were written past the service: the JSON gives them back exactly."""
    event = record(data_json=json.dumps(data), event_type=kind, window_id=window)
    line = to_line(event)
    assert harmless(line)
    told = json.loads(line)
    assert (told["data"], told["event_type"], told["window_id"]) == (data, kind, window)


@given(st.dictionaries(ANY.filter(str.isprintable), ANY, max_size=3), ANY, ANY, ANY)
def test_a17_ocsf_is_one_line_too(data, kind, window, time):
    """The same for a SIEM, whatever stands in type, window and time."""
    [line] = ocsf.lines([record(data_json=json.dumps(data), event_type=kind, window_id=window, timestamp=time)])
    assert harmless(line)
    assert json.loads(line)["unmapped"]["crp_data"] == data


@given(ANY, ANY)
def test_a17_a_message_to_a_sink_is_one_line_and_its_headers_are_fixed(kind, text):
    """Bodies are escaped as exports are; no header of a message holds anything of an event."""
    sink = Sink("siem", "https://siem.example.com/", (b"k" * 32,))
    courier = Courier(Egress(), lambda: 0, "urn:x")
    event = record(event_type=kind, data_json=json.dumps({"x": text}), window_id=text, hmac=text)
    for made in (sink, Sink("siem", sink.url, sink.secrets, format="comply")):
        [post] = courier.posts(made, [(0, event)])
        assert harmless(post.body.decode())
        assert post.id.isascii()
        assert len(post.id) == 36


@pytest.mark.parametrize("form", ["ndjson", "ocsf"])
def test_a17_the_command_prints_harmless_lines_of_a_tampered_log(tmp_path, monkeypatch, form):
    """What was written into the database by hand reaches the terminal escaped, and no event is hidden by it."""
    database = tmp_path / "audit.db"
    log = SqliteLog(database)
    build(log, 2)
    log.close()
    with Attacker(database) as attack:
        for sequence, text in enumerate(HOSTILE[:6], 1):
            attack("UPDATE events SET data_json = ?, event_type = ? WHERE sequence = ?", text, text, sequence)
    monkeypatch.setenv("INTERLOCK_AUDIT_URL", f"sqlite:///{database}")
    monkeypatch.setenv("INTERLOCK_MASTER_KEY", MASTER.hex())
    result = CliRunner().invoke(app, ["audit", "export", session_id(), "--format", form])

    lines = result.stdout.removesuffix("\n").split("\n")
    assert (result.exit_code, len(lines)) == (0, 6)
    assert all(harmless(line) for line in lines)


def test_a17_nesting_stops_no_export():
    """Data of any depth, which only somebody with the database can have written, is a line like any other.

    Each depth is tried: what a reader of JSON just manages, a writer of it may just not.
    """
    for depth in (*range(850, 1010), 5000):
        event = record(data_json="[" * depth + "]" * depth)
        for line in (to_line(event), *ocsf.lines([event])):
            assert harmless(line[:200])


def test_a17_nothing_is_offered_that_a_spreadsheet_would_run():
    """No CSV: the formats are two, and both are JSON."""
    result = CliRunner().invoke(app, ["audit", "export", session_id(), "--format", "csv"])
    assert result.exit_code == 2


def test_a17_the_check_of_these_tests_can_fail():
    """An escape, a break or a turn of direction would be seen."""
    assert harmless('{"a":"b"}')
    assert not any(harmless(f'"{text}"') for text in HOSTILE[:10] if "=" not in text)

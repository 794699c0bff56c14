"""OCSF exports, held against the schema that OCSF publishes for version 1.1.0 (tests/data/ocsf)."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from jsonschema import Draft202012Validator
from py_ocsf_models.objects.api import API
from py_ocsf_models.objects.metadata import Metadata

from interlock.audit.export.ocsf import ACTIVITIES, lines
from interlock.domain.chain.audit_events import SEVERITIES, TYPES
from interlock.domain.chain.chain import EventRecord
from tests.support.paths import TESTS

pytestmark = pytest.mark.req("AUD-4")

SCHEMA = json.loads((TESTS / "data" / "ocsf" / "api_activity-1.1.0.json").read_text())
VALIDATOR = Draft202012Validator(SCHEMA)
SESSION, WINDOW = "crp_sess_" + "0" * 32, "crp_win_" + "0" * 32


def record(kind: str, severity: int = 2, data: str = "{}", **more) -> EventRecord:
    values = {
        "session_id": SESSION, "sequence": 1, "window_id": WINDOW, "event_type": kind, "severity": severity,
        "timestamp": "2026-05-25T10:00:00.123456Z", "data_json": data, "key_version": 1, "hmac": "sha256:" + "a" * 64,
    }  # fmt: skip
    return EventRecord(**{**values, **more})


def exported(*events: EventRecord) -> list[dict]:
    return [json.loads(line) for line in lines(events)]


@pytest.mark.parametrize("kind", [*TYPES, "UNKNOWN_TO_US"])
def test_every_type_in_every_severity_is_valid_ocsf(kind):
    """All required attributes, no unknown one, every enumeration kept."""
    for number in range(1, len(SEVERITIES) + 1):
        [found] = exported(record(kind, number))
        assert [error.message for error in VALIDATOR.iter_errors(found)] == []
        Metadata(**found["metadata"])
        API(**found["api"])


def test_the_schema_finds_what_is_missing():
    """The check can fail: without any one required attribute it does."""
    [found] = exported(record("SAFETY_HALT", 5))
    for name in SCHEMA["required"]:
        assert list(VALIDATOR.iter_errors({key: value for key, value in found.items() if key != name})), name
    assert list(VALIDATOR.iter_errors({**found, "crp_hmac": "x"}))


def test_the_mapping_is_that_of_the_specification():
    """SPEC-011 §4.2, row by row."""
    events = [
        record("SESSION_CREATED", 2, '{"scope":"key-1"}', window_id=""),
        record("DISPATCH_STARTED", 2, '{"provider":"api.example.com","model":"m-1"}'),
        record("SAFETY_HALT", 5, '{"risk_level":"CRITICAL"}'),
    ]
    _, _, found = exported(*events)
    assert (found["class_uid"], found["category_uid"], found["type_uid"], found["activity_id"]) == (6003, 6, 600399, 99)
    assert (found["severity_id"], found["severity"]) == (5, "Critical")
    assert found["time"] == 1_779_703_200_123
    assert found["src_endpoint"]["uid"] == SESSION
    assert found["dst_endpoint"]["uid"] == "api.example.com/m-1"
    assert found["actor"] == {"session": {"uid": SESSION}, "user": {"uid": "key-1"}}
    assert found["metadata"]["product"]["name"] == "CRP Gateway"
    assert found["metadata"]["product"]["vendor_name"] == "AutoCyber AI"
    assert found["api"]["operation"] == "SAFETY_HALT"
    assert (found["status"], found["status_id"]) == ("Failure", 2)
    assert found["unmapped"]["crp_hmac"] == "sha256:" + "a" * 64
    assert found["unmapped"]["crp_risk_level"] == "CRITICAL"
    assert found["unmapped"]["crp_data"] == {"risk_level": "CRITICAL"}


def test_activities_name_types_that_exist():
    """A type that was renamed would silently become Other."""
    assert set(ACTIVITIES) <= set(TYPES)


@pytest.mark.parametrize(
    "damage",
    [{"timestamp": "yesterday"}, {"severity": 99}, {"severity": -1}, {"data_json": "[1]"}, {"data_json": "\x1b[2J"}],
)
def test_what_was_tampered_with_is_exported_and_valid(damage):
    """An export leaves nothing out, and a SIEM takes every line."""
    [found] = exported(replace(record("SAFETY_HALT", 5), **damage))
    assert [error.message for error in VALIDATOR.iter_errors(found)] == []

"""The table of event types: what is not in it is not written (SPEC-011 §1, AUD-1)."""

from __future__ import annotations

import json

import pytest

from interlock.api.audit.v1 import audit_pb2
from interlock.audit import requests
from interlock.domain.chain.audit_events import OWN_TYPES, SEVERITIES, TYPES
from interlock.domain.errors import Refused
from tests.support.audit.audit import event

pytestmark = pytest.mark.req("AUD-1")

OPEN = [one for one in TYPES.values() if one.produced and not one.own]


@pytest.mark.parametrize("one", OPEN, ids=lambda one: one.name)
def test_an_event_with_its_fields_is_taken_and_without_any_one_of_them_refused(one):
    """Each required field is required by itself."""
    data = json.loads(event(one.name, "{}").data_json)
    assert requests.notes([event(one.name, "{}")])[0].event_type == one.name
    for field in one.fields:
        less = json.dumps({name: value for name, value in data.items() if name != field})
        raw = audit_pb2.NewEvent(event_type=one.name, severity=event(one.name, "{}").severity, data_json=less)
        with pytest.raises(Refused) as refused:
            requests.notes([raw])
        assert (refused.value.reason, refused.value.metadata["field"]) == ("EVENT_FIELD_MISSING", field)


@pytest.mark.parametrize("one", OPEN, ids=lambda one: one.name)
def test_an_event_has_its_own_severity_and_no_other(one):
    """What is critical cannot be played down, nor the other way round."""
    for number, name in enumerate(SEVERITIES, 1):
        made = event(one.name, "{}", severity=number)
        if name in one.severities:
            assert requests.notes([made])
            continue
        with pytest.raises(Refused, match="EVENT_SEVERITY_WRONG"):
            requests.notes([made])


@pytest.mark.parametrize("name", ["MADE_UP", "STOP_INJECT", "FACT_INGESTED", "CKF_ETAG_CHANGED"])
def test_a_type_that_nothing_produces_is_refused(name):
    """Unknown ones, and those of the specification that have no path here."""
    raw = audit_pb2.NewEvent(event_type=name, severity=audit_pb2.SEVERITY_INFO, data_json="{}")
    with pytest.raises(Refused, match="EVENT_TYPE_UNKNOWN"):
        requests.notes([raw])


@pytest.mark.parametrize("name", sorted(OWN_TYPES))
def test_what_only_the_audit_service_writes_is_refused_of_a_caller(name):
    """A seal, a decision, a delivery: whoever calls cannot make one up."""
    raw = audit_pb2.NewEvent(event_type=name, severity=audit_pb2.SEVERITY_INFO, data_json="{}")
    with pytest.raises(Refused, match="RESERVED_EVENT_TYPE"):
        requests.notes([raw])

"""Who knows of the protocol: by every header that asks for protection, and by none that does not."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from interlock.domain.headers.awareness import PREFERENCES, aware
from interlock.domain.headers.headers import RequestHeaders, read

pytestmark = pytest.mark.req("ATT-9")

ID = "0123456789abcdef"
UNAWARE = [
    {},
    {"user-agent": "openai/python", "x-session-id": "a", "traceparent": "00-1-2-01"},
    {"crp-context-session-id": f"crp_sess_{ID}"},
    {"crp-context-if-match": "*"},
    {"crp-context-cache": "no-store, no-cache"},
    {"crp-llm-reproducibility-seed": "7"},
    {"crp-safety-policy-report-only": "halt-on LOW"},
    {"crp-accept-strategy": "reflexive, push"},
]
AWARE = [
    {"crp-session-token": "a.b.c"},
    {"crp-context-continuation-id": f"crp_cont_{ID}"},
    {"crp-safety-nonce": "base64:aaaa"},
    {"crp-safety-policy": "warn-on HIGH"},
    {"crp-safety-mode": "permissive"},
    {"crp-safety-oversight-mode": "auto"},
    {"crp-accept-risk": "CRITICAL"},
    {"crp-accept-quality": "D"},
    {"crp-safety-report-uri": "https://reports.example.com/crp"},
    {"crp-agent-safety-budget": "0"},
    {"crp-agent-safety-budget": "1.0"},
    {"crp-llm-grounding-mode": "open"},
    {"crp-session-action": "terminate"},
    {"crp-session-action": "branch"},
    {"crp-context-strategy": "push"},
    {"crp-agent-fan-in-policy": "partial"},
    {"crp-agent-session-parent": f"crp_sess_{ID}"},
    {"crp-agent-delegation-grant": "g"},
    {"crp-agent-loop-depth": "0"},
    {"crp-compliance-data-residency": "EU"},
    {"crp-oversight-token": "approved:sha256:aaaa"},
]


@pytest.mark.parametrize("sent", UNAWARE, ids=str)
def test_who_asks_for_nothing_is_not_aware(sent):
    """Preferences, hints and other protocols' headers ask for no protection."""
    assert not aware(read(sent.items(), delegating=True))


@pytest.mark.parametrize("sent", AWARE, ids=str)
def test_who_asks_for_protection_is_aware(sent):
    """Also where the value is the mildest, a zero among them."""
    assert aware(read(sent.items(), delegating=True))


@pytest.mark.parametrize("name", sorted({field.name for field in fields(RequestHeaders)} - PREFERENCES))
def test_every_other_value_counts(name):
    """A value that is added to the request later makes a caller aware, unless it is named as a preference."""
    assert aware(replace(read([]), **{name: "x"}))
    assert {field.name for field in fields(RequestHeaders)} >= PREFERENCES

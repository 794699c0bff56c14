"""What a would-have says: in the header, in the trail and in the figures."""

from __future__ import annotations

import json

import pytest

from interlock.api.policy.v1 import policy_pb2
from interlock.domain.chain.audit_events import TYPES
from interlock.domain.headers import headers
from interlock.sidecar.trail import would
from interlock.sidecar.trail.would import WouldHave
from tests.support.sidecar.sidecar import a_report

pytestmark = pytest.mark.req("ATT-9")


def decided(action, **more) -> list[WouldHave]:
    return would.of_decision(policy_pb2.Decision(would=policy_pb2.WouldHave(action=action, **more)))


@pytest.mark.parametrize(
    ("action", "more", "told"),
    [
        (policy_pb2.ACTION_HALT, {"reason": "X", "directive": "halt-on HIGH"}, WouldHave("halt", "X", "halt-on HIGH")),
        (policy_pb2.ACTION_HOLD, {"reason": "HELD_FOR_REVIEW"}, WouldHave("hold", "HELD_FOR_REVIEW")),
        (policy_pb2.ACTION_REJECT_QUALITY, {"reason": "QUALITY_BELOW_TIER"}, WouldHave("reject", "QUALITY_BELOW_TIER")),
        (policy_pb2.ACTION_REDISPATCH, {"remedies": [policy_pb2.REMEDY_CONTEXT_CORRECTION]},
         WouldHave("rewrite", "CONTEXT_CORRECTION")),
        (policy_pb2.ACTION_CONTINUE, {}, WouldHave("rewrite", "CONTINUE")),
        (policy_pb2.ACTION_STITCH, {}, WouldHave("rewrite", "STITCH")),
        (policy_pb2.ACTION_UNSPECIFIED, {}, WouldHave("halt", "UNKNOWN")),
    ],
)  # fmt: skip
def test_every_action_has_its_word(action, more, told):
    """An action that is not known here is told as the gravest one."""
    assert decided(action, **more) == [told]


def test_a_decision_that_is_enforced_says_nothing():
    """Without a would-have there is no header, and a header from before is taken away."""
    assert would.of_decision(policy_pb2.Decision(action=policy_pb2.ACTION_HALT)) == []
    assert headers.admissible(would.header([])) == {}


def test_the_header_lists_all_and_quotes_nobody():
    """Several are told in order; a reason that is no word of ours is not sent."""
    both = [WouldHave("rewrite", "HALF_OPEN"), would.DEPLETED]

    assert headers.admissible(would.header(both)) == {
        "CRP-Safety-Would": "rewrite; reason=HALF_OPEN, halt; reason=SAFETY_BUDGET_DEPLETED"
    }
    assert headers.admissible(would.header([WouldHave("halt", "a\r\nb")])) == {}


def test_the_event_is_one_of_the_table():
    """Its severity and fields are those that the audit service accepts."""
    (told,) = would.events([WouldHave("halt", "X", "halt-on HIGH")], a_report("HIGH"), "http://h/crp/v3/reports/w")
    data = json.loads(told.data_json)

    known = TYPES[told.event_type]
    assert (told.severity, known.severities) == (3, ("WARN",))
    assert set(known.fields) <= data.keys() <= {*known.fields, *known.more}

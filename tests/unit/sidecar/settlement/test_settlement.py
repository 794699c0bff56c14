"""What a sidecar reads of a sealed settlement."""

from __future__ import annotations

import pytest
from google.protobuf.json_format import MessageToJson

from interlock.api.audit.v1 import audit_pb2
from interlock.api.session.v1 import session_pb2
from interlock.domain.errors import Refused
from interlock.sidecar.settlement.recovery import settlement

SEALED = session_pb2.CommitWindowRequest(
    window_id="w", charge_micros=150_000, facts_used=["ab" * 8], accumulate=True, chain_budget_micros=0
)
JSON = MessageToJson(SEALED, indent=None)


@pytest.mark.req("BUD-8")
@pytest.mark.parametrize("kind", [audit_pb2.GetWindowResponse, audit_pb2.TreeStep])
@pytest.mark.parametrize(
    "given",
    [{"settlement": SEALED}, {"settle_json": JSON}, {"settle_json": "[]", "settlement": SEALED}],
    ids=["message", "an older audit service's JSON", "both"],
)
def test_a_settlement_is_read_from_its_message_or_from_json(kind, given):
    """The message counts where there is one; HMAC and time are those of the seal."""
    found = settlement(kind(hmac="h", timestamp="t", **given))

    expected = session_pb2.CommitWindowRequest(hmac="h", timestamp="t")
    expected.MergeFrom(SEALED)
    assert found == expected


@pytest.mark.req("BUD-8")
def test_json_of_a_later_version_is_read_as_far_as_it_is_known():
    """A sidecar that was rolled back settles what a later one sealed."""
    found = settlement(audit_pb2.GetWindowResponse(settle_json='{"windowId":"w","later":1}'))

    assert found == session_pb2.CommitWindowRequest(window_id="w")


@pytest.mark.parametrize("text", ["", '{"chargeMicros":"much"}', "no JSON"])
def test_what_is_no_settlement_is_refused(text):
    """Nothing is charged by guessing."""
    with pytest.raises(Refused) as refused:
        settlement(audit_pb2.TreeStep(settle_json=text))

    assert refused.value.reason == "SEAL_UNREADABLE"

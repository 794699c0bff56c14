"""Emergency actions while the store, the session service or the audit service is down, each really stopped and started (T8, KRN-2)."""

from __future__ import annotations

import pytest

from tests.support.kernel_outages import outage_mesh, reason
from tests.support.kernels import failed

pytestmark = pytest.mark.req("KRN-2")

ACTING = {
    "execute": {"action": "small", "key": "late-execute"},
    "permit": {"action": "small", "key": "late-permit"},
    "lease": {"resource": "usd", "lifetime_ms": 1000, "key": "late-lease"},
    "evaluate": {"action": "small"},
}


@pytest.mark.parametrize("part", ["store", "session", "audit"])
def test_a_stop_is_recorded_stands_and_is_sealed_when_the_part_is_back(tmp_path, part):
    """Answered as allowed and not sealed; nothing is permitted from then on; in the chain once, signed, by itself."""
    with outage_mesh(tmp_path) as mesh:
        team = mesh.team()
        team.open()
        mesh.down(part)
        told, again = team.stop(), team.stop()
        refused = [reason(team.post(ask, **body)) for ask, body in ACTING.items()]
        mesh.up(part)
        [sealed] = team.sealed()
        after, shown, retried = team.post("execute", action="small", key="later").json(), team.describe(), team.stop()

    assert told["approved"] and told["recorded_at_ms"] == again["recorded_at_ms"] and told["sequence"] == "0"
    assert refused == ["KERNEL_STOPPED_HERE"] * 4
    assert failed(after["verdict"]) == ["KERNEL_STOPPED"]
    assert shown["stopped"]
    assert retried["approved"] and "recorded_at_ms" not in retried and int(retried["sequence"]) == int(sealed["sequence"])
    assert part == "audit" or sealed["recorded"]["at_ms"] == told["recorded_at_ms"]

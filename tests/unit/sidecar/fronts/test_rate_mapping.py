"""What a descriptor of Envoy's is in a kernel, by the file of the operator (MSH-3)."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from interlock.domain.errors import Refused
from interlock.sidecar.fronts.envoy.rate_mapping import KernelCharge, RateLimits, charge_of, load_limits

pytestmark = pytest.mark.req("MSH-3")

LIMITS = RateLimits.model_validate({
    "domain": "tools", "caller": "gateway", "rules": [
        {"descriptor": {"tool": "search", "tenant": "*"}, "kernel": "team", "action": "search", "child": "{tenant}"},
        {"descriptor": {"tool": "*"}, "kernel": "team", "action": "any", "resource": "usd", "cost": 0.25},
    ],
})  # fmt: skip


def test_the_first_rule_that_fits_counts():
    """A value of the descriptor names the child; hits multiply the cost."""
    search = charge_of(LIMITS, "tools", [("tool", "search"), ("tenant", "a")], 1)
    other = charge_of(LIMITS, "tools", [("tool", "mail")], 3)

    assert search == KernelCharge("team", "a", "search", "", 0)
    assert other == KernelCharge("team", "", "any", "usd", 750_000)


REFUSED = {
    "another domain": ("other", [("tool", "mail")], 1, "RATE_LIMIT_UNMAPPED"),
    "an entry too many": ("tools", [("tool", "mail"), ("x", "y")], 1, "RATE_LIMIT_UNMAPPED"),
    "an entry twice": ("tools", [("tool", "mail"), ("tool", "search")], 1, "RATE_LIMIT_UNMAPPED"),
    "no entry": ("tools", [], 1, "RATE_LIMIT_UNMAPPED"),
    "a child that is no name": ("tools", [("tool", "search"), ("tenant", "a b")], 1, "RATE_LIMIT_UNMAPPED"),
    "a child of no name": ("tools", [("tool", "search"), ("tenant", "")], 1, "RATE_LIMIT_UNMAPPED"),
    "hits without a cost": ("tools", [("tool", "search"), ("tenant", "a")], 2, "RATE_LIMIT_HITS"),
    "hits that are given back": ("tools", [("tool", "mail")], 0, "RATE_LIMIT_HITS"),
}


@pytest.mark.parametrize(("domain", "entries", "hits", "reason"), REFUSED.values(), ids=REFUSED)
def test_what_nobody_mapped_is_refused(domain, entries, hits, reason):
    """Nothing is taken for something that it is not."""
    with pytest.raises(Refused) as caught:
        charge_of(LIMITS, domain, entries, hits)

    assert caught.value.reason == reason


WRONG = {
    "a cost of nothing": {"cost": 1},
    "a resource without a cost": {"resource": "usd"},
    "more than six places": {"resource": "usd", "cost": 0.0000001},
    "a child of no entry": {"child": "{agent}"},
    "an unknown word": {"window": 60},
}


@pytest.mark.parametrize("more", WRONG.values(), ids=WRONG)
def test_a_file_that_is_wrong_says_where(tmp_path: Path, more):
    """The sidecar does not start on it."""
    rule = {"descriptor": {"tool": "*"}, "kernel": "team", "action": "any", **more}
    path = tmp_path / "limits.yaml"
    path.write_text(yaml.safe_dump({"domain": "tools", "caller": "gateway", "rules": [rule]}), encoding="utf-8")
    path.chmod(0o600)
    with pytest.raises(Refused) as caught:
        load_limits(path)

    assert caught.value.reason == "RATE_LIMITS_INVALID"
    assert "rules.0" in caught.value.message

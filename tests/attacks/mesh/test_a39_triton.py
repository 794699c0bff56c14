"""A-39: Triton, taken over or reached by an agent. The chart leaves no way to it but dpe's, and what it says is checked before it is a score.

The golden files are what real Helm renders (tests/deploy/test_chart.py holds them equal).
"""

from __future__ import annotations

import asyncio
import math
from typing import Any

import numpy as np
import pytest
import yaml

from interlock.domain.errors import Kind, Refused
from interlock.dpe.inference.triton import TritonInference
from tests.support.paths import TESTS
from tests.support.servers.fake_triton import FakeTriton, fake_triton, put
from tests.support.servers.triton import client

COMPONENT, PORT = "app.kubernetes.io/component", 8001
PROFILES = ("dev", "ha", "airgap", "observe", "regulated")


def objects(profile: str, kind: str) -> dict[str, Any]:
    golden = yaml.safe_load_all((TESTS / "data" / "chart" / f"{profile}.yaml").read_text(encoding="utf-8"))
    return {one["metadata"]["name"]: one for one in golden if one["kind"] == kind}


def leads(rules: list[dict[str, Any]], port: int) -> list[dict[str, Any]]:
    """Return the rules that let a port of a pod through: those that name it, and those that name none and are not of addresses alone."""
    outside = [all("ipBlock" in peer for peer in rule.get("to", [{}])) for rule in rules]
    return [
        rule
        for rule, addresses in zip(rules, outside, strict=True)
        if {"port": port} in rule.get("ports", []) or not (rule.get("ports") or addresses)
    ]


def test_a39_agents_have_no_way_to_triton():
    """Its policy lets dpe's pods alone in, no other pod of the release is let out to it, and no node's port leads to it."""
    policies = {name: one["spec"] for name, one in objects("airgap", "NetworkPolicy").items()}
    (peer,) = [peer for rule in policies["il-triton"]["ingress"] for peer in rule["from"]]
    callers = {name for name, spec in policies.items() if leads(spec.get("egress", []), PORT)}
    (service,) = [one for name, one in objects("airgap", "Service").items() if "triton" in name]

    assert {COMPONENT: "dpe"}.items() <= peer["podSelector"]["matchLabels"].items()
    assert "namespaceSelector" not in peer
    assert {"il-dpe"} == callers
    assert "ClusterIP" == service["spec"].get("type", "ClusterIP")


@pytest.mark.parametrize("profile", PROFILES)
def test_a39_no_other_pod_of_a_release_may_call_anywhere(profile):
    """A rule without ports, or without a policy for all pods, would lead to Triton as well."""
    policies = {name: one["spec"] for name, one in objects(profile, "NetworkPolicy").items()}

    assert "egress" not in policies["il-deny"]
    assert {"Ingress", "Egress"} == set(policies["il-deny"]["policyTypes"])
    for name, spec in policies.items():
        assert all(rule.get("ports") or rule.get("to") for rule in spec.get("egress", [])), name


def test_a39_triton_serves_no_interface_that_dpe_does_not_use():
    """No HTTP, no metrics, no model that is loaded by request, nothing that a model's file configures by itself, and no right to the cluster."""
    (deployment,) = [one for name, one in objects("airgap", "Deployment").items() if "triton" in name]
    spec = deployment["spec"]["template"]["spec"]
    (container,) = spec["containers"]

    needed = {
        "--model-control-mode=none",
        "--disable-auto-complete-config",
        "--allow-http=false",
        "--allow-metrics=false",
    }
    assert needed <= set(container["args"])
    assert spec["automountServiceAccountToken"] is False
    assert container["securityContext"]["readOnlyRootFilesystem"]
    assert ["ALL"] == container["securityContext"]["capabilities"]["drop"]


@pytest.mark.models
@pytest.mark.parametrize(
    "answer", [np.full((1, 3), math.nan), np.zeros((2, 3)), np.full((1, 3), 3e38), np.zeros((1, 2))]
)
async def test_a39_what_a_broken_triton_says_is_no_score(answer):
    """NaN, rows that were not asked for, numbers beyond any score: the analysis is refused, and nothing is released on it."""
    async with fake_triton() as server:
        opened: TritonInference = client(server.address)
        spoil(server, answer)
        with pytest.raises(Refused) as raised:
            await opened.nli([("The tower is tall.", "It is tall.")])
        await asyncio.to_thread(opened.close)

    assert (Kind.UNAVAILABLE, "MODEL_OUTPUT_INVALID") == (raised.value.kind, raised.value.reason)


def spoil(server: FakeTriton, answer: Any) -> None:
    server.spoil = lambda reply: put(reply, answer)

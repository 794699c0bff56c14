"""Which pods run without the sidecar that they should have: the rules of the webhook, asked of pods that are there."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from interlock.injector.census import census
from tests.unit.injector.test_golden_pods import CASES, case, rules

pytestmark = pytest.mark.req("KUB-3")

APP = {"name": "app", "image": "agent:1"}
NAMESPACES = {
    "agents": {"interlock.dev/inject": "enabled"}, "declining": {"interlock.dev/inject": "disabled"},
    "unclear": {"interlock.dev/inject": "perhaps"}, "payments": {}, "others": {}, "interlock": {"interlock.dev/inject": "enabled"},
    "kube-system": {"interlock.dev/inject": "enabled"},
}  # fmt: skip


def pod(namespace: str, **changes: Any) -> dict[str, Any]:
    metadata = {"name": "p", "namespace": namespace, "uid": "u", **changes}
    return {"metadata": metadata, "spec": {"containers": [APP]}, "status": {"phase": "Running"}}


def said(*pods: dict[str, Any]) -> list[str]:
    return [f"{one.namespace} {one.why}" for one in census(pods, NAMESPACES, rules(), exempt={"interlock"})]


YES, NO = {"interlock.dev/inject": "true"}, {"interlock.dev/inject": "false"}


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (pod("agents"), "SIDECAR_MISSING"),
        (pod("agents", annotations=NO), ""),
        (pod("agents", labels=NO), ""),
        (pod("others"), ""),
        (pod("others", labels=YES), "SIDECAR_MISSING"),
        (pod("others", annotations=YES), "ANNOTATION_NOT_SEEN"),
        (pod("others", annotations=YES, labels=YES), "SIDECAR_MISSING"),
        (pod("declining", annotations=YES), "ANNOTATION_NOT_SEEN"),
        (pod("declining"), ""),
        (pod("unclear"), "NAMESPACE_LABEL_INVALID"),
        (pod("payments"), "SIDECAR_MISSING"),
        (pod("payments", annotations=NO), "SIDECAR_MISSING"),
        (pod("agents", annotations={"interlock.dev/inject": "ja"}), "SIDECAR_MISSING"),
        (pod("gone", annotations=YES), "ANNOTATION_NOT_SEEN"),
        (pod("agents", deletionTimestamp="2026-01-01T00:00:00Z"), ""),
        (pod("interlock"), ""),
        (pod("kube-system"), ""),
        ({**pod("agents"), "status": {"phase": "Succeeded"}}, ""),
        ({**pod("agents"), "status": {}}, "SIDECAR_MISSING"),
        ({}, ""),
    ],
)
def test_a_pod_without_a_sidecar_is_found_where_it_should_have_one(found, expected):
    """By namespace, by its own label, by a namespace that lets none decline; one that only an annotation asks for is told apart."""
    assert [expected] * bool(expected) == [one.split()[1] for one in said(found)]


def became(name: str) -> dict[str, Any]:
    given = case(name)
    made = copy.deepcopy(given["becomes"])
    made.setdefault("metadata", {})["namespace"] = given["namespace"]
    return made


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(case(name).get("becomes"), dict)])
def test_what_the_injector_makes_is_as_it_should_be(name):
    """Every golden pod, asked again."""
    assert not said(became(name))


def test_a_sidecar_of_older_rules_is_told():
    """It keeps the settings of its day, until its pod is created anew."""
    made = became("opted-in-by-namespace")
    made["spec"]["initContainers"][0]["image"] = "registry.example/interlock@sha256:0001"

    assert ["agents SIDECAR_OUTDATED"] == said(made)

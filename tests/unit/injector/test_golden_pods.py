"""The table of golden pods: a pod and where it is, beside what becomes of it or why it is refused.

GOLDEN=write pytest tests/unit/injector writes them anew, to be read before they are committed.
"""

from __future__ import annotations

import base64
import copy
import json
import os
from typing import Any

import pytest
import yaml

from interlock.domain.errors import Refused
from interlock.injector.pod import SIDECAR, injected, patch
from interlock.injector.request import wanted
from interlock.injector.review import answer, unclear
from interlock.injector.rules import InjectorRules, read_rules
from tests.support.paths import TESTS

FOLDER = TESTS / "data" / "injector"
CASES = sorted(path.stem for path in FOLDER.glob("*.yaml") if path.stem != "rules")
ACCOUNT = {"name": "kube-api-access-x", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": True}

pytestmark = pytest.mark.req("KUB-3", "SVC-7")


class Plain(yaml.SafeDumper):
    """Writes no aliases: a reader sees every pod whole."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def rules() -> InjectorRules:
    return read_rules([(FOLDER / "rules.yaml").read_bytes()], FOLDER / "rules.yaml")


def case(name: str) -> dict[str, Any]:
    return yaml.safe_load((FOLDER / f"{name}.yaml").read_text(encoding="utf-8"))


def became(given: dict[str, Any]) -> dict[str, Any]:
    """Return what becomes of a pod, as its file says it."""
    pod = copy.deepcopy(given["pod"])
    try:
        if not wanted(pod, rules(), given["namespace"], by_namespace=given["by_namespace"]):
            return {"becomes": "unchanged"}
        return {"becomes": injected(pod, rules(), given["namespace"])}
    except Refused as refused:
        return {"refused": refused.reason}


def with_sidecar() -> dict[str, Any]:
    return case("opted-in-by-namespace")["becomes"]


def again(pod: dict[str, Any]) -> dict[str, Any]:
    return injected(copy.deepcopy(pod), rules(), "agents")


def sidecar_of(pod: dict[str, Any]) -> dict[str, Any]:
    return next(one for one in pod["spec"]["initContainers"] if one["name"] == SIDECAR)


@pytest.mark.parametrize("name", CASES)
def test_a_pod_becomes_what_its_file_says(name):
    """One file, one rule."""
    given = case(name)
    found = became(given)
    if os.environ.get("GOLDEN") == "write":
        kept = {key: given[key] for key in ("why", "namespace", "by_namespace", "pod")}
        text = yaml.dump({**kept, **found}, Dumper=Plain, sort_keys=False, width=160)
        (FOLDER / f"{name}.yaml").write_text(text, encoding="utf-8")

    assert {key: given[key] for key in given.keys() & {"becomes", "refused"}} == found


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(case(name).get("becomes"), dict)])
def test_a_second_call_changes_nothing(name):
    """The webhook is called again after others: a pod that has its sidecar stays as it is."""
    given = case(name)

    assert not patch(given["becomes"], injected(copy.deepcopy(given["becomes"]), rules(), given["namespace"]))


def test_what_the_api_server_adds_does_not_make_it_another_sidecar():
    """Defaults and the mount of a service account come between two calls."""
    pod = with_sidecar()
    held = sidecar_of(pod)
    held["volumeMounts"].append(ACCOUNT)
    held |= {"terminationMessagePath": "/dev/termination-log", "terminationMessagePolicy": "File"}
    held["ports"][0]["protocol"] = "TCP"
    held["readinessProbe"] |= {"successThreshold": 1, "failureThreshold": 3}

    assert pod == again(pod)


@pytest.mark.parametrize(
    "forged",
    [
        {"image": "mine:1"}, {"command": ["sleep", "infinity"]}, {"args": ["--version"]}, {"lifecycle": {}},
        {"env": [{"name": "INTERLOCK_PROFILE", "value": "observe"}]}, {"securityContext": {}}, {"workingDir": "/mine"},
        {"volumeMounts": [{"name": "mine", "mountPath": "/opt/interlock"}]}, {"restartPolicy": "Never"},
    ],
)  # fmt: skip
def test_a_forged_sidecar_is_refused(forged):
    """An author who writes the sidecar's container by hand gets none that differs in anything that matters."""
    pod = with_sidecar()
    sidecar_of(pod).update(forged)

    with pytest.raises(Refused) as raised:
        again(pod)
    assert "SIDECAR_NAME_TAKEN" == raised.value.reason


@pytest.mark.parametrize(
    "added", [{"name": "PYTHONPATH", "value": "/mine"}, {"name": "INTERLOCK_UPSTREAM_BASE_URL", "value": "http://mine"}]
)
def test_a_variable_more_makes_it_a_forged_sidecar(added):
    """Even one that the injector does not set itself."""
    pod = with_sidecar()
    sidecar_of(pod)["env"].append(added)

    with pytest.raises(Refused):
        again(pod)


def test_a_mount_over_the_sidecars_code_makes_it_a_forged_sidecar():
    """Only the service account's folder may be mounted besides."""
    pod = with_sidecar()
    sidecar_of(pod)["volumeMounts"].append({"name": "mine", "mountPath": "/opt/interlock"})

    with pytest.raises(Refused):
        again(pod)


def applied(pod: dict[str, Any], operations: list[dict[str, Any]]) -> dict[str, Any]:
    """Apply add operations on members of metadata and spec."""
    made = copy.deepcopy(pod)
    for one in operations:
        _, part, name = one["path"].split("/")
        made.setdefault(part, {})[name] = one["value"]
    return made


@pytest.mark.parametrize("name", [name for name in CASES if isinstance(case(name).get("becomes"), dict)])
def test_the_patch_of_a_review_gives_the_golden_pod(name):
    """What goes over the wire is a JSON patch, in base64, and the whole change."""
    given = case(name)
    request = {"uid": "u1", "namespace": given["namespace"], "object": given["pod"]}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    response = answer(review, rules(), by_namespace=given["by_namespace"])["response"]

    assert ("u1", True, "JSONPatch") == (response["uid"], response["allowed"], response["patchType"])
    assert given["becomes"] == applied(given["pod"], json.loads(base64.b64decode(response["patch"])))


def test_a_refusal_says_its_reason_to_whoever_creates_the_pod():
    """kubectl shows the message of the status."""
    given = case("profile-loosened")
    request = {"uid": "u1", "namespace": given["namespace"], "object": given["pod"]}
    response = answer({"apiVersion": "admission.k8s.io/v1", "request": request}, rules(), by_namespace=True)["response"]

    assert not response["allowed"]
    assert "ANNOTATION_LOOSENS" in response["status"]["message"]
    assert 403 == response["status"]["code"]


def test_a_namespace_with_an_unclear_label_gets_no_pod():
    """Its owner believes it to be governed: the refusal names the label and the two words."""
    request = {"uid": "u1", "namespace": "agents", "object": case("opted-out")["pod"]}
    response = unclear({"apiVersion": "admission.k8s.io/v1", "request": request})["response"]

    assert ("u1", False, 400) == (response["uid"], response["allowed"], response["status"]["code"])
    assert "NAMESPACE_LABEL_INVALID" in response["status"]["message"]
    assert 'interlock.dev/inject of namespace agents must be "enabled" or "disabled"' in response["status"]["message"]


@pytest.mark.parametrize(
    "text",
    [
        "image: a",
        "image: a\nsecret: s\nprofil: enforce",
        "image: a\nsecret: s\nprofile: lax",
        "- a",
        "image: a\nimage: b",
    ],
)
def test_rules_that_cannot_be_meant_are_refused(text, tmp_path):
    """An unknown or missing key is an error with its name, never a default."""
    with pytest.raises(Refused) as raised:
        read_rules([text.encode()], tmp_path / "rules.yaml")

    assert raised.value.reason in {"INJECTOR_RULES_INVALID", "FILE_MALFORMED"}

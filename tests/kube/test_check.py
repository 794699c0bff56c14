"""`interlock check --cluster` and the injector's reconciler on a real API server."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.kube.agents import container, named, pod
from tests.kube.cluster.api import Json, until
from tests.kube.release import AGENTS, MESH, Release, namespace

pytestmark = [pytest.mark.req("KUB-3", "KUB-4", "OBS-4"), pytest.mark.long, pytest.mark.timeout(900)]

WAITING = container("import time; time.sleep(600)", OPENAI_API_KEY="none")


def checked(release: Release, code: int) -> dict[str, Json]:
    """Run the command as an operator does; return the findings by group and name."""
    command = [
        sys.executable,
        "-m",
        "interlock.cli.main",
        "check",
        "--cluster",
        "--kubeconfig",
        str(release.stage.plane.kubeconfig),
    ]
    done = subprocess.run(
        [*command, "--namespace", MESH, "-o", "json"], capture_output=True, text=True, timeout=60, check=False
    )
    assert code == done.returncode, done.stdout + done.stderr
    return {f"{one['group']}: {one['name']}": one for one in json.loads(done.stdout)["findings"]}


def faults(found: dict[str, Json]) -> dict[str, str]:
    return {name: one["detail"] for name, one in found.items() if one["status"] == "FAIL"}


@pytest.fixture(scope="module")
def clean(release: Release) -> Release:
    """The release as installed, and no pod of an earlier test that is not as it should be."""
    release.apply()
    api = release.stage.api
    for place in (one["metadata"]["name"] for one in api.items("namespaces")):
        if place not in {MESH, "kube-system"}:
            for one in api.items("pods", place):
                api.delete("pods", one["metadata"]["name"], place, gracePeriodSeconds=0)
    for one in api.items("namespaces"):
        if one["metadata"].get("labels", {}).get("interlock.dev/inject") in {"perhaps", "true"}:
            api.patch("namespaces", one["metadata"]["name"], {"metadata": {"labels": {"interlock.dev/inject": None}}})
    return release


def test_a_healthy_release_has_no_fault(clean: Release):
    """Webhook, authority, certificates and Secrets as Helm and the API server have them; with it, versions and labels."""
    found = checked(clean, 0)

    assert not faults(found)
    assert "OK" == found["webhook: namespace.interlock.dev"]["status"]
    assert "OK" == found["pods: sidecars"]["status"]
    assert "agents/interlock-sidecar" in "".join(found)


def test_pods_that_the_webhook_never_saw_are_named(clean: Release):
    """One from before its namespace was labelled, one that only an annotation asks for; and an event beside each tells it."""
    api = clean.stage.api
    namespace(api, "late")
    asks = {"interlock.dev/inject": "true"}
    api.create("pods", named("early", pod(containers=[WAITING])), "late")
    api.create("pods", named("hopeful", pod(containers=[WAITING], annotations=asks)), "late")
    found = faults(checked(clean, 1))
    clean.apply(injector={"reconcile": "report", "reconcileSeconds": 1})
    until(
        "the annotation is told",
        lambda: "ANNOTATION_NOT_SEEN" in events(clean, "late"),
        60,
        lambda: clean.stage.node.logs(MESH),
    )
    api.patch("namespaces", "late", {"metadata": {"labels": {"interlock.dev/inject": "enabled"}}})
    until("the missing sidecar is told", lambda: "SIDECAR_MISSING" in events(clean, "late"), 60)
    later = faults(checked(clean, 1))
    for name in ("early", "hopeful"):
        api.delete("pods", name, "late", gracePeriodSeconds=0)
    api.patch("namespaces", "late", {"metadata": {"labels": {"interlock.dev/inject": None}}})

    assert ["pods: late/hopeful"] == list(found)
    assert "ANNOTATION_NOT_SEEN" in found["pods: late/hopeful"]
    assert {"pods: late/early", "pods: late/hopeful"} <= later.keys()
    assert any(name.startswith("secrets: late/interlock-sidecar") for name in later)


def test_who_asks_for_it_has_such_pods_made_anew(clean: Release):
    """A Deployment of unlabelled days gets its sidecars: evicted once, by the real eviction API, and created through the webhook."""
    api, place = clean.stage.api, AGENTS
    api.patch("namespaces", place, {"metadata": {"labels": {"interlock.dev/inject": None}}})
    template = pod(labels={"app": "veteran"}, containers=[WAITING], restartPolicy="Always")
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "veteran"}}, "template": template}
    api.create("deployments", {"metadata": {"name": "veteran"}, "spec": spec}, place)
    until("it runs", lambda: len(sidecars(clean)) == 2, 60)
    before = sidecars(clean)
    api.patch("namespaces", place, {"metadata": {"labels": {"interlock.dev/inject": "enabled"}}})
    clean.apply(injector={"reconcile": "evict", "reconcileSeconds": 1})
    until(
        "both have a sidecar",
        lambda: [True, True] == list(sidecars(clean).values()),
        120,
        lambda: clean.stage.node.logs(MESH),
    )
    after = sidecars(clean)
    api.delete("deployments", "veteran", place)
    clean.apply()

    assert [False, False] == list(before.values())
    assert not before.keys() & after.keys()


def sidecars(release: Release) -> dict[str, bool]:
    """Return whether each pod of the Deployment has a sidecar."""
    held = release.objects("pods", AGENTS).values()
    found = [
        one
        for one in held
        if one["metadata"]["name"].startswith("veteran") and "deletionTimestamp" not in one["metadata"]
    ]
    return {
        one["metadata"]["name"]: any(
            part["name"] == "interlock-sidecar" for part in one["spec"].get("initContainers", ())
        )
        for one in found
    }


def events(release: Release, place: str) -> str:
    return "\n".join(one["message"] for one in release.stage.api.items("events", place))

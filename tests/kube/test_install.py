"""The chart on a real API server: accepted, run, called and verified."""

from __future__ import annotations

import pytest

from tests.kube.release import MESH, RELEASE, SERVICES, Release

pytestmark = [pytest.mark.req("KUB-4"), pytest.mark.long, pytest.mark.timeout(900)]


def test_every_object_is_there_and_every_deployment_is_ready(release: Release):
    """Nothing was refused, under Pod Security restricted, and the pods came from the controllers."""
    deployments = release.objects("deployments")
    owners = {one["metadata"]["ownerReferences"][0]["kind"] for one in release.objects("pods").values()}

    assert {f"{RELEASE}-{name}" for name in (*SERVICES, "injector")} == deployments.keys()
    assert all(one["status"]["readyReplicas"] == one["spec"]["replicas"] for one in deployments.values())
    assert {"ReplicaSet", "Job"} == owners


def test_helm_test_makes_a_governed_call_and_verifies_it(release: Release):
    """`helm test`, as an operator runs it."""
    done = release.helm("test", RELEASE, "--timeout", "3m")

    assert done.returncode == 0, done.stdout + done.stderr + release.stage.node.logs(MESH)
    assert "Succeeded" in done.stdout

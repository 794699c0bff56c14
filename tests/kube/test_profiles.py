"""Every object of every profile, offered to the real API server."""

from __future__ import annotations

import pytest

from tests.deploy.tools import PROFILES, rendered
from tests.kube.cluster.api import Json, Refusal
from tests.kube.release import MESH, Release

pytestmark = [pytest.mark.req("KUB-4"), pytest.mark.long, pytest.mark.timeout(900)]

ELSEWHERE = {"Certificate", "ServiceMonitor", "PrometheusRule"}
"""Kinds of cert-manager and of the Prometheus operator, which are not in this cluster."""


@pytest.mark.parametrize("profile", PROFILES)
def test_every_object_of_a_profile_is_accepted_without_a_warning(release: Release, profile: str):
    """No unknown member, no deprecated version, and nothing that Pod Security restricted would warn of."""
    said: dict[str, object] = {}
    for one in rendered(profile):
        if one["kind"] in ELSEWHERE:
            continue
        name = f"{one['kind']}/{one['metadata']['name']}"
        try:
            said[name] = release.stage.api.tried(renamed(one), MESH)
        except Refusal as refusal:
            said[name] = refusal.message

    assert len(said) > 20
    assert {} == {name: what for name, what in said.items() if what}


def renamed(one: Json) -> Json:
    """Return an object under another name, since the release that runs has its own."""
    metadata = {**one["metadata"], "name": f"x-{one['metadata']['name']}"}
    return {**one, "metadata": metadata}


def test_what_restricted_pod_security_forbids_is_seen_here(release: Release):
    """The check above is one: a pod of the chart that may become root is refused, and its Deployment warned of."""
    deployment = next(one for one in rendered("observe") if one["kind"] == "Deployment")
    loose = deployment["spec"]["template"]["spec"]
    loosened = {**loose, "hostNetwork": True}
    template = {**deployment["spec"]["template"], "spec": loosened}
    warned = release.stage.api.tried(
        renamed({**deployment, "spec": {**deployment["spec"], "template": template}}), MESH
    )
    made = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "loose"},
        "spec": {**loosened, "containers": loose["containers"]},
    }

    assert "PodSecurity" in warned[0]
    with pytest.raises(Refusal, match="PodSecurity"):
        release.stage.api.tried(made, MESH)

"""What a release goes through: load over a rolling update, upgrade, rollback, uninstall, and installed again."""

from __future__ import annotations

import contextlib
import itertools
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.deploy.tools import CHART
from tests.kube.agents import FALSE, SAYS, TRUE, container, job, lines, pod
from tests.kube.cluster.api import Json, until
from tests.kube.figures import FIGURES
from tests.kube.operators import command
from tests.kube.release import AGENTS, MESH, RELEASE, Release, secret
from tests.support.paths import ROOT

pytestmark = [pytest.mark.req("KUB-5"), pytest.mark.long, pytest.mark.timeout(900)]

KEPT = (f"{RELEASE}-keys", f"{RELEASE}-injector-tls", f"{RELEASE}-authority")


def data(release: Release, *names: str) -> dict[str, dict[str, str]]:
    """Return what Secrets of the mesh hold."""
    return {name: release.stage.api.get("secrets", name, MESH)["data"] for name in names}


def generations(release: Release) -> dict[str, set[str]]:
    """Return the pods of each Deployment of the mesh by name."""
    pods = [one["metadata"] for one in release.objects("pods").values() if "deletionTimestamp" not in one["metadata"]]
    return {
        name: {one["name"] for one in pods if one["name"].startswith(f"{name}-")}
        for name in release.objects("deployments")
    }


_LIARS = itertools.count()


def liar(release: Release) -> Json:
    """Run an agent whose model says what is false, with a key and so a budget of its own; return what it was told."""
    number = next(_LIARS)
    release.stage.provider.answers(FALSE)
    template = pod(containers=[container(OPENAI_API_KEY=f"sk-liar-{number}")])
    return job(release, f"liar-{number}", template)[0]


@contextlib.contextmanager
def load(release: Release, name: str) -> Iterator[list[Json]]:
    """Two agents call without a pause to speak of, and try nothing again; the list has what they were told, once it is over."""
    release.stage.provider.reset()
    release.stage.provider.answers(TRUE)
    api, heard = release.stage.api, []
    env = {"RETRIES": "0", "CALLS": "100000", "PAUSE": "0.2"}
    template = pod(labels={"app": name}, containers=[container(SAYS, **env)], restartPolicy="Always")
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": name}}, "template": template}
    api.create("deployments", {"metadata": {"name": name}, "spec": spec}, AGENTS)
    until("agents call", lambda: len(lines(release, name)) > 10, 60, lambda: release.stage.node.logs(AGENTS))
    try:
        yield heard
        settled = len(lines(release, name))
        until("agents call on", lambda: len(lines(release, name)) > settled + 20, 60)
    finally:
        api.delete("deployments", name, AGENTS)
    heard += lines(release, name)


def lost(heard: list[Json]) -> list[Json]:
    """Return the calls that were not answered."""
    return [one for one in heard if one["status"] != 200]


def test_a_rolling_update_under_load_loses_no_call(release: Release):
    """Every pod of the mesh is replaced while agents call: each call is answered, and no client had to try again."""
    release.apply()
    before = generations(release)
    with load(release, "load") as heard:
        release.apply(image={"tag": "0.1.0-next"}, settings={"default_policy": "halt-on HIGH", "drain_s": 9})
    after = generations(release)
    FIGURES["rolling update of all under two agents"] = f"{len(heard)} calls, {len(lost(heard))} lost"

    assert not lost(heard), (len(lost(heard)), len(heard), lost(heard)[:3])
    assert all(not before[name] & after[name] and after[name] for name in before)
    assert len(heard) > 50


def test_a_restart_of_each_component_under_load_loses_no_call(release: Release):
    """One after the other, as `kubectl rollout restart` does it: the others go on with those of before and of after."""
    release.apply()
    with load(release, "restarts") as heard:
        for name in sorted(generations(release)):
            before, known = generations(release)[name], len(lost(lines(release, "restarts")))
            restart(release, name)
            found = lost(lines(release, "restarts"))
            assert len(found) == known, (name, len(found) - known, found[:3])
            assert not before & generations(release)[name]
    FIGURES["restart of each component under two agents"] = f"{len(heard)} calls, {len(lost(heard))} lost"

    assert not lost(heard), (len(lost(heard)), len(heard), lost(heard)[:3])


def restart(release: Release, name: str) -> None:
    """Restart a Deployment as kubectl does, and wait until its rollout is over."""
    api, at = release.stage.api, {"kubectl.kubernetes.io/restartedAt": str(time.time())}
    api.patch("deployments", name, {"spec": {"template": {"metadata": {"annotations": at}}}}, MESH)

    def over() -> bool:
        found = api.get("deployments", name, MESH)
        status, wanted = found["status"], found["spec"]["replicas"]
        counts = [status.get(kind, 0) for kind in ("replicas", "updatedReplicas", "availableReplicas")]
        told = status.get("observedGeneration", 0) >= found["metadata"]["generation"]
        return told and counts == [wanted] * 3 and len(generations(release)[name]) == wanted

    until(f"{name} is restarted", over, 120, lambda: release.stage.node.logs(MESH))


def test_an_upgrade_keeps_keys_and_authority_and_renews_the_certificates(release: Release):
    """A session of before goes on: its record verifies with the keys of after."""
    release.apply()
    session = liar(release)["headers"]["crp-context-session-id"]
    held, certificate = data(release, *KEPT), data(release, f"{RELEASE}-session-tls")
    release.apply(settings={"default_policy": "halt-on HIGH", "drain_s": 8})
    until("certificates are renewed", lambda: certificate != data(release, f"{RELEASE}-session-tls"), 60)
    said = liar(release)

    assert held == data(release, *KEPT)
    assert 451 == said["status"], said
    assert session in command(release, "audit", "verify", session)


def test_a_rollback_brings_the_old_values_back(release: Release):
    """What is in force is what was, and calls are governed by it."""
    release.apply()
    release.apply(settings={"default_policy": "halt-on CRITICAL"})
    loose = liar(release)["status"]
    done = release.helm("rollback", RELEASE, "--wait", "--timeout", "4m")
    assert done.returncode == 0, done.stderr + release.stage.node.logs(MESH)
    strict = liar(release)["status"]

    assert (200, 451) == (loose, strict)


def test_a_bad_upgrade_changes_nothing(release: Release):
    """An unknown value, a contradictory one and a missing one stop before anything is sent."""
    release.apply()
    before = {name: one["metadata"]["generation"] for name, one in release.objects("deployments").items()}
    wrong = {
        "sessionn": ("--set", "sessionn.replicas=2"),
        "regulated": ("--set", "profile=regulated"),
        "issuer": ("--set", "certificates.mode=cert-manager"),
    }
    said = {name: release.helm("upgrade", RELEASE, CHART, "--reuse-values", *sets) for name, sets in wrong.items()}

    assert all(one.returncode and name in one.stderr for name, one in said.items()), said
    assert before == {name: one["metadata"]["generation"] for name, one in release.objects("deployments").items()}


def test_a_secret_that_is_not_there_is_said_before_anything_is_sent(release: Release):
    """By its name, or by the key that it lacks; with checkSecrets: false pods wait for it instead."""
    release.apply()
    secret(release.stage.api, "half", MESH, url="postgresql://nobody@nowhere/nothing")
    wrong = {
        "Secret nowhere is not there": ("--set", "sessionStore.url=,sessionStore.existingSecret=nowhere"),
        "Secret half has no key owner-url": ("--set", "auditStore.existingSecret=half"),
        "Secret mine-session is not there": ("--set", "certificates.mode=secret,certificates.secretPrefix=mine"),
    }
    before = {name: one["metadata"]["generation"] for name, one in release.objects("deployments").items()}
    said = {what: release.helm("upgrade", RELEASE, CHART, "--reuse-values", *sets) for what, sets in wrong.items()}
    new = release.helm("install", "second", CHART, "--set", "sessionStore.url=redis://v,auditStore.existingSecret=half")
    release.stage.api.delete("secrets", "half", MESH)

    assert all(one.returncode and what in one.stderr for what, one in said.items()), said
    assert before == {name: one["metadata"]["generation"] for name, one in release.objects("deployments").items()}
    assert "has no key owner-url" in new.stderr
    assert not [name for name in release.objects("deployments") if name.startswith("second")]


def test_an_older_charts_release_is_upgraded(release: Release, tmp_path: Path):
    """The chart as it was in an earlier commit, upgraded to this one, serves and keeps its keys."""
    old = earlier(tmp_path)
    release.apply(chart=old)
    kept = (f"{RELEASE}-keys", f"{RELEASE}-authority")
    held = data(release, *kept)
    release.apply()

    assert held == data(release, *kept)
    assert 451 == liar(release)["status"]


def earlier(folder: Path) -> Path:
    """Return the chart of the commit before the last one that changed it; skips where the history is not there."""
    log = subprocess.run(
        ["git", "log", "--format=%H", "-n", "2", "--", "helm/interlock"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    commits = log.stdout.split()
    if len(commits) < 2:
        pytest.skip("the history with an earlier chart is not here")
    archive = subprocess.run(
        ["git", "archive", commits[1], "helm/interlock"], cwd=ROOT, capture_output=True, check=True
    )
    subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
    return folder / "helm" / "interlock"


def test_uninstalled_it_leaves_its_keys_and_nothing_that_runs(release: Release):
    """Agents start without a webhook in their way; what was sealed verifies after the release is installed again."""
    release.apply()
    session = liar(release)["headers"]["crp-context-session-id"]
    keys = data(release, f"{RELEASE}-keys")
    done = release.helm("uninstall", RELEASE, "--wait", "--timeout", "3m")
    assert done.returncode == 0, done.stderr
    until("no pod is left", lambda: not release.objects("pods"), 90, lambda: release.stage.node.logs(MESH))
    left = {
        kind: set(release.objects(kind, MESH))
        for kind in (
            "deployments",
            "services",
            "jobs",
            "networkpolicies",
            "poddisruptionbudgets",
            "roles",
            "rolebindings",
        )
    }
    hooks = [one["metadata"]["name"] for one in release.stage.api.items("mutatingwebhookconfigurations")]
    secrets = set(release.objects("secrets"))
    alone = release.stage.api.create("pods", {**pod(), "metadata": {"name": "alone"}}, AGENTS)
    release.stage.api.delete("pods", "alone", AGENTS)
    release.apply()

    assert [] == hooks
    assert {kind: set() for kind in left} == left
    assert {f"{RELEASE}-keys", "interlock-postgres"} <= secrets
    assert "initContainers" not in alone["spec"]
    assert keys == data(release, f"{RELEASE}-keys")
    assert session in command(release, "audit", "verify", session)
    assert 451 == liar(release)["status"]

"""`interlock check --cluster` against an API server over TLS: a healthy release, and each thing that may be wrong with one."""

from __future__ import annotations

import asyncio
import base64
import copy
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.cluster import command
from interlock.cli.cluster.command import examine_cluster
from interlock.runtime.egress import kubernetes
from tests.support.servers.api_server import OWN_TOKEN, ApiServer, running_api_server
from tests.support.servers.cluster import (
    AGENTS,
    DEPLOYMENTS,
    ENDPOINTS,
    MESH,
    NAMESPACES,
    PODS,
    RULES,
    WEBHOOKS,
    install,
    kubeconfig,
    namespace,
    put,
)  # fmt: skip
from tests.support.servers.processes import environment, run

pytestmark = [pytest.mark.req("KUB-3", "OBS-4"), pytest.mark.timeout(120)]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Iterator[tuple[ApiServer, dict[str, Any]]]:
    folder = tmp_path_factory.mktemp("cluster")
    with running_api_server(folder / "server") as server:
        install(server, folder / "release")
        yield server, server.objects


@pytest.fixture
def server(installed) -> ApiServer:
    """A healthy release, which a test may spoil."""
    made, objects = installed
    made.objects = copy.deepcopy(objects)
    return made


@pytest.fixture
def config(server, tmp_path) -> Path:
    return kubeconfig(server, tmp_path / "config")


async def found(config: Path, namespace_: str = "") -> dict[str, tuple[str, str, str]]:
    """Return status, detail and hint of what is not fine, by group and name."""
    seen = await examine_cluster(config, "", namespace_)
    return {f"{one.group}: {one.name}": (one.status.value, one.detail, one.hint) for one in seen if one.status != "OK"}


def test_a_healthy_release_is_told_line_by_line(server, config, tmp_path):
    """As text and as JSON, with exit code 0."""
    given = environment(tmp_path) | {"KUBECONFIG": str(config)}
    text, told = (run("check", "--cluster", *more, env=given) for more in ((), ("-o", "json")))

    assert (0, 0) == (text.returncode, told.returncode), text.stdout + text.stderr
    assert "Kubernetes v1.37.2" in text.stdout
    assert "the API server trusts what the injector presents" in text.stdout
    read = json.loads(told.stdout)
    assert read["ok"]
    groups = {one["group"] for one in read["findings"]}
    assert {
        "api server",
        "deployments",
        "versions",
        "webhook",
        "certificates",
        "secrets",
        "namespaces",
        "pod identity",
        "pods",
    } == groups


def test_a_fault_ends_with_1_and_an_api_server_that_is_away_too(server, config, tmp_path):
    """What is wrong is said with what helps; a cluster that nobody reaches is a finding, not a crash."""
    server.objects[WEBHOOKS] = {"items": []}
    given = environment(tmp_path) | {"KUBECONFIG": str(config)}
    broken = run("check", "--cluster", env=given)
    config.write_text(config.read_text().replace(str(server.port), "1"))
    away = run("check", "--cluster", "-o", "json", env=given)

    assert 1 == broken.returncode
    assert "no MutatingWebhookConfiguration leads to this release" in broken.stdout
    assert "hint: helm upgrade writes it again" in broken.stdout
    assert 1 == away.returncode
    assert "does not answer" in json.loads(away.stdout)["findings"][0]["detail"]


def pod(name: str, place: str, **metadata: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": place, "uid": name, **metadata},
        "spec": {"containers": [{"name": "a"}]},
    }


async def test_pods_that_lack_their_sidecar_are_named(server, config):
    """One of a labelled namespace, and one that only an annotation asks for: each with its own advice."""
    server.objects[NAMESPACES]["items"].append(namespace("plain"))
    asks = {"annotations": {"interlock.dev/inject": "true"}}
    server.objects[PODS]["items"] = [pod("old", AGENTS), pod("hopeful", "plain", **asks), pod("other", "plain")]
    seen = await found(config)

    assert {"pods: agents/old", "pods: plain/hopeful"} == seen.keys()
    assert ("FAIL", True) == (seen["pods: agents/old"][0], "SIDECAR_MISSING" in seen["pods: agents/old"][1])
    assert "ANNOTATION_NOT_SEEN" in seen["pods: plain/hopeful"][1]
    assert "kubectl label namespace plain interlock.dev/inject=enabled" in seen["pods: plain/hopeful"][2]


async def test_many_such_pods_are_counted(server, config):
    """Twenty are named, and how many there are."""
    server.objects[PODS]["items"] = [pod(f"p{number}", AGENTS) for number in range(50)]
    seen = await found(config)

    assert 21 == len(seen)
    assert "50 pods in all: 50 SIDECAR_MISSING" in seen["pods: more"][1]


def first(server: ApiServer, component: str) -> dict[str, Any]:
    return next(one for one in server.objects[DEPLOYMENTS]["items"] if one["metadata"]["name"] == f"il-{component}")


def drop(server: ApiServer, place: str, name: str) -> None:
    del server.objects[f"/api/v1/namespaces/{place}/secrets/{name}"]


def hook(server: ApiServer) -> dict[str, Any]:
    return server.objects[WEBHOOKS]["items"][0]["webhooks"][0]


FAULTS: dict[str, tuple[Any, str, str, str]] = {
    "no replica is ready": (lambda s: first(s, "dpe").update(status={}), "deployments: il-dpe", "FAIL", "none of 3"),
    "a replica is missing": (
        lambda s: first(s, "dpe").update(status={"readyReplicas": 2, "updatedReplicas": 3}), "deployments: il-dpe", "WARN", "2 of 3",
    ),
    "scaled to nothing": (lambda s: first(s, "dpe")["spec"].update(replicas=0), "deployments: il-dpe", "FAIL", "no replicas"),
    "another version": (
        lambda s: first(s, "audit")["metadata"]["labels"].update({"app.kubernetes.io/version": "0.0.9"}),
        "versions: chart", "FAIL", "il-audit has 0.0.9",
    ),
    "another image": (
        lambda s: first(s, "audit")["spec"]["template"]["spec"]["containers"][0].update(image="interlock:old"),
        "versions: image", "FAIL", "il-audit has interlock:old",
    ),
    "fails open": (lambda s: hook(s).update(failurePolicy="Ignore"), "webhook: namespace.interlock.dev", "FAIL", "without a sidecar"),
    "no bundle": (lambda s: hook(s)["clientConfig"].pop("caBundle"), "webhook: namespace.interlock.dev", "FAIL", "no certificate"),
    "another authority": (
        lambda s: hook(s)["clientConfig"].update(caBundle=base64.b64encode((s.folder / "ca.crt").read_bytes()).decode()),
        "webhook: namespace.interlock.dev", "FAIL", "does not vouch",
    ),
    "another host": (
        lambda s: hook(s)["clientConfig"]["service"].update(name="elsewhere"), "webhook: namespace.interlock.dev", "FAIL", "elsewhere",
    ),
    "nobody answers": (lambda s: s.objects.update({ENDPOINTS: {"items": []}}), "webhook: endpoints", "FAIL", "no injector answers"),
    "one answers": (
        lambda s: s.objects.update({ENDPOINTS: {"items": [{"endpoints": [{"conditions": {}}]}]}}), "webhook: endpoints", "WARN", "one injector",
    ),
    "a Secret is missing": (lambda s: drop(s, MESH, "interlock-keys"), "secrets: interlock/interlock-keys", "FAIL", "not there"),
    "a sidecar's Secret is missing": (
        lambda s: drop(s, AGENTS, "interlock-sidecar-binding"), "secrets: agents/interlock-sidecar-binding", "FAIL", "not there",
    ),
    "a key is missing": (
        lambda s: put(s, AGENTS, "interlock-sidecar", {"tls.crt": b""}), "secrets: agents/interlock-sidecar", "FAIL", "ca.crt, tls.crt, tls.key",
    ),
    "a Secret may not be read": (
        lambda s: s.objects.update({f"/api/v1/namespaces/{MESH}/secrets/interlock-keys": 403}),
        "secrets: interlock/interlock-keys", "FAIL", "may not be read",
    ),
    "no certificate": (
        lambda s: put(s, AGENTS, "interlock-sidecar", {"tls.crt": b"x", "tls.key": b"x", "ca.crt": b"x"}),
        "certificates: agents/interlock-sidecar", "FAIL", "no certificate",
    ),
    "pods may not be listed": (lambda s: s.objects.update({PODS: 403}), "pods: list", "FAIL", "may not be read"),
    "an unclear label": (
        lambda s: s.objects[NAMESPACES]["items"].append(namespace("odd", "perhaps")), "namespaces: odd", "FAIL", "it takes no pod",
    ),
    "rules for nobody": (
        lambda s: s.objects.update({NAMESPACES: {"items": [namespace(MESH)]}}), "namespaces: agents", "WARN", "not there",
    ),
    "broken rules": (lambda s: s.objects[RULES].update(data={"rules.yaml": "image: a"}), "pods: rules", "FAIL", "secret"),
    "another audience": (
        lambda s: s.objects[RULES]["data"].update({"rules.yaml": s.objects[RULES]["data"]["rules.yaml"].replace("il.interlock.interlock", "x")}),
        "pod identity: audience", "FAIL", "sidecars get tokens for 'x'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS)
async def test_a_fault_is_found_and_named(fault, server, config):
    """One thing is wrong, and the finding says which, how bad it is and what helps."""
    spoil, name, status, words = FAULTS[fault]
    spoil(server)
    seen = await found(config)

    assert name in seen, seen
    assert (status, True) == (seen[name][0], words in seen[name][1]), seen[name]
    assert seen[name][2]


async def test_certificates_that_end_are_told_in_time(server, config, tmp_path):
    """Expired ones, of webhook and members alike; the webhook's is not trusted any more either."""
    install(server, tmp_path / "old", days=0)
    await asyncio.sleep(1.1)  # a certificate is valid to the end of its last second
    seen = await found(config)

    assert ("FAIL", True) == (
        seen["certificates: interlock/il-injector-tls"][0],
        "not valid now" in seen["certificates: interlock/il-injector-tls"][1],
    )
    assert "does not vouch" in seen["webhook: namespace.interlock.dev"][1]


async def test_nothing_hangs(server, config, monkeypatch):
    """An API server that answers one question for ever ends no look, and the rest is told; the time of all of it is a finding too."""
    monkeypatch.setattr(kubernetes, "LIMIT_S", 1.0)
    server.objects[PODS] = lambda _path: time.sleep(2.5) or 404
    seen = await found(config)
    monkeypatch.setattr(kubernetes, "LIMIT_S", 10)
    monkeypatch.setattr(command, "LIMIT_S", 1.0)
    late = await found(config)

    assert {"pods: list"} == seen.keys()
    assert "does not answer" in seen["pods: list"][1]
    assert "no result after" in late["api server: time"][1]


async def test_a_release_that_is_not_there_is_said(server, config):
    """By the namespace that was asked for."""
    assert (
        "no release of interlock in namespace elsewhere" in (await found(config, "elsewhere"))["api server: release"][1]
    )


@pytest.mark.parametrize(
    "user",
    [
        {"tokenFile": "token"},
        {
            "exec": {
                "apiVersion": "client.authentication.k8s.io/v1",
                "command": sys.executable,
                "args": ["-c", "HELPER"],
            }
        },
    ],
    ids=["a file", "a helper"],
)
async def test_other_credentials_of_a_kubeconfig_are_used(user, server, tmp_path):
    """A file beside the kubeconfig, and what a cloud's helper prints."""
    (tmp_path / "token").write_text(OWN_TOKEN)
    helper = f"print('{json.dumps({'status': {'token': OWN_TOKEN}})}')"
    given = json.loads(json.dumps(user).replace("HELPER", helper.replace('"', '\\"')))
    assert not await found(kubeconfig(server, tmp_path / "config", **given))


PLAIN = """
current-context: x
contexts: [{name: x, context: {cluster: x, user: x}}]
clusters: [{name: x, cluster: {server: "http://a"}}]
users: [{name: x, user: {}}]
"""


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no kubeconfig"), ("current-context: x", "no context 'x'"), ("{", "expected the node content"),
        (PLAIN, "https://"),
    ],
)  # fmt: skip
async def test_a_kubeconfig_that_is_none_is_said(text, words, tmp_path):
    """With its path and what is missing."""
    path = tmp_path / "config"
    path.write_text(text)
    seen = await found(path)

    assert ("FAIL", True) == (seen["api server: reached"][0], words in seen["api server: reached"][1]), seen

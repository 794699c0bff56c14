"""A release in the stand-in of an API server: the objects of a golden chart, as a healthy cluster holds them."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml
from cryptography import x509

from interlock.cli.cluster.installation import references
from tests.support.paths import TESTS
from tests.support.servers.api_server import OWN_TOKEN, ApiServer, Json
from tests.support.servers.tls import a_mesh_of_certificates, issue

MESH, AGENTS, INJECTOR = "interlock", "agents", "il-injector"
DEPLOYMENTS, PODS, NAMESPACES = "/apis/apps/v1/deployments", "/api/v1/pods", "/api/v1/namespaces"
WEBHOOKS = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"
ENDPOINTS = f"/apis/discovery.k8s.io/v1/namespaces/{MESH}/endpointslices"
RULES = f"/api/v1/namespaces/{MESH}/configmaps/{INJECTOR}"
HOST = f"{INJECTOR}.{MESH}.svc"


def install(server: ApiServer, folder: Path, *, days: int = 30, profile: str = "regulated") -> None:
    """Have the cluster hold a healthy release; *days*: how long its certificates are good."""
    held = a_mesh_of_certificates(folder)
    named = issue(folder, "webhook", [x509.DNSName(HOST)], days=days)
    tls = {"tls.crt": named["tls_cert_file"], "tls.key": named["tls_key_file"], "ca.crt": held / "ca.pem"}
    pair = {key: path.read_bytes() for key, path in tls.items()}
    golden = list(yaml.safe_load_all((TESTS / "data" / "chart" / f"{profile}.yaml").read_text(encoding="utf-8")))
    deployments = [healthy(one) for one in golden if one["kind"] == "Deployment"]
    hooks = next(one for one in golden if one["kind"] == "MutatingWebhookConfiguration")
    for one in hooks["webhooks"]:
        one["clientConfig"]["caBundle"] = base64.b64encode(pair["ca.crt"]).decode()
    rules = next(one for one in golden if one["kind"] == "ConfigMap" and one["metadata"]["name"] == INJECTOR)
    server.objects = {
        "/version": {"gitVersion": "v1.37.2"},
        DEPLOYMENTS: {"items": deployments}, WEBHOOKS: {"items": [hooks]}, RULES: rules, PODS: {"items": []},
        NAMESPACES: {"items": [namespace(MESH), namespace(AGENTS, "enabled")]},
        ENDPOINTS: {"items": [{"endpoints": [{"conditions": {"ready": True}}] * 2}]},
    }  # fmt: skip
    needed: dict[str, set[str]] = {f"{INJECTOR}-tls": set()}
    for deployment in deployments:
        for name, keys in references(deployment["spec"]["template"]["spec"]).items():
            needed.setdefault(name, set()).update(keys)
    for name, keys in needed.items():
        put(server, MESH, name, pair if name.endswith("-tls") else dict.fromkeys(keys or {"x"}, b"held"))
    put(server, AGENTS, "interlock-sidecar", pair)
    put(server, AGENTS, "interlock-sidecar-binding", {"binding-key": b"00"})


def healthy(deployment: Json) -> Json:
    """Return a Deployment whose replicas are all there."""
    wanted = deployment["spec"].setdefault("replicas", 1)
    status = {"readyReplicas": wanted, "updatedReplicas": wanted}
    return {**deployment, "metadata": {**deployment["metadata"], "namespace": MESH}, "status": status}


def namespace(name: str, label: str = "") -> Json:
    labels = {"kubernetes.io/metadata.name": name, **({"interlock.dev/inject": label} if label else {})}
    return {"metadata": {"name": name, "labels": labels}}


def put(server: ApiServer, place: str, name: str, data: Mapping[str, bytes]) -> None:
    """Write a Secret."""
    kept = {key: base64.b64encode(value).decode() for key, value in data.items()}
    server.objects[f"/api/v1/namespaces/{place}/secrets/{name}"] = {"metadata": {"name": name}, "data": kept}


def kubeconfig(server: ApiServer, path: Path, **user: Any) -> Path:
    """Write a kubeconfig; *user*: other credentials than the token."""
    cluster = {"server": server.settings["kubernetes_url"], "certificate-authority": str(server.folder / "ca.crt")}
    said = {
        "apiVersion": "v1", "kind": "Config", "current-context": "it",
        "contexts": [{"name": "it", "context": {"cluster": "it", "user": "it"}}],
        "clusters": [{"name": "it", "cluster": cluster}], "users": [{"name": "it", "user": user or {"token": OWN_TOKEN}}],
    }  # fmt: skip
    path.write_text(json.dumps(said))
    return path

"""What the API server holds of an installation, asked for all at once; a part that may not be read is told and ends no other."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from interlock.domain.errors import Refused
from interlock.injector.rules import InjectorRules, read_rules
from interlock.runtime.egress.kubernetes import Cluster, Json

OURS = "app.kubernetes.io/name=interlock"
COMPONENT, VERSION, INSTANCE = (f"app.kubernetes.io/{name}" for name in ("component", "version", "instance"))

T = TypeVar("T")


@dataclass(frozen=True)
class Everywhere:
    """What the cluster holds of us, in all namespaces. What could not be read is the refusal."""

    deployments: Sequence[Json] | Refused
    webhooks: Sequence[Json] | Refused
    namespaces: Sequence[Json] | Refused
    pods: Sequence[Json] | Refused


@dataclass(frozen=True)
class Installation:
    """One release."""

    namespace: str
    deployments: Sequence[Json]
    webhooks: Sequence[Json] | Refused
    rules: InjectorRules | Refused | None
    """Of its injector; None: it has none."""
    secrets: Mapping[tuple[str, str], Mapping[str, bytes] | Refused | None]
    """Secrets that it needs, by namespace and name; None: it is not there."""
    endpoints: Sequence[Json] | Refused
    """Of its webhook's service."""

    @property
    def injector(self) -> Json | None:
        """The injector's Deployment."""
        return next((one for one in self.deployments if component_of(one) == "injector"), None)


async def everywhere(cluster: Cluster) -> Everywhere:
    """Return what is found in the whole cluster."""
    selector = {"labelSelector": OURS}
    found = await asyncio.gather(
        told(cluster.items("/apis/apps/v1/deployments", **selector)),
        told(cluster.items("/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations", **selector)),
        told(cluster.items("/api/v1/namespaces")),
        told(cluster.items("/api/v1/pods")),
    )
    return Everywhere(*found)


async def installation(cluster: Cluster, found: Everywhere, namespace: str) -> Installation:
    """Return one release of those that were found."""
    listed = () if isinstance(found.deployments, Refused) else found.deployments
    own = [one for one in listed if one["metadata"]["namespace"] == namespace]
    injector = next((one for one in own if component_of(one) == "injector"), None)
    name = injector["metadata"]["name"] if injector else ""
    rules: InjectorRules | Refused | None = None
    endpoints: Sequence[Json] | Refused = ()
    if name:
        selector = {"labelSelector": f"kubernetes.io/service-name={name}"}
        rules, endpoints = await asyncio.gather(
            told(_rules(cluster, namespace, name)),
            told(cluster.items(f"/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices", **selector)),
        )
    needed = _needed(own, namespace, name, rules, _governed(found, rules))
    secrets = await asyncio.gather(*(_secret(cluster, *one) for one in needed))
    webhooks = (
        found.webhooks
        if isinstance(found.webhooks, Refused)
        else [one for one in found.webhooks if _calls(one, namespace)]
    )
    return Installation(namespace, own, webhooks, rules, dict(zip(needed, secrets, strict=True)), endpoints)


async def told(asked: Awaitable[T]) -> T | Refused:
    """Return what was asked for, or why it cannot be read."""
    try:
        return await asked
    except Refused as refused:
        return refused


def component_of(one: Json) -> str:
    """Return which part of the mesh an object is of."""
    return str((one["metadata"].get("labels") or {}).get(COMPONENT) or "")


def labels_of(found: Everywhere) -> Mapping[str, Mapping[str, str]]:
    """Return the labels of every namespace."""
    if isinstance(found.namespaces, Refused):
        return {}
    return {one["metadata"]["name"]: one["metadata"].get("labels") or {} for one in found.namespaces}


async def _rules(cluster: Cluster, namespace: str, name: str) -> InjectorRules:
    held = await cluster.get(f"/api/v1/namespaces/{namespace}/configmaps/{name}")
    return read_rules([str((held.get("data") or {}).get("rules.yaml", "")).encode()], Path("rules.yaml"))


async def _secret(cluster: Cluster, namespace: str, name: str) -> Mapping[str, bytes] | Refused | None:
    try:
        held = await cluster.get(f"/api/v1/namespaces/{namespace}/secrets/{name}")
    except Refused as refused:
        return None if refused.metadata.get("code") == "404" else refused
    return {key: _decoded(value) for key, value in (held.get("data") or {}).items()}


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(str(value))
    except binascii.Error:
        return b""


def _governed(found: Everywhere, rules: InjectorRules | Refused | None) -> list[str]:
    """Return the namespaces in which pods get a sidecar."""
    if not isinstance(rules, InjectorRules):
        return []
    from interlock.injector.request import INJECT, YES

    labelled = [name for name, labels in labels_of(found).items() if labels.get(INJECT) in YES]
    return sorted({*labelled, *(name for name, one in rules.namespaces.items() if not one.opt_out)})


def _needed(
    deployments: Sequence[Json],
    namespace: str,
    injector: str,
    rules: InjectorRules | Refused | None,
    governed: Sequence[str],
) -> list[tuple[str, str]]:
    """Return the Secrets that the pods of a release and the sidecars name."""
    named = {(namespace, name) for one in deployments for name in references(one["spec"]["template"]["spec"])}
    if injector:
        named.add((namespace, f"{injector}-tls"))
    if isinstance(rules, InjectorRules):
        named |= {(place, name) for place in governed for name in (rules.secret, f"{rules.secret}-binding")}
    return sorted(named)


def references(spec: Json) -> Mapping[str, set[str]]:
    """Return the Secrets that a pod names and cannot do without, with the keys that it names of each."""
    found: dict[str, set[str]] = {}
    for volume in spec.get("volumes") or []:
        held = volume.get("secret") or {}
        if held.get("secretName") and not held.get("optional"):
            found.setdefault(held["secretName"], set()).update(one["key"] for one in held.get("items") or [])
    for container in [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]:
        for variable in container.get("env") or []:
            named = (variable.get("valueFrom") or {}).get("secretKeyRef") or {}
            if named.get("name") and not named.get("optional"):
                found.setdefault(named["name"], set()).add(named["key"])
    return found


def _calls(webhook: Json, namespace: str) -> bool:
    hooks = webhook.get("webhooks") or []
    return any(((one.get("clientConfig") or {}).get("service") or {}).get("namespace") == namespace for one in hooks)

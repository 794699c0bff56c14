"""A pod with its sidecar: pure, idempotent, and safe to call again after other webhooks changed the pod."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from interlock.domain.errors import forbidden, invalid
from interlock.injector.request import STATUS, annotations_of, asked_of
from interlock.injector.rules import InjectorRules, PodWishes

SIDECAR, TLS, STATE, IDENTITY = "interlock-sidecar", "interlock-tls", "interlock-state", "interlock-identity"
HTTP, GRPC = 7070, 7071
DEFAULT_CONTAINER = "kubectl.kubernetes.io/default-container"
PLACEHOLDER = "held-by-the-sidecar"
"""Key of an app whose own key the sidecar holds: clients of providers refuse to start without one."""

APP_ENV: Mapping[str, str] = {
    "OPENAI_BASE_URL": f"http://127.0.0.1:{HTTP}/v1",
    "ANTHROPIC_BASE_URL": f"http://127.0.0.1:{HTTP}",
    "INTERLOCK_GRPC_TARGET": f"127.0.0.1:{GRPC}",
}
"""Set in the app's containers, where they do not set it themselves."""

_DEFAULTED = frozenset({
    "terminationMessagePath", "terminationMessagePolicy", "protocol", "successThreshold", "failureThreshold", "timeoutSeconds", "resources",
})  # fmt: skip
"""Members that the API server adds to a container. Any other, such as a command, is somebody else's."""
_ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"

_STATE_DIR, _TLS_DIR, _IDENTITY_DIR = "/var/lib/interlock", "/etc/interlock/tls", "/var/run/secrets/interlock.dev"
_MET_ELSEWHERE = {
    "INTERLOCK_AUDIT_ANCHOR": "/anchor",
    "INTERLOCK_REVIEWERS_FILE": "/etc/interlock/reviewers/reviewers.yaml",
}
"""What the profile regulated demands of every process, and audit and policy alone read: names without a file here."""

_ASK = "import urllib.request as u; u.urlopen('http://127.0.0.1:{port}/{page}', timeout=2)"

Json = dict[str, Any]


def injected(pod: Mapping[str, Any], rules: InjectorRules, namespace: str) -> Json:
    """Return *pod* with a sidecar; the same pod where it has it already.

    Refused with an annotation's reason (``request.py``), HOST_NETWORK_FORBIDDEN, SIDECAR_NAME_TAKEN or NATIVE_SIDECAR_REQUIRED.
    """
    asked = asked_of(pod, rules, namespace)
    spec = pod.get("spec", {})
    if spec.get("hostNetwork"):
        raise forbidden(
            "HOST_NETWORK_FORBIDDEN", "a pod in the host's network would share its sidecar with the whole machine"
        )
    if not asked.native and spec.get("restartPolicy", "Always") != "Always":
        raise invalid(
            "NATIVE_SIDECAR_REQUIRED",
            "a pod that ends, such as a Job's, needs a native sidecar: another one would keep it running",
        )
    made = deepcopy(dict(pod))
    ours = container(rules, namespace, asked)
    present = _held(made["spec"])
    if present is not None and not _covers(present, ours):
        raise forbidden("SIDECAR_NAME_TAKEN", f"a container is called {SIDECAR} and is not what the injector makes")
    if present is None:
        _place(made["spec"], ours, native=asked.native)
    _volumes(made["spec"], rules)
    for app in _apps(made["spec"]):
        _point(app, asked)
    _annotate(made)
    return made


def patch(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[Json]:
    """Return the JSON patch (RFC 6902) from one pod to the other: whole members of metadata and spec, as ``injected`` changes them."""
    operations: list[Json] = []
    for part, names in (("metadata", ("annotations",)), ("spec", ("initContainers", "containers", "volumes"))):
        old, new = before.get(part) or {}, after.get(part) or {}
        changed = [name for name in names if old.get(name) != new.get(name)]
        operations += [{"op": "add", "path": f"/{part}/{name}", "value": new[name]} for name in changed]
    return operations


def container(rules: InjectorRules, namespace: str, asked: PodWishes) -> Json:
    """Return the sidecar's container."""
    python = ["/opt/interlock/bin/python3", "-I", "-c"]
    made: Json = {
        "name": SIDECAR,
        "image": rules.image,
        "imagePullPolicy": rules.image_pull_policy,
        "args": ["serve", "sidecar"],
        "env": _env(rules, namespace, asked),
        "ports": [{"name": "interlock-http", "containerPort": HTTP}, {"name": "interlock-grpc", "containerPort": GRPC}],
        # Its front listens on loopback alone, where the kubelet does not reach it: so it is asked from inside.
        "startupProbe": {"exec": {"command": [*python, _ASK.format(port=HTTP, page="healthz")]}, "periodSeconds": 1, "timeoutSeconds": 5, "failureThreshold": 60},
        "readinessProbe": {"exec": {"command": [*python, _ASK.format(port=HTTP, page="readyz")]}, "periodSeconds": 10, "timeoutSeconds": 5},
        # The Secret's files are root's group's to read where the pod names no fsGroup.
        "securityContext": {
            "runAsNonRoot": True, "runAsUser": 10001, "runAsGroup": 0, "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [
            {"name": STATE, "mountPath": _STATE_DIR},
            {"name": TLS, "mountPath": _TLS_DIR, "readOnly": True},
        ],
    }  # fmt: skip
    if rules.pod_tokens:
        made["volumeMounts"].append({"name": IDENTITY, "mountPath": _IDENTITY_DIR, "readOnly": True})
    resources = {
        kind: {**rules.resources.get(kind, {}), **asked.resources.get(kind, {})} for kind in ("requests", "limits")
    }
    if any(resources.values()):
        made["resources"] = {kind: values for kind, values in resources.items() if values}
    if asked.native:
        made["restartPolicy"] = "Always"
    return made


def _env(rules: InjectorRules, namespace: str, asked: PodWishes) -> list[Json]:
    """Return the sidecar's variables, by name; the operator's come last and win."""
    named = {
        "INTERLOCK_HOST": "127.0.0.1",
        "INTERLOCK_SIDECAR_HTTP_PORT": str(HTTP),
        "INTERLOCK_SIDECAR_GRPC_PORT": str(GRPC),
        "INTERLOCK_TLS_CERT_FILE": f"{_TLS_DIR}/tls.crt",
        "INTERLOCK_TLS_KEY_FILE": f"{_TLS_DIR}/tls.key",
        "INTERLOCK_TLS_CA_FILE": f"{_TLS_DIR}/ca.crt",
        **({"INTERLOCK_LOG_LEVEL": asked.log_level} if asked.log_level else {}),
        **rules.env,
        **rules.of(namespace).env,
        "INTERLOCK_PROFILE": asked.profile,
        **(_MET_ELSEWHERE if asked.profile == "regulated" else {}),
        **({"INTERLOCK_POD_TOKEN_FILE": f"{_IDENTITY_DIR}/token"} if rules.pod_tokens else {}),
    }
    made: list[Json] = [{"name": name, "value": value} for name, value in sorted(named.items())]
    made.append({"name": "INTERLOCK_BINDING_KEY", "valueFrom": _from_secret(f"{rules.secret}-binding", "binding-key")})
    if rules.pod_tokens:
        uid = {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.uid"}}
        made.append({"name": "INTERLOCK_POD_UID", "valueFrom": uid})
    if asked.taken_secret:
        made.append({"name": "INTERLOCK_UPSTREAM_API_KEY", "valueFrom": _from_secret(*asked.taken_secret)})
    return made


def _from_secret(name: str, key: str) -> Json:
    return {"secretKeyRef": {"name": name, "key": key}}


def _held(spec: Mapping[str, Any]) -> Json | None:
    every = [*(spec.get("initContainers") or []), *(spec.get("containers") or [])]
    return next((one for one in every if one.get("name") == SIDECAR), None)


def _covers(present: Any, ours: Any) -> bool:
    """Return whether *present* is *ours* with at most what Kubernetes itself adds: its defaults, and the mount of a service account."""
    if isinstance(ours, dict):
        if not isinstance(present, dict) or present.keys() - ours.keys() - _DEFAULTED:
            return False
        return all(name in present and _covers(present[name], one) for name, one in ours.items())
    if isinstance(ours, list) and isinstance(present, list):
        kept = [one for one in present if not (isinstance(one, dict) and one.get("mountPath") == _ACCOUNT)]
        return len(kept) == len(ours) and all(_covers(one, other) for one, other in zip(kept, ours, strict=True))
    return bool(present == ours)


def _place(spec: Json, ours: Json, *, native: bool) -> None:
    """Put the sidecar first among the init containers, so that all others have it; last among the containers otherwise."""
    if native:
        spec["initContainers"] = [ours, *(spec.get("initContainers") or [])]
    else:
        spec["containers"] = [*spec["containers"], ours]


def _volumes(spec: Json, rules: InjectorRules) -> None:
    ours: list[Json] = [
        {"name": STATE, "emptyDir": {"sizeLimit": "64Mi"}},
        {"name": TLS, "secret": {"secretName": rules.secret, "defaultMode": 0o440}},
    ]
    if tokens := rules.pod_tokens:
        source = {"audience": tokens.audience, "expirationSeconds": tokens.seconds, "path": "token"}
        ours.append({
            "name": IDENTITY,
            "projected": {"sources": [{"serviceAccountToken": source}], "defaultMode": 0o440},
        })  # fmt: skip
    held = spec.get("volumes") or []
    for one in ours:
        twin = next((other for other in held if other.get("name") == one["name"]), None)
        if twin is None:
            held = [*held, one]
        elif not _covers(twin, one):
            raise forbidden(
                "SIDECAR_NAME_TAKEN", f"a volume is called {one['name']} and is not what the injector makes"
            )
    spec["volumes"] = held


def _apps(spec: Json) -> list[Json]:
    every = [*(spec.get("initContainers") or []), *spec["containers"]]
    return [one for one in every if one.get("name") != SIDECAR]


def _point(app: Json, asked: PodWishes) -> None:
    """Point an app at the sidecar, and take from it the Secret that the sidecar holds instead."""
    env = list(app.get("env") or [])
    if asked.taken_secret:
        taken = _from_secret(*asked.taken_secret)
        env = [{"name": one["name"], "value": PLACEHOLDER} if _refers(one, taken) else one for one in env]
    named = {one.get("name") for one in env}
    app["env"] = [*env, *({"name": name, "value": value} for name, value in APP_ENV.items() if name not in named)]


def _refers(variable: Mapping[str, Any], taken: Json) -> bool:
    held = (variable.get("valueFrom") or {}).get("secretKeyRef") or {}
    return bool({name: held.get(name) for name in ("name", "key")} == taken["secretKeyRef"])


def _annotate(pod: Json) -> None:
    """Say what was done, and have `kubectl exec` and `logs` go to the app."""
    annotations = {**annotations_of(pod), STATUS: "injected"}
    annotations.setdefault(
        DEFAULT_CONTAINER, next(one["name"] for one in pod["spec"]["containers"] if one["name"] != SIDECAR)
    )
    pod.setdefault("metadata", {})["annotations"] = annotations

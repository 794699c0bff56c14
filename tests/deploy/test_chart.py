"""The chart, rendered and linted by real Helm: golden files, schemas, and what every profile promises.

GOLDEN=write pytest tests/deploy/test_chart.py writes the golden files anew, to be read before they are committed.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from interlock.injector.rules import read_rules
from tests.deploy.tools import CHART, PROFILES, helmed, rendered, template, validator
from tests.support.paths import TESTS

GOLDEN = TESTS / "data" / "chart"
VERSIONS = tuple(f"1.{minor}" for minor in range(29, 38))

pytestmark = [pytest.mark.long, pytest.mark.timeout(900), pytest.mark.req("KUB-2", "SVC-7")]


def masked(objects: tuple[dict[str, Any], ...]) -> str:
    """Return the objects as YAML, with a word for what is drawn anew each time: keys, certificates, passwords."""

    def hidden(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                key: "drawn" if key in {"caBundle", "interlock.dev/renew-after"} else hidden(one)
                for key, one in value.items()
            }
        return [hidden(one) for one in value] if isinstance(value, list) else value

    kept = []
    for one in map(hidden, objects):
        if one["kind"] == "Secret" and "data" in one:
            one = {**one, "data": dict.fromkeys(one["data"], "drawn")}
        if one["kind"] == "Secret" and "owner-password" in one.get("stringData", {}):
            one = {**one, "stringData": dict.fromkeys(one["stringData"], "drawn")}
        kept.append(one)
    text = yaml.safe_dump_all(kept, sort_keys=False, width=200)
    return re.sub(r"checksum/(\w+): \w+", r"checksum/\1: sum", text)


def of(profile: str, kind: str, *sets: str) -> list[dict[str, Any]]:
    return [one for one in rendered(profile, *sets) if one["kind"] == kind]


def pods(profile: str, *sets: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name and the spec of every pod that a profile makes."""
    for one in rendered(profile, *sets):
        if one["kind"] == "Pod":
            yield one["metadata"]["name"], one["spec"]
        elif "template" in one.get("spec", {}) and "spec" in one["spec"]["template"]:
            yield one["metadata"]["name"], one["spec"]["template"]["spec"]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_profile_renders_what_its_golden_file_says(profile):
    """Every change of an object is seen in review."""
    path, found = GOLDEN / f"{profile}.yaml", masked(rendered(profile))
    if os.environ.get("GOLDEN") == "write":
        path.write_text(found, encoding="utf-8")

    assert path.read_text(encoding="utf-8") == found


@pytest.mark.parametrize("profile", PROFILES)
def test_helm_lints_a_profile(profile):
    """With --strict a warning is a failure."""
    done = helmed("lint", CHART, "--strict", "--kube-version", "1.29.0", "-f", CHART / "profiles" / f"{profile}.yaml")

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", VERSIONS)
def test_every_object_fits_the_schema_of_a_kubernetes_version(version, tmp_path):
    """Strictly: an unknown field is a failure. Objects of custom resources have no schema here.

    All profiles for the oldest and the newest version; the two that have every kind of object for those between.
    """
    profiles = PROFILES if version in {VERSIONS[0], VERSIONS[-1]} else ("dev", "airgap")
    path = tmp_path / "objects.yaml"
    path.write_text(
        "".join(f"---\n{yaml.safe_dump(one)}" for profile in profiles for one in rendered(profile)), encoding="utf-8"
    )
    done = subprocess.run(
        [validator(), "-k", version, "--strict", "--quiet", "--no-warn", path],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
    assert "ERROR" not in done.stdout + done.stderr


@pytest.mark.parametrize("profile", PROFILES)
def test_every_pod_passes_restricted_pod_security(profile):
    """No root, no capability, no escalation, read-only root, seccomp, no host namespace or path; and no token without need."""
    for name, spec in pods(profile):
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys(), name
        assert "RuntimeDefault" == spec["securityContext"]["seccompProfile"]["type"], name
        assert not [one for one in spec.get("volumes", []) if "hostPath" in one], name
        assert spec.get("automountServiceAccountToken") is ("certificates" in name), name
        for one in [*spec["containers"], *spec.get("initContainers", [])]:
            held = one["securityContext"]
            assert held["runAsNonRoot"] and held["readOnlyRootFilesystem"] and not held["allowPrivilegeEscalation"], (
                name
            )
            assert ["ALL"] == held["capabilities"]["drop"], name
            assert {"requests", "limits"} <= one["resources"].keys(), name


def peers(policy: dict[str, Any], port: int) -> list[dict[str, Any]]:
    """Return who may call *port*, by the policy."""
    return [
        peer
        for rule in policy["spec"].get("ingress", [])
        if {"port": port} in rule.get("ports", [])
        for peer in rule.get("from", [None])
    ]


@pytest.mark.req("SVC-7")
def test_nobody_but_dpe_reaches_triton():
    """Triton does not authenticate its callers (A-39)."""
    policies = {one["metadata"]["name"]: one for one in of("airgap", "NetworkPolicy")}

    (peer,) = peers(policies["il-triton"], 8001)
    assert "dpe" == peer["podSelector"]["matchLabels"]["app.kubernetes.io/component"]
    callers = [
        name
        for name, one in policies.items()
        for rule in one["spec"].get("egress", [])
        if {"port": 8001} in rule.get("ports", [])
    ]
    assert ["il-dpe"] == callers


@pytest.mark.parametrize("profile", PROFILES)
def test_everything_is_denied_but_exact_peers(profile):
    """One policy denies all; each component's own names its callers; no inner port is open to all."""
    policies = {one["metadata"]["name"]: one["spec"] for one in of(profile, "NetworkPolicy")}
    deny = policies.pop("il-deny")

    assert (["Ingress", "Egress"], False) == (deny["policyTypes"], "ingress" in deny or "egress" in deny)
    covered = {spec["podSelector"]["matchLabels"]["app.kubernetes.io/component"] for spec in policies.values()}
    made = {
        one["metadata"]["labels"]["app.kubernetes.io/component"]
        for one in rendered(profile)
        if one["kind"] in {"Deployment", "StatefulSet", "Job", "Pod"}
    }
    assert made == covered
    for name, spec in policies.items():
        for rule in spec.get("ingress", []):
            assert rule.get("from") or name == "il-injector", name
            assert all(rule["ports"]), name


@pytest.mark.parametrize("profile", ["ha", "regulated"])
def test_several_replicas_come_with_a_disruption_budget(profile):
    """And the time to end is longer than the drain."""
    budgets = {one["metadata"]["name"] for one in of(profile, "PodDisruptionBudget")}
    several = {one["metadata"]["name"] for one in of(profile, "Deployment") if one["spec"].get("replicas", 2) > 1}

    assert several == budgets
    for one in of(profile, "Deployment"):
        assert one["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] > 10 + 5


NEVER = ("kube-system", "kube-public", "kube-node-lease", "interlock")


def test_the_webhook_fails_closed_with_two_replicas():
    """A labelled pod without its sidecar would be governed by nobody; the mesh's own namespace and the system's are never asked."""
    (webhook,) = of("observe", "MutatingWebhookConfiguration")
    injector = next(one for one in of("observe", "Deployment") if one["metadata"]["name"] == "il-injector")

    assert 2 == injector["spec"]["replicas"]
    for one in webhook["webhooks"]:
        assert ("Fail", "IfNeeded", "None") == (one["failurePolicy"], one["reinvocationPolicy"], one["sideEffects"])
        own = {
            name: asked(one, {"kubernetes.io/metadata.name": name}, {"interlock.dev/inject": "true"}) for name in NEVER
        }
        assert dict.fromkeys(NEVER, False) == own


def asked(webhook: dict[str, Any], namespace: dict[str, str], pod: dict[str, str]) -> bool:
    """Return whether the API server asks a webhook about a pod, by the labels of its namespace and its own."""
    means = {
        "In": lambda held, values: held in values,
        "NotIn": lambda held, values: held not in values,
        "Exists": lambda held, _: held is not None,
    }
    rules = [(namespace, one) for one in webhook["namespaceSelector"]["matchExpressions"]]
    rules += [(pod, one) for one in webhook.get("objectSelector", {}).get("matchExpressions", [])]
    return all(means[one["operator"]](labels.get(one["key"]), one.get("values")) for labels, one in rules)


NAMED = ("injector.namespaces.strict.opt_out=false", "injector.namespaces.mild.opt_out=true")


@pytest.mark.req("KUB-3")
@pytest.mark.parametrize(
    ("namespace", "label", "pod", "paths"),
    [
        ("a", None, None, []),
        ("a", None, "true", ["pod"]),
        ("a", None, "enabled", ["pod"]),
        ("a", None, "false", []),
        ("a", None, "perhaps", ["pod"]),
        ("a", "enabled", None, ["namespace"]),
        ("a", "true", None, ["namespace"]),
        ("a", "enabled", "false", ["namespace"]),
        ("a", "disabled", None, []),
        ("a", "disabled", "true", ["pod"]),
        ("a", "perhaps", None, ["unclear"]),
        ("strict", None, None, ["namespace"]),
        ("strict", "disabled", "false", ["namespace"]),
        ("strict", "perhaps", "true", ["namespace"]),
        ("mild", None, None, []),
        ("interlock", "enabled", "true", []),
        ("kube-system", "enabled", None, []),
    ],
)
def test_the_webhook_is_asked_by_label_and_by_name(namespace, label, pod, paths):
    """A namespace that no pod may decline in is known by its name: whoever takes its label away changes nothing."""
    (hook,) = of("observe", "MutatingWebhookConfiguration", *NAMED)
    labels = {"kubernetes.io/metadata.name": namespace, **({"interlock.dev/inject": label} if label else {})}
    own = {"interlock.dev/inject": pod} if pod else {}
    said = [one["clientConfig"]["service"]["path"] for one in hook["webhooks"] if asked(one, labels, own)]

    assert [f"/inject/{one}" for one in paths] == said


@pytest.mark.parametrize("profile", PROFILES)
def test_the_injectors_rules_are_ones_that_it_reads(profile, tmp_path):
    """The ConfigMap is the file that `interlock serve injector` starts with."""
    held = next(one for one in of(profile, "ConfigMap") if one["metadata"]["name"] == "il-injector")
    rules = read_rules([held["data"]["rules.yaml"].encode()], tmp_path / "rules.yaml")

    assert rules.env["INTERLOCK_AUDIT_ADDRESS"] == "il-audit.interlock.svc:7084"
    if profile == "regulated":
        assert ("regulated", False) == (rules.floor("agents"), rules.of("agents").opt_out)


OIDC = (
    "oversight.oidc.secret=console-oidc", "settings.oidc_issuer=https://idp.example:8443/realms/x",
    "settings.oidc_client_id=console", "settings.oversight_base_url=https://console.example",
)  # fmt: skip


def test_sign_in_by_a_provider_is_for_oversight_alone():
    """Its pod has roles and secret as files, and may reach the provider's port at the addresses given; no other pod does."""
    more = (*OIDC, "oversight.oidc.ca=true", "networkPolicy.providerCidrs[0]=10.9.0.0/16")
    mounting = [
        name for name, spec in pods("ha", *more)
        if any(one.get("secret", {}).get("secretName") == "console-oidc" for one in spec.get("volumes", []))
    ]  # fmt: skip
    [spec] = [spec for name, spec in pods("ha", *more) if name in mounting]
    environment = {one["name"]: one.get("value") for one in spec["containers"][0]["env"]}
    reaching = [
        one["metadata"]["name"] for one in of("ha", "NetworkPolicy", *more)
        if {"ports": [{"port": 8443}], "to": [{"ipBlock": {"cidr": "10.9.0.0/16"}}]} in one["spec"].get("egress", [])
    ]  # fmt: skip

    assert mounting == reaching == ["il-oversight"]
    assert environment["INTERLOCK_OIDC_ROLES_FILE"] == "/etc/interlock/oidc/roles.yaml"
    assert environment["INTERLOCK_OIDC_CLIENT_SECRET_FILE"] == "/etc/interlock/oidc/client-secret"
    assert environment["INTERLOCK_OIDC_CA_FILE"] == "/etc/interlock/oidc/ca.crt"


def test_sign_in_by_a_provider_that_is_not_named_is_refused():
    """A Secret without an issuer, a client or an address to come back to would start a pod that ends."""
    assert template("ha", *OIDC).returncode == 0
    for left_out in OIDC[1:]:
        assert template("ha", *(one for one in OIDC if one != left_out)).returncode != 0


@pytest.mark.parametrize(
    ("sets", "said"),
    [
        ((), "sessions need a store"),
        (("sessionStore.bundled.enabled=true",), "the audit log needs PostgreSQL"),
        (("unknown=1",), "unknown"),
        (("settings.max_window=1",), "max_window"),
        (("settings.max_windows=0",), "max_windows"),
        (("settings.master_key=abc",), "master_key"),
        (("profile=lax",), "profile"),
        (("certificates.mode=secret", "sessionStore.url=redis://v", "auditStore.existingSecret=a"), "certificates.secretPrefix"),
        (("certificates.mode=cert-manager", "sessionStore.url=redis://v", "auditStore.existingSecret=a"), "certificates.issuer.name"),
        (("sessionStore.url=redis://user:password@v",), "sessionStore"),
        (("profile=regulated", "sessionStore.url=redis://v", "auditStore.existingSecret=a"), "regulated needs"),
        (("triton.enabled=true", "sessionStore.url=redis://v", "auditStore.existingSecret=a"), "triton.image"),
        (("injector.namespaces.a.policy=x",), "policy"),
        (("terminationGracePeriodSeconds=30", "settings.drain_s=25", "sessionStore.url=redis://v", "auditStore.existingSecret=a"), "drain_s"),
        (("session.resources.limits.memory=lots",), "memory"),
        (("session.resources.limit.memory=1Gi",), "limit"),
        (("audit.autoscaling.min=0",), "min"),
        (("sidecar.namespaces={Agents}",), "namespaces"),
        (("networkPolicy.storeCidrs={10.0.0.1}",), "storeCidrs"),
        (("keys.existingSecret=My Keys",), "existingSecret"),
        (("dpe.autoscaling.enabled=true", "dpe.autoscaling.min=30", "sessionStore.url=redis://v", "auditStore.existingSecret=a"), "dpe.autoscaling.min 30"),
        (("decision.enabled=true", "decision.replicas=2", "sessionStore.url=redis://v", "auditStore.existingSecret=a"), "one replica"),
    ],
)  # fmt: skip
def test_values_that_cannot_be_meant_are_refused_when_the_chart_is_rendered(sets, said):
    """Unknown, contradictory or missing values: a clear message, and nothing half-installed."""
    done = template("", *sets)

    assert done.returncode != 0
    assert said in done.stderr


@pytest.mark.parametrize("mode", ["mesh", "generated", "cert-manager", "secret"])
def test_certificates_have_their_modes(mode):
    """With a service mesh the ports are plain and the probes gRPC; otherwise each member has a certificate of its own."""
    more = {"cert-manager": ("certificates.issuer.name=i",), "secret": ("certificates.secretPrefix=p",)}.get(mode, ())
    sets = (f"certificates.mode={mode}", *more)
    session = next(one for one in of("dev", "Deployment", *sets) if one["metadata"]["name"] == "il-session")
    container = session["spec"]["template"]["spec"]["containers"][0]
    env = {one["name"] for one in container["env"]}

    assert (mode == "mesh") == ("INTERLOCK_ALLOW_PLAINTEXT" in env) == ("grpc" in container["readinessProbe"])
    assert (mode != "mesh") == ("INTERLOCK_TLS_CERT_FILE" in env)
    assert (mode == "cert-manager") == bool(of("dev", "Certificate", *sets))


def test_without_the_operator_of_prometheus_nothing_of_its_kinds_is_rendered():
    """A cluster that does not know ServiceMonitor is given none."""
    done = template("ha", apis=())

    assert done.returncode == 0
    assert "monitoring.coreos.com" not in done.stdout

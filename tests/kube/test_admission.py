"""The injector, asked by a real API server: what it gives a sidecar, what it refuses, and what starts while it is down."""

from __future__ import annotations

import base64
import contextlib
import copy
import signal
import ssl
from collections.abc import Iterator

import httpx
import pytest

from tests.kube.agents import TRUE, container, job, named, pod
from tests.kube.cluster.api import Refusal, until
from tests.kube.figures import FIGURES, paced, quantile
from tests.kube.release import AGENTS, MESH, RELEASE, Release, namespace

pytestmark = [pytest.mark.req("KUB-5"), pytest.mark.long, pytest.mark.timeout(900)]

QUIET = pod(containers=[container("print('over')", OPENAI_API_KEY="none")])


def created(release: Release, name: str, made: dict, place: str = AGENTS) -> list[str]:
    """Create a pod, and return the names of its init containers."""
    kept = release.stage.api.create("pods", named(name, made), place)
    release.stage.api.delete("pods", name, place)
    return [one["name"] for one in kept["spec"].get("initContainers", ())]


def refused(release: Release, made: dict, place: str = AGENTS) -> str:
    """Return what the API server says of a pod that it does not take."""
    with pytest.raises(Refusal) as caught:
        created(release, "refused", made, place)
    return caught.value.message


@pytest.fixture(scope="module")
def others(release: Release) -> str:
    """A namespace that asks for nothing."""
    namespace(release.stage.api, "others")
    return "others"


@pytest.mark.parametrize(
    ("annotations", "reason"),
    [
        ({"interlock.dev/profile": "observe"}, "ANNOTATION_LOOSENS"),
        ({"interlock.dev/policy": "halt-on NEVER"}, "ANNOTATION_UNKNOWN"),
        ({"interlock.dev/upstream-base-url": "http://evil"}, "ANNOTATION_UNKNOWN"),
        ({"interlock.dev/memory-limit": "lots"}, "ANNOTATION_INVALID"),
    ],
)
def test_an_annotation_that_would_loosen_is_refused_with_its_reason(release: Release, annotations, reason):
    """The words reach whoever applies the pod, and nothing is created."""
    said = refused(release, {**QUIET, "metadata": {"annotations": annotations}})

    assert reason in said
    assert next(iter(annotations)) in said
    assert "refused" not in release.objects("pods", AGENTS)


def test_a_pod_that_has_its_sidecar_already_stays_as_it_is(release: Release):
    """What the cluster holds of a pod, with all that the API server added, may be applied again; one that differs is refused."""
    api = release.stage.api
    held = api.create("pods", named("held", QUIET), AGENTS)
    api.delete("pods", "held", AGENTS)
    again = {"metadata": {"annotations": held["metadata"]["annotations"]}, "spec": held["spec"]}
    kept = api.create("pods", named("again", again), AGENTS)
    api.delete("pods", "again", AGENTS)
    forged = copy.deepcopy(again)
    forged["spec"]["initContainers"][0]["env"][0]["value"] = "something else"

    assert held["spec"] == kept["spec"]
    assert "SIDECAR_NAME_TAKEN" in refused(release, forged)


def test_a_deployment_says_why_it_has_no_pod(release: Release):
    """The ReplicaSet's event carries the reason, as `kubectl describe` shows it."""
    api, place = release.stage.api, AGENTS
    template = pod(annotations={"interlock.dev/profile": "observe"}, labels={"a": "loose"}, restartPolicy="Always")
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "loose"}}, "template": template}
    api.create("deployments", {"metadata": {"name": "loose"}, "spec": spec}, place)
    told = until(
        "an event says why",
        lambda: [one["message"] for one in api.items("events", place) if "ANNOTATION_LOOSENS" in one["message"]],
        60,
    )
    api.delete("deployments", "loose", place)

    assert "looser than enforce" in told[0]


def test_who_asks_gets_a_sidecar_and_who_declines_does_not(release: Release, others: str):
    """By namespace, by pod, and declined by label or annotation."""
    label = {"interlock.dev/inject": "true"}
    declined = pod(annotations={"interlock.dev/inject": "false"}, containers=QUIET["spec"]["containers"])
    asking = pod(labels=label, containers=QUIET["spec"]["containers"])
    said = {
        "by namespace": created(release, "a", QUIET),
        "declined": created(release, "b", declined),
        "elsewhere": created(release, "c", QUIET, others),
        "by pod": created(release, "d", asking, others),
    }

    sidecar = ["interlock-sidecar"]
    assert {"by namespace": sidecar, "declined": [], "elsewhere": [], "by pod": sidecar} == said


def test_a_label_that_means_nothing_is_refused_and_one_that_declines_is_heard(release: Release):
    """Of a namespace: "true" is as good as "enabled", an unclear word takes no pod, and where it is declined a pod may still ask."""
    asking = pod(labels={"interlock.dev/inject": "true"}, containers=QUIET["spec"]["containers"])
    for name, label in (("agreeing", "true"), ("unclear", "perhaps"), ("declining", "disabled")):
        namespace(release.stage.api, name, **{"interlock.dev/inject": label})

    assert ["interlock-sidecar"] == created(release, "agreeing", QUIET, "agreeing")
    assert "NAMESPACE_LABEL_INVALID" in refused(release, QUIET, "unclear")
    assert [] == created(release, "declining", QUIET, "declining")
    assert ["interlock-sidecar"] == created(release, "declining", asking, "declining")


def test_a_service_of_the_agents_namespace_is_no_setting_of_the_sidecar(release: Release):
    """Kubernetes gives pods a variable for each service beside them; one called interlock-upstream stands in nobody's way."""
    release.stage.provider.answers(TRUE)
    api, spec = release.stage.api, {"selector": {"a": "b"}, "ports": [{"port": 80}]}
    for name in ("interlock-upstream", "interlock-audit"):
        api.create("services", {"metadata": {"name": name}, "spec": spec}, AGENTS)
    try:
        said = job(release, "beside-services", pod())
    finally:
        for name in ("interlock-upstream", "interlock-audit"):
            api.delete("services", name, AGENTS)

    assert [200] == [one["status"] for one in said]


def test_fifty_pods_a_second_get_their_sidecars(release: Release):
    """The webhook is asked at that pace, over TLS by the authority that the API server has; how long it took is a figure."""
    pod_of = next(iter(injectors(release)))
    address = release.stage.node.running(MESH, pod_of).place.address
    trusted = ssl.create_default_context(cadata=bundle(release))
    request = {"uid": "u", "namespace": AGENTS, "object": named("many", QUIET)}
    review = {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}
    name = {"sni_hostname": f"{RELEASE}-injector.{MESH}.svc"}
    allowed: list[bool] = []

    with httpx.Client(base_url=f"https://{address}:7443", verify=trusted, timeout=10) as client:

        def ask() -> None:
            said = client.post("/inject/namespace", json=review, extensions=name).json()["response"]
            allowed.append(said["allowed"] and "patch" in said)

        took = paced(ask, per_second=50, seconds=5)
    FIGURES["injector at 50 pods a second"] = (
        f"p50 {1000 * quantile(took, 0.5):.1f} ms, p99 {1000 * quantile(took, 0.99):.1f} ms"
    )

    assert [True] * 250 == allowed


def test_while_the_injector_hangs_labelled_pods_are_refused(release: Release):
    """A webhook that does not answer in time is one that is down."""
    pods = [release.stage.node.running(MESH, one) for one in release.objects("pods") if "-injector-" in one]
    held = [one.process for pod in pods for one in pod.containers() if one.process]
    for process in held:
        process.send_signal(signal.SIGSTOP)
    try:
        said = refused(release, QUIET)
    finally:
        for process in held:
            process.send_signal(signal.SIGCONT)

    assert "failed calling webhook" in said


@pytest.fixture
def no_injector(release: Release) -> Iterator[None]:
    """Every injector is dead, as with its machine, and none comes again until the test is over."""
    api, name = release.stage.api, f"{RELEASE}-injector"
    replicas = api.get("deployments", name, MESH)["spec"]["replicas"]
    pods = [one for one in release.objects("pods") if one.startswith(name)]
    for one in pods:
        release.stage.node.running(MESH, one).killed.set()
    api.patch("deployments", name, {"spec": {"replicas": 0}}, MESH)
    until("no injector is left", lambda: not any(one.startswith(name) for one in release.objects("pods")))
    until("nothing leads to it", lambda: not release.stage.node.proxy.leads(f"{name}.{MESH}"))
    yield
    api.patch("deployments", name, {"spec": {"replicas": replicas}}, MESH)
    until(
        "the injector is back",
        lambda: api.get("deployments", name, MESH)["status"].get("readyReplicas") == replicas,
        60,
    )
    until("it is led to", lambda: release.stage.node.proxy.leads(f"{name}.{MESH}"))


def test_while_no_injector_answers_labelled_pods_are_refused_and_others_start(
    release: Release, others: str, no_injector
):
    """An agent that nobody governs does not start; what has nothing to do with it does, in the mesh's namespace too."""
    asking = pod(labels={"interlock.dev/inject": "true"}, containers=QUIET["spec"]["containers"])
    said = [refused(release, QUIET), refused(release, asking, others)]

    assert all("failed calling webhook" in one and "interlock.dev" in one for one in said)
    assert [] == created(release, "elsewhere", QUIET, others)
    assert [] == created(release, "mesh", QUIET, MESH)


def test_what_an_upgrade_forbids_is_forbidden_when_it_has_ended(release: Release):
    """With opt_out: false a pod that declines is refused, whatever the namespace's label: no injector is left to the rules of before."""
    declined = pod(annotations={"interlock.dev/inject": "false"}, containers=QUIET["spec"]["containers"])
    release.apply()
    before = injectors(release)
    release.apply(injector={"namespaces": {AGENTS: {"opt_out": False}}})
    said, after = refused(release, declined), injectors(release)
    with unlabelled(release):
        without = [refused(release, declined), *created(release, "unlabelled", QUIET)]
    release.apply()

    assert "OPT_OUT_FORBIDDEN" in said
    assert "OPT_OUT_FORBIDDEN" in without[0]
    assert ["interlock-sidecar"] == without[1:]
    assert not before & after
    assert [] == created(release, "declined", declined)


@contextlib.contextmanager
def unlabelled(release: Release) -> Iterator[None]:
    """The agents' namespace without its label, as its owner may take it away."""
    api = release.stage.api
    api.patch("namespaces", AGENTS, {"metadata": {"labels": {"interlock.dev/inject": None}}})
    yield
    api.patch("namespaces", AGENTS, {"metadata": {"labels": {"interlock.dev/inject": "enabled"}}})


def injectors(release: Release) -> set[str]:
    """Return the injector's pods that are not about to end."""
    found = release.objects("pods").items()
    return {name for name, one in found if "-injector-" in name and "deletionTimestamp" not in one["metadata"]}


def test_an_upgrade_renews_the_webhooks_certificate_in_the_second_half_of_its_life(release: Release):
    """The webhook trusts both authorities, so pods are taken all the while; the next upgrade keeps what is new."""
    api, name = release.stage.api, f"{RELEASE}-injector-tls"
    first = api.get("secrets", name, MESH)["data"]
    api.patch("secrets", name, {"metadata": {"annotations": {"interlock.dev/renew-after": "1"}}}, MESH)
    release.apply()
    taken = created(release, "renewed", QUIET)
    second = api.get("secrets", name, MESH)["data"]
    both = bundle(release)
    until("the pods have the new certificate", lambda: served(release) == {pem(second["tls.crt"])}, 60)
    assert taken == created(release, "renewed", QUIET)
    release.apply()

    assert ["interlock-sidecar"] == taken
    assert first["tls.crt"] != second["tls.crt"]
    assert pem(second["ca.crt"]) + pem(first["ca.crt"]) == both
    assert second == api.get("secrets", name, MESH)["data"]
    assert pem(second["ca.crt"]) == bundle(release)
    assert ["interlock-sidecar"] == created(release, "kept", QUIET)


def bundle(release: Release) -> str:
    """Return the authorities that the API server trusts for the webhook."""
    found = release.stage.api.get("mutatingwebhookconfigurations", f"{RELEASE}-injector")
    return pem(found["webhooks"][0]["clientConfig"]["caBundle"])


def pem(text: str) -> str:
    return base64.b64decode(text).decode()


def served(release: Release) -> set[str]:
    """Return the certificates that the injectors present."""
    return {
        ssl.get_server_certificate((release.stage.node.running(MESH, one).place.address, 7443))
        for one in injectors(release)
    }

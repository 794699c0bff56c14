"""Who an agent's pod is, by tokens that a real API server issues and is asked about."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator

import grpc
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import padding
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from interlock.api.policy.v1 import policy_pb2, policy_pb2_grpc
from tests.kube.agents import TRUE, container, job, named, pod
from tests.kube.cluster.api import Json, Refusal, until
from tests.kube.node.volumes import decoded
from tests.kube.release import AGENTS, MESH, RELEASE, VALUES, Release, namespace
from tests.support.servers.api_server import Signer

pytestmark = [pytest.mark.req("KUB-3", "KUB-4"), pytest.mark.long, pytest.mark.timeout(900)]

AUDIENCE, ACCOUNT = f"{RELEASE}.{MESH}.interlock", "billing"
WAITING = container("import time; time.sleep(600)", OPENAI_API_KEY="none")


@pytest.fixture(scope="module")
def identifying(release: Release) -> Iterator[Release]:
    """The release with pods as callers; afterwards as it was."""
    api = release.stage.api
    api.create("serviceaccounts", {"metadata": {"name": ACCOUNT}}, AGENTS)
    namespace(api, "elsewhere")
    release.apply(sidecar={**VALUES["sidecar"], "podIdentity": True})
    yield release
    release.apply()


def tokens(
    release: Release, made: Json | None, *, audience: str = AUDIENCE, place: str = AGENTS, account: str = ACCOUNT
) -> str:
    """Have the API server issue a token of a service account, bound to a pod."""
    spec: Json = {"audiences": [audience], "expirationSeconds": 600}
    if made is not None:
        metadata = made["metadata"]
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    token: str = release.stage.api.create("serviceaccounts", asked, place, f"{account}/token")["status"]["token"]
    return token


def expired(release: Release, token: str) -> str:
    """Return a token that the cluster's own key has signed, and whose time is over."""
    head, body, _ = token.split(".")
    claims = json.loads(base64.urlsafe_b64decode(body + "=="))
    over = {**claims, "exp": int(time.time()) - 3600, "iat": int(time.time()) - 7200, "nbf": int(time.time()) - 7200}
    told = f"{head}.{base64.urlsafe_b64encode(json.dumps(over).encode()).rstrip(b'=').decode()}"
    key = load_pem_private_key((release.stage.plane.folder / "accounts.key").read_bytes(), None)
    signature = key.sign(told.encode(), padding.PKCS1v15(), hashes.SHA256())
    return f"{told}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def asked(release: Release, token: str, uid: str) -> str:
    """Ask the release's policy service with the certificate of the agents' sidecars; return account or reason."""
    held = decoded(release.stage.api.get("secrets", "interlock-sidecar", AGENTS))
    names = [one for one in release.objects("pods") if one.startswith(f"{RELEASE}-policy-")]
    address = next(
        one.place.address for one in release.stage.node.pods.values() if one.name in names and not one.ending.is_set()
    )
    credentials = grpc.ssl_channel_credentials(held["ca.crt"], held["tls.key"], held["tls.crt"])
    options = [("grpc.ssl_target_name_override", "policy.interlock")]
    with grpc.secure_channel(f"{address}:7082", credentials, options=options) as channel:
        stub = policy_pb2_grpc.PolicyServiceStub(channel)
        answer = stub.IdentifyPod(policy_pb2.IdentifyPodRequest(token=token, pod_uid=uid), timeout=20)
    return answer.refusal.reason or f"{answer.namespace}/{answer.service_account}/{answer.pod_name}"


def waiting(release: Release, name: str, place: str = AGENTS, **spec: str) -> Json:
    """Make a pod that waits. An injector that is being replaced may close a connection: who makes pods tries again, as controllers do."""

    def tried() -> Json | None:
        try:
            return release.stage.api.create("pods", named(name, pod(containers=[WAITING], **spec)), place)
        except Refusal as refusal:
            if "failed to call webhook" in refusal.message:
                return None
            raise

    made: Json = until(f"{name} is taken", tried, 60)
    return made


def test_a_pod_is_the_caller_by_its_projected_token(identifying: Release):
    """The injector mounts the token in the sidecar alone; the agent sends some key, and is governed as its service account."""
    identifying.stage.provider.answers(TRUE)
    agent = container(OPENAI_API_KEY="sk-of-nobody")
    said = job(identifying, "identified", pod(containers=[agent], serviceAccountName=ACCOUNT))[0]
    folder = next(one for one in identifying.stage.node.folders(AGENTS) if one.name.startswith("identified"))
    logged = [
        json.loads(line) for line in (folder / "interlock-sidecar.log").read_text().splitlines() if line[:1] == "{"
    ]
    made = next(
        one for one in identifying.objects("pods", AGENTS).values() if one["metadata"]["name"].startswith("identified")
    )
    mounts = {one["name"]: [held["name"] for held in one["volumeMounts"]] for one in made["spec"]["containers"]}

    assert 200 == said["status"], said
    assert [f"pod:{AGENTS}/{ACCOUNT}"] == [one["scope"] for one in logged if one["event"] == "call.governed"]
    assert "interlock-identity" not in mounts["agent"]


def test_the_real_api_server_knows_no_foreign_token(identifying: Release):
    """Of another audience, cluster, pod or namespace, bound to none, expired, altered, of a pod that is deleted: each with its reason."""
    api = identifying.stage.api
    mine, other = (waiting(identifying, name, serviceAccountName=ACCOUNT) for name in ("mine", "other"))
    far = waiting(identifying, "far", "elsewhere")
    uid = mine["metadata"]["uid"]
    good = tokens(identifying, mine)
    stolen = (mine["metadata"]["name"], uid)
    said = {
        "its own": asked(identifying, good, uid),
        "another audience": asked(identifying, tokens(identifying, mine, audience="https://elsewhere"), uid),
        "another cluster": asked(identifying, Signer().token(f"{AGENTS}/{ACCOUNT}", stolen, audience=AUDIENCE), uid),
        "another pod": asked(identifying, tokens(identifying, other), uid),
        "no pod": asked(identifying, tokens(identifying, None), uid),
        "another namespace": asked(
            identifying, tokens(identifying, far, place="elsewhere", account="default"), far["metadata"]["uid"]
        ),
        "expired": asked(identifying, expired(identifying, good), uid),
        "altered": asked(identifying, f"{good[:-8]}AAAAAAAA", uid),
    }
    for name, place in (("mine", AGENTS), ("other", AGENTS), ("far", "elsewhere")):
        api.delete("pods", name, place, gracePeriodSeconds=0)
    until("the pod is gone", lambda: api.found("pods", "mine", AGENTS) is None)
    # The API server remembers what it said of a token for some seconds.
    until("its token is refused", lambda: asked(identifying, good, uid) == "POD_TOKEN_REJECTED", 60)

    rejected = dict.fromkeys(("another audience", "another cluster", "expired", "altered"), "POD_TOKEN_REJECTED")
    assert {
        "its own": f"{AGENTS}/{ACCOUNT}/mine", "another pod": "POD_TOKEN_OF_ANOTHER_POD", "no pod": "POD_TOKEN_UNBOUND",
        "another namespace": "POD_NAMESPACE_NOT_SERVED", **rejected,
    } == said  # fmt: skip


def test_without_the_right_to_ask_no_pod_is_identified(identifying: Release):
    """Whoever takes the ClusterRole away stops the agents' calls; they are not waved through."""
    api, name = identifying.stage.api, f"{MESH}-{RELEASE}-policy"
    made = waiting(identifying, "unasked", serviceAccountName=ACCOUNT)
    binding = api.get("clusterrolebindings", name)
    api.delete("clusterrolebindings", name)
    kept = {key: binding[key] for key in ("roleRef", "subjects")} | {
        "metadata": {key: binding["metadata"][key] for key in ("name", "labels", "annotations")}
    }
    try:
        token, uid = tokens(identifying, made), made["metadata"]["uid"]
        until("it is refused", lambda: asked(identifying, token, uid) == "POD_IDENTITY_UNVERIFIED", 60)
    finally:
        api.create("clusterrolebindings", kept)
        api.delete("pods", "unasked", AGENTS, gracePeriodSeconds=0)
    until(
        "it is identified again",
        lambda: asked(identifying, token, uid) in {f"{AGENTS}/{ACCOUNT}/unasked", "POD_TOKEN_REJECTED"},
        60,
    )

"""A second release, by the profile `regulated`: an agent that is known by its pod, an answer that waits for a person, and its record."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.deploy.tools import CHART, helmed
from tests.kube.agents import FALSE, QUESTION, SOURCE, container, named, pod
from tests.kube.cluster.api import Json, until
from tests.kube.node.image import ENTRYPOINT
from tests.kube.node.volumes import decoded
from tests.kube.release import Release, namespace, secret
from tests.kube.stage import PROVIDER, VALKEY

pytestmark = [pytest.mark.req("KUB-2", "KUB-4"), pytest.mark.long, pytest.mark.timeout(900)]

NAME, MESH, AGENTS, ACCOUNT, REVIEWER = "reg", "regulated-mesh", "careful", "billing", "reviewer@company.com"
ONE = {"replicas": 1}
VALUES: Json = {
    "certificates": {"mode": "generated"},
    **dict.fromkeys(("session", "policy", "dpe", "audit", "oversight"), ONE),
    "decision": {**ONE, "enabled": True, "keysSecret": "interlock-api-keys"},
    "sidecar": {"namespaces": [AGENTS], "podIdentity": True, "upstreamUrl": f"http://{PROVIDER[0]}:{PROVIDER[1]}/v1"},
    "injector": {"replicas": 2, "reconcile": "report", "namespaces": {AGENTS: {"profile": "regulated", "opt_out": False}}},
    # The stand-in's image is a copy of the tree, and no wheel with a RECORD.
    "settings": {"require_verified_code": False, "require_registered_agents": True, "data_region": "EU", "retention_events_days": 400},
}  # fmt: skip

WAITS = """
import json, os, time
import httpx

base = os.environ["OPENAI_BASE_URL"].removesuffix("/v1")
ask = {"model": "m", "messages": [{"role": "system", "content": os.environ["SOURCE"]}, {"role": "user", "content": os.environ["QUESTION"]}]}
def told(what, answer):
    print(json.dumps({"what": what, "status": answer.status_code, "body": answer.text, "headers": dict(answer.headers)}), flush=True)
    return answer

with httpx.Client(base_url=base, timeout=60) as client:
    held = told("asked", client.post("/v1/chat/completions", json=ask))
    token = held.headers.get("crp-set-session", "").split(";")[0].removeprefix("token=")
    if held.status_code == 451:
        path = httpx.URL(held.json()["metadata"]["held_uri"]).path
        for _ in range(600):
            seen = client.get(path, headers={"crp-session-token": token}).json()
            if seen.get("status") != "PENDING":
                break
            time.sleep(0.5)
        print(json.dumps({"what": "decided", **seen}), flush=True)
        given = {"crp-session-token": token, "crp-oversight-token": seen.get("oversight_token", "")}
        told("released", client.post("/v1/chat/completions", json=ask, headers=given))
"""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A reviewer's key, made as a reviewer makes it."""
    path = tmp_path_factory.mktemp("reviewer") / "reviewer.key"
    done = interlock("oversight", "keygen", REVIEWER, "--out", str(path), "-o", "json")
    path.with_suffix(".public").write_text(json.loads(done)["public_key"])
    return path


@pytest.fixture(scope="module")
def regulated(release: Release, key: Path) -> Iterator[Release]:
    """The release, installed with the chart's own profile, beside the other one."""
    api, stage = release.stage.api, release.stage
    namespace(api, MESH)
    namespace(api, AGENTS)
    api.create("serviceaccounts", {"metadata": {"name": ACCOUNT}}, AGENTS)
    kept(release, key)
    values = stage.folder / "regulated.yaml"
    values.write_text(yaml.safe_dump(VALUES))
    done = helm(
        release,
        "install",
        NAME,
        CHART,
        "-f",
        CHART / "profiles" / "regulated.yaml",
        "-f",
        values,
        "--wait",
        "--timeout",
        "5m",
    )
    assert done.returncode == 0, done.stderr + stage.node.logs(MESH)
    yield release
    helm(release, "uninstall", NAME, "--wait")


def kept(release: Release, key: Path) -> None:
    """Write the Secrets that the profile names, as an operator does."""
    api, stage = release.stage.api, release.stage
    signing = Ed25519PrivateKey.generate().private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    agents = {
        "billing": {"service_accounts": [f"{AGENTS}/{ACCOUNT}"]},
        "helm-test": {"api_key": f"sha256:{hashlib.sha256(b'helm-test').hexdigest()}"},
    }
    people = {REVIEWER: {"public_key": key.with_suffix(".public").read_text()}}
    files = {
        "interlock-keys": {
            "master-key": secrets.token_hex(32),
            "binding-key": secrets.token_hex(32),
            "checkpoint.pem": signing.decode(),
        },
        "interlock-agents": {"agents.yaml": yaml.safe_dump({"agents": agents})},
        "interlock-reviewers": {"reviewers.yaml": yaml.safe_dump({"reviewers": people})},
        "interlock-api-keys": {"api-keys.yaml": yaml.safe_dump({"owner": hashlib.sha256(b"owner").hexdigest()})},
        "interlock-valkey": {"url": f"redis://{VALKEY[0]}:{VALKEY[1]}/1"},
        "interlock-postgres": stage.database(),
    }
    for name, data in files.items():
        secret(api, name, MESH, **data)
    secret(api, "provider", AGENTS, api_key="sk-of-the-provider")


def helm(release: Release, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return helmed(*arguments, "--namespace", MESH, "--kubeconfig", release.stage.plane.kubeconfig)


def interlock(*arguments: str, **env: str) -> str:
    """Run a command of the operator's or reviewer's, outside of the cluster's pods; fails where it fails."""
    named_ = {name: value for name, value in os.environ.items() if not name.startswith("INTERLOCK_")}
    command = [sys.executable, "-m", "interlock.cli.main", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, env={**named_, **env})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def agent(release: Release, name: str, account: str) -> str:
    """Start an agent's pod; return its name."""
    made = pod(containers=[container(WAITS, SOURCE=SOURCE, QUESTION=QUESTION)], serviceAccountName=account)
    release.stage.api.create("pods", named(name, made), AGENTS)
    return name


def lines(release: Release, name: str) -> dict[str, Json]:
    """Return what an agent has printed, by what it is about."""
    folder = next((one for one in release.stage.node.folders(AGENTS) if one.name.startswith(name)), None)
    file = folder / "agent.log" if folder else None
    text = file.read_text() if file and file.exists() else ""
    return {one["what"]: one for one in map(json.loads, (line for line in text.splitlines() if line.startswith("{")))}


def reviewers_side(release: Release, folder: Path) -> dict[str, str]:
    """Return how a reviewer's command line reaches the oversight service: with the operator's certificate."""
    held = decoded(release.stage.api.get("secrets", f"{NAME}-operator-tls", MESH))
    env = {}
    for setting, entry in (("CERT", "tls.crt"), ("KEY", "tls.key"), ("CA", "ca.crt")):
        file = folder / entry
        file.write_bytes(held[entry])
        file.chmod(0o600)
        env[f"INTERLOCK_TLS_{setting}_FILE"] = str(file)
    pods = [
        one
        for one in release.stage.node.pods.values()
        if one.namespace == MESH and one.name.startswith(f"{NAME}-oversight-")
    ]
    return {
        **env,
        "INTERLOCK_OVERSIGHT_ADDRESS": f"{pods[0].place.address}:7085",
        "INTERLOCK_STATE_DIR": str(folder / "state"),
    }


def in_audit(release: Release, *arguments: str) -> str:
    """Run a command beside the audit service."""
    found = next(
        one
        for one in release.stage.node.pods.values()
        if one.namespace == MESH and one.name.startswith(f"{NAME}-audit-")
    )
    done = found.containers()[-1].run([*ENTRYPOINT, *arguments], 60)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    text: str = done.stdout.decode()
    return text


def test_an_answer_waits_for_a_person_who_releases_it(regulated: Release, key: Path, tmp_path: Path):
    """A false answer is held; a reviewer reads, approves and signs; the waiting agent gets it once, and the record names the reviewer."""
    regulated.stage.provider.answers(FALSE)
    name = agent(regulated, "waiting", ACCOUNT)
    told = lambda: regulated.stage.node.logs(AGENTS) + regulated.stage.node.logs(MESH)  # noqa: E731 - said twice below
    until("its answer is held", lambda: "asked" in lines(regulated, name), 120, told)
    asked = lines(regulated, name)["asked"]
    assert asked["status"] == 451, asked
    window = json.loads(asked["body"])["metadata"]["window_id"]
    side = reviewers_side(regulated, tmp_path)
    shown = interlock("oversight", "show", window, "--key", str(key), **side)
    interlock("oversight", "approve", window, "--key", str(key), "--reason", "RISK_ACCEPTED", **side)
    until("it is released", lambda: "released" in lines(regulated, name), 120, told)
    seen = lines(regulated, name)
    verified = in_audit(regulated, "audit", "verify", asked["headers"]["crp-context-session-id"])

    assert FALSE in shown
    assert ("APPROVED", REVIEWER) == (seen["decided"]["status"], seen["decided"]["reviewer_id"])
    assert (200, True) == (seen["released"]["status"], FALSE in seen["released"]["body"]), seen["released"]
    assert "9,700" not in asked["body"]
    assert "BROKEN" not in verified


def test_a_pod_of_an_unregistered_account_calls_nobody(regulated: Release):
    """Its service account is no agent type's: the provider's key that it sends helps nothing."""
    regulated.stage.provider.reset()
    regulated.stage.provider.answers(FALSE)
    name = agent(regulated, "stranger", "default")
    until("it was told", lambda: "asked" in lines(regulated, name), 120, lambda: regulated.stage.node.logs(AGENTS))
    asked = lines(regulated, name)["asked"]

    assert (403, "AGENT_NOT_REGISTERED") == (asked["status"], json.loads(asked["body"])["reason"]), asked
    assert not regulated.stage.provider.received


def test_the_record_has_its_witness_and_the_release_its_test(regulated: Release):
    """Checkpoints lie at the anchor's claim; `helm test` makes and verifies a governed call; check --cluster finds no fault."""
    done = helm(regulated, "test", NAME, "--timeout", "3m")
    anchored = list((regulated.stage.folder / "pods" / "claims" / MESH / "interlock-anchor").rglob("*"))
    checked = interlock(
        "check", "--cluster", "--kubeconfig", str(regulated.stage.plane.kubeconfig), "--namespace", MESH
    )

    assert done.returncode == 0, done.stdout + done.stderr + regulated.stage.node.logs(MESH)
    assert any(one.is_file() for one in anchored)
    assert "FAIL" not in checked

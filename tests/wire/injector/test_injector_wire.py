"""The injector as a process, over HTTPS as the API server calls it."""

from __future__ import annotations

import shutil
import ssl
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.servers.processes import Processes
from tests.support.servers.tls import a_mesh_of_certificates, dns, issue, uri
from tests.unit.injector.test_golden_pods import FOLDER, case

pytestmark = [pytest.mark.req("KUB-3"), pytest.mark.timeout(120)]


def review(name: str) -> dict[str, Any]:
    given = case(name)
    request = {"uid": name, "namespace": given["namespace"], "object": given["pod"]}
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}


def post(port: int, ca: Path, path: str, **given: Any) -> httpx.Response:
    context = ssl.create_default_context(cafile=str(ca))
    return httpx.post(f"https://localhost:{port}{path}", verify=context, timeout=30, **given)


@pytest.fixture
def folder(tmp_path) -> Path:
    """Rules and certificates that a test may change."""
    a_mesh_of_certificates(tmp_path / "certificates")
    shutil.copy(FOLDER / "rules.yaml", tmp_path / "rules.yaml")
    return tmp_path


def settings(folder: Path) -> dict[str, Any]:
    held = folder / "certificates"
    named = {"front_cert_file": held / "front.pem", "front_key_file": held / "front.key"}
    return {**named, "injector_file": folder / "rules.yaml", "injector_port": 0}


def test_pods_are_reviewed_over_https_with_rules_and_certificates_that_change(folder):
    """A golden pod is patched, a loosening one refused, rubbish is 400; new rules and a new certificate need no restart."""
    ca = folder / "certificates" / "ca.pem"
    with Processes(folder, settings(folder)) as processes:
        port = processes.process("injector").start().wait().ports["injector"]
        patched = post(port, ca, "/inject/namespace", json=review("opted-in-by-namespace")).json()["response"]
        left = post(port, ca, "/inject/pod", json=review("opted-in-by-namespace")).json()["response"]
        refused = post(port, ca, "/inject/namespace", json=review("profile-loosened")).json()["response"]
        unclear = post(port, ca, "/inject/unclear", json=review("nobody-asks")).json()["response"]
        rubbish = [
            post(port, ca, "/inject/namespace", content=one)
            for one in (b"{", b"[]", b'{"request": {}}', b"[" * 100_000)
        ]

        rules = folder / "rules.yaml"
        rules.write_text(rules.read_text().replace("profile: enforce", "profile: observe"))
        a_mesh_of_certificates(folder / "certificates")
        renewed = (folder / "certificates" / "front.pem").read_text()

        def followed() -> bool:
            now = post(port, ca, "/inject/namespace", json=review("profile-loosened")).json()["response"]["allowed"]
            return bool(now) and ssl.get_server_certificate(("127.0.0.1", port)).strip() in renewed

        assert any(followed() for _ in range(400))
        ready = httpx.get(f"https://localhost:{port}/readyz", verify=ssl.create_default_context(cafile=str(ca)))

    assert ("JSONPatch", True) == (patched["patchType"], patched["allowed"])
    assert (True, False) == (left["allowed"], "patch" in left)
    assert (False, True) == (refused["allowed"], "ANNOTATION_LOOSENS" in refused["status"]["message"])
    assert (False, True) == (unclear["allowed"], "NAMESPACE_LABEL_INVALID" in unclear["status"]["message"])
    assert [400] * 4 == [one.status_code for one in rubbish]
    assert all(one.json()["error"]["reason"] == "ADMISSION_REVIEW_INVALID" for one in rubbish)
    assert 200 == ready.status_code


@pytest.mark.parametrize(("rules", "reason"), [("image: a", "INJECTOR_RULES_INVALID"), (None, "INJECTOR_FILE_MISSING")])
def test_an_injector_without_good_rules_does_not_start(folder, rules, reason):
    """What it cannot mean is said at the start."""
    (folder / "rules.yaml").write_text(rules or "")
    given = settings(folder) | ({} if rules else {"injector_file": ""})
    if not rules:
        del given["injector_file"]
    with Processes(folder, given) as processes, pytest.raises(AssertionError, match=reason):
        processes.process("injector").start().wait()


def test_an_expired_certificate_is_said_at_the_start(folder):
    """Of the webhook and of a mesh's member alike: the log names the setting, and nothing listens."""
    held = folder / "certificates"
    front, member = (issue(held, name, [uri("session"), dns("session")], days=0) for name in ("old", "older"))
    webhook = settings(folder) | {"front_cert_file": front["tls_cert_file"], "front_key_file": front["tls_key_file"]}
    for service, given in (("injector", webhook), ("session", dict(member))):
        with Processes(folder, given) as processes, pytest.raises(AssertionError) as caught:
            processes.process(service).start().wait()
        assert "TLS_FILES_INVALID" in str(caught.value)
        assert "not valid now" in str(caught.value)

"""The script of the chart's certificates Job, against a stand-in that keeps Secrets as the API server does."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from cryptography import x509

from tests.deploy.tools import CHART

pytestmark = pytest.mark.req("KUB-2")

MEMBERS = ("session=mesh/il-session-tls", "sidecar=agents/interlock-sidecar")


class Secrets(BaseHTTPRequestHandler):
    """GET, POST and PUT of Secrets, with a bearer token."""

    held: dict[str, dict[str, Any]]

    def answer(self, code: int, body: Any) -> None:
        text = json.dumps(body).encode()
        self.send_response(code if self.headers["Authorization"] == "Bearer t" else 401)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def given(self) -> dict[str, Any]:
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self) -> None:
        found = self.held.get(self.path)
        self.answer(200 if found else 404, found or {})

    def do_POST(self) -> None:
        secret = self.given()
        self.held[f"{self.path}/{secret['metadata']['name']}"] = secret
        self.answer(201, secret)

    def do_PUT(self) -> None:
        self.held[self.path] = self.given()
        self.answer(200, {})

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture
def api() -> Iterator[tuple[str, dict[str, Any]]]:
    """The stand-in's address, and what it holds."""
    handler = type("Held", (Secrets,), {"held": {}})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}", handler.held
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_job_writes_a_certificate_for_each_member_and_keeps_its_authority(api, tmp_path):
    """A second run, as after an upgrade, renews the certificates under the same authority."""
    address, held = api
    (tmp_path / "token").write_text("t")
    command = [sys.executable, str(CHART / "files" / "certificates.py"), "mesh", "il", "30", *MEMBERS]
    env = {**os.environ, "KUBERNETES_API": address, "ACCOUNT_DIR": str(tmp_path)}

    def run() -> tuple[bytes, bytes, bytes]:
        subprocess.run(command, env=env, check=True, capture_output=True, timeout=60)
        data = held["/api/v1/namespaces/agents/secrets/interlock-sidecar"]["data"]
        authority = held["/api/v1/namespaces/mesh/secrets/il-authority"]["data"]["ca.key"]
        return base64.b64decode(data["tls.crt"]), base64.b64decode(data["ca.crt"]), base64.b64decode(authority)

    first, second = run(), run()
    certificate = x509.load_pem_x509_certificate(first[0])
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value

    assert ["spiffe://interlock/sidecar"] == names.get_values_for_type(x509.UniformResourceIdentifier)
    assert first[1:] == second[1:]
    assert first[0] != second[0]
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(second[1]))
    assert 3 == len(held)
